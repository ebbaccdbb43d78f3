#include <sar/nn/aggregate.hpp>
#include <sar/nn/edge_conv.hpp>

namespace sar {

EdgeConv::EdgeConv(Index in_feats, Index out_feats, Generator& gen)
    : theta_(in_feats, out_feats, gen), phi_(in_feats, out_feats, gen) {
  register_module("theta", theta_);
  register_module("phi", phi_);
}

Variable EdgeConv::operator()(const GraphShardManager& graph, const Variable& feat) const {
  require_one_kind(graph, "EdgeConv");
  require_rows(feat, graph.num_src_nodes(), theta_.weight().shape()[1], "EdgeConv, features");
  return (*this)(graph, {feat, first_rows(feat, graph.num_dst_nodes())});
}

Variable EdgeConv::operator()(const GraphShardManager& graph,
                              const std::pair<Variable, Variable>& feat) const {
  const Index in_feats = theta_.weight().shape()[1];
  require_rows(feat.first, graph.num_src_nodes(), in_feats, "EdgeConv, source features");
  require_rows(feat.second, graph.num_dst_nodes(), in_feats, "EdgeConv, destination features");
  // max_u(-W_theta x_u) + (W_theta + W_phi) x_v + biases, the latter only where there are in-edges
  const auto self = [&] {
    return scale_rows(linear(feat.second, theta_.weight() + phi_.weight(), theta_.bias() + phi_.bias()),
                      degree_column(graph.in_degrees(), [](double degree) { return degree > 0 ? 1 : 0; }));
  };
  return graph.update_all(fn::copy_u(linear(feat.first, -theta_.weight())), fn::max, self);
}

}  // namespace sar
