// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/atoms/symmetric_contraction.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index row_block = 64, channel_block = 16;

/// Rows grouped by species, and the coefficients [terms, F] of each species that there is.
struct Groups {
  Index feats = 0;
  std::shared_ptr<const SymmetricBasis> basis;
  std::vector<std::vector<Index>> rows;
  std::vector<Tensor> coefficients;

  Groups(const std::shared_ptr<const SymmetricBasis>& of, const RowIds& species, const Tensor& weights)
      : feats(weights.shape()[2]),
        basis(of),
        rows(static_cast<std::size_t>(weights.num_rows())),
        coefficients(rows.size()) {
    for (Index i = 0; i < species.size(); ++i)
      rows[static_cast<std::size_t>(species.span()[static_cast<std::size_t>(i)])].push_back(i);
    for (std::size_t s = 0; s < rows.size(); ++s) {
      if (rows[s].empty()) continue;
      coefficients[s] = Tensor::zeros({std::ssize(basis->terms), feats});
      for_paths([&](Index term, Index path, real value) {
        const real* const from = weights.row(static_cast<Index>(s)) + path * feats;
        real* const to = coefficients[s].row(term);
        for (Index j = 0; j < feats; ++j) to[j] += value * from[j];
      });
    }
  }
  template <class Visit>
  void for_paths(const Visit& visit) const {
    for (Index t = 0; t < std::ssize(basis->terms); ++t)
      for (const auto& [path, value] : basis->terms[static_cast<std::size_t>(t)].paths)
        visit(t, path, static_cast<real>(value));
  }
  /// Adds gradients of coefficients to those of the weights [paths, F] that they are made of.
  void add_paths(const Tensor& of_coefficients, real* to) const {
    for_paths([&](Index term, Index path, real factor) {
      const real* const from = of_coefficients.row(term);
      for (Index j = 0; j < feats; ++j) to[path * feats + j] += factor * from[j];
    });
  }
  [[nodiscard]] ContractionChunk chunk_of(std::size_t s, const Tensor& x, const Tensor& tangent) const {
    return {.basis = basis.get(),
            .feats = feats,
            .first = 0,
            .last = feats,
            .rows = rows[s],
            .x = x.data(),
            .tangent = tangent.defined() ? tangent.data() : nullptr,
            .coefficients = coefficients[s].data()};
  }
  /// Writes the gradients of x and of its tangent. Returns those of the weights by each row: [n, paths F].
  [[nodiscard]] Tensor weight_gradients(const Tensor& x, const Tensor& tangent, const Tensor& grad,
                                        const Tensor& grad_tangent, Tensor& of_x, Tensor& of_tangent) const {
    Tensor result = Tensor::zeros({x.num_rows(), basis->paths * feats});
    for (std::size_t s = 0; s < rows.size(); ++s)
      parallel_for_each(std::ssize(rows[s]), 1, [&](Index i) {
        ContractionChunk chunk = chunk_of(s, x, tangent);
        chunk.rows = chunk.rows.subspan(static_cast<std::size_t>(i), 1);
        Tensor of_coefficients = Tensor::zeros(coefficients[s].shape());
        contract_backward(chunk, grad.data(), grad_tangent.data(), of_x.data(), of_tangent.data(),
                          of_coefficients.data());
        add_paths(of_coefficients, result.row(chunk.rows[0]));
      });
    return result;
  }
  /// Calls visit(species, chunk) in parallel for blocks of rows, or for blocks of channels of all rows.
  template <class Visit>
  void for_chunks(const Tensor& x, const Tensor& tangent, bool by_channels, const Visit& visit) const {
    std::vector<std::pair<std::size_t, ContractionChunk>> chunks;
    for (std::size_t s = 0; s < rows.size(); ++s) {
      const Index n = std::ssize(rows[s]), row_step = by_channels ? std::max<Index>(n, 1) : row_block;
      const Index step = by_channels ? channel_block : feats;
      for (Index i = 0; i < n; i += row_step)
        for (Index j = 0; j < feats; j += step) {
          ContractionChunk& chunk = chunks.emplace_back(s, chunk_of(s, x, tangent)).second;
          chunk.first = j;
          chunk.last = std::min(j + step, feats);
          chunk.rows = chunk.rows.subspan(static_cast<std::size_t>(i),
                                          static_cast<std::size_t>(std::min(row_step, n - i)));
        }
    }
    parallel_for_each(std::ssize(chunks), 1, [&](Index k) {
      const auto& [s, chunk] = chunks[static_cast<std::size_t>(k)];
      visit(s, chunk);
    });
  }
};

}  // namespace

