// SPDX-License-Identifier: MIT

// theta is applied once to each source row instead of once to each edge. What is left for the edges is a
// maximum of rows:
//
//     max_u theta(x_v - x_u) + phi(x_v) = max_u(-W_theta x_u) + (W_theta + W_phi) x_v + b_theta + b_phi
#include <sar/autograd/tape.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/edge_conv.hpp>
#include <sar/nn/modules/row_distance.hpp>

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// Checks the shapes and returns the number of coordinates.
Index checked_positions(const Graph& graph, const NodeFeatures& positions, std::string_view function) {
  require<ShapeError>(positions.src.defined() && positions.src.shape().dims() == 2, function,
                      ": positions of shape ", positions.src.shape(), ", expected [nodes, dimensions]");
  const Index dim = positions.src.shape()[1];
  require_feats(graph, positions, dim, function);
  return dim;
}

}  // namespace

Variable relative_positions(const Graph& graph, const NodeFeatures& positions, const Variable& shifts) {
  return graph.comm().agree([&] {
    const Index dim = checked_positions(graph, positions, "relative_positions");
    if (shifts.defined()) require_rows(shifts, graph.num_edges(), dim, "relative_positions, shifts");
    const ExactHaloRows places;
    return graph.apply_edges(
        [x = positions.src, y = dst_feats(graph, positions), shifts](const EdgeBatch& edges) {
          Variable from = edges.src(x);
          if (shifts.defined()) from = std::exchange(from, {}) + edges.edata(shifts);
          const Variable to = edges.dst(y);
          return concat_columns({from - to, row_distance(from, to, RowComparison::l2)});
        });
  });
}

Tensor minimum_image_shifts(const Graph& graph, const NodeFeatures& positions, std::span<const double> box) {
  return graph.comm().agree([&] {
    const Index dim = checked_positions(graph, positions, "minimum_image_shifts");
    require<ShapeError>(std::ssize(box) == dim, "minimum_image_shifts: a box of ", box.size(),
                        " sides for positions of ", dim, " coordinates");
    for (const double side : box)
      require<InputError>(side > 0 && std::isfinite(side), "minimum_image_shifts: a box with a side of ",
                          side, ", expected a positive number");
    CollectiveCall call("minimum_image_shifts");
    for (const double side : box) call.equal("side of the box", side);
    const CallScope compared(graph.comm(), call);
    const ExactHaloRows places;
    const NoTape values_only;
    return graph
        .apply_edges([x = positions.src, y = dst_feats(graph, positions),
                      sides = std::vector<double>(box.begin(), box.end())](const EdgeBatch& edges) {
          Tensor shifts = (edges.src(x) - edges.dst(y)).value();
          for (Index e = 0; e < shifts.num_rows(); ++e)
            for (std::size_t k = 0; k < sides.size(); ++k) {
              real& value = shifts.row(e)[k];
              value = static_cast<real>(-sides[k] * std::round(static_cast<double>(value) / sides[k]));
            }
          return Variable(shifts);
        })
        .value();
  });
}

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

// sum and mean: a message is a row times the edge's matrix, computed for a chunk of edges by bmm(). max
// and min: a message has the products x_i W_io, [in, out]; the extrema [destinations, in, out] are then
// summed over i by a product with ones.

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
