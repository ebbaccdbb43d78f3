// SPDX-License-Identifier: MIT
#include <sar/autograd/activations.hpp>
#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/op_support.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/sparse_variable.hpp>
#include <sar/autograd/sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/dropout.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/layer_norm.hpp>
#include <sar/core/rows/loss.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/tensor/deferred_rows.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// Applies forward(x, y). Keeps its result or its argument for backward(kept, grad, dx, accumulate),
/// whichever that needs.
template <class Forward, class Backward>
Variable apply(Variable x, bool keeps_result, const Forward& forward, Backward backward) {
  const bool recorded = recording({&x});
  TypedRows kept = recorded && !keeps_result ? x.rows() : TypedRows();
  TypedRows y =
      compute_elementwise(x.take_rows(), [&](Index, Tensor& out, const Tensor& in) { forward(in, out); });
  if (!recorded) return y;
  if (keeps_result) kept = y;
  return record(std::move(y), [dx = x.gradient(), kept, backward](TypedRows grad) {
    pass_elementwise(
        *dx, std::move(grad),
        [&](Index, Tensor& out, bool accumulate, const Tensor& g, const Tensor& of_kept) {
          backward(of_kept, g, out, accumulate);
        },
        kept);
  });
}

Variable activation(Unary op, Variable x, real parameter = 0);

/// Returns f'(x) of a function that is linear on both sides of 0.
Variable constant_slope(Unary op, const Variable& x, const Variable& y, real parameter) {
  Tensor slope(x.shape());
  unary_backward(op, differentiates_from_output(op) ? y.value() : x.value(), Tensor::full(x.shape(), 1),
                 slope, false, parameter);
  return slope;
}

/// Returns the tangent of y = f(x) along dx.
Variable activation_tangent(Unary op, const Variable& x, const Variable& y, const Variable& dx,
                            real parameter) {
  switch (op) {
    case Unary::relu:
    case Unary::leaky_relu:
    case Unary::abs:
      return constant_slope(op, x, y, parameter) * dx;
    case Unary::elu:  // 1 on the right of 0, y + parameter on the left
      return where(relu(x.detach()).value(), Tensor::full({1}, 1), y + parameter) * dx;
    case Unary::sigmoid:
      return (y - y * y) * dx;
    case Unary::softplus:
      return sigmoid(x) * dx;
    case Unary::tanh:
      return (real{1} - y * y) * dx;
    case Unary::exp:
      return y * dx;
    case Unary::log:
      return dx / x;
    case Unary::sqrt:
      return dx / (y * real{2});
    case Unary::silu: {
      const Variable s = sigmoid(x);
      return (s + y * (real{1} - s)) * dx;
    }
    case Unary::gelu:  // refused
    case Unary::gelu_tanh:
      break;
  }
  return {};
}

Variable activation_of_dual(Unary op, const Variable& x, real parameter) {
  if (op == Unary::gelu || op == Unary::gelu_tanh) refuse_tangents({&x}, "gelu");
  const Variable value = x.primal(), y = activation(op, value, parameter);
  return make_dual(y, activation_tangent(op, value, y, x.tangent(), parameter));
}

Variable activation(Unary op, Variable x, real parameter) {
  if (x.is_dual()) return activation_of_dual(op, x, parameter);
  return apply(
      std::move(x), differentiates_from_output(op),
      [=](const Tensor& in, Tensor& out) { unary(op, in, out, parameter); },
      [=](const Tensor& kept, const Tensor& g, Tensor& out, bool accumulate) {
        unary_backward(op, kept, g, out, accumulate, parameter);
      });
}

/// Rows of x with dropout applied on reading; other handles keep x alive anyway.
class DroppedRows : public DeferredRows {
 public:
  DroppedRows(TypedRows x, DropoutBits bits)
      : DeferredRows(x.shape(), elementwise_type(x.type())), x_(std::move(x)), bits_(std::move(bits)) {}
  void compute(Index first, Index count, real* out) const override {
    if (x_.is_real()) return bits_.apply_rows(first, count, x_.reals().row(first), out);
    widen(x_.bfloat16() + first * x_.row_size(), count * x_.row_size(), out);
    bits_.apply_rows(first, count, out, out);
  }
  [[nodiscard]] std::span<const std::byte> reads(Index first, Index count) const override {
    const Index width = x_.row_size();
    return {static_cast<const std::byte*>(x_.at(first * width)),
            static_cast<std::size_t>(count * width * bytes_of(x_.type()))};
  }

