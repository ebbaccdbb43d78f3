/// Differentiable dense operations.
///
/// Each is recorded when a tape is in scope and an operand wants a gradient; for the backward pass it keeps
/// only what its docstring names. Operands are taken by value: an operation may overwrite a temporary (or
/// std::move(x)) whose memory nobody else refers to with the result, so that chains such as relu(linear(x, w,
/// b)) hold one tensor.
///
/// N is the number of rows, D the last dimension. Shapes that do not fit throw ShapeError naming them.
#pragma once

#include <sar/autograd/row_ids.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/core/random.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

// ---- products: products.cpp

/// a b for a [n, k], b [k, m]. Keeps b if a wants a gradient and a if b does.
Variable matmul(Variable a, Variable b);

/// x W^T + b as torch.nn.Linear: x [..., in], weight [out, in], bias [out] or none; result [..., out]. Keeps
/// x if the weight wants a gradient and the weight if x does.
Variable linear(Variable x, Variable weight, Variable bias = {});

/// x W + b for weight [in, out], as DGL's GraphConv stores it; otherwise as linear().
Variable affine(Variable x, Variable weight, Variable bias = {});

/// base + x W^T for base [n, out], x [n, in], weight W [out, in]; in the memory of `base` when nobody else
/// holds it. Keeps x if the weight wants a gradient and the weight if x does.
Variable add_linear(Variable base, const Variable& x, const Variable& weight);

/// y[i] = x[i] w[types[i]] for x [n, in] and a matrix for each type, w [types, in, out], or a block-diagonal
/// one, w [types, blocks, in / blocks, out / blocks]; y [n, out]. Keeps x if w wants a gradient, w if x does,
/// and the row numbers grouped by type.
Variable gather_mm(Variable x, Variable w, std::span<const Index> types);

/// y[i] = x[i] w[i] for x [n, in] and a matrix for each row, w [n, in, out]; y [n, out]. Keeps as above.
Variable bmm(Variable x, Variable w);

// ---- arithmetic with broadcasting: arithmetic.cpp
//
// NumPy's rules: same shape, a row [D] or [1, D], a column [N, 1], a scalar [1], and their extensions to 3
// and 4 dimensions. A vector is always a row, whatever the number of rows happens to be; see scale_rows for a
// column [N].

Variable add(Variable a, Variable b);  ///< a + b; keeps nothing
Variable sub(Variable a, Variable b);  ///< a - b; keeps nothing
Variable mul(Variable a, Variable b);  ///< a * b; keeps each operand if the other wants a gradient
Variable div(Variable a, Variable b);  ///< a / b; keeps b, and the result if b wants a gradient

/// scale x + shift for constants; keeps nothing.
Variable scale_shift(Variable x, real scale, real shift = 0);

/// y[i] = column[i] x[i] for a constant column of shape [N] or [N, 1]; keeps the column.
Variable scale_rows(Variable x, const Tensor& column);

inline Variable operator+(Variable a, Variable b) {
  return add(std::move(a), std::move(b));
}
inline Variable operator-(Variable a, Variable b) {
  return sub(std::move(a), std::move(b));
}
inline Variable operator*(Variable a, Variable b) {
  return mul(std::move(a), std::move(b));
}
inline Variable operator/(Variable a, Variable b) {
  return div(std::move(a), std::move(b));
}
inline Variable operator-(Variable x) {
  return scale_shift(std::move(x), -1);
}
inline Variable operator+(Variable x, real c) {
  return scale_shift(std::move(x), 1, c);
}
inline Variable operator+(real c, Variable x) {
  return scale_shift(std::move(x), 1, c);
}
inline Variable operator-(Variable x, real c) {
  return scale_shift(std::move(x), 1, -c);
}
inline Variable operator-(real c, Variable x) {
  return scale_shift(std::move(x), -1, c);
}
inline Variable operator*(Variable x, real c) {
  return scale_shift(std::move(x), c);
}
inline Variable operator*(real c, Variable x) {
  return scale_shift(std::move(x), c);
}
inline Variable operator/(Variable x, real c) {
  return div(std::move(x), Variable(Tensor::full({1}, c)));
}
inline Variable operator/(real c, Variable x) {
  return div(Variable(Tensor::full({1}, c)), std::move(x));
}

// ---- activations: activations.cpp

