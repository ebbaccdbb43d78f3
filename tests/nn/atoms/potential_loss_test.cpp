// SPDX-License-Identifier: MIT

/// Losses of slopes, and of energies, forces and stresses: gradients against central differences of the loss,
/// whose forces come from first-order gradients, for all distributions over the ranks and in all modes.
#include "graph/test_graphs.hpp"
#include "nn/conv/conv_cases.hpp"
#include "support/effort.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/random.hpp>
#include <sar/nn/atoms/potential_loss.hpp>
#include <sar/nn/conv/edge_conv.hpp>
#include <sar/nn/conv/gat_conv.hpp>
#include <sar/nn/models/mesh_graph_net.hpp>
#include <sar/nn/modules/reductions.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/loss.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr bool is_double = sizeof(real) == 8;

/// Checks the gradients of all parameters, which are the same on every rank, along random directions.
void check_gradients(const Communicator& comm, Module& module, const std::function<double()>& backward) {
  for (Variable parameter : module.parameters()) parameter.zero_grad();
  (void)backward();
  gather_grads(comm, module);
  std::vector<Tensor> gradients;
  for (Variable parameter : module.parameters()) {
    REQUIRE(parameter.grad().defined());
    gradients.push_back(parameter.grad().clone());
  }
  const double step = is_double ? 1e-4 : 5e-3;
  for (std::uint64_t direction = 0; direction < 2; ++direction) {
    const Random random({.seed = 17, .stream = direction});
    double slope = 0;
    std::uint64_t draw = 0;
    for (const Tensor& gradient : gradients)
      for (const real g : gradient.values()) slope += random.normal(draw++) * static_cast<double>(g);
    const auto loss_at = [&](double distance) {
      std::vector<Tensor> before;
      draw = 0;
      for (Variable parameter : module.parameters()) {
        before.push_back(parameter.value().clone());
        for (real& x : parameter.value().values())
          x = static_cast<real>(static_cast<double>(x) + distance * random.normal(draw++));
      }
      const double loss = backward();
      for (std::size_t k = 0; k < before.size(); ++k) {
        Variable parameter = module.parameters()[k];
        parameter.value().copy_from(before[k]);
        parameter.zero_grad();
      }
      return loss;
    };
    const double near = loss_at(step) - loss_at(-step), far = loss_at(2 * step) - loss_at(-2 * step);
    const double difference = (8 * near - far) / (12 * step);  // error of order step^4
    CHECK(std::abs(slope - difference) <= (is_double ? 1e-7 : 3e-2) * std::max(1.0, std::abs(difference)));
    CHECK(std::abs(difference) > 1e-3);
  }
}

/// Atoms at random in a box, in two structures, with all pairs of a structure that are closer than 2.4.
struct Atoms {
  Index num_atoms = 12;
  Tensor x = Tensor({12, 3});
  std::vector<Index> species, structures;
  WholeGraph graph{"atoms", 12, 12, true, {}, {}};

  Atoms() {
    const Random random({.seed = 5});
    for (Index i = 0; i < num_atoms; ++i) {
      species.push_back(i % 2);
      structures.push_back(i * 2 / num_atoms);
      for (Index j = 0; j < 3; ++j)
        x.row(i)[j] = static_cast<real>(
            3 * random.uniform(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(j)));
    }
    for (Index u = 0; u < num_atoms; ++u)
      for (Index v = 0; v < num_atoms; ++v) {
        if (u == v || structures[static_cast<std::size_t>(u)] != structures[static_cast<std::size_t>(v)])
          continue;
        double squares = 0;
        for (Index j = 0; j < 3; ++j)
          squares += std::pow(static_cast<double>(x.row(u)[j]) - static_cast<double>(x.row(v)[j]), 2);
        if (squares > 2.4 * 2.4) continue;
        graph.src.push_back(u);
        graph.dst.push_back(v);
      }
  }
};

std::vector<Index> part_of(const std::vector<Index>& all, const PartitionBook& book, int rank) {
  return {all.begin() + book.begin(rank), all.begin() + book.end(rank)};
}

PaiNN make_potential() {
  Generator gen(4);
  return PaiNN({.num_species = 2, .feats = 4, .convs = 2, .cutoff = 2.2, .num_basis = 4}, gen);
}

}  // namespace