 private:
  TypedRows x_;
  DropoutBits bits_;
};

}  // namespace

Variable relu(Variable x) {
  return activation(Unary::relu, std::move(x));
}
Variable leaky_relu(Variable x, real negative_slope) {
  return activation(Unary::leaky_relu, std::move(x), negative_slope);
}
Variable elu(Variable x, real alpha) {
  return activation(Unary::elu, std::move(x), alpha);
}
Variable sigmoid(Variable x) {
  return activation(Unary::sigmoid, std::move(x));
}
Variable softplus(Variable x) {
  return activation(Unary::softplus, std::move(x));
}
Variable tanh(Variable x) {
  return activation(Unary::tanh, std::move(x));
}
Variable exp(Variable x) {
  return activation(Unary::exp, std::move(x));
}
Variable log(Variable x) {
  return activation(Unary::log, std::move(x));
}

Variable sqrt(Variable x) {
  return activation(Unary::sqrt, std::move(x));
}
Variable abs(Variable x) {
  return activation(Unary::abs, std::move(x));
}
Variable silu(Variable x) {
  return activation(Unary::silu, std::move(x));
}
Variable gelu(Variable x, GeluApproximation approximation) {
  return activation(approximation == GeluApproximation::none ? Unary::gelu : Unary::gelu_tanh, std::move(x));
}

Variable clamp(Variable x, real low, real high) {
  require(!std::isnan(low) && !std::isnan(high), "clamp between ", low, " and ", high, ", expected numbers");
  if (x.is_dual()) {
    Tensor slope(x.shape());
    clamp_backward(x.value(), low, high, Tensor::full(x.shape(), 1), slope);
    return make_dual(clamp(x.primal(), low, high), x.tangent() * Variable(slope));
  }
  return apply(
      std::move(x), false, [=](const Tensor& in, Tensor& out) { clamp(in, low, high, out); },
      [=](const Tensor& kept, const Tensor& g, Tensor& out, bool accumulate) {
        clamp_backward(kept, low, high, g, out, accumulate);
      });
}

Variable pow(Variable x, real exponent) {
  if (x.is_dual()) {  // dy = p x^(p - 1) dx
    const Variable slope =
        exponent == 0 ? Variable(Tensor::zeros({1})) : pow(x.primal(), exponent - 1) * exponent;
    return make_dual(pow(x.primal(), exponent), slope * x.tangent());
  }
  return apply(
      std::move(x), false,
      [=](const Tensor& in, Tensor& out) {
        parallel_for_each(out.size(), 4096, [=, from = in.data(), to = out.data()](Index i) {
          to[i] = std::pow(from[i], exponent);
        });
      },
      [=](const Tensor& kept, const Tensor& g, Tensor& out, bool accumulate) {
        parallel_for_each(out.size(), 4096,
                          [=, from = kept.data(), grad = g.data(), to = out.data()](Index i) {
                            const real slope = exponent == 0 ? 0 : exponent * std::pow(from[i], exponent - 1);
                            to[i] = accumulate ? to[i] + grad[i] * slope : grad[i] * slope;
                          });
      });
}

Variable softmax(Variable x) {
  if (x.is_dual()) {  // dy = y (dx - sum of y dx)
    const Variable y = softmax(x.primal()), dx = x.tangent();
    return make_dual(y, y * (dx - sum(y * dx, ReduceDim::columns)));
  }
  return apply(std::move(x), true, softmax_rows, softmax_rows_backward);
}
Variable log_softmax(Variable x) {
  if (x.is_dual()) {  // dy = dx - sum of exp(y) dx
    const Variable y = log_softmax(x.primal()), dx = x.tangent();
    return make_dual(y, dx - sum(exp(y) * dx, ReduceDim::columns));
  }
  return apply(std::move(x), true, log_softmax_rows, log_softmax_rows_backward);
}

