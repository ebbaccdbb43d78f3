// SPDX-License-Identifier: MIT
#include <sar/autograd/tape.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/models/mesh_graph_net.hpp>

#include <functional>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

MLPOptions network_options(int hidden_layers, const Activation& activation, bool layer_norm) {
  return {.hidden_layers = hidden_layers, .activation = activation, .layer_norm = layer_norm};
}

MLPOptions network_options(const MeshGraphNetOptions& options, bool layer_norm) {
  return network_options(options.mlp_layers, options.activation, layer_norm);
}

/// Returns the columns of the first layer's weight that multiply part i of its input. All parts are as wide
/// as the layer's result.
Variable part_of_weight(const MLP& mlp, Index i) {
  const Variable& weight = mlp.first().weight();
  const Index width = weight.shape()[0];
  return slice_columns(weight, i * width, (i + 1) * width);
}

/// Wraps a message. It is copied only if a tape records and has to keep it.
template <class Message>
MessageFunction function_of(const Message& message) {
  if (Tape::current() != nullptr) return message;
  return std::cref(message);
}

const MeshGraphNetOptions& checked(const MeshGraphNetOptions& options) {
  require<InputError>(options.blocks >= 0, "MeshGraphNet of ", options.blocks, " blocks, expected 0 or more");
  return options;
}

}  // namespace

MeshGraphNetBlock::MeshGraphNetBlock(Index hidden, Generator& gen, int hidden_layers,
                                     const Activation& activation)
    : hidden_(hidden),
      edge_mlp_(std::make_shared<MLP>(3 * hidden, hidden, hidden, gen,
                                      network_options(hidden_layers, activation, true))),
      node_mlp_(2 * hidden, hidden, hidden, gen, network_options(hidden_layers, activation, true)) {
  register_module("edge_mlp", *edge_mlp_);
  register_module("node_mlp", node_mlp_);
}

MeshLatents MeshGraphNetBlock::operator()(const Graph& graph, const MeshLatents& latents) const {
  return graph.comm().agree([&]() -> MeshLatents {
    require_block(graph, "MeshGraphNetBlock");
    require<ShapeError>(graph.num_src_nodes() == graph.num_dst_nodes(), "MeshGraphNetBlock on a graph of ",
                        graph.num_src_nodes(), " sources and ", graph.num_dst_nodes(),
                        " destinations on this rank, expected the same nodes");
    const auto& [h, e] = latents;
    require_rows(h, graph.num_nodes(), hidden_, "MeshGraphNetBlock, rows of nodes");
    require_rows(e, graph.num_edges(), hidden_, "MeshGraphNetBlock, rows of edges");

    const Variable from = linear(h, part_of_weight(*edge_mlp_, 1));
    const Variable to = linear(h, part_of_weight(*edge_mlp_, 2), edge_mlp_->first().bias());
    const auto message = [=, mlp = edge_mlp_,
                          of_edge = part_of_weight(*edge_mlp_, 0)](const EdgeBatch& edges) {
      return mlp->rest(add_linear(edges.src(from) + edges.dst(to), edges.edata(e), of_edge));
    };
    Variable next = e + graph.apply_edges(function_of(message));

    const Variable arrived = graph.update_all(fn::copy_e(next), fn::sum);
    Variable first = linear(h, part_of_weight(node_mlp_, 0), node_mlp_.first().bias());
    first = add_linear(std::exchange(first, {}), arrived, part_of_weight(node_mlp_, 1));
    return {.nodes = h + node_mlp_.rest(std::move(first)), .edges = std::move(next)};
  });
}

MeshGraphNet::MeshGraphNet(const MeshGraphNetOptions& options, Generator& gen)
    : MeshGraphNet(options, nullptr, gen) {}

MeshGraphNet::MeshGraphNet(const MeshGraphNetOptions& options, const Communicator& comm, Generator& gen)
    : MeshGraphNet(options, &comm, gen) {}

MeshGraphNet::MeshGraphNet(const MeshGraphNetOptions& options, const Communicator* comm, Generator& gen)
    : options_(checked(options)),
      node_encoder_(options.node_feats, options.hidden, options.hidden, gen, network_options(options, true)),
      edge_encoder_(std::make_shared<MLP>(options.edge_feats, options.hidden, options.hidden, gen,
                                          network_options(options, true))),
      decoder_(options.hidden, options.hidden, options.out_feats, gen, network_options(options, false)) {
  register_module("node_encoder", node_encoder_);
  register_module("edge_encoder", *edge_encoder_);
  register_module("processor", processor_);
  register_module("decoder", decoder_);
  for (int i = 0; i < options.blocks; ++i)
    processor_.emplace_back(options.hidden, gen, options.mlp_layers, options.activation);
  if (!options.normalize) return;
  require<InputError>(comm != nullptr, "MeshGraphNet with normalize, but without a communicator");
  node_normalizer_.emplace(options.node_feats, *comm);
  edge_normalizer_.emplace(options.edge_feats, *comm);
  output_normalizer_.emplace(options.out_feats, *comm);
  register_module("node_normalizer", *node_normalizer_);
  register_module("edge_normalizer", *edge_normalizer_);
  register_module("output_normalizer", *output_normalizer_);
}

Variable MeshGraphNet::normalized(const Graph& graph, const Variable& x, const Variable& edge_feats) const {
  return graph.comm().agree([&] {
    require_rows(x, graph.num_nodes(), options_.node_feats, "MeshGraphNet, features");
    require_rows(edge_feats, graph.num_edges(), options_.edge_feats, "MeshGraphNet, edge features");
    MeshLatents latents;
    latents.nodes = node_encoder_(node_normalizer_ ? (*node_normalizer_)(x) : x);
    const Variable of_edges = edge_normalizer_ ? (*edge_normalizer_)(edge_feats) : edge_feats;
    const auto message = [of_edges, mlp = edge_encoder_](const EdgeBatch& edges) {
      return (*mlp)(edges.edata(of_edges));
    };
    latents.edges = graph.apply_edges(function_of(message));
    for (std::size_t i = 0; i < processor_.size(); ++i)
      latents = processor_[i](graph, std::exchange(latents, {}));
    return decoder_(latents.nodes);
  });
}

Variable MeshGraphNet::operator()(const Graph& graph, const Variable& x, const Variable& edge_feats) const {
  return graph.comm().agree([&] {
    Variable y = normalized(graph, x, edge_feats);
    return output_normalizer_ ? output_normalizer_->inverse(std::move(y)) : y;
  });
}

Variable MeshGraphNet::normalized_target(const Variable& target) const {
  require<ShapeError>(target.shape().dims() == 2 && target.shape()[1] == options_.out_feats,
                      "MeshGraphNet of ", options_.out_feats, " outputs got a target of shape ",
                      target.shape());
  return output_normalizer_ ? (*output_normalizer_)(target) : target;
}

void MeshGraphNet::update_statistics(const Tensor& x, const Tensor& edge_feats, const Tensor& target) {
  require<InputError>(output_normalizer_.has_value(),
                      "statistics of a MeshGraphNet that was made without normalize");
  const Transaction transaction;
  node_normalizer_->update(x);
  edge_normalizer_->update(edge_feats);
  output_normalizer_->update(target);
}

bool MeshGraphNet::has_statistics() const noexcept {
  return !output_normalizer_ ||
         (node_normalizer_->count() > 0 && edge_normalizer_->count() > 0 && output_normalizer_->count() > 0);
}
}}  // namespace sar
