// SPDX-License-Identifier: MIT

// linear, affine: the backward pass reads the gradient g of the result twice. matmul_tn() computes dW =
// g^T x (or x^T g) and, in the same pass, the column sums of g, which are the gradient of the bias. Then
// dx = g W (or g W^T) is computed, in the memory of g if the shapes are equal and nothing else needs g: a
// thread copies the rows that it multiplies next to a buffer in the cache. Deferred x are computed again,
// a few rows at a time. recomputed_linear() is the same product once more in the backward pass: it reads x
// and writes y another time.
#include <sar/autograd/arithmetic.hpp>
#include <sar/autograd/layout.hpp>
#include <sar/autograd/op_support.hpp>
#include <sar/autograd/products.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/sparse_variable.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/products/matmul.hpp>
#include <sar/core/products/sparse_product.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/tensor/deferred_rows.hpp>
#include <sar/core/tensor/sparse_matrix.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// Products of sparse rows with a matrix that may require a gradient.
//
// A row of the product is a sum of rows of W [in, out], so a weight [out, in] is transposed first, and its
// gradient afterwards: 2 in out numbers moved, for 2 s out operations with s stored values.

namespace {

/// Returns the weight as [in, out].
Tensor by_inputs(const Tensor& weight, bool out_in) {
  if (!out_in) return weight;
  Tensor transposed({weight.row_size(), weight.num_rows()});
  transpose(weight, transposed);
  return transposed;
}

/// dw += x^T grad in the layout of the weight.
void add_weight_gradient(Gradient& dw, const SparseMatrix& x, const Tensor& grad, bool out_in) {
  dw.add([&](Tensor& sum, bool accumulate) {
    if (!out_in) return sparse_matmul_tn(x, grad, sum, accumulate);
    Tensor transposed({x.num_columns(), grad.row_size()});
    sparse_matmul_tn(x, grad, transposed);
    transpose(transposed, sum, accumulate);
  });
}

/// Local. Returns x W^T + b for weight [out, in] (`out_in`), or x W + b for weight [in, out]; the bias may
/// be undefined. Keeps the stored values of x. The caller has checked the shapes.
Variable sparse_linear(std::shared_ptr<const SparseMatrix> x, const Variable& weight, const Variable& bias,
                       bool out_in) {
  const Tensor w = by_inputs(weight.value(), out_in);
  Tensor y({x->num_rows(), w.row_size()});
  sparse_matmul(*x, w, y, {.bias = bias.value()});
  if (!recording({&weight, &bias})) return y;
  return record(std::move(y), [x = std::move(x), dw = weight.gradient(), db = bias.gradient(), out_in,
                               sums = rank_sums()](const Tensor& grad) {
    if (sums != nullptr) return add_row_products(*sums, dw, db, *x, grad, out_in);
    if (dw != nullptr) add_weight_gradient(*dw, *x, grad, out_in);
    if (db == nullptr) return;
    Tensor bias_gradient(db->shape());
    sum_to(grad, bias_gradient);
    db->add(std::move(bias_gradient));
  });
}

/// Local. Returns base + x W^T for weight [out, in]; in the memory of `base` if no other handle refers to
/// it. Keeps the stored values of x. The caller has checked the shapes.
Variable add_sparse_linear(Variable base, std::shared_ptr<const SparseMatrix> x, const Variable& weight) {
  const bool recorded = recording({&base, &weight});
  const GradientPtr dbase = base.gradient();
  Tensor y = take_value(base);
  if (!y.unique()) y = y.clone();
  sparse_matmul(*x, by_inputs(weight.value(), true), y, {.accumulate = true});
  if (!recorded) return y;
  return record(std::move(y),
                [x = std::move(x), dbase, dw = weight.gradient(), sums = rank_sums()](Tensor grad) {
                  if (dw != nullptr && sums != nullptr)
                    add_row_products(*sums, dw, nullptr, *x, grad, true);
                  else if (dw != nullptr)
                    add_weight_gradient(*dw, *x, grad, true);
                  if (dbase != nullptr) dbase->add(std::move(grad));
                });
}

/// Returns x as a matrix: all dimensions but the last are rows.
TypedRows flatten(const TypedRows& x) {
  const Index last = x.shape()[x.shape().dims() - 1];
  return x.reshape({last == 0 ? x.num_rows() : x.size() / last, last});
}

/// Returns the rows of x as a product operand; deferred rows are computed a few at a time.
RowOperand row_operand(const Variable& x) {
  if (x.deferred() != nullptr && x.shape().dims() == 2) return *x.deferred();
  return flatten(x.rows());
}

/// y = x weight^T + bias (out_in) or x weight + bias; `bias` may be undefined.
void multiply_rows(const RowOperand& x, const Tensor& weight, const Variable& bias, bool out_in,
                   const TypedRows& y) {
  const Addend addend{.bias = bias.value()};
  out_in ? matmul_nt(x, weight, y, addend) : matmul(x, weight, y, addend);
}

/// x weight^T + bias, computed as a whole; compute() is for few rows, as it packs the weight.
class ProductRows final : public DeferredRows {
 public:
  ProductRows(Variable x, Tensor weight, Variable bias, const Shape& shape)
      : DeferredRows(shape, type_of_results()),
        x_(std::move(x)),
        weight_(std::move(weight)),
        bias_(std::move(bias)) {}
  void compute(Index first, Index count, real* out) const override {
    TypedRows x;
    if (x_.deferred() != nullptr) {
      Tensor some(x_.shape().with_rows(count));
      x_.deferred()->compute(first, count, some.data());
      x = std::move(some);
    } else {
      x = x_.rows().slice_rows(first, first + count);
    }
    multiply_rows(x, weight_, bias_, true, Tensor::borrow(out, {count, shape().row_size()}));
  }
  void release() const override { forget(); }

