// SPDX-License-Identifier: MIT
#include "failures/scene.hpp"
#include "support/sparse.hpp"

#include <sar/nn/atoms/tensor_product_sums.hpp>

#include <filesystem>
#include <limits>

namespace sar::test {
namespace {

/// The scene's edges as two relations.
Graph two_relations(const Scene& s) {
  const EdgeList edges = scene_edges(s.book, s.comm.rank());
  return {s.comm,
          {{.name = "user", .book = s.book}},
          {{.type = {"user", "follows", "user"}, .edges = edges},
           {.type = {"user", "knows", "user"}, .edges = edges}}};
}

/// A network on a graph of these relations.
ModelDescription typed_network() {
  return {.type = "hetero-gat",
          .in_feats = scene_width,
          .hidden = 4,
          .out_feats = 2,
          .layers = 2,
          .norm = "batch",
          .dropout = 0.25,
          .heads = 2,
          .node_types = {"user"},
          .edge_types = {{"user", "follows", "user"}, {"user", "knows", "user"}}};
}

/// A layer on node features.
template <class Conv, class... Args>
void add_layer(std::vector<Call>& calls, const Communicator& comm, const std::string& name, Args... args) {
  add_operation(calls, comm, name, [=](Scene& s) {
    auto conv = std::make_shared<Conv>(args..., s.gen);
    return [&s, conv] { return (*conv)(s.graph, s.x); };
  });
}

/// A layer on node and edge features.
template <class Conv, class... Args>
void add_edge_layer(std::vector<Call>& calls, const Communicator& comm, const std::string& name,
                    Args... args) {
  add_operation(calls, comm, name, [=](Scene& s) {
    auto conv = std::make_shared<Conv>(args..., s.gen);
    return [&s, conv] { return (*conv)(s.graph, s.x, s.e); };
  });
}

/// Two layers whose rows between them are in bfloat16, and the result of the second.
template <class Conv, class... Args>
void add_mixed_layers(std::vector<Call>& calls, const Communicator& comm, const std::string& name,
                      Index hidden, Args... args) {
  if (sizeof(real) != 4) return;
  add_operation(calls, comm, name + " in mixed precision", [=](Scene& s) {
    s.mixed = true;
    auto first = std::make_shared<Conv>(scene_width, Index{2}, args..., s.gen);
    auto second = std::make_shared<Conv>(hidden, Index{2}, args..., s.gen);
    return [&s, first, second, hidden] {
      const Variable h = (*first)(s.graph, s.x);
      const Variable rows = s.comm.agree([&] { return relu(reshape(h, {s.graph.num_nodes(), hidden})); });
      return (*second)(s.graph, rows);
    };
  });
}

void add_convolutions(std::vector<Call>& calls, const Communicator& comm) {
  const Index in = scene_width, out = 2, heads = 2;
  add_layer<SAGEConv>(calls, comm, "nn/conv/sage_conv.hpp SAGEConv", in, out);
  add_layer<GraphConv>(calls, comm, "nn/conv/graph_conv.hpp GraphConv", in, out);
  add_operation(calls, comm, "nn/conv/graph_conv.hpp GraphConv with sparse features", [=](Scene& s) {
    auto conv = std::make_shared<GraphConv>(in, out, s.gen);
    const Variable x = sparse_of(s.x.value());
    return [&s, conv, x] { return (*conv)(s.graph, x); };
  });
  add_layer<EdgeConv>(calls, comm, "nn/conv/edge_conv.hpp EdgeConv", in, out);
  add_layer<TAGConv>(calls, comm, "nn/conv/multi_hop_conv.hpp TAGConv", in, out);
  add_layer<APPNPConv>(calls, comm, "nn/conv/multi_hop_conv.hpp APPNPConv", 2, 0.1);
  add_layer<GATConv>(calls, comm, "nn/conv/gat_conv.hpp GATConv", in, out, heads);
  add_layer<GATv2Conv>(calls, comm, "nn/conv/gat_conv.hpp GATv2Conv", in, out, heads);
  add_layer<DotGatConv>(calls, comm, "nn/conv/dot_gat_conv.hpp DotGatConv", in, out, heads);
  add_mixed_layers<SAGEConv>(calls, comm, "nn/conv/sage_conv.hpp SAGEConv", 2);
  add_mixed_layers<GATConv>(calls, comm, "nn/conv/gat_conv.hpp GATConv", 4, heads);
  add_layer<TransformerConv>(calls, comm, "nn/conv/dot_gat_conv.hpp TransformerConv", in, out, heads);
  add_edge_layer<EdgeGATConv>(calls, comm, "nn/conv/gat_conv.hpp EdgeGATConv", in, Index{1}, out, heads);
  add_edge_layer<CFConv>(calls, comm, "nn/conv/edge_conv.hpp CFConv", in, Index{1}, Index{2}, out);
  const auto add_pooling = [&](const std::string& name, auto pooling) {
    add_operation(calls, comm, name,
                  [=](Scene& s) { return [&s, pooling] { return (*pooling)(s.graph, s.x); }; });
  };
  add_pooling("nn/conv/global_pooling.hpp SumPooling", std::make_shared<SumPooling>());
  add_pooling("nn/conv/global_pooling.hpp AvgPooling", std::make_shared<AvgPooling>());
  add_pooling("nn/conv/global_pooling.hpp MaxPooling", std::make_shared<MaxPooling>());
  add_operation(calls, comm, "nn/conv/global_pooling.hpp GlobalAttentionPooling", [=](Scene& s) {
    auto pooling = std::make_shared<GlobalAttentionPooling>(std::make_shared<Linear>(in, 1, s.gen),
                                                            std::make_shared<Linear>(in, out, s.gen));
    return [&s, pooling] { return (*pooling)(s.graph, s.x); };
  });
  add_operation(calls, comm, "nn/conv/gin_conv.hpp GINConv", [](Scene& s) {
    auto conv = std::make_shared<GINConv>();
    return [&s, conv] { return (*conv)(s.graph, s.x); };
  });
  add_operation(calls, comm, "nn/conv/gin_conv.hpp GINEConv", [=](Scene& s) {
    auto conv = std::make_shared<GINEConv>(in, 1, RowFunction(), s.gen);
    return [&s, conv] { return (*conv)(s.graph, s.x, s.e); };
  });
  add_operation(calls, comm, "nn/conv/dot_gat_conv.hpp AGNNConv", [](Scene& s) {
    auto conv = std::make_shared<AGNNConv>();
    return [&s, conv] { return (*conv)(s.graph, s.x); };
  });
  add_operation(calls, comm, "nn/conv/multi_hop_conv.hpp SGConv", [=](Scene& s) {
    s.x = s.x.detach();
    auto conv = std::make_shared<SGConv>(in, out, s.gen, SGConvOptions{.cached = true});
    return [&s, conv] { return (*conv)(s.graph, s.x); };
  });
  add_operation(calls, comm, "nn/conv/aggregate_cache.hpp AggregateCache", [=](Scene& s) {
    s.x = s.x.detach();
    auto conv = std::make_shared<SAGEConv>(in, out, s.gen, SAGEConvOptions{.cached = true});
    return [&s, conv] { return (*conv)(s.graph, s.x); };
  });
  add_operation(
      calls, comm,
      "nn/models/graph_model.hpp GraphModel::operator, nn/models/layer_stack.hpp LayerStack::operator, "
      "nn/models/layer_stack.hpp LayerStack::after_layer",
      [=](Scene& s) {
        const ModelDescription description{.in_feats = in,
                                           .hidden = 3,
                                           .out_feats = out,
                                           .layers = 2,
                                           .norm = "batch",
                                           .dropout = 0.25,
                                           .residual = "linear",
                                           .jk = "cat",
                                           .pre_linear = true};
        auto model = std::make_shared<GraphModel>(description, s.comm, s.gen);
        return [&s, model] { return (*model)(s.graph, s.x); };
      });
  add_operation(
      calls, comm, "nn/models/graph_model.hpp GraphModel::operator, nn/models/relations.hpp relations_of",
      [=](Scene& s) {
        auto model = std::make_shared<GraphModel>(typed_network(), s.comm, s.gen);
        return [model, graph = two_relations(s), x = std::make_shared<GraphModel::Rows>(
                                                     GraphModel::Rows{{"user", s.x}})] {
          return (*model)(graph, *x).at("user");
        };
      });
  add_operation(calls, comm, "nn/conv/edge_conv.hpp NNConv", [=](Scene& s) {
    auto conv = std::make_shared<NNConv>(in, out, std::make_shared<Linear>(1, in * out, s.gen), s.gen);
    return [&s, conv] { return (*conv)(s.graph, s.x, s.e); };
  });
  add_operation(calls, comm, "nn/conv/rel_graph_conv.hpp RelGraphConv", [=](Scene& s) {
    auto conv = std::make_shared<RelGraphConv>(in, out, 2, s.gen);
    Array<Index> types(static_cast<std::size_t>(s.graph.num_edges()), 1);
    const RowIds etypes(std::move(types));
    return [&s, conv, etypes] { return (*conv)(s.graph, s.x, etypes); };
  });
  const auto types_of_edges = [](const Scene& s) {
    return EdgeTypes(std::vector<Index>(static_cast<std::size_t>(s.graph.num_edges()), 1));
  };
  add_operation(calls, comm, "nn/conv/hgt_conv.hpp HGTConv", [=](Scene& s) {
    auto conv = std::make_shared<HGTConv>(in, out, heads, 2, 2, s.gen);
    const RowIds ntypes(std::vector<Index>(static_cast<std::size_t>(s.graph.num_src_nodes()), 1));
    return [&s, conv, ntypes, types = types_of_edges(s)] { return (*conv)(s.graph, s.x, ntypes, types); };
  });
  add_operation(calls, comm, "nn/conv/hgt_conv.hpp SimpleHGNConv", [=](Scene& s) {
    auto conv =
        std::make_shared<SimpleHGNConv>(in, 2, out, heads, 2, s.gen, SimpleHGNConvOptions{.beta = 0.5});
    const Variable previous(scene_values({s.graph.num_edges(), heads, 1}, 3), true);
    return [&s, conv, previous, types = types_of_edges(s)] { return (*conv)(s.graph, s.x, types, previous); };
  });
  add_operation(calls, comm, "nn/conv/hgt_conv.hpp SimpleHGNConv::attention", [=](Scene& s) {
    auto conv = std::make_shared<SimpleHGNConv>(in, 2, out, heads, 2, s.gen);
    return [&s, conv, types = types_of_edges(s)] { return conv->attention(s.graph, s.x, types); };
  });
  add_operation(calls, comm, "nn/conv/hetero_graph_conv.hpp HeteroGraphConv", [=](Scene& s) {
    auto conv = std::make_shared<HeteroGraphConv>();
    conv->emplace_back<SAGEConv>({"user", "follows", "user"}, in, out, s.gen);
    conv->emplace_back<GraphConv>({"user", "knows", "user"}, in, out, s.gen);
    const HeteroGraphConv::Graphs graphs{{"follows", s.graph}, {"knows", s.graph}};
    const HeteroGraphConv::Rows feats{{"user", s.x}};
    return [conv, graphs, feats] { return (*conv)(graphs, feats).at("user"); };
  });
  add_operation(calls, comm,
                "nn/conv/hetero_graph_conv.hpp HeteroGraphConv on a Graph, "
                "graph/message/graph.hpp Graph::call",
                [=](Scene& s) {
                  auto conv = std::make_shared<HeteroGraphConv>(RelationAggregate::max);
                  conv->emplace_back<SAGEConv>({"user", "follows", "user"}, in, out, s.gen);
                  conv->emplace_back<GraphConv>({"user", "knows", "user"}, in, out, s.gen);
                  const HeteroGraphConv::Rows feats{{"user", s.x}};
                  return [conv, feats, graph = two_relations(s)] { return (*conv)(graph, feats).at("user"); };
                });
  add_operation(calls, comm, "graph/message/graph.hpp Graph::multi_update_all", [=](Scene& s) {
    const std::map<EdgeType, Graph::MessageReduce> messages{
        {{"user", "follows", "user"}, {fn::u_mul_v(s.x, s.x), Reduce::sum}},
        {{"user", "knows", "user"}, {fn::copy_u(s.x), Reduce::mean}}};
    return [messages, graph = two_relations(s)] {
      return graph.multi_update_all(messages, CrossReduce::stack).at("user");
    };
  });
  const auto add_coefficients = [&](const std::string& name, auto make) {
    add_operation(calls, comm, name, [=](Scene& s) {
      auto conv = make(s);
      return [&s, conv] { return conv->attention(s.graph, s.x); };
    });
  };
  add_operation(calls, comm, "nn/conv/global_pooling.hpp GlobalAttentionPooling::attention", [=](Scene& s) {
    auto pooling = std::make_shared<GlobalAttentionPooling>(std::make_shared<Linear>(in, 1, s.gen));
    return [&s, pooling] { return pooling->attention(s.graph, s.x); };
  });
  add_coefficients("nn/conv/gat_conv.hpp GATConv::attention",
                   [=](Scene& s) { return std::make_shared<GATConv>(in, out, heads, s.gen); });
  add_coefficients("nn/conv/gat_conv.hpp GATv2Conv::attention",
                   [=](Scene& s) { return std::make_shared<GATv2Conv>(in, out, heads, s.gen); });
  add_coefficients("nn/conv/dot_gat_conv.hpp DotGatConv::attention",
                   [=](Scene& s) { return std::make_shared<DotGatConv>(in, out, heads, s.gen); });
  add_coefficients("nn/conv/dot_gat_conv.hpp TransformerConv::attention",
                   [=](Scene& s) { return std::make_shared<TransformerConv>(in, out, heads, s.gen); });
  add_operation(calls, comm, "nn/conv/gat_conv.hpp EdgeGATConv::attention", [=](Scene& s) {
    auto conv = std::make_shared<EdgeGATConv>(in, Index{1}, out, heads, s.gen);
    return [&s, conv] { return conv->attention(s.graph, s.x, s.e); };
  });
  add_operation(calls, comm, "nn/conv/edge_weight_norm.hpp edge_weight_norm", [](Scene& s) {
    const Variable weight = s.wrong ? Variable(Tensor::full({s.graph.num_edges(), 1}, -1)) : s.e;
    return [&s, weight] { return edge_weight_norm(s.graph, weight, EdgeNorm::both); };
  });
  add_operation(calls, comm, "nn/conv/edge_weight_norm.hpp kept_edge_weight_norm", [](Scene& s) {
    EdgeList edges = scene_edges(s.book, s.comm.rank());
    edges.weight.assign(edges.id.size(), s.wrong ? real{-1} : real{2});
    auto graph = std::make_shared<Graph>(s.comm, s.book, s.book, std::move(edges), true, GraphOptions{});
    return [&s, graph] {
      return s.comm.agree([&] {
        return s.e * reshape(Variable(kept_edge_weight_norm(*graph, EdgeNorm::in_weights)), s.e.shape());
      });
    };
  });
  add_operation(calls, comm, "nn/models/gcn_norm.hpp count_self_loops", [](Scene& s) {
    return [&s] {
      (void)count_self_loops(s.graph);
      return s.graph.update_all(fn::copy_u(s.x), fn::sum);
    };
  });
  add_operation(calls, comm, "nn/conv/edge_weight_norm.hpp weight_sums", [](Scene& s) {
    const Variable weight = s.wrong ? Variable(Tensor::full({s.graph.num_edges(), 1}, -1)) : s.e;
    return [&s, weight] { return weight_sums(s.graph, weight).out; };
  });
  add_operation(calls, comm, "nn/conv/attention_conv.hpp weighted_edge_sums", [](Scene& s) {
    const Variable alpha(Tensor::full({s.graph.num_edges() + (s.wrong ? 1 : 0), 2, 1}, 1), true);
    return [&s, alpha] { return weighted_edge_sums(s.graph, alpha, s.e); };
  });
}

/// Networks on meshes, of the smallest widths: every allocation fails once.
void add_mesh_networks(std::vector<Call>& calls, const Communicator& comm) {
  MeshGraphNetOptions options;
  options.node_feats = scene_width;
  options.edge_feats = options.out_feats = options.mlp_layers = options.blocks = 1;
  options.hidden = 2;
  add_operation(calls, comm, "nn/models/mesh_graph_net.hpp MeshGraphNet", [=](Scene& s) {
    auto net = std::make_shared<MeshGraphNet>(options, s.gen);
    return [&s, net] { return (*net)(s.graph, s.x, s.e); };
  });
  add_operation(calls, comm, "nn/models/mesh_graph_net.hpp MeshGraphNet::normalized", [=](Scene& s) {
    MeshGraphNetOptions without = options;
    without.blocks = 0;
    auto net = std::make_shared<MeshGraphNet>(without, s.gen);
    return [&s, net] { return net->normalized(s.graph, s.x, s.e); };
  });
  add_operation(calls, comm, "nn/models/mesh_graph_net.hpp MeshGraphNet::update_statistics", [=](Scene& s) {
    MeshGraphNetOptions normalizing = options;
    normalizing.normalize = true;
    auto net = std::make_shared<MeshGraphNet>(normalizing, s.comm, s.gen);
    const Tensor target = Tensor::full({2, s.wrong ? 2 : 1}, 1);
    return [&s, net, target] {
      net->update_statistics(s.x.value(), s.e.value(), target);
      return s.x;
    };
  });
  add_operation(calls, comm, "nn/models/mesh_graph_net.hpp MeshGraphNetBlock", [](Scene& s) {
    auto block = std::make_shared<MeshGraphNetBlock>(scene_width, s.gen, 1);
    const Variable e(scene_values({s.graph.num_edges(), scene_width}, 3), true);
    return [&s, block, e] { return (*block)(s.graph, {.nodes = s.x, .edges = e}).nodes; };
  });
  add_operation(calls, comm, "nn/conv/edge_conv.hpp relative_positions",
                [](Scene& s) { return [&s] { return relative_positions(s.graph, s.x); }; });
  add_operation(calls, comm, "nn/conv/edge_conv.hpp minimum_image_shifts", [](Scene& s) {
    return [&s, box = std::vector<double>(scene_width, 1)] {
      (void)minimum_image_shifts(s.graph, s.x, box);
      return s.x;
    };
  });
  add_operation(calls, comm, "nn/atoms/painn_conv.hpp PaiNNConv", [](Scene& s) {
    auto conv = std::make_shared<PaiNNConv>(1, RadialFunctions{.cutoff = 4}, s.gen);
    const Variable scalars(scene_values({s.graph.num_nodes(), 1}, 3), true);
    const Variable vectors(scene_values({s.graph.num_nodes(), 3, 1}, 4), true);
    return [&s, conv, scalars, vectors] {
      return (*conv)(s.graph, {.scalars = scalars, .vectors = vectors}, s.x).scalars;
    };
  });
  const auto add_model = [&](const std::string& name, auto compute) {
    add_operation(calls, comm, name, [=](Scene& s) {
      auto model = std::make_shared<PaiNN>(
          PaiNNOptions{.num_species = 2, .feats = 1, .convs = 1, .cutoff = 4, .num_basis = 1}, s.gen);
      const RowIds species(std::vector<Index>(static_cast<std::size_t>(s.graph.num_nodes()), 1));
      return [&s, model, species, compute] { return compute(*model, s, species); };
    });
  };
  add_model("nn/atoms/potential_network.hpp PotentialNetwork::atomic_energies",
            [](const PotentialNetwork& model, Scene& s, const RowIds& species) {
              return model.atomic_energies(s.graph, species, s.x);
            });
  add_model("nn/atoms/potential_network.hpp PotentialNetwork::head_energies",
            [](const PotentialNetwork& model, Scene& s, const RowIds& species) {
              return model.head_energies(s.graph, species, s.x);
            });
  add_model("nn/atoms/potential_network.hpp PotentialNetwork::energy",
            [](const PotentialNetwork& model, Scene& s, const RowIds& species) {
              return model.energy(s.graph, species, s.x);
            });
  add_model("nn/atoms/potential_network.hpp PotentialNetwork::energy_and_forces",
            [](const PotentialNetwork& model, Scene& s, const RowIds& species) {
              return s.comm.agree([&] {
                return s.x + Variable(model.energy_and_forces(s.graph, species, s.x.value()).forces);
              });
            });
  add_model("nn/atoms/potential_loss.hpp backward_potential_loss",
            [](const PotentialNetwork& model, Scene& s, const RowIds& species) {
              return s.comm.agree([&] {
                const PotentialErrors errors =
                    backward_potential_loss(model, s.graph,
                                            {.species = species,
                                             .positions = s.x.value(),
                                             .energies = Tensor::full({1}, 1),
                                             .forces = scene_values({s.graph.num_nodes(), 3}, 7)});
                return s.x + static_cast<real>(errors.loss);
              });
            });
  add_operation(calls, comm, "nn/atoms/tensor_product_sums.hpp tensor_product_sums", [](Scene& s) {
    const TensorProductSumOperands operands{.rows = Variable(scene_values({s.graph.num_nodes(), 2}, 3), true),
                                            .positions = s.x,
                                            .shifts = {},
                                            .radii = {},
                                            .network = {Tensor::full({4, 1}, 1)},
                                            .density = {},
                                            .functions = {.cutoff = 4, .num_basis = 1, .max_l = 1},
                                            .product = std::make_shared<const TensorProduct>(0, 1, 1)};
    return [&s, operands] { return tensor_product_sums(s.graph, operands); };
  });
  add_operation(calls, comm, "nn/atoms/mace.hpp MACELayer", [](Scene& s) {
    auto layer =
        std::make_shared<MACELayer>(MACEOptions{.num_species = 1,
                                                .feats = 1,
                                                .density = true,
                                                .functions = {.cutoff = 4, .num_basis = 1, .max_l = 1},
                                                .radial_feats = 1},
                                    0, 1, true, s.gen);
    const Variable rows(scene_values({s.graph.num_nodes(), 1}, 3), true);
    const RowIds species(std::vector<Index>(static_cast<std::size_t>(s.graph.num_nodes()), 0));
    return [&s, layer, rows, species] { return (*layer)(s.graph, rows, species, s.x, {}, {}); };
  });
  const auto slope_function = [](Scene& s) {
    return [&s, w = Variable(scene_values({scene_width}, 2), true)](const std::vector<Variable>& inputs) {
      return sum(s.graph.update_all(fn::copy_u(inputs[0] * inputs[0] * w), Reduce::sum), s.comm);
    };
  };
  add_operation(calls, comm, "nn/train/loss.hpp value_and_slopes", [=](Scene& s) {
    return [&s, f = slope_function(s)] {
      return s.comm.agree([&] { return s.x + Variable(value_and_slopes(f, {s.x.value()}).slopes[0]); });
    };
  });
  add_operation(calls, comm, "nn/train/loss.hpp backward_slope_loss", [=](Scene& s) {
    return [&s, f = slope_function(s)] {
      return s.comm.agree([&] {
        const double loss = backward_slope_loss(f, {s.x.value()},
                                                [&](const Variable& y, const std::vector<Variable>& slopes) {
                                                  return y + sum(slopes[0] * slopes[0], s.comm);
                                                });
        return s.x + static_cast<real>(loss);
      });
    };
  });
}

ModelDescription described_potential() {
  return {.type = "painn", .hidden = 1, .layers = 1, .species = {"A", "B"}, .cutoff = 4, .num_basis = 1};
}

/// The first and the second call of a potential.
void add_potential(std::vector<Call>& calls, const Communicator& comm) {
  add_operation(calls, comm, "nn/atoms/potentials/potential.hpp Potential::operator", [](Scene& s) {
    auto potential = std::make_shared<Potential>(described_potential(), s.gen);
    const RowIds species(std::vector<Index>(static_cast<std::size_t>(s.graph.num_nodes()), 1));
    Tensor places = s.x.value().clone();  // those of another rank may be the same
    for (real& each : places.values()) each += static_cast<real>(s.comm.rank()) / 4;
    return [&s, potential, species, places] {
      return s.comm.agree([&] {
        const PotentialAtoms atoms{.species = species, .positions = places};
        const PotentialValues first = (*potential)(s.graph, atoms);
        return s.x + Variable(first.forces) + Variable((*potential)(s.graph, atoms, true).forces);
      });
    };
  });
}

/// The first and the second call of a predictor, with two exchanges of rows each.
void add_predictor(std::vector<Call>& calls, const Communicator& comm) {
  add_operation(calls, comm, "nn/models/predictor.hpp Predictor, nn/models/predictor.hpp Predictor::operator",
                [](Scene& s) {
                  auto conv = std::make_shared<SAGEConv>(scene_width, scene_width, s.gen);
                  Tensor out({s.graph.num_dst_nodes(), scene_width});
                  return [&s, conv, out]() mutable {
                    const auto network = [layer = conv.get()](const Graph& graph, const Variable& x,
                                                              const Variable&) {
                      return (*layer)(graph, (*layer)(graph, x));
                    };
                    Predictor predict(*conv, network, {.in_feats = scene_width, .out_feats = scene_width},
                                      s.graph);
                    for (int call = 0; call < 2; ++call) predict(s.x.value(), {}, out);
                    return s.x;
                  };
                });
}

/// Predictors, losses and metrics of links.
void add_links(std::vector<Call>& calls, const Communicator& comm) {
  add_operation(calls, comm, "nn/models/link_predictor.hpp DotPredictor",
                [](Scene& s) { return [&s] { return DotPredictor()(s.graph, s.x); }; });
  add_layer<MLPPredictor>(calls, comm, "nn/models/link_predictor.hpp MLPPredictor", scene_width);
  add_operation(calls, comm, "nn/models/link_predictor.hpp RelationPredictor", [](Scene& s) {
    auto predictor = std::make_shared<DistMultPredictor>(2, scene_width, s.gen);
    const RowIds rels(std::vector<Index>(static_cast<std::size_t>(s.graph.num_edges()), 1));
    return [&s, predictor, rels] { return (*predictor)(s.graph, s.x, rels); };
  });
  // a row too many of the wrong rank: negatives that cannot be divided among the positives
  const auto add_loss = [&](const std::string& name, auto loss) {
    add_operation(calls, comm, name, [=](Scene& s) {
      const Variable positive(Tensor::full({s.graph.num_nodes(), 1}, 1));
      return [&s, loss, positive] { return loss(positive, s.x, s.comm); };
    });
  };
  const auto bce = [](const Variable& p, const Variable& q, const Communicator& on) {
    return on.agree([&] {
      require<InputError>(q.num_rows() == p.num_rows(), "a wrong rank");
      return link_bce_with_logits(p, q, on);
    });
  };
  const auto margin = [](const Variable& p, const Variable& q, const Communicator& on) {
    return link_margin(p, q, on, 0.3);
  };
  const auto nce = [](const Variable& p, const Variable& q, const Communicator& on) {
    return info_nce(p, q, on);
  };
  add_loss("nn/models/link_predictor.hpp link_bce_with_logits", bce);
  add_loss("nn/models/link_predictor.hpp link_margin", margin);
  add_loss("nn/models/link_predictor.hpp info_nce", nce);
  const auto add_metric = [&](const std::string& name, auto metric) {
    add_operation(calls, comm, name, [=](Scene& s) {
      const Tensor positive = Tensor::full({s.graph.num_nodes()}, real(1.5));
      return [&s, positive, metric] {
        return s.comm.agree([&] {
          const Tensor none = Tensor::full({1}, std::numeric_limits<real>::quiet_NaN());
          return s.x * static_cast<real>(metric(s.wrong ? none : positive, s.x.value(), s.comm));
        });
      };
    });
  };
  add_metric("nn/train/metrics.hpp roc_auc",
             [](const Tensor& p, const Tensor& q, const Communicator& on) { return roc_auc(p, q, on); });
  add_metric(
      "nn/train/metrics.hpp average_precision",
      [](const Tensor& p, const Tensor& q, const Communicator& on) { return average_precision(p, q, on); });
  add_metric("nn/models/ranking.hpp hits_at_k",
             [](const Tensor& p, const Tensor& q, const Communicator& on) { return hits_at_k(p, q, 3, on); });
  add_metric("nn/models/ranking.hpp mean_reciprocal_rank", mean_reciprocal_rank);
  const auto ranks = std::make_shared<const FilteredRanks>(FilteredRanks{{1, 2.5}, {3}});
  const auto ks = std::make_shared<const std::vector<Index>>(std::vector<Index>{2});
  add_metric("nn/models/ranking.hpp rank_metrics",
             [=](const Tensor& p, const Tensor&, const Communicator& on) {
               return on.agree([&] {
                 require<InputError>(p.size() != 1, "a wrong rank");
                 return rank_metrics(*ranks, *ks, on).mrr;
               });
             });
  const auto edges = [](const Scene& s) {
    return s.wrong ? RelationEdges{{0}, {1}, {-1}} : RelationEdges{{0, 1}, {0, 1}, {1, 1}};
  };
  add_operation(calls, comm, "nn/models/ranking.hpp KnownEdges", [=](Scene& s) {
    return [&s, given = edges(s)] {
      return s.comm.agree([&] {
        const KnownEdges known(s.graph, given);
        return s.x * static_cast<real>(1 + known.ends(EdgeEnd::destination, 0, 0).size());
      });
    };
  });
  add_operation(calls, comm, "nn/models/ranking.hpp filtered_ranks", [=](Scene& s) {
    auto predictor = std::make_shared<DistMultPredictor>(2, scene_width, s.gen);
    auto known = std::make_shared<KnownEdges>(s.graph, RelationEdges{{0}, {1}, {1}});
    return [&s, given = edges(s), predictor, known] {
      return s.comm.agree([&] {
        const FilteredRanks found = filtered_ranks(*predictor, s.graph, s.x.value(), given, *known);
        return s.x * static_cast<real>(found.of_sources[0]);
      });
    };
  });
}

/// What is computed once from the graph and known labels.
void add_precomputed(std::vector<Call>& calls, const Communicator& comm) {
  add_operation(calls, comm, "nn/models/propagation.hpp propagate",
                [](Scene& s) { return [&s] { return propagate(s.graph, s.x); }; });
  const auto add = [&](const std::string& name, auto compute) {
    add_operation(calls, comm, name, [=](Scene& s) {
      const auto rows = static_cast<std::size_t>(s.graph.num_nodes());
      const std::vector<std::int64_t> labels(rows, s.wrong ? -2 : 1);
      const std::vector<std::uint8_t> mask(rows, 1);
      const Tensor y = Tensor::full({s.graph.num_nodes(), scene_width}, real(0.25));
      return [=, &s] {
        return s.comm.agree([&] {
          const Tensor result = compute(s.graph, y, labels, mask);
          return s.x * static_cast<real>(result.num_rows() > 0 ? result.data()[1] : 0);
        });
      };
    });
  };
  add("nn/models/propagation.hpp sign_features",
      [](const auto& graph, const Tensor& y, const auto& labels, const auto&) {
        return sign_features(graph, y, labels[0] < 0 ? -1 : 2);
      });
  add("nn/models/propagation.hpp label_propagation",
      [](const auto& graph, const Tensor&, const auto& labels, const auto& mask) {
        return label_propagation(graph, labels, mask, scene_width, {.layers = 2});
      });
  const CorrectAndSmoothOptions two{.correction_layers = 2, .smoothing_layers = 2};
  add("nn/models/propagation.hpp correct_predictions",
      [=](const auto&... of) { return correct_predictions(of..., two); });
  add("nn/models/propagation.hpp smooth_predictions",
      [=](const auto&... of) { return smooth_predictions(of..., two); });
  add("nn/models/propagation.hpp correct_and_smooth",
      [=](const auto&... of) { return correct_and_smooth(of..., two); });
}

void add_norms_and_losses(std::vector<Call>& calls, const Communicator& comm) {
  const auto labels = std::make_shared<std::vector<std::int64_t>>(scene_nodes, 1);
  const auto mask = std::make_shared<std::vector<std::uint8_t>>(scene_nodes, 1);
  const auto rows = [](const Scene& s) { return static_cast<std::size_t>(s.graph.num_src_nodes()); };
  add_operation(calls, comm, "nn/train/loss.hpp cross_entropy", [=](Scene& s) {
    return [=, &s] {
      return cross_entropy(s.x, std::span(*labels).first(rows(s)), std::span(*mask).first(rows(s)), s.comm);
    };
  });
  add_operation(calls, comm, "nn/train/loss.hpp accuracy", [=](Scene& s) {
    return [=, &s] {
      return s.comm.agree([&] {
        const double value =
            accuracy(s.x.value(), std::span(*labels).first(rows(s)), std::span(*mask).first(rows(s)), s.comm);
        return s.x * static_cast<real>(value);
      });
    };
  });
  add_operation(calls, comm, "nn/train/loss.hpp balanced_class_weights", [=](Scene& s) {
    return [=, &s] {
      return s.comm.agree([&] {
        const auto of = std::span(*labels).first(rows(s) - (s.wrong ? 1 : 0));
        const std::vector<double> balanced =
            balanced_class_weights(of, std::span(*mask).first(rows(s)), 3, s.comm);
        return s.x * static_cast<real>(balanced[1]);
      });
    };
  });
  const auto add_row_metric = [&](const std::string& name, auto metric) {
    add_operation(calls, comm, name, [=](Scene& s) {
      return [=, &s] {
        return s.comm.agree([&] {
          Tensor targets = Tensor::zeros({s.graph.num_nodes(), scene_width});
          for (Index i = 0; i < targets.size(); i += 2) targets.data()[i] = 1;
          const auto of = std::span(*mask).first(static_cast<std::size_t>(s.graph.num_nodes()));
          return s.x * static_cast<real>(metric(s.x.value(), targets, of, s.comm));
        });
      };
    });
  };
  const std::string metrics = "nn/train/metrics.hpp ";
  add_row_metric(metrics + "roc_auc", [](const auto&... of) { return roc_auc(of...); });
  add_row_metric(metrics + "average_precision", [](const auto&... of) { return average_precision(of...); });
  add_row_metric(metrics + "f1_score", [](const auto& x, const auto& t, const auto& m, const auto& on) {
    return f1_score(x, t, m, F1::macro, on);
  });
  add_row_metric(metrics + "mean_absolute_error",
                 [](const auto&... of) { return mean_absolute_error(of...); });
  add_row_metric(metrics + "mean_squared_error", [](const auto&... of) { return mean_squared_error(of...); });
  add_row_metric(metrics + "root_mean_squared_error",
                 [](const auto&... of) { return root_mean_squared_error(of...); });
  add_row_metric(metrics + "r2_score", [](const auto&... of) { return r2_score(of...); });
  add_row_metric("nn/train/metrics.hpp metric_of_all_rows", [](const auto&... of) {
    return metric_of_all_rows(
        of..., [](const Tensor& x, const Tensor&) { return static_cast<double>(x.num_rows()); });
  });
  const auto add_masked_loss = [&](const std::string& name, auto loss) {
    add_operation(calls, comm, "nn/train/loss.hpp " + name, [=](Scene& s) {
      const Tensor target = Tensor::full({s.graph.num_nodes(), scene_width}, 1);
      return [=, &s] {
        return loss(s.x, target, std::span(*mask).first(static_cast<std::size_t>(s.graph.num_nodes())),
                    s.comm);
      };
    });
  };
  add_masked_loss("bce_with_logits", [](const auto&... of) { return bce_with_logits(of...); });
  add_masked_loss("mse", [](const auto&... of) { return mse(of...); });
  add_masked_loss("l1", [](const auto&... of) { return l1(of...); });
  add_masked_loss("huber", [](const auto&... of) { return huber(of...); });
  const auto weights = std::make_shared<std::vector<double>>(std::vector<double>{1, 2, 3});
  add_operation(calls, comm, "nn/train/loss.hpp cross_entropy, with class weights", [=](Scene& s) {
    return [=, &s] {
      return cross_entropy(s.x, std::span(*labels).first(rows(s)), std::span(*mask).first(rows(s)), s.comm,
                           CrossEntropyOptions{.class_weights = *weights, .label_smoothing = 0.1});
    };
  });
  const auto of_rows = std::make_shared<std::vector<real>>(mask->size(), real{2});
  add_operation(calls, comm, "nn/train/loss.hpp cross_entropy, with row weights", [=](Scene& s) {
    return [=, &s] {
      return cross_entropy(
          s.x, std::span(*labels).first(rows(s)), std::span(*mask).first(rows(s)), s.comm,
          CrossEntropyOptions{.row_weights = std::span<const real>(*of_rows).first(rows(s))});
    };
  });
  add_operation(calls, comm, "nn/train/loss.hpp bce_with_logits", [](Scene& s) {
    const Tensor target = Tensor::full({s.graph.num_src_nodes(), scene_width}, 1);
    return [&s, target] { return bce_with_logits(s.x, target, s.comm); };
  });
  add_operation(calls, comm, "nn/train/loss.hpp mse", [](Scene& s) {
    const Variable target(Tensor::full({s.graph.num_src_nodes(), scene_width}, 1));
    return [&s, target] { return mse(s.x, target, s.comm); };
  });
  add_operation(calls, comm, "nn/train/loss.hpp l1", [](Scene& s) {
    const Variable target(Tensor::full({s.graph.num_src_nodes(), scene_width}, 1));
    return [&s, target] { return l1(s.x, target, s.comm); };
  });
  add_operation(calls, comm, "nn/train/loss.hpp huber", [](Scene& s) {
    const Variable target(Tensor::full({s.graph.num_src_nodes(), scene_width}, 1));
    return [&s, target] { return huber(s.x, target, s.comm); };
  });
  add_operation(calls, comm, "nn/modules/reductions.hpp dot", [](Scene& s) {
    const Variable other(Tensor::full({s.graph.num_src_nodes(), scene_width}, 1));
    return [&s, other] { return dot(s.x, other, s.comm); };
  });
  add_operation(calls, comm, "nn/modules/reductions.hpp sum_of_groups", [=](Scene& s) {
    s.x = Variable(Tensor::full({s.graph.num_src_nodes(), s.wrong ? 2 : 1}, 1), true);
    const RowIds groups(std::vector<Index>(rows(s), 1));
    return [&s, groups] { return sum_of_groups(s.x, groups, 2, s.comm); };
  });
  const auto over = [](const Scene& s) { return s.wrong ? ReduceDim::columns : ReduceDim::rows; };
  add_operation(calls, comm, "nn/modules/reductions.hpp sum",
                [=](Scene& s) { return [&s, over] { return sum(s.x, s.comm, over(s)); }; });
  add_operation(calls, comm, "nn/modules/reductions.hpp mean",
                [=](Scene& s) { return [&s, over] { return mean(s.x, s.comm, over(s)); }; });
  add_operation(calls, comm, "nn/modules/reductions.hpp all_reduce", [](Scene& s) {
    s.x = Variable(s.wrong ? Tensor() : Tensor::full({2, scene_width}, 1), true);
    return [&s] {
      return s.comm.agree([&] { return all_reduce(s.x, s.comm) + all_reduce(s.x, s.comm, ReduceOp::max); });
    };
  });
  add_operation(calls, comm, "nn/modules/norms.hpp Normalizer::update", [](Scene& s) {
    auto normalizer = std::make_shared<Normalizer>(s.wrong ? scene_width + 1 : scene_width, s.comm);
    return [&s, normalizer] {
      return s.comm.agree([&] {
        normalizer->update(s.x.value());
        return (*normalizer)(s.x);
      });
    };
  });
  add_operation(calls, comm, "nn/modules/norms.hpp DistributedBN1D", [](Scene& s) {
    auto norm = std::make_shared<DistributedBN1D>(s.wrong ? scene_width + 1 : scene_width, s.comm);
    return [&s, norm] { return (*norm)(s.x); };
  });
  add_operation(calls, comm, "nn/modules/norms.hpp batch_norm_relu_dropout", [](Scene& s) {
    auto norm = std::make_shared<DistributedBN1D>(s.wrong ? scene_width + 1 : scene_width, s.comm);
    auto dropout = std::make_shared<Dropout>(0.25, s.gen);
    return [&s, norm, dropout] { return batch_norm_relu_dropout(s.x, *norm, *dropout, s.graph.src_ids()); };
  });
}

/// A model, its optimizer, and files of them.
struct Model {
  explicit Model(const Communicator& comm, bool wrong) : linear(scene_width, wrong ? 5 : 2, gen) {
    for (const Variable& parameter : linear.parameters())
      parameter.gradient()->add(scene_values(parameter.shape(), comm.rank()));
  }
  Generator gen{0};
  Linear linear;
  Adam optimizer{linear.named_parameters(), {.lr = 0.01}};
  StateDict state = state_dict(linear);
  std::string path = {};
};

void add_files(std::vector<Call>& calls, const Communicator& comm, const std::string& directory) {
  const std::string weights = directory + "/weights.safetensors", checkpoints = directory + "/checkpoints";
  save_weights(comm, weights, Model(comm, false).linear);
  {
    Model model(comm, false);
    Checkpointer(comm, checkpoints).save(1, model.linear, model.optimizer);
  }
  const auto add = [&](const std::string& name, bool has_wrong, auto run) {
    add_maker<std::shared_ptr<Model>>(
        calls, name, has_wrong,
        [=](bool wrong) {
          auto model = std::make_shared<Model>(comm, wrong);
          auto saver = std::make_shared<Checkpointer>(comm, checkpoints);
          return [=] {
            run(*model, *saver);
            return model;
          };
        },
        [](const std::shared_ptr<Model>& model) {
          std::vector<double> result = numbers(model->linear.weight().value());
          for (const double value : numbers(model->linear.weight().grad())) result.push_back(value);
          return result;
        });
    calls.back().compares = true;
  };
  add("nn/train/distributed.hpp gather_grads", false,
      [=](Model& model, const Checkpointer&) { gather_grads(comm, model.linear); });
  add("nn/train/distributed.hpp sync_params", true,
      [=](Model& model, const Checkpointer&) { sync_params(comm, model.linear); });
  add("nn/train/distributed.hpp compare_params", false,
      [=](Model& model, const Checkpointer&) { compare_params(comm, model.linear); });
  add("nn/train/state_dict.hpp load_state_dict", true,
      [=](Model& model, const Checkpointer&) { (void)load_state_dict(comm, weights, model.state); });
  add("nn/train/state_dict.hpp save_state_dict", false, [=](Model& model, const Checkpointer&) {
    comm.agree([&] { save_state_dict(comm, weights, model.state, SafetensorsType::float32, {}); });
  });
  add("nn/train/state_dict.hpp load_weights", true,
      [=](Model& model, const Checkpointer&) { (void)load_weights(comm, weights, model.linear); });
  add("nn/train/state_dict.hpp save_weights", false,
      [=](Model& model, const Checkpointer&) { save_weights(comm, weights, model.linear); });
  add("nn/train/state_dict.hpp load_metadata", false,
      [=](Model&, const Checkpointer&) { (void)load_metadata(comm, weights); });
  add("nn/train/checkpoint.hpp Checkpointer::save", false,
      [=](Model& model, const Checkpointer& saver) { saver.save(1, model.linear, model.optimizer); });
  add("nn/train/checkpoint.hpp Checkpointer::wait", false, [=](Model& model, const Checkpointer&) {
    comm.agree([&] {
      const Checkpointer beside(comm, checkpoints, {.beside = true});
      beside.save(1, model.linear, model.optimizer);
      beside.wait();
    });
  });
  add("nn/train/checkpoint.hpp Checkpointer::lock", false,
      [=](Model&, const Checkpointer& saver) { saver.lock(); });
  add("nn/train/checkpoint.hpp Checkpointer::latest, nn/train/checkpoint.hpp Checkpointer::load", true,
      [=](Model& model, const Checkpointer& saver) {
        model.path = saver.latest();
        (void)saver.load(model.path, model.linear, model.optimizer);
      });
  add("nn/train/checkpoint.hpp Checkpointer::info", false, [=](Model& model, const Checkpointer& saver) {
    comm.agree([&] { (void)saver.info(saver.latest(), model.optimizer); });
  });
  add("nn/models/weight_file.hpp WeightFile::load, nn/models/weight_file.hpp load_model_weights", true,
      [=](Model& model, const Checkpointer&) { (void)load_model_weights(comm, weights, model.linear); });
  add("nn/models/gcn_norm.hpp gcn_norm_of_weights", false,
      [=](Model&, const Checkpointer&) { (void)gcn_norm_of_weights(comm, weights); });
  add("nn/models/weight_file.hpp WeightFile::recognise, nn/models/weight_file.hpp WeightFile::save", false,
      [=](Model& model, const Checkpointer&) {
        comm.agree([&] {
          WeightFile file(model.linear);
          file.recognise(comm, weights, {});
          file.save(comm, directory + "/saved.safetensors");
        });
      });
  add_maker<double>(
      calls, "nn/train/checkpoint.hpp Checkpointer", true,
      [=](bool wrong) {
        auto path = std::make_shared<std::string>(checkpoints);
        CheckpointerOptions made_with;
        if (wrong) made_with.keep_last = 0;
        return [=] {
          const Checkpointer made(comm, std::move(*path), made_with);
          return 0.0;
        };
      },
      [](double) { return std::vector<double>{}; });
}

/// The file of a network on a graph with types.
void add_typed_model_file(std::vector<Call>& calls, const Communicator& comm, const std::string& directory) {
  const std::string path = directory + "/typed_model.safetensors";
  Generator gen(0);
  const GraphModel model(typed_network(), comm, gen);
  save_model(comm, path, model);
  using Made = std::unique_ptr<GraphModel>;
  add_maker<Made>(
      calls, "nn/models/graph_model.hpp load_model", false,
      [=](bool) { return [=] { return load_model(comm, path); }; },
      [](const Made& made) { return numbers(made->parameters().front().value()); });
  add_maker<Made>(
      calls, "nn/models/graph_model.hpp save_model", false,
      [=](bool) {
        Generator draws(0);
        return
            [=, made = std::make_shared<Made>(std::make_unique<GraphModel>(typed_network(), comm, draws))] {
              save_model(comm, path, **made);
              return std::move(*made);
            };
      },
      [](const Made& made) { return numbers(made->parameters().front().value()); });
}

/// Files of a network that a description says.
void add_model_files(std::vector<Call>& calls, const Communicator& comm, const std::string& directory) {
  const std::string path = directory + "/model.safetensors";
  const auto make = [=] {
    Generator gen(0);
    return std::make_unique<GraphModel>(
        ModelDescription{.in_feats = scene_width, .hidden = 3, .out_feats = 2}, comm, gen);
  };
  const auto numbers_of = [](const std::unique_ptr<GraphModel>& model) {
    return numbers(model->parameters().front().value());
  };
  save_model(comm, path, *make());
  using Made = std::unique_ptr<GraphModel>;
  add_maker<Made>(
      calls, "nn/models/graph_model.hpp load_model", false,
      [=](bool) { return [=] { return load_model(comm, path); }; }, numbers_of);
  add_maker<Made>(
      calls, "nn/models/graph_model.hpp save_model", false,
      [=](bool) {
        return [=, model = std::make_shared<Made>(make())] {
          save_model(comm, path, **model);
          return std::move(*model);
        };
      },
      numbers_of);
}

/// The file of a potential.
void add_potential_files(std::vector<Call>& calls, const Communicator& comm, const std::string& directory) {
  const std::string path = directory + "/potential.safetensors";
  using Made = std::unique_ptr<Potential>;
  const auto make = [] {
    Generator gen(0);
    return std::make_unique<Potential>(described_potential(), gen);
  };
  const auto numbers_of = [](const Made& made) {
    return numbers(made->network().parameters().front().value());
  };
  save_potential(comm, path, *make());
  add_maker<Made>(
      calls, "nn/atoms/potentials/potential.hpp load_potential", false,
      [=](bool) { return [=] { return load_potential(comm, path); }; }, numbers_of);
  add_maker<Made>(
      calls, "nn/atoms/potentials/potential.hpp save_potential", false,
      [=](bool) {
        return [=, potential = std::make_shared<Made>(make())] {
          save_potential(comm, path, **potential);
          return std::move(*potential);
        };
      },
      numbers_of);
}

/// A structure and a step of a learner.
void add_learner(std::vector<Call>& calls, const Communicator& comm) {
  const std::string header = "nn/atoms/potentials/potential_learner.hpp PotentialLearner";
  add_maker<std::vector<double>>(
      calls, concat(header, ", ", header, "::add, ", header, "::train, ", header, "::errors"), false,
      [=](bool) {
        return [=] {
          return comm.agree([&] {
            Generator gen(0);
            Potential potential(described_potential(), gen);
            PotentialLearner learner(comm, potential, {.lr = 0});
            learner.add({.positions = {0, 0, 0, 1, 0, 0}, .species = {0, 1}, .energy = 1});
            const double loss = learner.train(1).loss;
            return std::vector<double>{loss, learner.errors().energy_per_atom};
          });
        };
      },
      [](const std::vector<double>& found) { return found; });
}

/// An embedding of 5 rows on each rank, after a backward pass.
struct Embedded {
  Generator gen{0};
  DistributedEmbedding embedding;
  SparseAdam optimizer;
  std::vector<Index> ids;
  std::string path;

