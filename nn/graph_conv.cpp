#include <sar/core/error.hpp>
#include <sar/nn/aggregate.hpp>
#include <sar/nn/graph_conv.hpp>

#include <algorithm>
#include <cmath>

namespace sar::inline SAR_PRECISION {
namespace {

double inverse(double degree) {
  return 1 / std::max(degree, 1.0);
}
double inverse_root(double degree) {
  return 1 / std::sqrt(std::max(degree, 1.0));
}

/// x with its rows divided by the degree, or by its root; x itself when neither is asked for.
Variable divide_rows(Variable x, const Array<Index>& degrees, bool by_degree, bool by_root) {
  if (!by_degree && !by_root) return x;
  return scale_rows(std::move(x), degree_column(degrees, by_degree ? inverse : inverse_root));
}

}  // namespace

GraphConv::GraphConv(Index in_feats, Index out_feats, Generator& gen, const GraphConvOptions& options)
    : in_feats_(in_feats), options_(options), cache_(options.cached, "GraphConv") {
  require<InputError>(in_feats > 0 && out_feats > 0, "GraphConv from ", in_feats, " to ", out_feats,
                      " features");
  require<InputError>(options.weight || in_feats == out_feats, "GraphConv without a weight cannot go from ",
                      in_feats, " to ", out_feats, " features");
  if (options.weight) {
    weight_ = Variable(init::xavier_uniform({in_feats, out_feats}, 1, gen.next_stream()), true);
    register_parameter("weight", weight_);
  }
  if (options.bias) {
    bias_ = Variable(Tensor::zeros({out_feats}), true);
    register_parameter("bias", bias_);
  }
}

Variable GraphConv::operator()(const GraphShardManager& graph, const Variable& feat,
                               const Variable& edge_weight) const {
  return graph.comm().agree([&] {
    require_rows(feat, graph.num_src_nodes(), in_feats_, "GraphConv, features");
    const bool both = options_.norm == GraphConvNorm::both;
    const bool multiply_first =
        weight_.defined() && !options_.cached && multiplies_first(feat, weight_.shape()[1]);
    Variable h = cache_(graph, {&feat, &edge_weight}, [&] {
      Variable x = multiply_first ? affine(feat, weight_, {}) : feat;
      x = divide_rows(std::move(x), graph.out_degrees(), options_.norm == GraphConvNorm::left, both);
      x = graph.update_all(message(std::move(x), edge_weight), fn::sum);
      return divide_rows(std::move(x), graph.in_degrees(), options_.norm == GraphConvNorm::right, both);
    });
    if (weight_.defined() && !multiply_first) return affine(std::move(h), weight_, bias_);
    return bias_.defined() ? add(std::move(h), bias_) : h;
  });
}

}  // namespace sar