 private:
  void compute_all(TypedRows& rows) const override {
    multiply_rows(row_operand(x_), weight_, bias_, true, rows.reshape({rows.num_rows(), rows.row_size()}));
  }

  Variable x_;
  Tensor weight_;
  Variable bias_;
};

/// Rows that the product overwrites: it reads a copy of the rows that it multiplies next.
class OverwrittenRows : public DeferredRows {
 public:
  explicit OverwrittenRows(Tensor rows) : DeferredRows(rows.shape()), rows_(std::move(rows)) {}
  void compute(Index first, Index count, real* out) const override {
    std::copy(rows_.row(first), rows_.row(first + count), out);
  }
  [[nodiscard]] std::span<const std::byte> reads(Index first, Index count) const override {
    return memory_of(rows_.row(first), count * rows_.row_size());
  }

 private:
  Tensor rows_;
};

/// to += grad W for weight [out, in], grad W^T for weight [in, out]; in the memory of `grad` if the shapes
/// and types are equal, it has no other handle and `to` is still undefined.
void pass_product(Gradient& to, TypedRows grad, const Tensor& weight, bool out_in) {
  const auto product = [&](const RowOperand& g, const TypedRows& out, bool accumulate) {
    const Addend addend{.accumulate = accumulate};
    out_in ? matmul(g, weight, out, addend) : matmul_nt(g, weight, out, addend);
  };
  if (!grad.unique() || grad.shape() != to.shape() || grad.type() != to.type() || to.defined())
    return to.add_rows(
        [&](TypedRows& sum, bool accumulate) { product(flatten(grad), flatten(sum), accumulate); });
  if (const TypedRows flat = flatten(grad); flat.is_bfloat16())
    product(flat, flat, false);
  else
    product(OverwrittenRows(flat.reals()), flat, false);
  to.add(std::move(grad));
}

/// Rounds reals to the numbers that rows of `type` can have.
void round_to(NumberType type, Tensor& x) {
  constexpr Index at_once = 1 << 12;  // numbers
  if (type != NumberType::bfloat16) return;
  parallel_for(x.size(), at_once, [&](Index begin, Index end) {
    Bfloat16 rounded[at_once];
    for (Index i = begin; i < end; i += at_once) {
      const Index count = std::min(at_once, end - i);
      narrow(x.data() + i, count, rounded);
      widen(rounded, count, x.data() + i);
    }
  });
}

/// Throws ShapeError unless x, weight and bias fit together.
void check_linear(const Variable& x, const Variable& weight, const Variable& bias, bool out_in) {
  const Shape& w = weight.shape();
  const Index in = out_in ? w[1] : w[0], out = out_in ? w[0] : w[1];
  require<ShapeError>(x.defined() && w.dims() == 2 && x.shape()[x.shape().dims() - 1] == in,
                      "linear: input of shape ", x.shape(), " for a weight of shape ", w,
                      out_in ? " ([out, in])" : " ([in, out])");
  require<ShapeError>(!bias.defined() || bias.shape() == Shape{out}, "linear: bias of shape ", bias.shape(),
                      " for a weight of shape ", w);
}

/// Returns a function that passes the gradient of x W^T + b, or of x W + b, as a matrix of all rows, on to x,
/// the weight and the bias.
auto linear_backward(const Variable& x, const Variable& weight, const Variable& bias, bool out_in) {
  return [dx = x.gradient(), dw = weight.gradient(), db = bias.gradient(), out_in, sums = rank_sums(),
          kept_x = weight.requires_grad() ? x.detach() : Variable(),
          kept_w = x.requires_grad() ? weight.value() : Tensor()](TypedRows grad) {
    Tensor bias_gradient = db != nullptr && sums == nullptr ? Tensor(db->shape()) : Tensor();
    if (sums != nullptr && (dw != nullptr || db != nullptr))
      add_row_products(*sums, dw, db, row_operand(kept_x), flatten(grad), out_in);
    else if (dw != nullptr)
      dw->add([&](Tensor& sum, bool accumulate) {
        const RowOperand rows = row_operand(kept_x), g_rows = flatten(grad);
        Tensor* const of_g = db != nullptr ? &bias_gradient : nullptr;
        if (out_in)
          matmul_tn(g_rows, rows, sum, accumulate, {.of_a = of_g});
        else
          matmul_tn(rows, g_rows, sum, accumulate, {.of_b = of_g});
      });
    else if (db != nullptr)
      sum_to(flatten(grad).to_tensor(), bias_gradient);
    if (bias_gradient.defined()) db->add(std::move(bias_gradient));
    if (dx != nullptr) pass_product(*dx, std::move(grad), kept_w, out_in);
  };
}

/// Returns x W^T + b for weight [out, in], or x W + b for weight [in, out]; dense rows of the wanted type,
/// with the numbers that rows of type_of_results() have.
Variable linear_layer(Variable x, Variable weight, Variable bias, bool out_in,
                      std::optional<NumberType> wanted = {}) {
  const NumberType type = wanted.value_or(type_of_results());
  check_linear(x, weight, bias, out_in);
  const Shape& w = weight.shape();
  const Index in = out_in ? w[1] : w[0], out = out_in ? w[0] : w[1];
  if (any_dual({&x, &weight, &bias})) {
    const Variable y = linear_layer(x.primal(), weight.primal(), bias.primal(), out_in, type);
    Variable tangent = bias.tangent();
    if (x.is_dual())
      tangent = tangent_sum(linear_layer(x.tangent(), weight.primal(), {}, out_in), tangent, y.shape());
    if (weight.is_dual())
      tangent = tangent_sum(linear_layer(x.primal(), weight.tangent(), {}, out_in), tangent, y.shape());
    return make_dual(y, tangent_sum(tangent, {}, y.shape()));
  }
  if (x.shape().dims() == 1) {
    Variable row = reshape(std::move(x), {1, in});
    return reshape(linear_layer(std::move(row), std::move(weight), std::move(bias), out_in, type), {out});
  }
  if (auto sparse = sparse_matrix(x)) return sparse_linear(std::move(sparse), weight, bias, out_in);
  TypedRows y(with_columns(x.shape(), out), type);
  multiply_rows(row_operand(x), weight.value(), bias, out_in, flatten(y));
  if (type == NumberType::reals) round_to(type_of_results(), y.reals());
  if (!recording({&x, &weight, &bias})) return y;
  return record(std::move(y), linear_backward(x, weight, bias, out_in));
}

}  // namespace