TEST_CASE("potential loss: gradients against differences of the loss, on ranks without atoms, in all modes") {
  const Communicator world = Communicator::world();
  const Atoms atoms;
  std::size_t number = 0;
  for (const Books& books : test_books(atoms.graph, world.size()))
    for (const GraphOptions& options : ways_of_case(number++)) {
      CAPTURE(static_cast<int>(options.mode));
      PaiNN model = make_potential();
      const Graph graph = shard(world, atoms.graph, books, options);
      const int rank = world.rank();
      const LabelledAtoms labelled{.species = part_of(atoms.species, books.src, rank),
                                   .positions = my_rows(atoms.x, books.src, rank),
                                   .structures = part_of(atoms.structures, books.src, rank),
                                   .energies = Tensor::from({2}, {1, -2}),
                                   .forces = my_rows(random_values({12, 3}, 8), books.src, rank),
                                   .stresses = random_values({2, 3, 3}, 9),
                                   .volumes = Tensor::from({2}, {5, 7})};
      check_gradients(world, model, [&] {
        return backward_potential_loss(model, graph, labelled, {.energy = 1, .forces = 2, .stress = 3}).loss;
      });
      LabelledAtoms energies_only = labelled;
      energies_only.forces = energies_only.stresses = {};
      check_gradients(world, model,
                      [&] { return backward_potential_loss(model, graph, energies_only).loss; });
      if (sanitized) break;
    }
}

TEST_CASE("potential loss: Huber, errors of energies and weights of structures, against the formula") {
  const Communicator world = Communicator::world();
  const Atoms atoms;
  const Tensor all_forces = random_values({12, 3}, 8), all_stresses = random_values({2, 3, 3}, 9);
  for (const Books& books : test_books(atoms.graph, world.size())) {
    PaiNN model = make_potential();
    const Graph graph = shard(world, atoms.graph, books, {});
    const int rank = world.rank();
    const RowIds species = part_of(atoms.species, books.src, rank);
    const Tensor x = my_rows(atoms.x, books.src, rank);
    LabelledAtoms labelled{.species = species,
                           .positions = x,
                           .structures = part_of(atoms.structures, books.src, rank),
                           .energies = Tensor::from({2}, {1, -2}),
                           .forces = my_rows(all_forces, books.src, rank),
                           .stresses = all_stresses,
                           .volumes = Tensor::from({2}, {5, 7}),
                           .weights = Tensor::from({2, 3}, {2, 0.5, 1, 0, 3, 0.25})};
    for (const EnergyError kind : {EnergyError::per_atom, EnergyError::per_root, EnergyError::total})
      for (const double delta : {0.0, 0.4}) {
        const PotentialWeights weights{
            .energy = 1, .forces = 2, .stress = 3, .energy_error = kind, .huber_delta = delta};
        const double loss = backward_potential_loss(model, graph, labelled, weights).loss;
        // each term alone, with labels of one structure: the terms of the formula
        const auto h = [&](double d) {
          const double size = std::abs(d);
          return delta > 0 && size > delta ? 2 * delta * size - delta * delta : d * d;
        };
        const auto forces = model.energy_and_forces(graph, species, x).forces;
        double of_forces = 0;
        for (Index i = 0; i < forces.num_rows(); ++i)
          for (Index c = 0; c < 3; ++c) {
            const Index atom = books.src.begin(rank) + i;
            const double u = atom < 6 ? 0.5 : 3;
            of_forces += u * h(static_cast<double>(forces.row(i)[c] - all_forces.row(atom)[c]));
          }
        of_forces = world.all_reduce(of_forces) / 36;
        const Tensor energies = model.atomic_energies(graph, species, x).value();
        double sums[] = {0, 0};
        for (Index i = 0; i < energies.num_rows(); ++i)
          sums[books.src.begin(rank) + i < 6 ? 0 : 1] += static_cast<double>(energies.row(i)[0]);
        world.all_reduce(std::span<double>(sums));
        const double n = kind == EnergyError::per_atom   ? 6
                         : kind == EnergyError::per_root ? std::sqrt(6.0)
                                                         : 1;
        const double of_energies = 2 * h((sums[0] - 1) / n) / 2;
        LabelledAtoms without_stress = labelled;
        without_stress.stresses = {};
        const double of_both = backward_potential_loss(model, graph, without_stress, weights).loss;
        CHECK(of_both == doctest::Approx(of_energies + 2 * of_forces).epsilon(is_double ? 1e-10 : 1e-4));
        CHECK(loss > of_both);
        LabelledAtoms one_structure = labelled;  // its stress counts with a quarter
        one_structure.weights = Tensor::from({2, 3}, {2, 0.5, 0, 0, 3, 0.25});
        const double second = backward_potential_loss(model, graph, one_structure, weights).loss - of_both;
        one_structure.weights = Tensor::from({2, 3}, {2, 0.5, 0, 0, 3, 1});
        const double four = backward_potential_loss(model, graph, one_structure, weights).loss - of_both;
        CHECK(four == doctest::Approx(4 * second).epsilon(is_double ? 1e-9 : 1e-3));
        check_gradients(world, model,
                        [&] { return backward_potential_loss(model, graph, labelled, weights).loss; });
      }
    for (const real wrong : {real{-1}, std::numeric_limits<real>::infinity()}) {
      labelled.weights = Tensor::from({2, 3}, {1, 1, 1, 1, wrong, 1});
      CHECK(thrown<InputError>([&] {
              (void)backward_potential_loss(model, graph, labelled);
            }).find("weight of a structure") != std::string::npos);
    }
    labelled.weights = Tensor::full({3, 3}, 1);
    CHECK_THROWS_AS((void)backward_potential_loss(model, graph, labelled), ShapeError);
    labelled.weights = {};
    CHECK_THROWS_AS((void)backward_potential_loss(model, graph, labelled, {.huber_delta = -1}), InputError);
    if (sanitized) break;
  }
}

