// SPDX-License-Identifier: MIT
#include "bench.hpp"

namespace sar::bench {

Triad::Triad(std::size_t array_bytes)
    : a_(Shape{static_cast<Index>(array_bytes / sizeof(real))}),
      b_(Tensor::full(a_.shape(), 1)),
      c_(Tensor::full(a_.shape(), 2)) {
  a_.fill(0);
}

void Triad::operator()() {
  constexpr Index grain = 1 << 17;
  real* a = a_.data();
  const real* b = b_.data();
  const real* c = c_.data();
  parallel_for(a_.size(), grain, [=](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) a[i] = b[i] + real{3} * c[i];
  });
}

double Triad::bytes() const {
  return 3.0 * static_cast<double>(a_.bytes());
}

double triad_rate() {
  Triad triad;
  const auto [seconds] = best_seconds(15, triad);
  return triad.bytes() / seconds * 1e-9;
}

}  // namespace sar::bench