Variable matmul(Variable a, Variable b) {
  require<ShapeError>(a.shape().dims() == 2 && b.shape().dims() == 2 && a.shape()[1] == b.shape()[0],
                      "matmul: operands of shapes ", a.shape(), " and ", b.shape());
  if (any_dual({&a, &b}))
    return apply_bilinear(a, b, [](const Variable& x, const Variable& y) { return matmul(x, y); });
  if (auto sparse = sparse_matrix(a)) return sparse_linear(std::move(sparse), b, {}, false);
  Tensor y({a.shape()[0], b.shape()[1]});
  matmul(a.value(), b.value(), y);
  if (!recording({&a, &b})) return y;
  return record(std::move(y), [da = a.gradient(), db = b.gradient(), sums = rank_sums(),
                               kept_a = b.requires_grad() ? a.value() : Tensor(),
                               kept_b = a.requires_grad() ? b.value() : Tensor()](const Tensor& grad) {
    if (da != nullptr)
      da->add(
          [&](Tensor& sum, bool accumulate) { matmul_nt(grad, kept_b, sum, {.accumulate = accumulate}); });
    if (db != nullptr && sums != nullptr)
      add_row_products(*sums, db, nullptr, kept_a, grad, false);
    else if (db != nullptr)
      db->add([&](Tensor& sum, bool accumulate) { matmul_tn(kept_a, grad, sum, accumulate); });
  });
}

