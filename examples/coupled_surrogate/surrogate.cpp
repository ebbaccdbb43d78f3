// SPDX-License-Identifier: MIT
#include "surrogate.hpp"

#include <cmath>
#include <span>

using namespace sar;

namespace {

const std::array<std::string, 2> names{"fluid", "plate"};
constexpr int num_edge_features = 3, num_node_features = 3;

EdgeType type_of(Body from, Body to) {
  return {names[from], from == to ? "conducts" : "touches", names[to]};
}

/// Builds the graph directly from the meshes: the numbers of the nodes that each rank owns, and its links.
HostGraph make_graph(const Communicator& comm, const Meshes& meshes) {
  std::vector<GlobalNodeType> nodes;
  std::vector<GlobalEdgeType> edges;
  for (const Body body : {fluid, plate}) nodes.push_back({names[body], meshes.mesh[body].owned});
  for (const Body from : {fluid, plate})
    for (const Body to : {fluid, plate}) {
      const Links& links = meshes.links[from][to];
      edges.push_back({.type = type_of(from, to), .edges = {.src = links.from, .dst = links.to}});
    }
  return {comm, nodes, edges};
}

/// Returns dx, dy and rate of each link, divided by their root mean squares over all ranks, because networks
/// train best on values of order 1.
Tensor edge_features(const Communicator& comm, const Meshes& meshes, Body from, Body to) {
  const Links& links = meshes.links[from][to];
  Tensor features({std::ssize(links.from), num_edge_features});
  std::vector<double> sums(num_edge_features + 1);  // sums of squares, and the count
  for (Index e = 0; e < features.num_rows(); ++e) {
    const auto k = static_cast<std::size_t>(e);
    const Point a = meshes.mesh[from].position[links.from[k]], b = meshes.mesh[to].position[links.to[k]];
    const std::array<double, num_edge_features> values{b.x - a.x, b.y - a.y, links.rate[k]};
    for (int j = 0; j < num_edge_features; ++j) {
      features.row(e)[j] = static_cast<real>(values[j]);
      sums[j] += values[j] * values[j];
    }
    sums.back() += 1;
  }
  comm.all_reduce(std::span(sums));
  for (Index e = 0; e < features.num_rows(); ++e)
    for (int j = 0; j < num_edge_features; ++j)
      if (sums[j] > 0) features.row(e)[j] *= static_cast<real>(std::sqrt(sums.back() / sums[j]));
  return features;
}

}  // namespace

Transfer::Transfer(int hidden, Generator& gen) : edge(2 * hidden + num_edge_features, hidden, hidden, gen) {
  register_module("edge", edge);
}

Variable Transfer::operator()(const Graph& graph, const std::pair<Variable, Variable>& h) const {
  const Variable x = graph.edata().at("x");
  return graph.update_all(
      [this, h, x](const EdgeBatch& edges) {
        return edge(concat_columns({edges.src(h.first), edges.dst(h.second), edges.edata(x)}));
      },
      fn::sum);
}

Round::Round(int hidden, Generator& gen)
    : node{{{2 * hidden, hidden, hidden, gen}, {2 * hidden, hidden, hidden, gen}}},
      norm{{LayerNorm(hidden), LayerNorm(hidden)}} {
  register_module("transfers", transfers);
  for (const Body from : {fluid, plate})
    for (const Body to : {fluid, plate}) {
      const EdgeType type = type_of(from, to);
      transfers.emplace_back<Transfer>({type.source, type.canonical_name(), type.destination}, hidden, gen);
    }
  for (const Body body : {fluid, plate}) {
    register_module("node_" + names[body], node[body]);
    register_module("norm_" + names[body], norm[body]);
  }
}

HeteroGraphConv::Rows Round::operator()(const Graph& graph, const HeteroGraphConv::Rows& h) const {
  const HeteroGraphConv::Rows inflow = transfers(graph, h);
  HeteroGraphConv::Rows next;
  for (const Body body : {fluid, plate}) {
    const Variable& rows = h.at(names[body]);
    next[names[body]] = rows + norm[body](node[body](concat_columns({rows, inflow.at(names[body])})));
  }
  return next;
}

