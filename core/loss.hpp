/// Losses of the rows of one rank: sums of terms, which the caller divides by their number on all ranks, and
/// gradients. Terms are added in double precision and in a fixed order; the exponentials of a row as
/// row_lanes.hpp does.
///
/// Memory traffic: operands are read once, and gradients written once. Time, to that of a copy of the tensors
/// that are read (bench_rows, AVX-512): cross entropy 0.6 to 1.4 forward and 1.3 to 1.6 backward from 128
/// columns on, 2.0 to 2.7 at 32 and 40 columns (arithmetic: see softmax.hpp), squared errors 0.6 and 0.8,
/// binary cross entropy 0.7 to 1.1 and 0.9 backward.
#pragma once

#include <sar/core/tensor.hpp>

#include <cstdint>
#include <span>

namespace sar::inline SAR_PRECISION {

struct SumAndCount {
  double sum = 0;
  double count = 0;  ///< terms
};

/// Of rows x_i [n, C] with a target t_i >= 0; others do not count:
///
///     sum_i -log softmax(x_i)[t_i]
SumAndCount cross_entropy_sum(const Tensor& x, std::span<const std::int32_t> targets);

/// Of the same rows, and 0 in the others:
///
///     out_ij (+)= scale (softmax(x_i)_j - [j = t_i])
void cross_entropy_backward(const Tensor& x, std::span<const std::int32_t> targets, real scale, Tensor& out,
                            bool accumulate);

/// Of all elements x with their targets t:
///
///     sum -t log sigmoid(x) - (1 - t) log(1 - sigmoid(x))
///
/// in a form that neither overflows nor cancels.
SumAndCount bce_sum(const Tensor& x, const Tensor& target);

/// out (+)= scale (sigmoid(x) - t)
void bce_backward(const Tensor& x, const Tensor& target, real scale, Tensor& out, bool accumulate);

/// sum (a - b)^2
SumAndCount squared_error_sum(const Tensor& a, const Tensor& b);

/// out (+)= scale (a - b)
void squared_error_backward(const Tensor& a, const Tensor& b, real scale, Tensor& out, bool accumulate);

/// sum |a - b|
SumAndCount absolute_error_sum(const Tensor& a, const Tensor& b);

/// out (+)= scale sign(a - b), 0 where a = b
void absolute_error_backward(const Tensor& a, const Tensor& b, real scale, Tensor& out, bool accumulate);

/// The sum over all d = a - b of
///
///     |d| <= delta ? d^2 / 2 : delta (|d| - delta / 2)
SumAndCount huber_sum(const Tensor& a, const Tensor& b, real delta);

/// out (+)= scale min(max(a - b, -delta), delta)
void huber_backward(const Tensor& a, const Tensor& b, real delta, real scale, Tensor& out, bool accumulate);

/// Of the rows where the mask is not 0: how many have their largest element (the first of equals) at the
/// label. A row with a NaN has not.
SumAndCount count_correct(const Tensor& x, std::span<const std::int64_t> labels,
                          std::span<const std::uint8_t> mask);

}  // namespace sar
