// SPDX-License-Identifier: MIT
#include <sar/autograd/activations.hpp>
#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/dual.hpp>
#include <sar/autograd/op_support.hpp>
#include <sar/autograd/sparse_variable.hpp>
#include <sar/autograd/sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/dropout.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/softmax.hpp>
#include <sar/core/tensor/deferred_rows.hpp>
#include <sar/core/threads/parallel.hpp>

#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

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

}}  // namespace sar
