// SPDX-License-Identifier: MIT

// Conversions and sums of rows of several types, vectorized. Bytes moved per number: those read and written.
#include <sar/core/error.hpp>
#include <sar/core/simd/lanes.hpp>
#include <sar/core/tensor/typed_rows.hpp>
#include <sar/core/threads/parallel.hpp>

#include <sar/core/isa/isa_begin.hpp>

namespace {

using lanes::load;
using lanes::number;
using lanes::set_number;
using lanes::store;
using lanes::vector_lanes;

template <class From, class To>
void add_numbers(const From* from, Index n, To* to, bool accumulate) {
  Index i = 0;
  for (; i + vector_lanes <= n; i += vector_lanes)
    store(to + i, accumulate ? load(to + i) + load(from + i) : load(from + i));
  for (; i < n; ++i) set_number(to[i], accumulate ? number(to[i]) + number(from[i]) : number(from[i]));
}

/// to (+)= from, of which one or both are exact sums.
void add_exact_sums(const TypedRows& from, TypedRows& to, Index begin, Index end, bool accumulate) {
  const ExactSum* const terms = from.exact_sums();
  const auto term = [&](Index i) {
    return terms != nullptr ? terms[i] : ExactSum{static_cast<double>(from.reals().data()[i]), 0};
  };
  if (ExactSum* const sums = to.exact_sums(); sums != nullptr) {
    for (Index i = begin; i < end; ++i) {
      if (!accumulate) sums[i] = {};
      sums[i].add(term(i));
    }
    return;
  }
  real* const out = to.reals().data();
  for (Index i = begin; i < end; ++i)
    out[i] = static_cast<real>((accumulate ? static_cast<double>(out[i]) : 0) + terms[i].value());
}

}  // namespace

void widen(const Bfloat16* from, Index n, real* to) {
  Index i = 0;
  for (; i + vector_lanes <= n; i += vector_lanes) store(to + i, load(from + i));
  for (; i < n; ++i) to[i] = number(from[i]);
}

void narrow(const real* from, Index n, Bfloat16* to) {
  Index i = 0;
  for (; i + vector_lanes <= n; i += vector_lanes) store(to + i, load(from + i));
  for (; i < n; ++i) set_number(to[i], from[i]);
}

void add_rows(const TypedRows& from, TypedRows& to, bool accumulate) {
  constexpr Index grain = 1 << 15;
  require<ShapeError>(from.shape() == to.shape(), "rows of shape ", from.shape(),
                      " are added to rows of shape ", to.shape());
  const bool exact = from.exact_sums() != nullptr || to.exact_sums() != nullptr;
  require(!exact || !(from.is_bfloat16() || to.is_bfloat16()), "exact sums and rows of bfloat16 are added");
  parallel_for(to.size(), grain, [&](Index begin, Index end) {
    if (exact) return add_exact_sums(from, to, begin, end, accumulate);
    const auto add_to = [&](auto* sums) {
      if (from.is_bfloat16())
        add_numbers(from.bfloat16() + begin, end - begin, sums + begin, accumulate);
      else
        add_numbers(from.reals().data() + begin, end - begin, sums + begin, accumulate);
    };
    if (to.is_bfloat16())
      add_to(to.bfloat16());
    else
      add_to(to.reals().data());
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, widen, (const Bfloat16* from, Index n, real* to), (from, n, to));
SAR_DISPATCH(void, narrow, (const real* from, Index n, Bfloat16* to), (from, n, to));
SAR_DISPATCH(void, add_rows, (const TypedRows& from, TypedRows& to, bool accumulate), (from, to, accumulate));
