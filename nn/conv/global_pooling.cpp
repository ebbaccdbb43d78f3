// SPDX-License-Identifier: MIT

// Each rank reduces its own rows, and collective calls of D numbers reduce the ranks. Attention takes three:
// the maximum of the gates, which keeps the exponentials finite, their sum, and the weighted sum.
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/message/degree_factors.hpp>
#include <sar/nn/conv/global_pooling.hpp>
#include <sar/nn/modules/reductions.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

void check(const Graph& graph, const Variable& feat, const char* layer) {
  require<ShapeError>(feat.shape().dims() == 2 && feat.num_rows() == graph.num_nodes(), layer,
                      ", features have shape ", feat.shape(), ", expected [", graph.num_nodes(), ", D]");
}

/// Returns `value`, which all ranks have, as a replicated value. add_gradient(dx, grad) adds the gradient of
/// x.
template <class AddGradient>
Variable replicated(const Graph& graph, const Variable& x, Tensor value, AddGradient add_gradient) {
  if (graph.comm().rank() != 0) value = Tensor::zeros(value.shape());
  Variable share(value);
  if (recording({&x}))
    share = record(std::move(value), [dx = x.gradient(), add = std::move(add_gradient)](const Tensor& grad) {
      add(*dx, grad);
    });
  return all_reduce(share, graph.comm());
}

/// Returns the sum over the nodes of all ranks, [1, D]. It is exact, so that it does not depend on their
/// order.
Variable sum_of_nodes(const Graph& graph, const Variable& rows) {
  if (rows.is_dual())
    return apply_linear(rows, [&](const Variable& part) { return sum_of_nodes(graph, part); });
  const Tensor total = sum(rows.detach(), graph.comm(), ReduceDim::rows).value();
  return replicated(graph, rows, total.reshape({1, total.size()}), [](Gradient& dx, const Tensor& grad) {
    dx.add([&](Tensor& out, bool accumulate) {
      binary(BinaryOp::add, grad, Tensor::zeros({1}), out, accumulate);
    });
  });
}

/// Returns the maximum of each column over the nodes of all ranks, [1, D]: NaN if the column has one,
/// -infinity without rows.
Tensor largest_of_columns(const Graph& graph, const Tensor& x) {
  Tensor y = Tensor::full({1, x.row_size()}, -std::numeric_limits<real>::infinity());
  for (Index i = 0; i < x.num_rows(); ++i)
    for (Index j = 0; j < y.size(); ++j)
      if (real& best = y.data()[j]; !std::isnan(best) && !(x.row(i)[j] <= best)) best = x.row(i)[j];
  return all_reduce(y, graph.comm(), ReduceOp::max).value();
}

/// Returns, for each column, the row of this rank whose node has the lowest original id of all nodes with the
/// maximum y; -1 if it is on another rank.
std::vector<Index> rows_with_maximum(const Graph& graph, const Tensor& x, const Tensor& y) {
  const Array<Index>& ids = graph.dst_ids();
  std::vector<Index> first(static_cast<std::size_t>(y.size()), std::numeric_limits<Index>::max());
  const auto for_each = [&](const auto& visit) {
    for (Index i = 0; i < x.num_rows(); ++i)
      for (Index j = 0; j < y.size(); ++j)
        if (x.row(i)[j] == y.data()[j] || (std::isnan(x.row(i)[j]) && std::isnan(y.data()[j])))
          visit(i, static_cast<std::size_t>(j));
  };
  for_each([&](Index i, std::size_t j) { first[j] = std::min(first[j], ids[i]); });
  graph.comm().all_reduce(std::span<Index>(first), ReduceOp::min);
  std::vector<Index> row_of(first.size(), -1);
  for_each([&](Index i, std::size_t j) {
    if (ids[i] == first[j]) row_of[j] = i;
  });
  return row_of;
}

}  // namespace

Variable SumPooling::operator()(const Graph& graph, const Variable& feat) const {
  return graph.comm().agree([&] {
    check(graph, feat, "SumPooling");
    return sum_of_nodes(graph, feat);
  });
}

Variable AvgPooling::operator()(const Graph& graph, const Variable& feat) const {
  return graph.comm().agree([&] {
    check(graph, feat, "AvgPooling");
    return scale_shift(sum_of_nodes(graph, feat),
                       static_cast<real>(1 / static_cast<double>(graph.num_global_nodes())));
  });
}

