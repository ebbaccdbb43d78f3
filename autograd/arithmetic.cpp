// SPDX-License-Identifier: MIT

// The gradient of a broadcast operand is a sum over the broadcast dimensions. For a product,
// sum_products_to() multiplies and adds in one pass over the gradient and the other operand, without a
// temporary tensor. Only if both operands were broadcast, or the dividend was, a temporary has the terms.
#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/op_support.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/tensor/broadcast.hpp>

#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Rows [first, first + count) of an operand that is broadcast to `shape`.
Tensor rows_of_operand(const Tensor& x, const Shape& shape, Index first, Index count) {
  const bool has_rows = x.shape().dims() == shape.dims() && x.num_rows() == shape[0];
  return has_rows ? x.slice_rows(first, first + count) : x;
}

/// Returns a op b, in the memory of an operand that has the result's shape and type and no other handle. It
/// is of type bfloat16 if all operands of the result's shape are, in mixed precision.
TypedRows compute_binary(BinaryOp op, TypedRows a, TypedRows b) {
  const Shape shape = broadcast(a.shape(), b.shape());
  const auto is_whole = [&](const TypedRows& x) { return x.shape() == shape; };
  const auto keeps_bfloat16 = [&](const TypedRows& x) { return !is_whole(x) || x.is_bfloat16(); };
  const bool rounds = (is_whole(a) || is_whole(b)) && keeps_bfloat16(a) && keeps_bfloat16(b);
  const NumberType type = elementwise_type(rounds ? NumberType::bfloat16 : NumberType::reals);
  const auto overwritten = [&](const TypedRows& x) { return x.unique() && is_whole(x) && x.type() == type; };
  TypedRows out = overwritten(a) ? a : overwritten(b) ? b : TypedRows(shape, type);
  if (a.is_real() && b.is_real() && !rounds) {
    binary(op, a.reals(), b.reals(), out.reals());
    return out;
  }
  const Tensor part_a = is_whole(a) ? Tensor() : a.to_tensor(),
               part_b = is_whole(b) ? Tensor() : b.to_tensor();
  const auto rows_of = [&](const TypedRows& x, const Tensor& part, Index first, Index count) {
    return is_whole(x) ? real_rows(x, first, first + count) : rows_of_operand(part, shape, first, count);
  };
  on_real_rows(out, false, [&](Index first, Tensor& rows) {
    const Index count = rows.num_rows();
    binary(op, rows_of(a, part_a, first, count), rows_of(b, part_b, first, count), rows);
  });
  return out;
}

/// to += grad, summed over the broadcast dimensions.
void pass_sum(const RankSumsPtr& sums, const GradientPtr& to, TypedRows grad) {
  if (to == nullptr) return;
  if (to->shape() == grad.shape()) {
    to->add(std::move(grad));
  } else if (TypedRows exact = sums != nullptr ? row_sums(sums, to->shape(), grad.to_tensor()) : TypedRows();
             exact.defined()) {
    to->add(std::move(exact));
  } else {
    to->add([&](Tensor& out, bool accumulate) {
      if (grad.is_bfloat16() && out.shape() == Shape{grad.row_size()})
        sum_columns(grad, out, accumulate);
      else
        sum_to(grad.to_tensor(), out, accumulate);
    });
  }
}

/// to += grad * other, summed over the broadcast dimensions.
void pass_product(const RankSumsPtr& sums, const GradientPtr& to, TypedRows grad, const TypedRows& other) {
  if (to == nullptr) return;
  if (to->shape() == grad.shape() && other.shape() == grad.shape()) {
    pass_elementwise(
        *to, std::move(grad),
        [](Index, Tensor& out, bool accumulate, const Tensor& g, const Tensor& factor) {
          binary(BinaryOp::mul, g, factor, out, accumulate);
        },
        other);
  } else if (to->shape() == grad.shape()) {
    const Tensor factor = other.to_tensor();
    pass_elementwise(*to, std::move(grad), [&](Index first, Tensor& out, bool accumulate, const Tensor& g) {
      binary(BinaryOp::mul, g, rows_of_operand(factor, to->shape(), first, g.num_rows()), out, accumulate);
    });
  } else if (other.shape() == grad.shape() && sums == nullptr) {
    to->add([&](Tensor& out, bool accumulate) { sum_products_to(grad, other, out, accumulate); });
  } else {  // both operands were broadcast, or the order of the terms must not matter
    Tensor product(grad.shape());
    binary(BinaryOp::mul, grad, other, product);
    pass_sum(sums, to, std::move(product));
  }
}