Variable linear(Variable x, Variable weight, Variable bias, std::optional<NumberType> type) {
  return linear_layer(std::move(x), std::move(weight), std::move(bias), true, type);
}

Variable recomputed_linear(Variable x, Variable weight, Variable bias, const Shape& shape) {
  const Index rows = x.num_rows(), out = weight.shape()[0];
  if (!recording({&x, &weight, &bias}) || any_dual({&x, &weight, &bias}) || sparse_matrix(x) != nullptr)
    return reshape(linear(std::move(x), std::move(weight), std::move(bias)), shape);
  check_linear(x, weight, bias, true);
  require<ShapeError>(x.shape().dims() == 2 && shape[0] == rows && shape.row_size() == out,
                      "recomputed_linear: rows of shape ", shape, " for an input of shape ", x.shape(),
                      " and a weight of shape ", weight.shape());
  return record(
      Variable(std::make_shared<const ProductRows>(x.detach(), weight.value(), bias.detach(), shape)),
      [pass_on = linear_backward(x, weight, bias, true), rows, out](TypedRows grad) {
        TypedRows matrix = grad.reshape({rows, out});
        grad = {};
        pass_on(std::move(matrix));
      });
}

Variable affine(Variable x, Variable weight, Variable bias, std::optional<NumberType> type) {
  return linear_layer(std::move(x), std::move(weight), std::move(bias), false, type);
}

Variable add_linear(Variable base, const Variable& x, const Variable& weight) {
  require<ShapeError>(x.shape().dims() == 2 && weight.shape().dims() == 2 &&
                          x.shape()[1] == weight.shape()[1] &&
                          base.shape() == Shape{x.num_rows(), weight.shape()[0]},
                      "cannot add x of shape ", x.shape(), " times the transposed weight of shape ",
                      weight.shape(), " to a tensor of shape ", base.shape());
  if (any_dual({&base, &x, &weight})) return add(std::move(base), linear(x, weight));
  if (auto sparse = sparse_matrix(x)) return add_sparse_linear(std::move(base), std::move(sparse), weight);
  const bool recorded = recording({&base, &x, &weight});
  TypedRows y = base.take_rows();
  if (!y.unique()) y = y.clone();
  matmul_nt(row_operand(x), weight.value(), y, {.accumulate = true});
  if (!recorded) return y;
  return record(std::move(y), [kept_x = weight.requires_grad() ? x.detach() : Variable(),
                               kept_w = x.requires_grad() ? weight.value() : Tensor(),
                               dbase = base.gradient(), dx = x.gradient(), dw = weight.gradient(),
                               sums = rank_sums()](TypedRows grad) {
    if (dw != nullptr && sums != nullptr)
      add_row_products(*sums, dw, nullptr, row_operand(kept_x), grad, true);
    else if (dw != nullptr)
      dw->add([&](Tensor& sum, bool accumulate) { matmul_tn(grad, row_operand(kept_x), sum, accumulate); });
    if (dx != nullptr)
      dx->add_rows(
          [&](TypedRows& sum, bool accumulate) { matmul(grad, kept_w, sum, {.accumulate = accumulate}); });
    if (dbase != nullptr) dbase->add(std::move(grad));
  });
}

