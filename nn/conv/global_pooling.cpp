// Each rank reduces its own rows and one all_reduce of D numbers reduces the ranks. Attention takes three:
// the maximum of the gates, which keeps the exponentials finite, their sum, and the weighted sum.
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/global_pooling.hpp>
#include <sar/nn/modules/reductions.hpp>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

void check(const GraphShardManager& graph, const Variable& feat, const char* layer) {
  require<ShapeError>(feat.shape().dims() == 2 && feat.num_rows() == graph.num_nodes(), layer,
                      ", features have shape ", feat.shape(), ", expected [", graph.num_nodes(), ", D]");
}

/// Returns the sum over the nodes of all ranks, [1, D].
Variable sum_of_nodes(const GraphShardManager& graph, const Variable& rows) {
  return all_reduce(reshape(sum(rows, ReduceDim::rows), {1, rows.shape()[1]}), graph.comm());
}

/// Returns the maximum of each column of this rank's rows, [1, D]: NaN if the column has one, -infinity
/// without rows.
Variable largest_of_columns(const Variable& x) {
  const Index columns = x.shape()[1];
  Tensor y = Tensor::full({1, columns}, -std::numeric_limits<real>::infinity());
  std::vector<Index> row_of(static_cast<std::size_t>(columns), 0);
  for (Index i = 0; i < x.num_rows(); ++i) {
    const real* row = std::as_const(x.value()).row(i);
    for (Index j = 0; j < columns; ++j) {
      real& best = y.data()[j];
      if (std::isnan(best) || !(row[j] > best || std::isnan(row[j]) || i == 0)) continue;
      best = row[j];
      row_of[static_cast<std::size_t>(j)] = i;
    }
  }
  if (!recording({&x})) return y;
  return record(std::move(y), [dx = x.gradient(), row_of = std::move(row_of)](const Tensor& grad) {
    Tensor rows = Tensor::zeros(dx->shape());
    if (rows.num_rows() > 0)
      for (Index j = 0; j < grad.size(); ++j)
        rows.row(row_of[static_cast<std::size_t>(j)])[j] = grad.data()[j];
    dx->add(std::move(rows));
  });
}

}  // namespace

Variable SumPooling::operator()(const GraphShardManager& graph, const Variable& feat) const {
  return graph.comm().agree([&] {
    check(graph, feat, "SumPooling");
    return sum_of_nodes(graph, feat);
  });
}

Variable AvgPooling::operator()(const GraphShardManager& graph, const Variable& feat) const {
  return graph.comm().agree([&] {
    check(graph, feat, "AvgPooling");
    return scale_shift(sum_of_nodes(graph, feat),
                       static_cast<real>(1 / static_cast<double>(graph.num_global_nodes())));
  });
}

Variable MaxPooling::operator()(const GraphShardManager& graph, const Variable& feat) const {
  return graph.comm().agree([&] {
    check(graph, feat, "MaxPooling");
    return all_reduce(largest_of_columns(feat), graph.comm(), ReduceOp::max);
  });
}

GlobalAttentionPooling::GlobalAttentionPooling(RowFunction gate_nn, RowFunction feat_nn)
    : gate_nn_(std::move(gate_nn)), feat_nn_(std::move(feat_nn)) {
  require<InputError>(static_cast<bool>(gate_nn_), "GlobalAttentionPooling without a gate_nn");
  register_module("gate_nn", gate_nn_.module());
  if (feat_nn_) register_module("feat_nn", feat_nn_.module());
}

Variable GlobalAttentionPooling::attention(const GraphShardManager& graph, const Variable& feat) const {
  return graph.comm().agree([&] {
    check(graph, feat, "GlobalAttentionPooling");
    const Variable gate = gate_nn_(feat);
    require<ShapeError>(gate.shape() == Shape{graph.num_nodes(), 1},
                        "GlobalAttentionPooling, gate_nn returns shape ", gate.shape(), ", expected ",
                        Shape{graph.num_nodes(), 1});
    // The softmax does not depend on the constant subtracted from the exponents: it needs no gradient.
    const Variable largest = all_reduce(largest_of_columns(gate.detach()), graph.comm(), ReduceOp::max);
    const Variable weight = exp(gate - largest);
    return weight / sum_of_nodes(graph, weight);
  });
}

Variable GlobalAttentionPooling::operator()(const GraphShardManager& graph, const Variable& feat) const {
  return graph.comm().agree([&] {
    const Variable coefficients = attention(graph, feat);
    const Variable rows = feat_nn_ ? feat_nn_(feat) : feat;
    check(graph, rows, "GlobalAttentionPooling, feat_nn");
    return sum_of_nodes(graph, coefficients * rows);
  });
}

}}  // namespace sar
