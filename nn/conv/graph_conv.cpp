#include <sar/graph/message/degree_factors.hpp>
#include <sar/nn/conv/aggregate.hpp>
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
    case GraphConvNorm::both:
      break;
  }
  return {.src = DegreeFactor::inverse_root, .dst = DegreeFactor::inverse_root};
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

Variable GraphConv::operator()(const GraphShardManager& graph, const Variable& feat,
                               const Variable& edge_weight) const {
  return graph.comm().agree([&] {
    require_rows(feat, graph.num_src_nodes(), in_feats_, "GraphConv, features");
    const bool multiply_first =
        weight_.defined() && !options_.cached && multiplies_first(graph, feat, weight_.shape()[1]);
    Variable h = cache_(graph, {&feat, &edge_weight}, [&] {
      return scaled_sum(graph, multiply_first ? affine(feat, weight_, {}) : feat, edge_weight,
                        factors_of(options_.norm));
    });
    if (weight_.defined() && !multiply_first) return affine(std::move(h), weight_, bias_);
    return bias_.defined() ? add(std::move(h), bias_) : h;
  });
}

}}  // namespace sar