Variable relu(Variable x);  ///< max(x, 0), slope 0 at 0; keeps the result
/// x > 0 ? x : slope x, slope >= 0; keeps the result
Variable leaky_relu(Variable x, real negative_slope = static_cast<real>(0.01));
Variable elu(Variable x, real alpha = 1);  ///< x > 0 ? x : alpha (exp(x) - 1); keeps the result
Variable sigmoid(Variable x);              ///< 1 / (1 + exp(-x)); keeps the result
Variable softplus(Variable x);             ///< log(1 + exp(x)); keeps the result
Variable tanh(Variable x);                 ///< keeps the result
Variable exp(Variable x);                  ///< keeps the result
Variable log(Variable x);                  ///< keeps x
Variable sqrt(Variable x);                 ///< slope infinite at 0; keeps the result
Variable abs(Variable x);                  ///< slope 0 at 0; keeps x
Variable silu(Variable x);                 ///< x / (1 + exp(-x)); keeps x

/// How gelu computes the normal distribution function, as torch's argument `approximate`.
enum class GeluApproximation { none, tanh };
/// x (1 + erf(x / sqrt(2))) / 2; with the approximation tanh (Hendrycks & Gimpel, arXiv 1606.08415)
/// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2. Keeps x.
Variable gelu(Variable x, GeluApproximation approximation = GeluApproximation::none);

/// min(max(x, low), high); an infinite bound is none. The slope is 1 where low <= x <= high and 0 elsewhere;
/// where low > high, the result is high, as in torch. Keeps x. Throws Error for a bound that is NaN.
Variable clamp(Variable x, real low, real high);

/// a where the condition is not 0 (also where it is NaN), b elsewhere; the three broadcast. What is not
/// chosen neither counts nor gets a gradient, NaN and infinity too. Keeps the condition.
Variable where(const Tensor& condition, Variable a, Variable b);

Variable softmax(Variable x);      ///< over the last dimension; keeps the result
Variable log_softmax(Variable x);  ///< over the last dimension; keeps the result

/// Each element is 0 with probability p, otherwise x / (1 - p). The draw is a function of (key, row_ids[i],
/// column), of which a bit an element is kept for the backward pass. `row_ids` are the GLOBAL ids of the N
/// rows, so that the draws are the same for every distribution of the rows. p = 0 is the identity. While a
/// tape records and others hold x, the result is computed from x when it is read, and x must not change
/// before. Throws Error unless 0 <= p < 1.
Variable dropout(Variable x, double p, const RandomKey& key, RowIds row_ids);

// ---- normalization: layer_norm.cpp

/// y_ij = (x_ij - mean_i) / sqrt(var_i + eps) * weight_j + bias_j for x [n, D]; mean_i and var_i (biased) are
/// those of row i. weight [D] and bias [D], or none of them. Keeps x and the weight.
Variable layer_norm(const Variable& x, const Variable& weight = {}, const Variable& bias = {},
                    double eps = 1e-5);

// ---- rows, columns, shapes: layout.cpp

/// Side by side: the last dimensions add up, the others are equal. Keeps nothing.
Variable concat_columns(std::span<const Variable> parts);
Variable concat_columns(std::initializer_list<Variable> parts);
/// One below the other: the first dimensions add up, the others are equal. Keeps nothing.
Variable concat_rows(std::span<const Variable> parts);
Variable concat_rows(std::initializer_list<Variable> parts);

/// x[..., begin:end] of the last dimension: a copy.
Variable slice_columns(Variable x, Index begin, Index end);
/// x[begin:end]: shares the memory of x.
Variable slice_rows(Variable x, Index begin, Index end);
/// The same elements under another shape: shares the memory of x.
Variable reshape(Variable x, const Shape& shape);

/// y[i] = x[ids[i]]; keeps the ids.
Variable gather_rows(Variable x, RowIds ids);
/// y [num_rows, ...] with y[ids[i]] += x[i], in the order of i; keeps the ids.
Variable scatter_add_rows(Variable x, RowIds ids, Index num_rows);

// ---- rows of H heads side by side, [N, H, D]: heads.cpp

/// y[i, h] = sum_d a[0, h, d] x[i, h, d] for a [1, H, D]; y [N, H]. Keeps x if a wants a gradient and a if x
/// does.
Variable head_dots(Variable x, Variable a);
/// The mean over the heads: [N, D]; keeps nothing.
Variable head_mean(Variable x);

// ---- sums: sums.cpp. Accumulated in double precision; keep nothing.

/// Which elements are added up: all -> [1]; rows: over the first dimension -> [D] (its extent is dropped);
/// columns: over the last dimension -> [N, 1] (its extent becomes 1).
enum class ReduceDim { all, rows, columns };

Variable sum(Variable x, ReduceDim over = ReduceDim::all);
/// sum divided by the number of elements added up. Throws ShapeError when there are none.
Variable mean(Variable x, ReduceDim over = ReduceDim::all);

}  // namespace sar