Variable dropout(Variable x, double p, const RandomKey& key, RowIds row_ids) {
  const DropoutMask mask(key, p);
  require<ShapeError>(row_ids.size() == x.num_rows(), "dropout: ", row_ids.size(),
                      " row ids for a tensor of shape ", x.shape());
  if (p == 0) return x;
  if (x.is_dual())
    return apply_linear(x, [&](Variable part) { return dropout(std::move(part), p, key, row_ids); });
  if (const auto sparse = sparse_matrix(x)) return Variable(mask.apply(*sparse, row_ids.span()));
  const bool recorded = recording({&x});
  const DropoutBits bits(mask, row_ids.span(), x.shape().row_size());
  TypedRows input = x.take_rows();
  Variable y;
  if (Tape::current() != nullptr && !input.unique()) {
    y = Variable(std::make_shared<const DroppedRows>(std::move(input), bits));
  } else {
    y = compute_elementwise(std::move(input), [&](Index first, Tensor& out, const Tensor& in) {
      bits.apply_to_part(first, in, out);
    });
  }
  if (!recorded) return y;
  return record(y, [dx = x.gradient(), bits](TypedRows grad) {
    pass_elementwise(*dx, std::move(grad), [&](Index first, Tensor& out, bool accumulate, const Tensor& g) {
      bits.apply_to_part(first, g, out, accumulate);
    });
  });
}

// The forward pass keeps no statistics. The backward pass goes over x and the gradient twice, once for the
// gradients of weight and bias and once for that of x, and computes the statistics of each row again.

namespace {

/// sums += those of layer_norm_backward_sums(), of rows of several types some thousand at a time.
void add_backward_sums(const TypedRows& x, const TypedRows& grad, double eps, std::span<double> sums) {
  if (x.is_real() && grad.is_real()) return layer_norm_backward_sums(x.reals(), grad.reals(), eps, sums);
  constexpr Index at_once = 1 << 13;
  std::vector<double> of_part(sums.size());
  for (Index begin = 0; begin < x.num_rows(); begin += at_once) {
    const Index end = std::min(x.num_rows(), begin + at_once);
    layer_norm_backward_sums(real_rows(x, begin, end), real_rows(grad, begin, end), eps, of_part);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += of_part[i];
  }
}

/// With z = (x - mean) r, r = 1 / sqrt(var + eps) and means over a row:
///
///     dz = r (dx - mean(dx) - z mean(z dx))        dy = dz weight + z dweight + dbias
Variable layer_norm_of_dual(const Variable& x, const Variable& weight, const Variable& bias, double eps) {
  const auto row_mean = [](const Variable& rows) { return mean(rows, ReduceDim::columns); };
  const Variable value = x.primal(), y = layer_norm(value, weight.primal(), bias.primal(), eps);
  const Variable deviation = value - row_mean(value);
  const Variable root = sqrt(row_mean(deviation * deviation) + static_cast<real>(eps));
  const Variable z = deviation / root;
  Variable tangent = bias.tangent();
  if (weight.is_dual()) tangent = tangent_sum(z * weight.tangent(), tangent, y.shape());
  if (x.is_dual()) {
    const Variable dx = x.tangent();
    Variable dz = (dx - row_mean(dx) - z * row_mean(z * dx)) / root;
    if (weight.defined()) dz = dz * weight.primal();
    tangent = tangent_sum(dz, tangent, y.shape());
  }
  return make_dual(y, tangent_sum(tangent, {}, y.shape()));
}

}  // namespace

Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, double eps) {
  const Index columns = x.shape().row_size();
  require<ShapeError>(
      x.shape().dims() == 2 && weight.defined() == bias.defined() &&
          (!weight.defined() || (weight.shape() == Shape{columns} && bias.shape() == Shape{columns})),
      "layer_norm of a tensor of shape ", x.shape(), " with a weight of shape ", weight.shape(),
      " and a bias of shape ", bias.shape());
  if (any_dual({&x, &weight, &bias})) return layer_norm_of_dual(x, weight, bias, eps);
  TypedRows y(x.shape(), elementwise_type(x.type()));
  on_real_rows(
      y, false,
      [&](Index, Tensor& out, const Tensor& rows) {
        layer_norm(rows, weight.value(), bias.value(), eps, out);
      },
      x.rows());
  if (!recording({&x, &weight, &bias})) return y;
  return record(std::move(y), [kept_x = x.rows(), kept_weight = weight.value(), eps, dx = x.gradient(),
                               dweight = weight.gradient(), dbias = bias.gradient(),
                               sums_of_ranks = rank_sums()](TypedRows grad) {
    // sums: the gradient of weight, then that of bias
    if (sums_of_ranks != nullptr && (dweight != nullptr || dbias != nullptr)) {
      const Tensor g = grad.to_tensor();
      Tensor product(g.shape());
      layer_norm(kept_x.to_tensor(), Tensor(), Tensor(), eps, product);
      binary(BinaryOp::mul, product, g, product);
      if (dweight != nullptr) add_row_products(*sums_of_ranks, nullptr, dweight, product, product, false);
      if (dbias != nullptr) add_row_products(*sums_of_ranks, nullptr, dbias, g, g, false);
    } else if (dweight != nullptr || dbias != nullptr) {
      const Index width = kept_x.row_size();
      std::vector<double> sums(2 * width);
      add_backward_sums(kept_x, grad, eps, sums);
      if (dweight != nullptr) dweight->add(Tensor::from({width}, std::span(sums).first(width)));
      if (dbias != nullptr) dbias->add(Tensor::from({width}, std::span(sums).last(width)));
    }
    if (dx == nullptr) return;
    TypedRows result = grad.unique() ? std::move(grad) : grad.clone();
    on_real_rows(
        result, true,
        [&](Index, Tensor& g, const Tensor& rows) { layer_norm_backward_x(rows, kept_weight, eps, g); },
        kept_x);
    dx->add(std::move(result));
  });
}