/// Returns x broadcast to `shape`.
Tensor repeated(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Tensor out = Tensor::zeros(shape);
  binary(BinaryOp::add, x, Tensor::zeros({1}), out);
  return out;
}

/// out (+)= -x
void negate(Index /*first*/, Tensor& out, bool accumulate, const Tensor& x) {
  scale_shift(x, -1, 0, out, accumulate);
}

}  // namespace

Variable add(Variable a, Variable b) {
  if (any_dual({&a, &b})) {
    const Variable y = add(a.primal(), b.primal());
    return make_dual(y, tangent_sum(a.tangent(), b.tangent(), y.shape()));
  }
  const bool recorded = recording({&a, &b});
  TypedRows y = compute_binary(BinaryOp::add, a.take_rows(), b.take_rows());
  if (!recorded) return y;
  return record(std::move(y), [da = a.gradient(), db = b.gradient(), sums = rank_sums()](TypedRows grad) {
    pass_sum(sums, da, grad);
    pass_sum(sums, db, std::move(grad));
  });
}

Variable sub(Variable a, Variable b) {
  if (any_dual({&a, &b})) {
    const Variable y = sub(a.primal(), b.primal());
    return make_dual(y, tangent_sum(a.tangent(), b.is_dual() ? -b.tangent() : Variable(), y.shape()));
  }
  const bool recorded = recording({&a, &b});
  TypedRows y = compute_binary(BinaryOp::sub, a.take_rows(), b.take_rows());
  if (!recorded) return y;
  return record(std::move(y), [da = a.gradient(), db = b.gradient(), sums = rank_sums()](TypedRows grad) {
    if (db != nullptr && db->shape() != grad.shape() && sums == nullptr) {
      Tensor sum(db->shape());
      sum_to(grad.to_tensor(), sum);
      pass_elementwise(*db, std::move(sum), negate);
    } else if (db != nullptr && db->shape() != grad.shape()) {
      Tensor terms(grad.shape());
      negate(0, terms, false, grad.to_tensor());
      pass_sum(sums, db, std::move(terms));
    } else if (db != nullptr) {
      pass_elementwise(*db, da != nullptr ? grad : std::exchange(grad, {}), negate);
    }
    if (da != nullptr) pass_sum(sums, da, std::move(grad));
  });
}

Variable mul(Variable a, Variable b) {
  if (any_dual({&a, &b})) return apply_bilinear(a, b, mul);
  const bool recorded = recording({&a, &b});
  const TypedRows kept_a = recorded && b.requires_grad() ? a.rows() : TypedRows();
  const TypedRows kept_b = recorded && a.requires_grad() ? b.rows() : TypedRows();
  TypedRows y = compute_binary(BinaryOp::mul, a.take_rows(), b.take_rows());
  if (!recorded) return y;
  return record(std::move(y),
                [da = a.gradient(), db = b.gradient(), kept_a, kept_b, sums = rank_sums()](TypedRows grad) {
                  if (db != nullptr)
                    pass_product(sums, db, da != nullptr ? grad : std::exchange(grad, {}), kept_a);
                  pass_product(sums, da, std::move(grad), kept_b);
                });
}