Network::Network(const SurrogateOptions& options, Generator& gen)
    : encoder{{{num_node_features, options.hidden, options.hidden, gen},
               {num_node_features, options.hidden, options.hidden, gen}}},
      decoder{{{options.hidden, options.hidden, 1, gen}, {options.hidden, options.hidden, 1, gen}}} {
  register_module("rounds", rounds);
  for (const Body body : {fluid, plate}) {
    register_module("encoder_" + names[body], encoder[body]);
    register_module("decoder_" + names[body], decoder[body]);
  }
  for (int i = 0; i < options.rounds; ++i) rounds.emplace_back(options.hidden, gen);
}

std::array<Variable, 2> Network::operator()(const Graph& graph, const std::array<Tensor, 2>& features) const {
  HeteroGraphConv::Rows h;
  for (const Body body : {fluid, plate}) h[names[body]] = encoder[body](features[body]);
  for (std::size_t i = 0; i < rounds.size(); ++i) h = rounds[i](graph, h);
  return {decoder[fluid](h.at(names[fluid])), decoder[plate](h.at(names[plate]))};
}

Surrogate::Surrogate(const Communicator& comm, const Meshes& meshes, const SurrogateOptions& options)
    : comm_(comm),
      meshes_(meshes),
      graph_(make_graph(comm, meshes)),
      generator_(options.seed),
      network_(options, generator_),
      optimizer_(network_.named_parameters(), {.lr = options.lr}) {
  for (const Body from : {fluid, plate})
    for (const Body to : {fluid, plate}) {
      const EdgeType type = type_of(from, to);
      graph_.edata(type)["x"] = graph_.to_graph_order(type, edge_features(comm, meshes, from, to));
    }
}

void Surrogate::set_scales(const std::vector<TimeStep>& steps) {
  for (const Body body : {fluid, plate}) {  // every rank stores the whole fields
    double squares = 0, changes = 0, count = 0;
    for (const TimeStep& step : steps)
      for (std::size_t v = 0; v < step.before[body].size(); ++v) {
        squares += step.before[body][v] * step.before[body][v];
        changes += std::pow(step.after[body][v] - step.before[body][v], 2);
        count += 1;
      }
    scale_[body] = std::sqrt(squares / count);
    change_scale_[body] = std::sqrt(changes / count);
  }
}

std::array<Variable, 2> Surrogate::change(const Fields& temperature,
                                          const std::vector<double>& heating) const {
  std::array<Tensor, 2> features;
  for (const Body body : {fluid, plate}) {
    const Mesh& mesh = meshes_.mesh[body];
    features[body] = Tensor({std::ssize(mesh.owned), num_node_features});
    for (Index i = 0; i < features[body].num_rows(); ++i) {
      const std::int64_t v = mesh.owned[static_cast<std::size_t>(i)];
      real* row = features[body].row(i);
      row[0] = static_cast<real>(temperature[body][v] / scale_[body]);
      row[1] = static_cast<real>(body == plate ? heating[v] : mesh.position[v].y);
      row[2] = static_cast<real>(mesh.loss[v] > 0);
    }
  }
  return network_(graph_, features);
}

double Surrogate::train(const TimeStep& step) {
  std::array<Tensor, 2> target;
  for (const Body body : {fluid, plate}) {
    const std::vector<std::int64_t>& owned = meshes_.mesh[body].owned;
    target[body] = Tensor({std::ssize(owned), 1});
    for (std::size_t i = 0; i < owned.size(); ++i)
      target[body].data()[i] =
          static_cast<real>((step.after[body][owned[i]] - step.before[body][owned[i]]) / change_scale_[body]);
  }
  Tape tape;
  const auto predicted = change(step.before, step.heating);
  const Variable loss =
      mse(predicted[fluid], target[fluid], comm_) + mse(predicted[plate], target[plate], comm_);
  tape.backward(loss);
  gather_grads(comm_, network_);
  optimizer_.step();
  optimizer_.zero_grad();
  return static_cast<double>(loss.value().item());
}

void Surrogate::predict(Fields& temperature, const std::vector<double>& heating) const {
  const NoTape inference;
  const auto predicted = change(temperature, heating);
  for (const Body body : {fluid, plate}) {
    const std::vector<std::int64_t>& owned = meshes_.mesh[body].owned;
    const Tensor& values = predicted[body].value();
    for (std::size_t i = 0; i < owned.size(); ++i)
      temperature[body][owned[i]] += change_scale_[body] * static_cast<double>(values.data()[i]);
  }
}
