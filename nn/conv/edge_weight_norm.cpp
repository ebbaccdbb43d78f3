// SPDX-License-Identifier: MIT

// A sum over the in-edges is a sum of edge rows and needs no rows of other ranks. A sum over the out-edges
// is the backward pass of a sum over in-edges: one number per halo row is pushed to the owners. The factors
// of both ends are then multiplied on the edges by apply_edges, which fetches the factors of the sources.
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/comm/recorded_pass.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/kernels/linear.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/graph/message/operation.hpp>
#include <sar/graph/topology/sharded_graph.hpp>
#include <sar/nn/conv/edge_weight_norm.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The sum over the out-edges of each source: the gradient of the sources in a sum of u times the weight,
/// where that of the result is 1.
struct OutSums {
  Graph graph;
  Tensor weight;
  GradientPtr gradient;

  TypedRows forward(const Driver& driver) {
    const Tensor values = std::exchange(weight, {}), ones = Tensor::full({graph.num_dst_nodes(), 1}, 1);
    LinearKernel kernel({.width = 1,
                         .edge_weight = values.data(),
                         .grad_out = ones.data(),
                         .accumulator = graph.options().accumulator()});
    const auto sums = std::make_shared<Gradient>(Shape{graph.num_src_nodes(), 1});
    driver.backward(Tensor(), sums->shape(), kernel, sums);
    return sums->take();
  }
  void backward(const Driver&, Tensor grad) const {
    const ExactHaloRows exact;
    const Tensor of_edges = graph.apply_edges(fn::copy_u(std::move(grad))).value();
    gradient->add(of_edges.reshape(gradient->shape()));
  }
};

Variable column(const Variable& weight) {
  return reshape(weight, {weight.num_rows(), 1});
}

void require_one_for_each_edge(const Graph& graph, const Variable& weight) {
  require<ShapeError>(
      weight.defined() && weight.num_rows() == graph.num_edges() && weight.shape().row_size() == 1,
      "edge weights have shape ", weight.shape(), " for ", graph.num_edges(), " edges");
}

void check(const Graph& graph, const Variable& weight) {
  require_one_for_each_edge(graph, weight);
  require<InputError>(std::ranges::all_of(weight.value().values(), [](real w) { return w > 0; }),
                      "edge weights that are normalized must be positive");
}

/// Returns 1 / sqrt(sum), and 0 where the sum is 0.
Variable inverse_root_or_0(const Variable& weight_sum) {
  Tensor is_positive(weight_sum.shape());
  std::ranges::transform(weight_sum.value().values(), is_positive.data(),
                         [](real sum) { return sum > 0 ? real{1} : real{0}; });
  return inverse_root(weight_sum) * Variable(is_positive);
}

/// Returns the factors of the ends of each edge for EdgeNorm::in_weights.
Variable in_weight_factors(const Graph& graph, const Variable& weight) {
  require_one_for_each_edge(graph, weight);
  require<InputError>(graph.topology().is_homogeneous(),
                      "edge weights are normalized by the in-weights of both ends, expected a graph whose "
                      "sources and destinations are the same nodes");
  const Variable sums = graph.update_all(fn::copy_e(column(weight)), fn::sum);
  for (Index v = 0; v < sums.num_rows(); ++v)
    require<InputError>(sums.value().data()[v] >= 0, "the weights of the in-edges of node ",
                        graph.dst_ids()[v], " add up to ", sums.value().data()[v],
                        ", expected no negative sum where they are normalized");
  const Variable root = inverse_root_or_0(sums);
  return graph.apply_edges(fn::u_mul_v(root, root));
}

}  // namespace

WeightSums weight_sums(const Graph& graph, const Variable& edge_weight) {
  return collective(
      graph.comm(),
      [&] {
        check(graph, edge_weight);
        return OperationCall("edge_weight_norm", graph).operand("the edge weights", edge_weight);
      },
      [&]() -> WeightSums {
        const ExactHaloRows exact;
        const Driver driver(graph.shards(), graph.options(), /*keeps_rows=*/false);
        return {run_pass(driver, {"edge_weight_norm", "edge_weight_norm backward"}, recording({&edge_weight}),
                         OutSums{graph, edge_weight.value(), edge_weight.gradient()}),
                graph.update_all(fn::copy_e(column(edge_weight)), fn::sum)};
      });
}