Variable div(Variable a, Variable b) {
  if (any_dual({&a, &b})) {  // dy = (da - y db) / b
    const Variable divisor = b.primal(), y = div(a.primal(), divisor);
    const Variable tangent = b.is_dual() ? -(y * b.tangent()) : Variable();
    return make_dual(y, div(tangent_sum(a.tangent(), tangent, y.shape()), divisor));
  }
  const bool recorded = recording({&a, &b});
  const Tensor kept_b = recorded ? b.value() : Tensor();
  Tensor y = compute_binary(BinaryOp::div, take_value(a), take_value(b));
  if (!recorded) return y;
  const Tensor kept_y = b.requires_grad() ? y : Tensor();
  return record(std::move(y), [da = a.gradient(), db = b.gradient(), kept_b, kept_y,
                               sums = rank_sums()](Tensor grad) {
    if (db != nullptr && db->shape() != grad.shape() && sums == nullptr) {
      Tensor sum(db->shape());  // -(sum of grad y) / b over the broadcast dimensions
      sum_products_to(grad, kept_y, sum);
      binary(BinaryOp::div, sum, kept_b, sum);
      pass_elementwise(*db, std::move(sum), negate);
    } else if (db != nullptr) {
      Tensor terms(grad.shape());
      binary(BinaryOp::mul, grad, kept_y, terms);
      binary(BinaryOp::div, terms, kept_b, terms);
      negate(0, terms, false, terms);
      pass_sum(sums, db, std::move(terms));
    }
    if (da == nullptr) return;
    if (da->shape() == grad.shape()) {
      pass_elementwise(*da, std::move(grad), [&](Index first, Tensor& out, bool accumulate, const Tensor& g) {
        binary(BinaryOp::div, g, rows_of_operand(kept_b, da->shape(), first, g.num_rows()), out, accumulate);
      });
    } else {
      Tensor quotient = compute_binary(BinaryOp::div, std::move(grad), kept_b);
      pass_sum(sums, da, std::move(quotient));
    }
  });
}

Variable scale_shift(Variable x, real scale, real shift) {
  if (x.is_dual())
    return make_dual(scale_shift(x.primal(), scale, shift), scale_shift(x.tangent(), scale, 0));
  const bool recorded = recording({&x});
  TypedRows y = compute_elementwise(
      x.take_rows(), [&](Index, Tensor& out, const Tensor& in) { scale_shift(in, scale, shift, out); });
  if (!recorded) return y;
  return record(std::move(y), [dx = x.gradient(), scale](TypedRows grad) {
    if (scale == 1) return dx->add(std::move(grad));
    pass_elementwise(*dx, std::move(grad), [&](Index, Tensor& out, bool accumulate, const Tensor& g) {
      scale_shift(g, scale, 0, out, accumulate);
    });
  });
}

Variable where(const Tensor& condition, Variable a, Variable b) {
  if (any_dual({&a, &b}))
    return make_dual(where(condition, a.primal(), b.primal()),
                     where(condition, tangent_or_zeros(a), tangent_or_zeros(b)));
  const Shape shape = broadcast(condition.shape(), broadcast(a.shape(), b.shape()));
  const bool recorded = recording({&a, &b});
  const Tensor choice = repeated(condition, shape);
  Tensor y(shape);
  select(choice, repeated(a.value(), shape), repeated(b.value(), shape), y);
  if (!recorded) return y;
  return record(std::move(y), [da = a.gradient(), db = b.gradient(), choice,
                               sums = rank_sums()](const Tensor& grad) {
    const Tensor none = Tensor::zeros(grad.shape());
    const auto pass = [&](const GradientPtr& to, const Tensor& chosen, const Tensor& other) {
      if (to == nullptr) return;
      Tensor part(grad.shape());
      select(choice, chosen, other, part);
      pass_sum(sums, to, std::move(part));
    };
    pass(da, grad, none);
    pass(db, none, grad);
  });
}

Variable scale_rows(Variable x, const Tensor& column) {
  const Shape& shape = column.shape();
  require<ShapeError>(x.defined() && shape.dims() > 0 && shape.row_size() == 1 && shape[0] == x.num_rows(),
                      "scale_rows: column of shape ", shape, " for a tensor of shape ", x.shape());
  if (x.is_dual()) return apply_linear(x, [&](Variable part) { return scale_rows(std::move(part), column); });
  std::vector<Index> extents(x.shape().dims(), 1);
  extents[0] = shape[0];
  const Tensor factors = column.reshape(Shape(extents));
  const bool recorded = recording({&x});
  TypedRows y = compute_elementwise(x.take_rows(), [&](Index first, Tensor& out, const Tensor& in) {
    binary(BinaryOp::mul, in, factors.slice_rows(first, first + in.num_rows()), out);
  });
  if (!recorded) return y;
  return record(std::move(y), [dx = x.gradient(), factors](TypedRows grad) {
    pass_product(nullptr, dx, std::move(grad), factors);
  });
}

Variable tangent_sum(const Variable& a, const Variable& b, const Shape& shape) {
  Variable sum = !a.defined() ? b : !b.defined() ? a : add(a, b);
  return sum.shape() == shape ? sum : add(Variable(Tensor::zeros(shape)), std::move(sum));
}
}}  // namespace sar
