// SPDX-License-Identifier: MIT

// sum and mean: a message is a row times the edge's matrix, computed for a chunk of edges by bmm(). max
// and min: a message has the products x_i W_io, [in, out]; the extrema [destinations, in, out] are then
// summed over i by a product with ones.
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/nn_conv.hpp>

namespace sar { inline namespace SAR_PRECISION {

NNConv::NNConv(const InFeatures& in_feats, Index out_feats, RowFunction edge_func, Generator& gen,
               const NNConvOptions& options)
    : in_feats_(in_feats), out_feats_(out_feats), edge_func_(std::move(edge_func)), options_(options) {
  require<InputError>(in_feats.src > 0 && in_feats.dst > 0 && out_feats > 0, "NNConv from ", in_feats.src,
                      " and ", in_feats.dst, " to ", out_feats, " features");
  require<InputError>(static_cast<bool>(edge_func_), "NNConv without an edge function");
  if (options.bias) register_parameter("bias", bias_, Tensor::zeros({out_feats}));
  register_module("edge_func", edge_func_.module());
  if (options.residual && in_feats.dst != out_feats) {
    make_module("res_fc", res_fc_, in_feats.dst, out_feats, gen, false);
    start_weight(*res_fc_,
                 init::xavier_normal(res_fc_->weight().shape(), init::relu_gain, gen.next_stream()));
  }
}

Variable NNConv::operator()(const Graph& graph, const NodeFeatures& feat, const Variable& edge_feats) const {
  return graph.comm().agree([&] {
    const Index in = in_feats_.src, out = out_feats_;
    require_feats(graph, feat, in_feats_, "NNConv");
    require_num_rows(edge_feats, graph.num_edges(), "NNConv, edge features");
    const bool linear_reduce = !is_extremum(options_.aggregator);

    Variable y = graph.update_all(
        [=, x = feat.src, edge_func = edge_func_](const EdgeBatch& edges) {
          const Index n = edges.num_edges();
          Variable matrices = reshape(edge_func(edges.edata(edge_feats)), {n, in, out});
          if (linear_reduce) return bmm(edges.src(x), std::move(matrices));
          return mul(reshape(edges.src(x), {n, in, 1}), std::move(matrices));
        },
        options_.aggregator);
    if (!linear_reduce)  // sum [n, in, out] over in
      y = bmm(Tensor::full({graph.num_dst_nodes(), in}, 1), std::exchange(y, {}));
    if (options_.residual) {
      const Variable x = dst_feats(graph, feat);
      y = add(std::exchange(y, {}), res_fc_ ? (*res_fc_)(x) : x);
    }
    return bias_.defined() ? add(std::move(y), bias_) : y;
  });
}
}}  // namespace sar