Variable MaxPooling::operator()(const Graph& graph, const Variable& feat) const {
  return graph.comm().agree([&] {
    check(graph, feat, "MaxPooling");
    refuse_tangents({&feat}, "MaxPooling");
    const Tensor y = largest_of_columns(graph, feat.value());
    return replicated(graph, feat, y,
                      [row_of = rows_with_maximum(graph, feat.value(), y)](Gradient& dx, const Tensor& grad) {
                        Tensor rows = Tensor::zeros(dx.shape());
                        for (Index j = 0; j < grad.size(); ++j)
                          if (const Index i = row_of[static_cast<std::size_t>(j)]; i >= 0)
                            rows.row(i)[j] = grad.data()[j];
                        dx.add(std::move(rows));
                      });
  });
}

GlobalAttentionPooling::GlobalAttentionPooling(RowFunction gate_nn, RowFunction feat_nn)
    : gate_nn_(std::move(gate_nn)), feat_nn_(std::move(feat_nn)) {
  require<InputError>(static_cast<bool>(gate_nn_), "GlobalAttentionPooling without a gate_nn");
  register_module("gate_nn", gate_nn_.module());
  if (feat_nn_) register_module("feat_nn", feat_nn_.module());
}

Variable GlobalAttentionPooling::attention(const Graph& graph, const Variable& feat) const {
  return graph.comm().agree([&] {
    check(graph, feat, "GlobalAttentionPooling");
    const Variable gate = gate_nn_(feat);
    require<ShapeError>(gate.shape() == Shape{graph.num_nodes(), 1},
                        "GlobalAttentionPooling, gate_nn returns shape ", gate.shape(), ", expected ",
                        Shape{graph.num_nodes(), 1});
    // The softmax does not depend on the constant subtracted from the exponents: it needs no gradient.
    const Variable weight = exp(gate - Variable(largest_of_columns(graph, gate.detach().value())));
    return weight /
           reshape(sum_of_nodes(graph, weight), {1});  // no row of a node, also on a rank with one node
  });
}

Variable GlobalAttentionPooling::operator()(const Graph& graph, const Variable& feat) const {
  return graph.comm().agree([&] {
    const Variable coefficients = attention(graph, feat);
    const Variable rows = feat_nn_ ? feat_nn_(feat) : feat;
    check(graph, rows, "GlobalAttentionPooling, feat_nn");
    return sum_of_nodes(graph, coefficients * rows);
  });
}

// A sum is a scatter of rows to their samples, and its backward pass a gather. A maximum keeps the row that
// has it, 4 bytes for each element of the result.

namespace {

constexpr Index block_samples = 16;  // samples of a block

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
  parallel_for_each(graphs, block_samples, [&](Index g) {
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
    parallel_for_each(grad.num_rows(), block_samples, [&](Index g) {
      for (Index j = 0; j < width; ++j)
        if (const local_index row = (*rows)[g * width + j]; row >= 0) out.row(row)[j] = grad.row(g)[j];
    });
    dx->add(std::move(out));
  });
}

/// The factor of the number of nodes of each sample, [samples, 1].
Tensor factors_of_sizes(const GraphSamples& samples, DegreeFactor factor) {
  Tensor factors({samples.num_graphs(), Index{1}});
  for (Index g = 0; g < samples.num_graphs(); ++g)
    factors.data()[g] = static_cast<real>(value_of(factor, static_cast<double>(samples.num_nodes(g))));
  return factors;
}

}  // namespace

Variable readout_nodes(const SampleBatch& batch, const Variable& feat, Reduce reduce) {
  require<ShapeError>(
      feat.defined() && feat.shape().dims() == 2 && feat.num_rows() == batch.graph().num_nodes(),
      "readout_nodes, features have shape ", feat.shape(), ", expected [", batch.graph().num_nodes(), ", D]");
  if (is_extremum(reduce)) return extremes(batch, feat, reduce);
  const auto& graphs = batch.shared_graph_of_nodes();
  Variable sums = scatter_add_rows(feat, RowIds(std::span<const Index>(*graphs), graphs), batch.num_graphs());
  const auto factor = in_degree_factor(reduce);
  return factor ? std::move(sums) * Variable(factors_of_sizes(batch.samples(), *factor)) : sums;
}
}}  // namespace sar
