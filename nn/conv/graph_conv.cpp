// SPDX-License-Identifier: MIT

// One scaled_sum(), whose kernel applies c_v and c_u while it gathers, and one product, before or after
// it. With edge weights that are to be normalized, the sum is one update_all(), and an all_reduce tells
// whether the weights are the graph's own on all ranks; the normalized ones of these are kept.
#include <sar/graph/message/degree_factors.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/edge_weight_norm.hpp>
#include <sar/nn/conv/graph_conv.hpp>

namespace sar { inline namespace SAR_PRECISION {
namespace {

SumFactors factors_of(GraphConvNorm norm) {
  switch (norm) {
    case GraphConvNorm::none:
      return {};
    case GraphConvNorm::left:
      return {.src = DegreeFactor::inverse, .dst = {}};
    case GraphConvNorm::right:
      return {.src = {}, .dst = DegreeFactor::inverse};
    case GraphConvNorm::in_weights:
      return {.src = DegreeFactor::inverse_root_or_0,
              .src_degree = NodeDegree::source_in,
              .dst = DegreeFactor::inverse_root_or_0};
    case GraphConvNorm::both:
    case GraphConvNorm::weights:
      break;
  }
  return {.src = DegreeFactor::inverse_root, .dst = DegreeFactor::inverse_root};
}

/// Returns whether the weights are the graph's own, on every rank. Collective.
bool are_own_weights(const Graph& graph, const Variable& weight) {
  const Tensor& own = graph.edge_weight();
  const bool here = own.defined() && !weight.requires_grad() && weight.num_rows() == own.num_rows() &&
                    (own.size() == 0 || weight.value().data() == own.data());
  return graph.comm().all_reduce(here ? 1 : 0, ReduceOp::min) == 1;
}

/// Starts the sum over in-edges, with weights that are normalized by their sums if the norm is by weights.
/// Collective.
StartedSum start_sum(const Graph& graph, Variable rows, const Variable& weight, GraphConvNorm norm) {
  const bool by_weights = norm == GraphConvNorm::weights || norm == GraphConvNorm::in_weights;
  if (!by_weights || !weight.defined())
    return start_scaled_sum(graph, std::move(rows), weight, factors_of(norm));
  const EdgeNorm by = norm == GraphConvNorm::weights ? EdgeNorm::both : EdgeNorm::in_weights;
  const Variable normalized =
      are_own_weights(graph, weight) ? kept_edge_weight_norm(graph, by) : edge_weight_norm(graph, weight, by);
  return graph.start_update_all(fn::u_mul_e(std::move(rows), normalized), fn::sum);
}

}  // namespace

GraphConv::GraphConv(Index in_feats, Index out_feats, Generator& gen, const GraphConvOptions& options)
    : in_feats_(in_feats), options_(options), cache_(options.cached, "GraphConv") {
  require<InputError>(in_feats > 0 && out_feats > 0, "GraphConv from ", in_feats, " to ", out_feats,
                      " features");
  require<InputError>(options.weight || in_feats == out_feats, "GraphConv without a weight cannot go from ",
                      in_feats, " to ", out_feats, " features");
  if (options.weight)
    register_parameter("weight", weight_, init::xavier_uniform({in_feats, out_feats}, 1, gen.next_stream()));
  if (options.bias) register_parameter("bias", bias_, Tensor::zeros({out_feats}));
}

Variable GraphConv::operator()(const Graph& graph, const Variable& feat, const Variable& edge_weight,
                               const Linear* residual) const {
  return graph.comm().agree([&] {
    require_rows(feat, graph.num_src_nodes(), in_feats_, "GraphConv, features");
    if (residual != nullptr) require_block(graph, "GraphConv with a residual connection");
    const auto dst = [&] { return dst_rows(graph, feat); };
    if (weight_.defined() && !options_.cached && multiplies_first(graph, feat, weight_.shape()[1])) {
      StartedSum sum = start_sum(graph, affine(feat, weight_, {}), edge_weight, options_.norm);
      if (residual != nullptr)  // computed while halo rows are in flight
        return sum.finish(
            linear(dst(), residual->weight(), sum_of(residual->bias(), bias_), sum.base_type()));
      Variable y = sum.finish();
      return bias_.defined() ? add(std::move(y), bias_) : y;
    }
    Variable y = cache_(graph, {&feat, &edge_weight},
                        [&] { return start_sum(graph, feat, edge_weight, options_.norm).finish(); });
    if (weight_.defined())
      y = affine(std::move(y), weight_, bias_);
    else if (bias_.defined())
      y = add(std::move(y), bias_);
    return residual == nullptr ? y : residual->add_to(std::move(y), dst());
  });
}
}}  // namespace sar