TEST_CASE("potential loss: each structure trains a head of a committee, and the others get nothing of it") {
  const Communicator world = Communicator::world();
  const Atoms atoms;
  for (const Books& books : test_books(atoms.graph, world.size())) {
    Generator gen(4);
    PaiNN model({.num_species = 2, .feats = 4, .convs = 2, .cutoff = 2.2, .num_basis = 4, .committee = 3},
                gen);
    const Graph graph = shard(world, atoms.graph, books, {});
    const int rank = world.rank();
    LabelledAtoms labelled{.species = part_of(atoms.species, books.src, rank),
                           .positions = my_rows(atoms.x, books.src, rank),
                           .structures = part_of(atoms.structures, books.src, rank),
                           .energies = Tensor::from({2}, {1, -2}),
                           .forces = my_rows(random_values({12, 3}, 8), books.src, rank),
                           .heads = {2, 0}};
    check_gradients(world, model, [&] { return backward_potential_loss(model, graph, labelled).loss; });
    for (Variable parameter : model.parameters()) parameter.zero_grad();
    (void)backward_potential_loss(model, graph, labelled);
    gather_grads(world, model);
    for (const NamedParameter& each : model.named_parameters())
      if (each.name == "outnet.2.weight") {
        const Tensor grad = each.parameter.grad();
        const auto size_of = [&](Index head) {
          double sum = 0;
          for (Index c = 0; c < grad.row_size(); ++c) sum += std::abs(static_cast<double>(grad.row(head)[c]));
          return sum;
        };
        CHECK(size_of(1) == 0);
        CHECK(size_of(0) > 0);
        CHECK(size_of(2) > 0);
      }
    labelled.heads = {2, 3};
    CHECK(thrown<InputError>([&] {
            (void)backward_potential_loss(model, graph, labelled);
          }).find("got the head 3") != std::string::npos);
    labelled.heads = {2};
    CHECK_THROWS_AS((void)backward_potential_loss(model, graph, labelled), ShapeError);
    if (sanitized) break;
  }
}

