// SPDX-License-Identifier: MIT

/// Golden vectors of networks on meshes and of atoms, computed by PyTorch: results, gradients of all weights
/// and inputs, forces; for all distributions over the ranks and in all modes.
#include "graph/test_graphs.hpp"
#include "nn/conv/conv_cases.hpp"
#include "support/rows.hpp"

#include <sar/nn/atoms/painn.hpp>
#include <sar/nn/atoms/potential_loss.hpp>
#include <sar/nn/conv/edge_conv.hpp>
#include <sar/nn/models/mesh_graph_net.hpp>
#include <sar/nn/train/distributed.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// Of the largest element.
constexpr double largest_error = sizeof(real) == 8 ? 1e-10 : 1e-4;

/// What this rank has of a case.
struct Part {
  const Communicator& world;
  const Case& golden;
  PartitionBook book;
  Graph graph;

  [[nodiscard]] Index count(const std::string& key) const { return static_cast<Index>(golden.number(key)); }
  [[nodiscard]] Tensor nodes(const std::string& array) const {
    return my_rows(golden.tensor(array), book, world.rank());
  }
  [[nodiscard]] Tensor edges(const std::string& array) const {
    return GoldenGraph::rows(golden.tensor(array), graph.edge_ids());
  }
  void check_nodes(const Tensor& mine, const std::string& array) const {
    CAPTURE(array);
    REQUIRE(mine.defined());
    CHECK(error_of_part(mine, nodes(array), golden.tensor(array)) < largest_error);
  }
  void check_edges(const Tensor& mine, const std::string& array) const {
    CAPTURE(array);
    REQUIRE(mine.defined());
    CHECK(error_of_part(mine, edges(array), golden.tensor(array)) < largest_error);
  }
  /// The gradients of all parameters, which the ranks have added up.
  void check_gradients(const Module& module) const {
    for (const auto& [name, parameter] : module.named_parameters()) {
      CAPTURE(name);
      REQUIRE(parameter.grad().defined());
      CHECK(relative_error(parameter.grad(), golden.tensor("grad_param." + name)) < largest_error);
    }
  }
};

/// body(part) for each distribution of the case's nodes (also with ranks that have none), in its ways.
void for_each_part(const std::string& name, const std::function<void(const Part&)>& body) {
  const Communicator world = Communicator::world();
  const Case golden("mesh/" + name);
  const auto nodes = static_cast<Index>(golden.number("num_src"));
  const WholeGraph whole{name, nodes, nodes, true, golden.indices("src"), golden.indices("dst")};
  std::size_t number = 0;
  for (const Books& books : test_books(whole, world.size()))
    for (const GraphOptions& options : ways_of_case(number++)) {
      CAPTURE(name);
      CAPTURE(books.src.num_nodes(0));
      CAPTURE(static_cast<int>(options.mode));
      CAPTURE(options.max_halo_bytes);
      body({world, golden, books.src, shard(world, whole, books, options)});
    }
}

/// Gives all parameters of the case to the module, which has no others.
void load(Module& module, const Case& golden) {
  REQUIRE(module.named_parameters().size() == golden.arrays("param.").size());
  load_parameters(module, golden);
}

}  // namespace

TEST_CASE("MeshGraphNet: golden vectors") {
  for (const std::string name : {"mesh_graph_net__relu", "mesh_graph_net__silu_normalize"})
    for_each_part(name, [](const Part& part) {
      MeshGraphNetOptions options;
      options.node_feats = 3;
      options.edge_feats = 4;
      options.out_feats = 2;
      options.hidden = part.count("hidden");
      options.blocks = static_cast<int>(part.count("blocks"));
      options.mlp_layers = static_cast<int>(part.count("hidden_layers"));
      options.normalize = part.golden.number("normalize") == 1;
      if (part.golden.arg("activation") == "silu") options.activation = silu;
      Generator gen(1);
      MeshGraphNet net(options, part.world, gen);
      load(net, part.golden);

      const Variable x(part.nodes("x"), true), positions(part.nodes("positions"), true);
      Tape tape;
      const Variable e = relative_positions(part.graph, positions);
      if (options.normalize) net.update_statistics(x.value(), e.value(), part.nodes("target"));
      const Variable y = net(part.graph, x, e);
      part.check_nodes(y.value(), "out");
      tape.backward(y, part.nodes("grad_out"));
      gather_grads(part.world, net);
      part.check_nodes(x.grad(), "grad_x");
      part.check_nodes(positions.grad(), "grad_positions");
      part.check_gradients(net);
    });
}