// Rows in parallel blocks of about 2^15 elements. Forward: the norm of a row, then its product with scale
// / norm, from cache. Backward: the norm again, x . g, then dx; blocks have partial sums of the gradient
// of `scale`. Bytes moved: x read and y written; x and g read and dx written.

namespace {

constexpr double smallest_norm = 1e-12;

double norm(const real* row, Index width) {
  double sum = 0;
  for (Index j = 0; j < width; ++j) sum += static_cast<double>(row[j]) * static_cast<double>(row[j]);
  return std::sqrt(sum);
}

}  // namespace

Variable scaled_unit_rows(const Variable& x, const Variable& scale) {
  const Tensor& rows = x.value();
  const Index width = rows.row_size();
  const Index grain = std::max<Index>((1 << 15) / std::max<Index>(width, 1), 1);
  Tensor out(x.shape());
  const auto factor = static_cast<double>(scale.value().item());
  parallel_for_each(x.num_rows(), grain, [&](Index i) {
    const real* row = rows.row(i);
    const auto c = static_cast<real>(factor / std::max(norm(row, width), smallest_norm));
    for (Index j = 0; j < width; ++j) out.row(i)[j] = c * row[j];
  });
  if (!recording({&x, &scale})) return out;
  // With n = max(|x|, 1e-12) and g the gradient of y:
  //     dscale = sum_i (x_i . g_i) / n_i
  //     dx = scale / n (g - x (x . g) / n^2), without the second term where |x| <= 1e-12
  return record(std::move(out), [x, scale, factor, width, sums = rank_sums()](const Tensor& grad) {
    Tensor grad_x;
    if (x.requires_grad()) grad_x = Tensor(x.shape());
    double grad_scale = 0;
    const Tensor& values = x.value();
    sum_row_blocks(
        x.num_rows(), width,
        [&](Index first, Index last, double* partial) {
          for (Index i = first; i < last; ++i) {
            const real* row = values.row(i);
            const real* g = grad.row(i);
            const double length = norm(row, width);
            const double inverse = 1 / std::max(length, smallest_norm);
            double dot = 0;
            for (Index j = 0; j < width; ++j) dot += static_cast<double>(row[j]) * static_cast<double>(g[j]);
            *partial += dot * inverse;
            if (!grad_x.defined()) continue;
            const double along = length > smallest_norm ? dot * inverse * inverse : 0;
            for (Index j = 0; j < width; ++j)
              grad_x.row(i)[j] = static_cast<real>(
                  factor * inverse * (static_cast<double>(g[j]) - along * static_cast<double>(row[j])));
          }
        },
        {&grad_scale, 1});
    if (grad_x.defined()) x.gradient()->add(std::move(grad_x));
    if (scale.requires_grad() && sums != nullptr) {
      Tensor terms({x.num_rows(), 1});
      for (Index i = 0; i < x.num_rows(); ++i) {
        const real* row = values.row(i);
        double dot = 0;
        for (Index j = 0; j < width; ++j)
          dot += static_cast<double>(row[j]) * static_cast<double>(grad.row(i)[j]);
        terms.data()[i] = static_cast<real>(dot / std::max(norm(row, width), smallest_norm));
      }
      scale.gradient()->add(row_sums(sums, scale.shape(), terms));
    } else if (scale.requires_grad())
      scale.gradient()->add(Tensor::full(scale.shape(), static_cast<real>(grad_scale)));
  });
}
}}  // namespace sar
