#include <sar/core/error.hpp>
#include <sar/nn/aggregate.hpp>
#include <sar/nn/sage_conv.hpp>

namespace sar {

SAGEConv::SAGEConv(Index in_feats, Index out_feats, Generator& gen, const SAGEConvOptions& options)
    : SAGEConv({in_feats, in_feats}, out_feats, gen, options) {}

SAGEConv::SAGEConv(std::pair<Index, Index> in_feats, Index out_feats, Generator& gen,
                   const SAGEConvOptions& options)
    : options_(options),
      feat_drop_(options.feat_drop, gen),
      fc_neigh_(in_feats.first, out_feats, gen, false) {
  const auto xavier = [&](const Linear& fc) {
    Variable weight = fc.weight();
    weight.value().copy_from(init::xavier_uniform(weight.shape(), init::relu_gain, gen.next_stream()));
  };
  if (options.aggregator == SAGEAggregator::mean) {
    fc_self_.emplace(in_feats.second, out_feats, gen, options.bias);
    xavier(*fc_self_);
  } else {
    require<InputError>(in_feats.first == in_feats.second, "SAGEConv with the gcn aggregator has sources of ",
                        in_feats.first, " and destinations of ", in_feats.second,
                        " features, expected equal widths");
    if (options.bias) {
      bias_ = Variable(Tensor::zeros({out_feats}), true);
      register_parameter("bias", bias_);
    }
  }
  xavier(fc_neigh_);
  register_module("feat_drop", feat_drop_);
  register_module("fc_neigh", fc_neigh_);
  if (fc_self_) register_module("fc_self", *fc_self_);
}

Variable SAGEConv::operator()(const GraphShardManager& graph, const Variable& feat,
                              const Variable& edge_weight) {
  require<ShapeError>(graph.dst_is_prefix(),
                      "SAGEConv got features of one kind of nodes for a bipartite graph");
  require_rows(feat, graph.num_src_nodes(), fc_neigh_.weight().shape()[1], "SAGEConv, features");
  const Variable src = feat_drop_(feat, graph.src_ids());
  return options_.aggregator == SAGEAggregator::mean ? mean(graph, src, {}, edge_weight)
                                                     : gcn(graph, src, {}, edge_weight);
}

Variable SAGEConv::operator()(const GraphShardManager& graph, const std::pair<Variable, Variable>& feat,
                              const Variable& edge_weight) {
  require_rows(feat.first, graph.num_src_nodes(), fc_neigh_.weight().shape()[1], "SAGEConv, source features");
  require_rows(feat.second, graph.num_dst_nodes(), (fc_self_ ? *fc_self_ : fc_neigh_).weight().shape()[1],
               "SAGEConv, destination features");
  const Variable src = feat_drop_(feat.first, graph.src_ids());
  const Variable dst = feat_drop_(feat.second, graph.dst_ids());
  return options_.aggregator == SAGEAggregator::mean ? mean(graph, src, dst, edge_weight)
                                                     : gcn(graph, src, dst, edge_weight);
}

// In both, an undefined dst means the first rows of src.

Variable SAGEConv::mean(const GraphShardManager& graph, const Variable& src, const Variable& dst,
                        const Variable& edge_weight) const {
  const auto self = [&] { return (*fc_self_)(dst.defined() ? dst : first_rows(src, graph.num_dst_nodes())); };
  if (multiplies_first(src, fc_neigh_.weight().shape()[0]))
    return graph.update_all(message(fc_neigh_(src), edge_weight), fn::mean, self);
  const Variable neigh = graph.update_all(message(src, edge_weight), fn::mean);
  return add_linear(self(), neigh, fc_neigh_.weight());
}

Variable SAGEConv::gcn(const GraphShardManager& graph, const Variable& src, const Variable& dst,
                       const Variable& edge_weight) const {
  const Tensor factors = degree_column(graph.in_degrees(), [](double degree) { return 1 / (degree + 1); });
  const bool multiply_first = multiplies_first(src, fc_neigh_.weight().shape()[0]);
  const Variable rows = multiply_first ? fc_neigh_(src) : src;
  const auto self = [&] {
    if (!dst.defined()) return first_rows(rows, graph.num_dst_nodes());
    return multiply_first ? fc_neigh_(dst) : dst;
  };
  Variable y = scale_rows(graph.update_all(message(rows, edge_weight), fn::sum, self), factors);
  if (!multiply_first) return linear(std::move(y), fc_neigh_.weight(), bias_);
  return bias_.defined() ? add(std::move(y), bias_) : y;
}

}  // namespace sar