TEST_CASE("potential loss: labels that are NaN take no part, on any rank") {
  const Communicator world = Communicator::world();
  const Atoms atoms;
  const auto nan = std::numeric_limits<real>::quiet_NaN();
  const Tensor all_forces = random_values({12, 3}, 8), all_stresses = random_values({2, 3, 3}, 9);
  for (const Books& books : test_books(atoms.graph, world.size())) {
    PaiNN model = make_potential();
    const Graph graph = shard(world, atoms.graph, books, {});
    const int rank = world.rank();
    LabelledAtoms labelled{.species = part_of(atoms.species, books.src, rank),
                           .positions = my_rows(atoms.x, books.src, rank),
                           .structures = part_of(atoms.structures, books.src, rank),
                           .energies = Tensor::from({2}, {1, -2}),
                           .forces = my_rows(all_forces, books.src, rank),
                           .stresses = all_stresses,
                           .volumes = Tensor::from({2}, {5, 7})};
    const PotentialWeights weights{.energy = 1, .forces = 2, .stress = 3};
    const PotentialErrors energy_alone =
        backward_potential_loss(model, graph, labelled, {.energy = 1, .forces = 0, .stress = 0});
    // Structure 0 alone has an energy and a stress, structure 1 alone has forces.
    Tensor energies = labelled.energies.clone(), forces = all_forces.clone(), stresses = all_stresses.clone();
    energies.data()[1] = nan;
    for (Index i = 0; i < 6 * 3; ++i) forces.data()[i] = nan;
    for (Index i = 9; i < 18; ++i) stresses.data()[i] = nan;
    labelled.energies = energies;
    labelled.forces = my_rows(forces, books.src, rank);
    labelled.stresses = stresses;
    check_gradients(world, model,
                    [&] { return backward_potential_loss(model, graph, labelled, weights).loss; });
    const PotentialErrors some = backward_potential_loss(model, graph, labelled, weights);

    // The loss is that of the two structures, each alone with its labels.
    const auto alone = [&](Index structure, const LabelledAtoms& of_all) {
      WholeGraph part{"part", 6, 6, true, {}, {}};
      for (std::size_t e = 0; e < atoms.graph.src.size(); ++e)
        if (atoms.structures[static_cast<std::size_t>(atoms.graph.src[e])] == structure) {
          part.src.push_back(atoms.graph.src[e] - 6 * structure);
          part.dst.push_back(atoms.graph.dst[e] - 6 * structure);
        }
      const Communicator self = Communicator::self();
      LabelledAtoms one = of_all;
      one.species = std::vector<Index>(atoms.species.begin() + 6 * structure,
                                       atoms.species.begin() + 6 * structure + 6);
      one.positions = atoms.x.slice_rows(6 * structure, 6 * structure + 6);
      return backward_potential_loss(model, shard(self, part, test_books(part, 1)[0], {}), one, weights);
    };
    const PotentialErrors of_0 = alone(0, {.species = {},
                                           .positions = {},
                                           .energies = Tensor::from({1}, {1}),
                                           .forces = {},
                                           .stresses = all_stresses.slice_rows(0, 1),
                                           .volumes = Tensor::from({1}, {5})});
    const PotentialErrors of_1 = alone(1, {.species = {},
                                           .positions = {},
                                           .energies = Tensor::from({1}, {nan}),
                                           .forces = all_forces.slice_rows(6, 12)});
    const double tolerance = is_double ? 1e-10 : 1e-4;
    CHECK(std::abs(some.loss - of_0.loss - of_1.loss) < tolerance * some.loss);
    CHECK(std::abs(some.force - of_1.force) < tolerance);
    CHECK(std::abs(some.stress - of_0.stress) < tolerance);
    CHECK(std::abs(some.energy_per_atom - of_0.energy_per_atom) < tolerance);
    CHECK(energy_alone.energy_per_atom != some.energy_per_atom);
    if (sanitized) break;
  }
}

TEST_CASE("slope loss: derivatives of MeshGraphNet and of built-in messages") {
  const Communicator world = Communicator::world();
  const WholeGraph whole = random_graph("random", 12, 12, 40, 1);
  std::size_t number = 0;
  for (const Books& books : test_books(whole, world.size()))
    for (const GraphOptions& options : ways_of_case(number++)) {
      const Graph graph = shard(world, whole, books, options);
      Generator gen(2);
      MeshGraphNetOptions net_options;
      net_options.node_feats = 3;
      net_options.edge_feats = 4;
      net_options.out_feats = 2;
      net_options.hidden = 4;
      net_options.blocks = 1;
      net_options.mlp_layers = 1;
      net_options.activation = silu;
      MeshGraphNet net(net_options, gen);
      const auto f = [&](const std::vector<Variable>& x) {
        const Variable y = net(graph, x[0], relative_positions(graph, x[0]));
        const Variable means = graph.update_all(fn::u_mul_v(y, y), fn::mean, y);
        return graph.update_all(fn::copy_e(graph.apply_edges(fn::u_sub_v(means, means))), fn::sum);
      };
      const auto loss = [&](const Variable& y, const std::vector<Variable>& slopes) {
        return mean(y * y, world) + mean(slopes[0] * slopes[0], world);
      };
      const Tensor x = my_rows(random_values({12, 3}, 3), books.src, world.rank());
      check_gradients(world, net, [&] { return backward_slope_loss(f, {x}, loss); });
      if (sanitized) break;
    }
}

