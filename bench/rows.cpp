// SPDX-License-Identifier: MIT

/// Kernels of rows - norms, softmax, losses, sums - beside a copy of the tensors that they read, on one
/// thread and on all: the ratio is the time of the copy divided by that of the kernel.
///
///     bench_rows [rows [kernel]]        default 89344 rows, of 32, 40, 128 and 256 columns; all kernels whose
///                                       names do not begin otherwise
#include "bench.hpp"

#include <sar/core/error.hpp>
#include <sar/core/rows/batch_norm.hpp>
#include <sar/core/rows/layer_norm.hpp>
#include <sar/core/rows/loss.hpp>
#include <sar/core/rows/rows.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <vector>

namespace sar::bench {
namespace {

std::string_view chosen;  // kernels whose names begin so

/// Values in [-2, 2).
Tensor values(const Shape& shape, Index step) {
  Tensor t(shape);
  for (Index i = 0; i < t.size(); ++i) t.data()[i] = static_cast<real>(i * step % 4093) / 1024 - 2;
  return t;
}

void copy(const Tensor& from, Tensor& to) {
  constexpr Index grain = 1 << 16;
  parallel_for(from.size(), grain, [&](Index begin, Index end) {
    std::memcpy(to.data() + begin, from.data() + begin, static_cast<std::size_t>(end - begin) * sizeof(real));
  });
}

/// The kernel beside a copy of as many tensors of x's size as it reads.
void compare(const char* kernel, const Tensor& x, int tensors_read, FunctionRef<void()> run) {
  if (!std::string_view(kernel).starts_with(chosen)) return;
  constexpr int repetitions = 15;
  Tensor to(x.shape()), y = x.clone(), to_y(x.shape());
  const double bytes = tensors_read * static_cast<double>(x.bytes());
  for (const int threads : std::set<int>{1, num_threads()}) {
    const ThreadLimit limit(threads);
    const auto [ours, of_copy] = best_seconds(repetitions, run, [&] {
      copy(x, to);
      if (tensors_read == 2) copy(y, to_y);
    });
    print({.name = concat(kernel, " ", x.shape()),
           .seconds = ours,
           .rate = bytes / ours * 1e-9,
           .reference = bytes / of_copy * 1e-9});
  }
}

void norms(const Tensor& x, const Tensor& g, Tensor& out) {
  const Index width = x.row_size();
  const Tensor weight = values({width}, 3), bias = values({width}, 5);
  std::vector<double> sums(2 * width);
  compare("layer_norm", x, 1, [&] { layer_norm(x, weight, bias, 1e-5, out); });
  compare("layer_norm_backward_sums", x, 2, [&] { layer_norm_backward_sums(x, g, 1e-5, sums); });
  out.copy_from(g);
  compare("layer_norm_backward_x", x, 2, [&] { layer_norm_backward_x(x, weight, 1e-5, out); });

  BatchNormCoefficients c(width);
  for (Index j = 0; j < width; ++j) c.set(j, 0.1, 1.3, 1e-5, 0.9, 0.2);
  const std::vector<real> mean_g(width, real(0.1)), mean_gx(width, real(0.2));
  out.copy_from(g);
  compare("column_moments", x, 1, [&] { (void)column_moments(x); });
  compare("batch_norm", x, 1, [&] { batch_norm(x, c, {.relu = true}, out); });
  compare("batch_norm_backward_sums", x, 2, [&] { batch_norm_backward_sums(x, c, {.relu = true}, g, sums); });
  compare("batch_norm_backward_x", x, 2,
          [&] { batch_norm_backward_x(x, c, {.relu = true}, g, mean_g, mean_gx, out); });
}

void losses(const Tensor& x, const Tensor& g, Tensor& out) {
  std::vector<std::int32_t> targets(x.num_rows());
  for (Index i = 0; i < x.num_rows(); ++i) targets[i] = static_cast<std::int32_t>(i % x.row_size());
  compare("cross_entropy", x, 1, [&] { (void)cross_entropy_sum(x, targets); });
  compare("cross_entropy_backward", x, 1, [&] { cross_entropy_backward(x, targets, 1, out, false); });
  compare("bce", x, 2, [&] { (void)element_loss_sum({ElementLoss::bce}, x, g); });
  compare("bce_backward", x, 2, [&] { element_loss_backward({ElementLoss::bce}, x, g, 1, out, false); });
  compare("mse", x, 2, [&] { (void)element_loss_sum({ElementLoss::squared}, x, g); });
  compare("mse_backward", x, 2, [&] { element_loss_backward({ElementLoss::squared}, x, g, 1, out, false); });
}

void run(Index rows, Index width) {
  const Tensor x = values({rows, width}, 7), g = values({rows, width}, 11);
  Tensor out({rows, width}), sums({width});
  norms(x, g, out);
  compare("softmax", x, 1, [&] { softmax_rows(x, out); });
  compare("softmax_backward", x, 2, [&] { softmax_rows_backward(x, g, out); });
  compare("log_softmax", x, 1, [&] { log_softmax_rows(x, out); });
  compare("log_softmax_backward", x, 2, [&] { log_softmax_rows_backward(x, g, out); });
  losses(x, g, out);
  compare("sum_of_columns", x, 1, [&] { sum_to(x, sums); });
  compare("sum_squares", x, 1, [&] { (void)sum_squares(x); });
}

}  // namespace
}  // namespace sar::bench

int main(int argc, char** argv) {
  if (argc > 2) sar::bench::chosen = argv[2];
  const sar::Index rows = argc > 1 ? std::atoll(argv[1]) : 89344;
  for (const sar::Index width : {32, 40, 128, 256}) sar::bench::run(rows, width);
}
