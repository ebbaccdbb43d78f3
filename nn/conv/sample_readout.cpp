// SPDX-License-Identifier: MIT

// A sum is a scatter of rows to their samples, and its backward pass a gather. A maximum keeps the row that
// has it, 4 bytes for each element of the result.
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/conv/sample_readout.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index grain = 16;  // samples of a block

/// The rows with the extremes: [samples * D], -1 for samples without nodes.
using ExtremeRows = Array<local_index>;

/// Writes the extremes of the rows [begin, end) of x to y, and the rows that have them.
template <class IsBetter>
void reduce_rows(const Tensor& x, Index begin, Index end, real* y, local_index* row_of,
                 const IsBetter& is_better) {
  const Index columns = x.row_size();
  if (begin == end) {
    std::fill_n(y, columns, real{0});
    std::fill_n(row_of, columns, local_index{-1});
    return;
  }
  std::copy_n(x.row(begin), columns, y);
  std::fill_n(row_of, columns, static_cast<local_index>(begin));
  for (Index v = begin + 1; v < end; ++v) {
    const real* const row = x.row(v);
    for (Index j = 0; j < columns; ++j) {
      if (std::isnan(y[j]) || !(is_better(row[j], y[j]) || std::isnan(row[j]))) continue;
      y[j] = row[j];
      row_of[j] = static_cast<local_index>(v);
    }
  }
}

Variable extremes(const SampleBatch& batch, const Variable& feat, Reduce reduce) {
  const GraphSamples& samples = batch.samples();
  const Tensor& x = feat.value();
  const Index graphs = samples.num_graphs(), columns = x.row_size();
  Tensor y({graphs, columns});
  const auto rows = std::make_shared<ExtremeRows>(static_cast<std::size_t>(graphs * columns));
  parallel_for_each(graphs, grain, [&](Index g) {
    const auto into = [&](const auto& is_better) {
      reduce_rows(x, samples.node_begin[g], samples.node_begin[g + 1], y.row(g), rows->data() + g * columns,
                  is_better);
    };
    if (reduce == Reduce::max)
      into([](real a, real b) { return a > b; });
    else
      into([](real a, real b) { return a < b; });
  });
  if (!recording({&feat})) return y;
  return record(std::move(y), [dx = feat.gradient(), rows](const Tensor& grad) {
    Tensor out = Tensor::zeros(dx->shape());
    const Index width = grad.row_size();
    parallel_for_each(grad.num_rows(), grain, [&](Index g) {
      for (Index j = 0; j < width; ++j)
        if (const local_index row = (*rows)[g * width + j]; row >= 0) out.row(row)[j] = grad.row(g)[j];
    });
    dx->add(std::move(out));
  });
}

/// 1 / n_g of each sample, [samples, 1]; 0 for one without nodes.
Tensor inverse_sizes(const GraphSamples& samples) {
  Tensor inverse({samples.num_graphs(), Index{1}});
  for (Index g = 0; g < samples.num_graphs(); ++g) {
    const Index nodes = samples.num_nodes(g);
    inverse.data()[g] = nodes == 0 ? real{0} : static_cast<real>(1.0 / static_cast<double>(nodes));
  }
  return inverse;
}

}  // namespace

Variable readout_nodes(const SampleBatch& batch, const Variable& feat, Reduce reduce) {
  require<ShapeError>(
      feat.defined() && feat.shape().dims() == 2 && feat.num_rows() == batch.graph().num_nodes(),
      "readout_nodes, features have shape ", feat.shape(), ", expected [", batch.graph().num_nodes(), ", D]");
  if (reduce == Reduce::max || reduce == Reduce::min) return extremes(batch, feat, reduce);
  const auto& graphs = batch.shared_graph_of_nodes();
  Variable sums = scatter_add_rows(feat, RowIds(std::span<const Index>(*graphs), graphs), batch.num_graphs());
  return reduce == Reduce::sum ? sums : std::move(sums) * Variable(inverse_sizes(batch.samples()));
}

}}  // namespace sar