Variable symmetric_contraction(const Variable& x, const Variable& weights, const RowIds& species,
                               const std::shared_ptr<const SymmetricBasis>& basis) {
  refuse_tangents({&weights});
  const Shape& shape = weights.shape();
  require<ShapeError>(shape.dims() == 3 && shape[1] == basis->paths &&
                          x.shape() == Shape{species.size(), basis->one * shape[2]},
                      "symmetric_contraction of x ", x.shape(), " and weights ", shape, ", expected [",
                      species.size(), ", ", basis->one, " F] and [species, ", basis->paths, ", F]");
  const bool dual = x.is_dual();
  const Variable primal = x.primal(), direction = x.tangent();
  const auto groups = std::make_shared<const Groups>(basis, species, weights.value());
  const Tensor value = primal.value(), tangent = dual ? direction.value() : Tensor();
  const Index n = x.num_rows(), width = basis->outs * groups->feats;
  Tensor y({n, width}), y_tangent;
  if (dual) y_tangent = Tensor({n, width});
  groups->for_chunks(value, tangent, false, [&](std::size_t, const ContractionChunk& chunk) {
    contract(chunk, y.data(), y_tangent.data());
  });
  const auto both = [&](const Tensor& a, const Tensor& b) {
    return concat_columns({Variable(a), Variable(b)}).value();
  };
  Tensor out = dual ? both(y, y_tangent) : y;
  const auto parts = [&](const Variable& all) {
    return dual ? make_dual(slice_columns(all, 0, width), slice_columns(all, width, 2 * width)) : all;
  };
  if (!recording({&primal, &direction, &weights})) return parts(out);
  return parts(record(std::move(out), [groups, value, tangent, width, shape, of_x = primal.gradient(),
                                       of_direction = direction.gradient(), of_weights = weights.gradient(),
                                       species, sums = rank_sums()](const Tensor& grad) {
    const bool with_tangent = tangent.defined();
    const Variable all(grad);
    const Tensor g = with_tangent ? slice_columns(all, 0, width).value() : grad;
    const Tensor g_tangent = with_tangent ? slice_columns(all, width, 2 * width).value() : Tensor();
    Tensor to_x(value.shape()), to_tangent;
    if (with_tangent) to_tangent = Tensor(value.shape());
    if (of_weights != nullptr && sums != nullptr) {
      const Tensor of_rows = groups->weight_gradients(value, tangent, g, g_tangent, to_x, to_tangent);
      add_rows_by_id(*sums, of_weights, species.span(), of_rows);
      if (of_x != nullptr) of_x->add(std::move(to_x));
      if (of_direction != nullptr) of_direction->add(std::move(to_tangent));
      return;
    }
    std::vector<Tensor> to_coefficients(groups->rows.size());
    for (std::size_t s = 0; of_weights != nullptr && s < groups->rows.size(); ++s)
      if (!groups->rows[s].empty()) to_coefficients[s] = Tensor::zeros(groups->coefficients[s].shape());
    groups->for_chunks(value, tangent, of_weights != nullptr,
                       [&](std::size_t s, const ContractionChunk& chunk) {
                         contract_backward(chunk, g.data(), g_tangent.data(), to_x.data(), to_tangent.data(),
                                           to_coefficients[s].data());
                       });
    if (of_weights != nullptr) {
      Tensor to_weights = Tensor::zeros(shape);
      for (std::size_t s = 0; s < groups->rows.size(); ++s) {
        if (groups->rows[s].empty()) continue;
        groups->add_paths(to_coefficients[s], to_weights.row(static_cast<Index>(s)));
      }
      of_weights->add(std::move(to_weights));
    }
    if (of_x != nullptr) of_x->add(std::move(to_x));
    if (of_direction != nullptr) of_direction->add(std::move(to_tangent));
  }));
}
}}  // namespace sar
