#include <sar/autograd/op_support.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/matmul.hpp>
#include <sar/core/reduce.hpp>

#include <vector>

namespace sar::inline SAR_PRECISION {
namespace {

/// All dimensions but the last as rows.
Tensor flatten(const Tensor& x) {
  const Index last = x.shape()[x.shape().dims() - 1];
  return x.reshape({last == 0 ? x.num_rows() : x.size() / last, last});
}

/// The shape of x with another last dimension.
Shape with_columns(const Shape& shape, Index columns) {
  std::vector<Index> extents;
  for (int d = 0; d + 1 < shape.dims(); ++d) extents.push_back(shape[d]);
  extents.push_back(columns);
  return Shape(extents);
}

void multiply_rows(const Tensor& x, const Tensor& weight, const Variable& bias, bool out_in, Tensor& y) {
  if (bias.defined())
    out_in ? matmul_nt(x, weight, bias.value(), y) : matmul(x, weight, bias.value(), y);
  else
    out_in ? matmul_nt(x, weight, y) : matmul(x, weight, y);
}

/// x W^T + b for weight [out, in], x W + b for weight [in, out].
Variable linear_layer(Variable x, Variable weight, Variable bias, bool out_in) {
  const Shape& w = weight.shape();
  const Index in = out_in ? w[1] : w[0];
  const Index out = out_in ? w[0] : w[1];
  require<ShapeError>(x.defined() && w.dims() == 2 && x.shape()[x.shape().dims() - 1] == in,
                      "linear: input of shape ", x.shape(), " for a weight of shape ", w,
                      out_in ? " ([out, in])" : " ([in, out])");
  require<ShapeError>(!bias.defined() || bias.shape() == Shape{out}, "linear: bias of shape ", bias.shape(),
                      " for a weight of shape ", w);

  Tensor y(with_columns(x.shape(), out));
  Tensor flat_y = flatten(y);
  multiply_rows(flatten(x.value()), weight.value(), bias, out_in, flat_y);
  if (!recording({&x, &weight, &bias})) return y;
  return record(std::move(y), [dx = x.gradient(), dw = weight.gradient(), db = bias.gradient(), out_in,
                               kept_x = weight.requires_grad() ? x.value() : Tensor(),
                               kept_w = x.requires_grad() ? weight.value() : Tensor()](const Tensor& grad) {
    const Tensor g = flatten(grad);
    if (db != nullptr) db->add([&](Tensor& sum, bool accumulate) { sum_to(g, sum, accumulate); });
    if (dw != nullptr)
      dw->add([&](Tensor& sum, bool accumulate) {
        if (out_in) {
          matmul_tn(g, flatten(kept_x), sum, accumulate);
        } else {
          matmul_tn(flatten(kept_x), g, sum, accumulate);
        }
      });
    if (dx != nullptr)
      dx->add([&](Tensor& sum, bool accumulate) {
        Tensor flat = flatten(sum);
        if (out_in) {
          matmul(g, kept_w, flat, accumulate);
        } else {
          matmul_nt(g, kept_w, flat, accumulate);
        }
      });
  });
}

}  // namespace

Variable matmul(Variable a, Variable b) {
  require<ShapeError>(a.shape().dims() == 2 && b.shape().dims() == 2 && a.shape()[1] == b.shape()[0],
                      "matmul: operands of shapes ", a.shape(), " and ", b.shape());
  Tensor y({a.shape()[0], b.shape()[1]});
  matmul(a.value(), b.value(), y);
  if (!recording({&a, &b})) return y;
  return record(std::move(y),
                [da = a.gradient(), db = b.gradient(), kept_a = b.requires_grad() ? a.value() : Tensor(),
                 kept_b = a.requires_grad() ? b.value() : Tensor()](const Tensor& grad) {
                  if (da != nullptr)
                    da->add([&](Tensor& sum, bool accumulate) { matmul_nt(grad, kept_b, sum, accumulate); });
                  if (db != nullptr)
                    db->add([&](Tensor& sum, bool accumulate) { matmul_tn(kept_a, grad, sum, accumulate); });
                });
}

Variable linear(Variable x, Variable weight, Variable bias) {
  return linear_layer(std::move(x), std::move(weight), std::move(bias), true);
}

Variable affine(Variable x, Variable weight, Variable bias) {
  return linear_layer(std::move(x), std::move(weight), std::move(bias), false);
}

Variable add_linear(Variable base, const Variable& x, const Variable& weight) {
  require<ShapeError>(x.shape().dims() == 2 && weight.shape().dims() == 2 &&
                          x.shape()[1] == weight.shape()[1] &&
                          base.shape() == Shape{x.num_rows(), weight.shape()[0]},
                      "cannot add x of shape ", x.shape(), " times the transposed weight of shape ",
                      weight.shape(), " to a tensor of shape ", base.shape());
  const bool recorded = recording({&base, &x, &weight});
  Tensor y = take_value(base);
  if (!y.unique()) y = y.clone();
  matmul_nt(x.value(), weight.value(), y, true);
  if (!recorded) return y;
  return record(std::move(y),
                [kept_x = weight.requires_grad() ? x.value() : Tensor(),
                 kept_w = x.requires_grad() ? weight.value() : Tensor(), dbase = base.gradient(),
                 dx = x.gradient(), dw = weight.gradient()](Tensor grad) {
                  if (dw != nullptr)
                    dw->add([&](Tensor& sum, bool accumulate) { matmul_tn(grad, kept_x, sum, accumulate); });
                  if (dx != nullptr)
                    dx->add([&](Tensor& sum, bool accumulate) { matmul(grad, kept_w, sum, accumulate); });
                  if (dbase != nullptr) dbase->add(std::move(grad));
                });
}

}  // namespace sar
