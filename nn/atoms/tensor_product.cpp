// SPDX-License-Identifier: MIT

// The product is linear in each of its three operands: its tangent is the sum of products with one of them
// replaced by its tangent.
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/atoms/tensor_product.hpp>

#include <numeric>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index product_grain = 16;

/// Calls visit(chunk, begin) for blocks of rows; each row is a group of one edge of the chunk.
template <class Visit>
void for_row_chunks(const TensorProduct& product, const Tensor& h, const Tensor& harmonics,
                    const Tensor& weights, const Visit& visit) {
  parallel_for(h.num_rows(), product_grain, [&](Index begin, Index end) {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(end - begin + 1));
    std::iota(numbers.begin(), numbers.end(), 0);
    visit(TensorProductChunk{.product = &product,
                             .feats = h.row_size() / product.rows1,
                             .sources = h.row(begin),
                             .source_stride = h.row_size(),
                             .harmonics = harmonics.row(begin),
                             .harmonic_stride = product.rows2,
                             .weights = weights.row(begin),
                             .rows = numbers.data(),
                             .groups = numbers.data(),
                             .num_groups = end - begin,
                             .others = numbers.data()},
          begin);
  });
}

Variable products(const Variable& h, const Variable& harmonics, const Variable& weights,
                  const std::shared_ptr<const TensorProduct>& product) {
  const Tensor x = h.value(), y = harmonics.value(), w = weights.value();
  const Index width = product->rows * (x.row_size() / product->rows1);
  Tensor out = Tensor::zeros({x.num_rows(), width});
  for_row_chunks(*product, x, y, w, [&](const TensorProductChunk& chunk, Index begin) {
    add_tensor_product_sums(chunk, out.row(begin), width);
  });
  if (!recording({&h, &harmonics, &weights})) return out;
  return record(std::move(out), [x, y, w, product, width, of_h = h.gradient(),
                                 of_harmonics = harmonics.gradient(),
                                 of_weights = weights.gradient()](const Tensor& grad) {
    Tensor to_x = Tensor::zeros(x.shape()), to_y = Tensor::zeros(y.shape()), to_w(w.shape());
    for_row_chunks(*product, x, y, w, [&](const TensorProductChunk& chunk, Index begin) {
      add_tensor_product_gradients(
          chunk, grad.row(begin), width,
          {.sources = to_x.row(begin), .harmonics = to_y.row(begin), .weights = to_w.row(begin)});
    });
    if (of_h != nullptr) of_h->add(std::move(to_x));
    if (of_harmonics != nullptr) of_harmonics->add(std::move(to_y));
    if (of_weights != nullptr) of_weights->add(std::move(to_w));
  });
}

}  // namespace

Variable tensor_product_rows(const Variable& h, const Variable& harmonics, const Variable& weights,
                             const std::shared_ptr<const TensorProduct>& product) {
  const Index n = h.num_rows(), feats = h.shape().row_size() / product->rows1;
  require<ShapeError>(feats > 0 && h.shape() == Shape{n, product->rows1 * feats} &&
                          harmonics.shape() == Shape{n, product->rows2} &&
                          weights.shape() == Shape{n, std::ssize(product->paths) * feats},
                      "tensor_product_rows of h ", h.shape(), ", harmonics ", harmonics.shape(),
                      " and weights ", weights.shape(), ", expected [n, ", product->rows1, " F], [n, ",
                      product->rows2, "] and [n, ", product->paths.size(), " F]");
  const Variable x = h.primal(), y = harmonics.primal(), w = weights.primal();
  const Variable value = products(x, y, w, product);
  if (!any_dual({&h, &harmonics, &weights})) return value;
  Variable tangent;
  const auto add = [&](Variable term) {
    tangent = tangent.defined() ? std::exchange(tangent, {}) + std::move(term) : std::move(term);
  };
  if (h.is_dual()) add(products(h.tangent(), y, w, product));
  if (harmonics.is_dual()) add(products(x, harmonics.tangent(), w, product));
  if (weights.is_dual()) add(products(x, y, weights.tangent(), product));
  return make_dual(value, tangent);
}
}}  // namespace sar