Variable inverse_root(const Variable& weight_sum) {
  Tensor guard(weight_sum.shape());
  std::ranges::transform(weight_sum.value().values(), guard.data(),
                         [](real sum) { return sum > 0 ? real{0} : real{1}; });
  return exp(log(weight_sum + Variable(guard)) * real(-0.5));
}

Variable edge_weight_norm(const Graph& graph, const Variable& edge_weight, EdgeNorm norm) {
  return graph.comm().agree([&] {
    const ExactHaloRows exact;
    const auto normalized = [&] {
      if (norm == EdgeNorm::in_weights) return column(edge_weight) * in_weight_factors(graph, edge_weight);
      const WeightSums sums = weight_sums(graph, edge_weight);
      if (norm == EdgeNorm::right) return graph.apply_edges(fn::e_div_v(column(edge_weight), sums.in));
      return column(edge_weight) *
             graph.apply_edges(fn::u_mul_v(inverse_root(sums.out), inverse_root(sums.in)));
    };
    return reshape(normalized(), edge_weight.shape());
  });
}

Tensor kept_edge_weight_norm(const Graph& graph, EdgeNorm norm) {
  Tensor& kept = graph.shards()->edge_norms[static_cast<std::size_t>(norm)];
  if (kept.defined()) return kept;
  const RecordedPass::Pause kept_from_now_on(graph.comm());
  Tensor made = graph.comm().agree([&] {
    const bool is_sample = graph.topology().is_scaled;
    require<InputError>(!graph.topology().is_layer && !is_sample, "edge weights of a ",
                        is_sample ? "sample with scaled messages" : "message flow graph",
                        " are normalized in the whole graph, expected kept_edge_weight_norm() of the whole "
                        "graph before its ",
                        is_sample ? "samples" : "message flow graphs", " are made");
    const Tensor& own = graph.edge_weight();
    return edge_weight_norm(graph, own.defined() ? own : Tensor::full({graph.num_edges()}, 1), norm).value();
  });
  return kept = std::move(made);  // all ranks have it, or none
}

// For each destination, its edges are passed three times: to count them by type, to write 1 / count, and
// to set the counts to zero. O(edges) time and one count per type.

namespace {

/// Iterates over the in-edges of ascending destinations in one shard, as ranges [begin, end) in edge order.
class InEdges {
 public:
  explicit InEdges(const GraphShard& shard) : shard_(shard) {}

  /// Returns the in-edges of destination `v`. Calls must have ascending v.
  [[nodiscard]] std::pair<Index, Index> of(Index v) {
    while (row_ < shard_.num_rows() && shard_.dst_row(row_) < v) ++row_;
    if (row_ == shard_.num_rows() || shard_.dst_row(row_) != v) return {0, 0};
    return {shard_.edge(shard_.row_begin[row_]), shard_.edge(shard_.row_begin[row_ + 1])};
  }

 private:
  const GraphShard& shard_;
  Index row_ = 0;
};

}  // namespace

Tensor relation_norm(const Graph& graph, const EdgeTypes& edge_types) {
  constexpr Index most_types = Index{1} << 16;
  const GraphTopology& shards = graph.topology();
  const Index edges = graph.num_edges();
  const bool has_types = edge_types.size() > 0;
  const EdgeTypes types = has_types ? edge_types.checked(edges, most_types, "relation_norm") : EdgeTypes();
  const auto type = [&](Index edge) { return has_types ? types.numbers()[edge] : std::size_t{0}; };
  std::vector<Index> counts(has_types ? *std::ranges::max_element(types.numbers()) + std::size_t{1} : 1, 0);
  Tensor norm({edges, 1});
  InEdges of_local(shards.local), of_remote(shards.remote);
  for (Index v = 0; v < graph.num_dst_nodes(); ++v) {
    const std::pair<Index, Index> ranges[] = {of_local.of(v), of_remote.of(v)};
    for (const auto& [begin, end] : ranges)
      for (Index e = begin; e < end; ++e) ++counts[type(e)];
    for (const auto& [begin, end] : ranges)
      for (Index e = begin; e < end; ++e) norm.data()[e] = real{1} / static_cast<real>(counts[type(e)]);
    for (const auto& [begin, end] : ranges)
      for (Index e = begin; e < end; ++e) counts[type(e)] = 0;
  }
  return norm;
}
}}  // namespace sar