namespace {

/// to[t] += the sum of a[i]^T b[i] over the rows i of type t on all ranks. Blocks outside of the diagonal are
/// computed and dropped.
void add_products_by_type(const RankSums& sums, Gradient& to, const TypeGroups& groups, const Tensor& a,
                          const Tensor& b) {
  const Shape& shape = to.shape();
  const Index in = a.row_size(), out = b.row_size(), blocks = shape.dims() == 4 ? shape[1] : 1;
  const NumberType type = sums.is_of_chunk() ? NumberType::exact_sums : NumberType::reals;
  TypedRows total(shape, type);
  Index at = 0;  // of the next number
  for (Index t = 0; t < shape[0]; ++t) {
    std::vector<Index> rows(groups.begin[t + 1] - groups.begin[t]);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Index row = groups.begin[t] + static_cast<Index>(i);
      rows[i] = groups.rows.empty() ? row : groups.rows[row];
    }
    Tensor of_a({std::ssize(rows), in}), of_b({std::ssize(rows), out});
    gather_rows(a, rows, of_a);
    gather_rows(b, rows, of_b);
    const TypedRows all = row_products(sums, of_a, of_b);
    for (Index block = 0; block < blocks; ++block)
      for (Index i = block * in / blocks; i < (block + 1) * in / blocks; ++i)
        for (Index j = block * out / blocks; j < (block + 1) * out / blocks; ++j)
          std::memcpy(total.at(at++), all.at(i * out + j), static_cast<std::size_t>(bytes_of(type)));
  }
  to.add(std::move(total));
}

}  // namespace

Variable gather_mm(Variable x, Variable w, std::span<const Index> types) {
  const Shape& shape = w.shape();
  require<ShapeError>(x.shape().dims() == 2 && (shape.dims() == 3 || shape.dims() == 4) &&
                          static_cast<Index>(types.size()) == x.num_rows(),
                      "gather_mm: x of shape ", x.shape(), ", w of shape ", shape, ", ", types.size(),
                      " types");
  if (any_dual({&x, &w}))
    return apply_bilinear(x, w, [&](const Variable& a, const Variable& b) { return gather_mm(a, b, types); });
  const auto groups = std::make_shared<const TypeGroups>(types, w.num_rows());
  Tensor y({x.num_rows(), shape.dims() == 4 ? shape[1] * shape[3] : shape[2]});
  gather_mm(x.value(), w.value(), *groups, y);
  if (!recording({&x, &w})) return y;
  return record(std::move(y), [groups, sums = rank_sums(), dx = x.gradient(), dw = w.gradient(),
                               kept_x = w.requires_grad() ? x.value() : Tensor(),
                               kept_w = x.requires_grad() ? w.value() : Tensor()](const Tensor& grad) {
    if (dw != nullptr && sums != nullptr)
      add_products_by_type(*sums, *dw, *groups, kept_x, grad);
    else if (dw != nullptr)
      dw->add([&](Tensor& out, bool accumulate) { gather_mm_tn(kept_x, grad, *groups, out, accumulate); });
    if (dx != nullptr)
      dx->add([&](Tensor& out, bool accumulate) { gather_mm_nt(grad, kept_w, *groups, out, accumulate); });
  });
}

Variable bmm(Variable x, Variable w) {
  const RankSumsScope of_this_rank(nullptr);  // each matrix belongs to a row
  std::vector<Index> each(x.num_rows());
  std::iota(each.begin(), each.end(), 0);
  return gather_mm(std::move(x), std::move(w), each);
}
}}  // namespace sar