TEST_CASE("slopes: parameters are constants while they are computed") {
  Generator gen(1);
  const Linear net(3, 1, gen);
  Index calls = 0;
  const auto f = [&](const std::vector<Variable>& x) {
    ++calls;
    CHECK(x[0].requires_grad());
    CHECK_FALSE(net.weight().requires_grad());
    CHECK(net.weight().gradient() == nullptr);
    return net(x[0]);
  };
  const ValueAndSlopes found = value_and_slopes(f, {random_values({5, 3}, 1)});
  CHECK(calls == 1);
  for (Index i = 0; i < 5; ++i)
    for (Index c = 0; c < 3; ++c) CHECK(found.slopes[0].row(i)[c] == net.weight().value().data()[c]);
  CHECK(net.weight().requires_grad());
  CHECK_FALSE(net.weight().grad().defined());
}

TEST_CASE("slope loss: a refused operation and wrong labels leave everything as it was, on all ranks") {
  const Communicator world = Communicator::world();
  const Atoms atoms;
  const Books books = test_books(atoms.graph, world.size()).back();
  const Graph graph = shard(world, atoms.graph, books, {});
  const Tensor x = my_rows(atoms.x, books.src, world.rank());
  const auto loss = [&](const Variable& y, const std::vector<Variable>& slopes) {
    return mean(y * y, world) + mean(slopes[0] * slopes[0], world);
  };
  const auto refused = [&](const SlopeFunction& f) {
    return thrown<InputError>([&] { (void)backward_slope_loss(f, {x}, loss); });
  };
  Generator gen(1);
  GATConv gat(3, 2, 1, gen);
  CHECK(refused([&](const auto& in) { return gat(graph, in[0]); }).find("of a dual variable") !=
        std::string::npos);
  const Variable factor(Tensor::full({1}, 2), true);
  CHECK_THROWS_AS((void)backward_slope_loss([&](const auto& in) { return gat(graph, in[0]); }, {x},
                                            [&](const Variable& y, const std::vector<Variable>& slopes) {
                                              return loss(y, slopes) * factor;
                                            }),
                  InputError);
  CHECK(!factor.grad().defined());
  CHECK(refused([&](const auto& in) {
          return graph.update_all(fn::copy_u(in[0]), fn::max);
        }).find("the max of messages that are dual variables") != std::string::npos);
  CHECK(refused([&](const auto& in) {
          return graph.update_all([x = in[0]](const EdgeBatch& edges) { return edges.src(x); }, fn::min);
        }).find("the min of messages that are dual variables") != std::string::npos);

  PaiNN model = make_potential();
  LabelledAtoms labelled{.species = part_of(atoms.species, books.src, world.rank()),
                         .positions = x,
                         .structures = part_of(atoms.structures, books.src, world.rank()),
                         .energies = Tensor::from({1}, {1})};
  CHECK(thrown<InputError>([&] {
          (void)backward_potential_loss(model, graph, labelled);
        }).find("structure 1") != std::string::npos);
  labelled.energies = Tensor::from({3}, {1, 2, 3});
  CHECK(thrown<InputError>([&] {
          (void)backward_potential_loss(model, graph, labelled);
        }).find("structure 2 has no atoms") != std::string::npos);
  labelled.energies = Tensor::from({2}, {1, 2});
  labelled.forces = Tensor::zeros({x.num_rows(), 2});
  CHECK_THROWS_AS((void)backward_potential_loss(model, graph, labelled), ShapeError);
  for (const Variable& parameter : model.parameters()) CHECK(!parameter.grad().defined());
}
