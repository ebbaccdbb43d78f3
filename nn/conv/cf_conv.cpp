// SPDX-License-Identifier: MIT
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/cf_conv.hpp>

#include <cmath>

namespace sar { inline namespace SAR_PRECISION {

Variable shifted_softplus(Variable x) {
  return softplus(std::move(x)) - static_cast<real>(std::log(2.0));
}

CFConv::CFConv(Index node_in_feats, Index edge_in_feats, Index hidden_feats, Index out_feats, Generator& gen)
    : node_in_feats_(node_in_feats),
      edge_in_feats_(edge_in_feats),
      project_edge_(std::make_shared<Sequential>()),
      project_node_(node_in_feats, hidden_feats, gen) {
  project_edge_->emplace_back<Linear>(edge_in_feats, hidden_feats, gen);
  project_edge_->push_back(shifted_softplus);
  project_edge_->emplace_back<Linear>(hidden_feats, hidden_feats, gen);
  project_edge_->push_back(shifted_softplus);
  project_out_.emplace_back<Linear>(hidden_feats, out_feats, gen);
  project_out_.push_back(shifted_softplus);
  register_module("project_edge", *project_edge_);
  register_module("project_node", project_node_);
  register_module("project_out", project_out_);
}

Variable CFConv::operator()(const Graph& graph, const Variable& feat, const Variable& edge_feats) const {
  return graph.comm().agree([&] {
    require_rows(feat, graph.num_src_nodes(), node_in_feats_, "CFConv, features");
    require_rows(edge_feats, graph.num_edges(), edge_in_feats_, "CFConv, edge features");
    return project_out_(graph.update_all(
        [x = project_node_(feat), edge_feats, filter = project_edge_](const EdgeBatch& edges) {
          return mul(edges.src(x), (*filter)(edges.edata(edge_feats)));
        },
        fn::sum));
  });
}
}}  // namespace sar