TEST_CASE("PaiNNConv: golden vectors") {
  for_each_part("painn_conv", [](const Part& part) {
    Generator gen(1);
    PaiNNConv conv(part.count("feats"),
                   {.cutoff = part.golden.number("cutoff"), .num_basis = part.count("num_basis")}, gen, 1e-8);
    load(conv, part.golden);

    const Variable s(part.nodes("s"), true), v(part.nodes("v"), true), x(part.nodes("positions"), true);
    Tape tape;
    const PaiNNRows out = conv(part.graph, {.scalars = s, .vectors = v}, x);
    part.check_nodes(out.scalars.value(), "out_s");
    part.check_nodes(out.vectors.value(), "out_v");
    const Index n = out.scalars.num_rows(), width = 3 * part.count("feats");
    tape.backward(concat_columns({out.scalars, reshape(out.vectors, {n, width})}),
                  concat_columns({Variable(part.nodes("grad_out_s")),
                                  Variable(part.nodes("grad_out_v").reshape({n, width}))})
                      .value());
    gather_grads(part.world, conv);
    part.check_nodes(s.grad(), "grad_s");
    part.check_nodes(v.grad(), "grad_v");
    part.check_nodes(x.grad(), "grad_positions");
    part.check_gradients(conv);
  });
}

namespace {

PaiNNOptions options_of(const Part& part, double norm_epsilon) {
  return {.num_species = part.count("num_species"),
          .feats = part.count("feats"),
          .convs = static_cast<int>(part.count("convs")),
          .cutoff = part.golden.number("cutoff"),
          .num_basis = part.count("num_basis"),
          .norm_epsilon = norm_epsilon};
}

}  // namespace

TEST_CASE("PaiNN: golden vectors of a molecule and of a periodic box") {
  for (const std::string name : {"painn__molecule", "painn__periodic"})
    for_each_part(name, [&](const Part& part) {
      Generator gen(1);
      PaiNN model(options_of(part, 1e-8), gen);
      load(model, part.golden);
      std::vector<Index> species = part.golden.indices("species");
      species = {species.begin() + part.book.begin(part.world.rank()),
                 species.begin() + part.book.end(part.world.rank())};

      const bool periodic = name == "painn__periodic";
      const Variable x(part.nodes("positions"), true);
      const Variable shifts = periodic ? Variable(part.edges("shifts"), true) : Variable();
      {
        Tape tape;
        part.check_nodes(model.atomic_energies(part.graph, species, x, shifts).value(), "energies");
      }
      Tape tape;
      const Variable energy = model.energy(part.graph, species, x, shifts);
      CHECK(relative_error(energy.value(), part.golden.tensor("energy")) < largest_error);
      tape.backward(energy);
      gather_grads(part.world, model);
      part.check_nodes((-Variable(x.grad())).value(), "forces");
      if (periodic) part.check_edges(shifts.grad(), "grad_shifts");
      part.check_gradients(model);

      const EnergyAndForces found =
          model.energy_and_forces(part.graph, species, x.value(), periodic ? shifts.value() : Tensor());
      CHECK(found.energy == static_cast<double>(energy.value().item()));
      part.check_nodes(found.forces, "forces");
    });
}

namespace {

/// Compares the loss and its gradients with those of a case, for the case's radial functions.
void check_potential_loss(const std::string& name, RadialBasis basis, CutoffFunction cutoff_function) {
  for_each_part(name, [&](const Part& part) {
    Generator gen(1);
    PaiNNOptions options = options_of(part, part.golden.number("norm_epsilon"));
    options.radial_basis = basis;
    options.cutoff_function = cutoff_function;
    PaiNN model(options, gen);
    load(model, part.golden);
    const auto mine = [&](const std::string& array) {
      const std::vector<Index> all = part.golden.indices(array);
      return std::vector<Index>(all.begin() + part.book.begin(part.world.rank()),
                                all.begin() + part.book.end(part.world.rank()));
    };
    const PotentialErrors errors = backward_potential_loss(model, part.graph,
                                                           {.species = mine("species"),
                                                            .positions = part.nodes("positions"),
                                                            .shifts = part.edges("shifts"),
                                                            .structures = mine("structures"),
                                                            .energies = part.golden.tensor("label_energies"),
                                                            .forces = part.nodes("label_forces"),
                                                            .stresses = part.golden.tensor("label_stresses"),
                                                            .volumes = part.golden.tensor("volumes")},
                                                           {.energy = part.golden.number("weight_energy"),
                                                            .forces = part.golden.number("weight_forces"),
                                                            .stress = part.golden.number("weight_stress")});
    gather_grads(part.world, model);
    const auto loss = static_cast<double>(part.golden.tensor("loss").item());
    CHECK(std::abs(errors.loss - loss) < largest_error * loss);
    part.check_gradients(model);
  });
}

}  // namespace

TEST_CASE("potential loss: golden vectors of PyTorch's double backward, two periodic structures") {
  check_potential_loss("potential", RadialBasis::sinc, CutoffFunction::cosine);
  check_potential_loss("potential__gaussian", RadialBasis::gaussian, CutoffFunction::polynomial);
  check_potential_loss("potential__bessel", RadialBasis::bessel, CutoffFunction::polynomial);
}
