// SPDX-License-Identifier: MIT

// theta is applied once to each source row instead of once to each edge. What is left for the edges is a
// maximum of rows:
//
//     max_u theta(x_v - x_u) + phi(x_v) = max_u(-W_theta x_u) + (W_theta + W_phi) x_v + b_theta + b_phi
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/edge_conv.hpp>

namespace sar { inline namespace SAR_PRECISION {

EdgeConv::EdgeConv(Index in_feats, Index out_feats, Generator& gen)
    : theta_(in_feats, out_feats, gen), phi_(in_feats, out_feats, gen) {
  register_module("theta", theta_);
  register_module("phi", phi_);
}

Variable EdgeConv::operator()(const Graph& graph, const NodeFeatures& feat) const {
  return graph.comm().agree([&] {
    require_feats(graph, feat, theta_.weight().shape()[1], "EdgeConv");
    // y = max_u(-W_theta x_u) + (W_theta + W_phi) x_v + biases; the self term and biases only with in-edges
    StartedSum maximum = graph.start_update_all(fn::copy_u(linear(feat.src, -theta_.weight())), fn::max);
    return maximum.finish(scale_rows(
        linear(dst_feats(graph, feat), theta_.weight() + phi_.weight(), theta_.bias() + phi_.bias()),
        degree_column(graph.in_degrees(), [](double degree) { return degree > 0 ? 1 : 0; })));
  });
}
}}  // namespace sar