  static std::vector<Index> numbers_of(const PartitionBook& book, int rank) {
    std::vector<Index> rows;
    for (Index i = book.begin(rank); i < book.end(rank); ++i) rows.push_back(i);
    return rows;
  }
  Embedded(const Communicator& comm, const PartitionBook& book, std::string directory)
      : embedding("node", comm, book, numbers_of(book, comm.rank()), 2, gen),
        optimizer({embedding}),
        ids{0, book.num_nodes() - 1, comm.rank(), 0},
        path(std::move(directory)) {
    Tape tape;
    tape.backward(sum(embedding(ids)));
  }
};

void add_embedding(std::vector<Call>& calls, const Communicator& comm, const std::string& directory) {
  const PartitionBook book = PartitionBook::even(5 * Index{comm.size()}, comm.size());
  const std::string saved = directory + "/embedding", fresh = directory + "/new_embedding";
  add_maker<double>(
      calls, "nn/modules/embedding.hpp DistributedEmbedding", true,
      [=](bool wrong) {
        auto rows = std::make_shared<std::vector<Index>>(Embedded::numbers_of(book, comm.rank()));
        if (wrong) rows->pop_back();
        return [=] {
          Generator gen(0);
          const DistributedEmbedding made("node", comm, book, *rows, 2, gen);
          return static_cast<double>(made.mine().data()[0]);
        };
      },
      [](double value) { return std::vector<double>{value}; });
  const auto add = [&](const std::string& name, bool has_wrong, auto spoil, auto run) {
    calls.push_back({name, has_wrong, [=](bool wrong) -> Attempt {
                       if (comm.rank() == 0) {
                         std::filesystem::remove_all(fresh);
                         std::filesystem::remove_all(saved);
                       }
                       comm.barrier();
                       auto e = std::make_shared<Embedded>(comm, book, saved);
                       e->optimizer.save(saved);
                       if (wrong) spoil(*e);
                       auto result = std::make_shared<Tensor>();
                       return {[=] { *result = run(*e); }, [=] { return numbers(*result); }};
                     }});
  };
  const auto add_id = [](Embedded& e) { e.ids.push_back(-1); };
  add("nn/modules/embedding.hpp DistributedEmbedding::operator", true, add_id,
      [](Embedded& e) { return e.embedding(e.ids).value(); });
  add("nn/modules/embedding.hpp DistributedEmbedding::gradient", false, add_id,
      [](Embedded& e) { return e.embedding.gradient().rows; });
  const auto users = [=] {
    return std::make_shared<Graph>(
        comm, std::vector<NodeTypeSpec>{{.name = "user", .book = book}},
        std::vector<EdgeTypeSpec>{{.type = {"user", "knows", "user"}, .edges = {}}});
  };
  add_maker<double>(
      calls, "nn/train/hetero_embedding.hpp HeteroEmbedding", true,
      [=](bool wrong) {
        return [graph = users(), types = std::vector<std::string>{wrong ? "tag" : "user"}] {
          Generator gen(0);
          HeteroEmbedding made(*graph, types, 2, gen);
          return static_cast<double>(made["user"].mine().data()[0]);
        };
      },
      [](double value) { return std::vector<double>{value}; });
  const auto add_hetero = [&](const std::string& name, auto prepare) {
    calls.push_back(
        {name, true, [=](bool wrong) -> Attempt {
           Generator gen(0);
           auto e = std::make_shared<HeteroEmbedding>(*users(), std::vector<std::string>{"user"}, 2, gen);
           return {[e, run = prepare(wrong)] { run(*e); }, [e] { return numbers((*e)["user"].mine()); }};
         }});
  };
  add_hetero("nn/train/hetero_embedding.hpp HeteroEmbedding::operator", [](bool wrong) {
    const auto id = std::make_shared<const Index>(wrong ? -1 : 1);
    const std::map<std::string, std::span<const Index>> ids{{"user", {id.get(), 1}}};
    return [id, ids](HeteroEmbedding& e) { (void)e(ids); };
  });
  add("nn/train/optimizer.hpp SparseOptimizer::step", false, add_id, [](Embedded& e) {
    e.optimizer.step();
    return e.embedding.mine();
  });
  add("nn/train/optimizer.hpp SparseOptimizer::save", false, add_id, [=](Embedded& e) {
    e.optimizer.save(fresh);
    return e.embedding.mine();
  });
  add(
      "nn/train/optimizer.hpp SparseOptimizer::load", true, [](Embedded& e) { e.path += "2"; },
      [](Embedded& e) {
        e.optimizer.load(e.path);
        return e.embedding.mine();
      });
}

}  // namespace

std::vector<Call> layer_calls(const Communicator& comm, const std::string& directory) {
  std::vector<Call> calls;
  add_convolutions(calls, comm);
  add_mesh_networks(calls, comm);
  add_predictor(calls, comm);
  add_potential(calls, comm);
  add_links(calls, comm);
  add_precomputed(calls, comm);
  add_norms_and_losses(calls, comm);
  add_files(calls, comm, directory);
  add_model_files(calls, comm, directory);
  add_potential_files(calls, comm, directory);
  add_learner(calls, comm);
  add_typed_model_file(calls, comm, directory);
  add_embedding(calls, comm, directory);
  return calls;
}}  // namespace sar::test
