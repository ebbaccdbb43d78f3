// SPDX-License-Identifier: MIT

/// Potentials: energies, forces and virials by differences and by PaiNN, for every number of ranks; files.
#include "graph/data/dataset_files.hpp"
#include "nn/atoms/crystal.hpp"
#include "nn/conv/conv_cases.hpp"
#include "support/effort.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/safetensors.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/nn/atoms/neighbor_list.hpp>
#include <sar/nn/atoms/painn.hpp>
#include <sar/nn/atoms/potentials/potential.hpp>
#include <sar/nn/models/graph_model.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

const ModelDescription described{.type = "painn",
                                 .hidden = 4,
                                 .layers = 2,
                                 .species = {"Si", "O"},
                                 .cutoff = crystal_cutoff,
                                 .num_basis = 5,
                                 .energy_shifts = {-7, 3.5},
                                 .energy_scales = {2, 0.5}};

Potential make_potential(const ModelDescription& description = described) {
  Generator gen(4);
  return {description, gen};
}

/// x_u + t_uv - x_v of the edges of a part, as a host computes them.
std::vector<double> vectors_of(const CrystalPart& part, const Tensor& x, const Tensor& shifts) {
  std::vector<double> vectors;
  const WholeGraph& whole = part.crystal.graph;
  for (Index k = 0; k < part.graph.num_edges(); ++k) {
    const auto e = static_cast<std::size_t>(part.graph.edge_ids()[static_cast<std::size_t>(k)]);
    for (Index c = 0; c < 3; ++c)
      vectors.push_back(static_cast<double>(x.row(whole.src[e])[c]) + static_cast<double>(shifts.row(k)[c]) -
                        static_cast<double>(x.row(whole.dst[e])[c]));
  }
  return vectors;
}

PotentialValues at_positions(Potential& potential, const CrystalPart& part, bool per_atom = true) {
  return potential(part.graph,
                   {.species = part.species, .positions = part.mine(part.crystal.x), .shifts = part.shifts},
                   per_atom);
}

/// x (1 + e) for a strain e of one component.
Tensor strained(const Tensor& x, std::size_t a, std::size_t b, double e) {
  Tensor y = x.clone();
  for (Index i = 0; i < x.num_rows(); ++i) y.row(i)[b] += static_cast<real>(e) * x.row(i)[a];
  return y;
}

void check_near(double found, double expected, double scale) {
  CHECK(std::abs(found - expected) < 10 * tolerance() * scale);
}

}  // namespace

TEST_CASE("Potential: energies and forces of PaiNN with shifts and scales, for every number of ranks") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  const Crystal crystal = unit_crystal();
  Potential potential = make_potential();
  const CrystalPart whole(self, crystal, test_books(crystal.graph, 1)[0]);
  const PotentialValues one = at_positions(potential, whole);
  const EnergyAndForces by_network =
      potential.network().energy_and_forces(whole.graph, whole.species, crystal.x, whole.shifts);
  check_near(one.energy, by_network.energy + 4 * (-7 + 3.5), std::abs(one.energy));
  CHECK(error_of_part(one.forces, by_network.forces, by_network.forces) < tolerance());
  Generator gen(4);
  const PaiNN plain({.num_species = 2, .feats = 4, .convs = 2, .cutoff = crystal_cutoff, .num_basis = 5},
                    gen);
  const Variable outputs = plain.atomic_energies(whole.graph, whole.species, crystal.x, whole.shifts);
  for (std::size_t i = 0; i < 8; ++i)
    check_near(one.energies[i],
               i % 2 == 0 ? -7 + 2 * static_cast<double>(outputs.value().data()[i])
                          : 3.5 + 0.5 * static_cast<double>(outputs.value().data()[i]),
               10);

  for (const Books& books : test_books(crystal.graph, world.size()))
    for (const GraphOptions& options : graph_ways()) {
      const CrystalPart part(world, crystal, books, options);
      const PotentialValues found = at_positions(potential, part);
      check_near(found.energy, one.energy, std::abs(one.energy));
      CHECK(error_of_part(found.forces, part.mine(one.forces), one.forces) < 10 * tolerance());
      CHECK(error_of_part(found.virials, part.mine(one.virials), one.virials) < 10 * tolerance());
      CHECK(error_of_part(found.centroid_virials, part.mine(one.centroid_virials), one.centroid_virials) <
            10 * tolerance());
      double energy = 0;
      std::array<double, 9> virial{};
      for (const double each : found.energies) energy += each;
      for (Index i = 0; i < found.virials.size(); ++i)
        virial[static_cast<std::size_t>(i % 9)] += static_cast<double>(found.virials.data()[i]);
      check_near(world.all_reduce(energy), found.energy, std::abs(one.energy));
      world.all_reduce(std::span<double>(virial));
      for (std::size_t c = 0; c < 9; ++c) {
        check_near(virial[c], found.virial[c], 1);
        check_near(found.virial[c], one.virial[c], 1);
      }
      // the vectors of the host; the memory of the call before
      const std::vector<double> vectors = vectors_of(part, crystal.x, part.shifts);
      for (int repeat = 0; repeat < 3; ++repeat) {
        const PotentialValues by_vectors = potential(
            part.graph, {.species = part.species, .edge_vectors = vectors, .list_cutoff = 2.2}, true);
        CHECK(by_vectors.energy == found.energy);
        CHECK(same_bits(by_vectors.forces, found.forces));
        CHECK(same_bits(by_vectors.virials, found.virials));
        CHECK(by_vectors.virial == found.virial);
        CHECK(by_vectors.energies == found.energies);
      }
    }
}

TEST_CASE("Potential: ZBL is added to energies, forces and virials, for every number of ranks") {
  const Communicator world = Communicator::world();
  const Crystal crystal = unit_crystal();
  ModelDescription with_zbl = described;
  with_zbl.zbl_inner = 0.5;
  with_zbl.zbl_outer = 1.9;
  Potential potential = make_potential(with_zbl), without = make_potential();
  // sums over all edges of the whole crystal, in double precision
  std::array<double, 8> energies{};
  std::array<std::array<double, 3>, 8> forces{};
  std::array<std::array<double, 9>, 8> virials{};
  Index near = 0;
  for (std::size_t e = 0; e < crystal.graph.src.size(); ++e) {
    const auto u = static_cast<std::size_t>(crystal.graph.src[e]),
               v = static_cast<std::size_t>(crystal.graph.dst[e]);
    std::array<double, 3> d{};
    for (std::size_t c = 0; c < 3; ++c)
      d[c] = static_cast<double>(crystal.x.row(crystal.graph.src[e])[c]) +
             static_cast<double>(crystal.shifts.row(static_cast<Index>(e))[c]) -
             static_cast<double>(crystal.x.row(crystal.graph.dst[e])[c]);
    const double r = std::hypot(d[0], d[1], d[2]);
    const auto [energy, slope] = (*potential.zbl())(crystal.species[u], crystal.species[v], r);
    near += r < 1.9 ? 1 : 0;
    energies[v] += energy / 2;
    for (std::size_t a = 0; a < 3; ++a) {
      forces[v][a] += slope * d[a] / r;
      for (std::size_t b = 0; b < 3; ++b)
        for (const std::size_t end : {u, v}) virials[end][3 * a + b] -= slope * d[a] * d[b] / r / 4;
    }
  }
  CHECK(near > 20);
  double largest = 0;
  for (const auto& each : forces) largest = std::max(largest, std::abs(each[0]));
  for (const Books& books : test_books(crystal.graph, world.size())) {
    const CrystalPart part(world, crystal, books);
    const PotentialValues found = at_positions(potential, part), plain = at_positions(without, part);
    for (Index i = 0; i < part.graph.num_nodes(); ++i) {
      const auto at = static_cast<std::size_t>(i + part.book.begin(part.rank));
      const auto row = static_cast<std::size_t>(i);
      check_near(found.energies[row] - plain.energies[row], energies[at], largest);
      for (std::size_t c = 0; c < 3; ++c)
        check_near(static_cast<double>(found.forces.row(i)[c]) - static_cast<double>(plain.forces.row(i)[c]),
                   forces[at][c], largest);
      for (std::size_t c = 0; c < 9; ++c)
        check_near(
            static_cast<double>(found.virials.row(i)[c]) - static_cast<double>(plain.virials.row(i)[c]),
            virials[at][c], largest);
    }
    double all = 0, all_virial = 0;
    for (const double each : energies) all += each;
    for (const auto& each : virials) all_virial += each[0];
    check_near(found.energy - plain.energy, all, largest);
    check_near(found.virial[0] - plain.virial[0], all_virial, largest);
  }
  CHECK(potential.description().to_json().find(R"("zbl_inner":0.5,"zbl_outer":1.9)") != std::string::npos);
  CHECK(without.description().to_json().find("zbl") == std::string::npos);
  with_zbl.zbl_outer = 2.5;
  CHECK(thrown<InputError>([&] { make_potential(with_zbl); }) ==
        "the description.zbl_inner is 0.5 and .zbl_outer is 2.5, expected two distances up to the cutoff 2, "
        "the "
        "second one larger, or 0");
  with_zbl.zbl_outer = 1.5;
  with_zbl.species[1] = "anion";
  CHECK(thrown<InputError>([&] { make_potential(with_zbl); }) ==
        "the description.species has 'anion', expected chemical symbols with .zbl_outer or .zbl_power");
}

TEST_CASE(
    "Potential: the virial is the difference of energies in a strain, per atom from both ends of edges") {
  const Communicator world = Communicator::world();
  const Crystal crystal = unit_crystal();
  Potential potential = make_potential();
  const CrystalPart part(world, crystal, test_books(crystal.graph, world.size()).back());
  const PotentialValues at = at_positions(potential, part);
  if (sizeof(real) == 8) {  // differences need the digits
    double largest = 0;
    for (std::size_t a = 0; a < 3; ++a)
      for (std::size_t b = 0; b < 3; ++b) {
        const auto energy_at = [&](double e) {
          return potential(part.graph, {.species = part.species,
                                        .positions = part.mine(strained(crystal.x, a, b, e)),
                                        .shifts = strained(part.shifts, a, b, e)})
              .energy;
        };
        const double step = 2e-5, slope = (energy_at(step) - energy_at(-step)) / (2 * step);
        CHECK(std::abs(at.virial[3 * a + b] + slope) < 1e-6);
        largest = std::max(largest, std::abs(slope));
      }
    CHECK(largest > 1e-2);
  }
  if (world.size() > 1) return;
  const std::vector<double> vectors = vectors_of(part, crystal.x, part.shifts);
  const Tensor d = Tensor::from({part.graph.num_edges(), 3}, std::span<const double>(vectors));
  const ValueAndSlopes found = value_and_slopes(
      [&](const std::vector<Variable>& x) {
        return potential.network().atomic_energies(part.graph, part.species, Tensor::zeros({8, 3}), x[0]);
      },
      {d});
  std::array<std::array<double, 9>, 8> expected{};
  for (Index k = 0; k < d.num_rows(); ++k) {
    const auto e = static_cast<std::size_t>(part.graph.edge_ids()[static_cast<std::size_t>(k)]);
    for (const Index end : {crystal.graph.src[e], crystal.graph.dst[e]})
      for (std::size_t c = 0; c < 9; ++c)
        expected[static_cast<std::size_t>(end)][c] -=
            0.5 * static_cast<double>(d.row(k)[c / 3]) * static_cast<double>(found.slopes[0].row(k)[c % 3]);
  }
  for (Index i = 0; i < 8; ++i)
    for (std::size_t c = 0; c < 9; ++c)
      check_near(static_cast<double>(at.virials.row(i)[c]), expected[static_cast<std::size_t>(i)][c], 1);
}

TEST_CASE("Potential: places travel exactly, whatever the format of halo rows") {
  const Communicator world = Communicator::world();
  const Crystal crystal = unit_crystal();
  ModelDescription with_zbl = described;
  with_zbl.zbl_inner = 0.5;
  with_zbl.zbl_outer = 1.9;
  Potential potential = make_potential(with_zbl);
  for (const HaloFormat format : {HaloFormat::bf16, HaloFormat::int8}) {
    if (format == HaloFormat::int8 && sizeof(real) == 8) continue;  // refused
    const CrystalPart part(world, crystal, test_books(crystal.graph, world.size()).back(),
                           {.halo_format = format});
    const auto energy_at = [&](real offset) {
      const HaloStep step(1, 1);  // the same draws
      Tensor x = part.mine(crystal.x).clone();
      for (real& place : x.values()) place += offset;
      return potential(part.graph, {.species = part.species, .positions = x, .shifts = part.shifts}).energy;
    };
    CHECK(energy_at(100) == doctest::Approx(energy_at(0)).epsilon(1e-3));
  }
}

TEST_CASE("Potential: centroid virials times velocities are the flux of energy of a network with one layer") {
  const Communicator world = Communicator::world();
  const Crystal crystal = unit_crystal();
  ModelDescription one_layer = described;
  one_layer.layers = 1;
  one_layer.zbl_inner = 0.5;
  one_layer.zbl_outer = 1.9;
  Potential potential = make_potential(one_layer);
  const CrystalPart part(world, crystal, test_books(crystal.graph, world.size()).back());
  Tensor shifts = part.shifts.clone();  // of a cluster, with images beyond the cutoff
  for (Index i = 0; i < shifts.size(); ++i) shifts.data()[i] *= 100;
  Tensor velocities(crystal.x.shape());
  for (Index i = 0; i < velocities.size(); ++i) velocities.data()[i] = static_cast<real>(std::sin(3.0 * i));
  const auto values_at = [&](double time) {
    Tensor x = crystal.x.clone();
    for (Index i = 0; i < x.size(); ++i) x.data()[i] += static_cast<real>(time) * velocities.data()[i];
    return potential(part.graph, {.species = part.species, .positions = part.mine(x), .shifts = shifts},
                     true);
  };
  const PotentialValues at = values_at(0);
  std::array<double, 9> sum{};
  for (Index i = 0; i < at.centroid_virials.size(); ++i)
    sum[static_cast<std::size_t>(i % 9)] += static_cast<double>(at.centroid_virials.data()[i]);
  world.all_reduce(std::span<double>(sum));
  for (std::size_t c = 0; c < 9; ++c) check_near(sum[c], at.virial[c], 1);
  if (sizeof(real) != 8) return;  // differences need the digits
  // d/dt sum_i x_i E_i without what atoms carry, with the work of the forces as kinetic energy
  constexpr double step = 1e-5;
  const PotentialValues after = values_at(step), before = values_at(-step);
  const Tensor x = part.mine(crystal.x), v = part.mine(velocities);
  std::array<double, 6> flux{};
  for (Index i = 0; i < x.num_rows(); ++i) {
    const auto row = static_cast<std::size_t>(i);
    double power = (after.energies[row] - before.energies[row]) / (2 * step);
    for (Index b = 0; b < 3; ++b) power += static_cast<double>(at.forces.row(i)[b] * v.row(i)[b]);
    for (std::size_t a = 0; a < 3; ++a) {
      flux[a] += static_cast<double>(x.row(i)[a]) * power;
      for (std::size_t b = 0; b < 3; ++b)
        flux[3 + a] += static_cast<double>(at.centroid_virials.row(i)[3 * a + b] * v.row(i)[b]);
    }
  }
  world.all_reduce(std::span<double>(flux));
  for (std::size_t a = 0; a < 3; ++a) {
    CHECK(std::abs(flux[a]) > 10);
    CHECK(std::abs(flux[a] - flux[3 + a]) < 1e-7 * std::abs(flux[a]));
  }
}

TEST_CASE("Potential: a file gives the same bits, and parameters that are constants or not") {
  const Communicator world = Communicator::world();
  const TemporaryDirectory directory(world);
  const std::string path = directory.path() + "/potential.safetensors";
  const Crystal crystal = unit_crystal();
  const CrystalPart part(world, crystal, test_books(crystal.graph, world.size()).back());
  ModelDescription other = described;
  other.radial_basis = "gaussian";
  other.cutoff_function = "polynomial";
  Potential potential = make_potential(other);
  const PotentialValues expected = at_positions(potential, part);
  for (const auto member : {&ModelDescription::radial_basis, &ModelDescription::cutoff_function}) {
    ModelDescription one_by_default = other;
    one_by_default.*member = described.*member;
    Potential different = make_potential(one_by_default);
    CHECK(std::abs(expected.energy - at_positions(different, part).energy) > 1e-3);
  }
  save_potential(world, path, potential);
  for (const bool trainable : {false, true}) {
    const auto loaded = load_potential(world, path, trainable);
    CHECK(loaded->description().to_json() == other.to_json());
    CHECK(loaded->species("O") == 1);
    CHECK(loaded->cutoff() == crystal_cutoff);
    const PotentialValues found = at_positions(*loaded, part);
    CHECK(found.energy == expected.energy);
    CHECK(same_bits(found.forces, expected.forces));
    CHECK(same_bits(found.virials, expected.virials));
    for (const Variable& parameter : loaded->network().parameters()) {
      CHECK(parameter.requires_grad() == trainable);
      CHECK_FALSE(parameter.grad().defined());
    }
  }
}

TEST_CASE(
    "Potential: a committee is the mean of its members, with their deviations, for every number of ranks") {
  const Communicator world = Communicator::world();
  const Crystal crystal = unit_crystal();
  ModelDescription of_three = described;
  of_three.committee = 3;
  of_three.deviation_scales = {2, 3};
  for (const Books& books : test_books(crystal.graph, world.size())) {
    const CrystalPart part(world, crystal, books);
    const PotentialAtoms atoms{
        .species = part.species, .positions = part.mine(crystal.x), .shifts = part.shifts};
    Potential committee = make_potential(of_three);
    const PotentialValues found = committee(part.graph, atoms, false, /*force_deviations=*/true);
    // the members by themselves: the same network with a row of the last layer
    std::vector<PotentialValues> members;
    for (Index head = 0; head < 3; ++head) {
      Potential member = make_potential();
      for (const NamedParameter& each : committee.network().named_parameters()) {
        const Tensor& value = each.parameter.value();
        const bool is_last = each.name.starts_with("outnet.2.");
        member.network().set_parameter(each.name, is_last ? value.slice_rows(head, head + 1) : value);
      }
      members.push_back(member(part.graph, atoms));
    }
    const auto deviation = [&](const auto& of_member, double scale) {
      double mean = 0, squares = 0;
      for (const PotentialValues& each : members) mean += of_member(each) / 3;
      for (const PotentialValues& each : members) squares += std::pow(of_member(each) - mean, 2) / 3;
      return std::pair(mean, scale * std::sqrt(squares));
    };
    const auto [energy, of_energy] = deviation([](const PotentialValues& each) { return each.energy; }, 2);
    check_near(found.energy, energy, 1 + std::abs(energy));
    check_near(found.energy_deviation, of_energy, 1 + of_energy);
    CHECK(of_energy > 1e-2);
    REQUIRE(found.force_deviations.size() == part.species.size());
    REQUIRE(found.head_energies.shape() == Shape{part.graph.num_nodes(), 3});
    for (Index i = 0; i < part.graph.num_nodes(); ++i) {
      double squares = 0;
      for (Index c = 0; c < 3; ++c) {
        const auto [force, of_force] = deviation(
            [&](const PotentialValues& each) { return static_cast<double>(each.forces.row(i)[c]); }, 3);
        check_near(static_cast<double>(found.forces.row(i)[c]), force, 10);
        squares += of_force * of_force;
      }
      check_near(found.force_deviations[static_cast<std::size_t>(i)], std::sqrt(squares), 10);
    }
    CHECK(committee(part.graph, atoms).force_deviations.empty());
    CHECK(members[0].force_deviations.empty());
    CHECK(members[0].energy_deviation == 0);
    if (sanitized) break;
  }
  ModelDescription wrong = described;
  for (const Index heads : {0, 65}) {
    wrong.committee = heads;
    CHECK(thrown<InputError>([&] { (void)make_potential(wrong); }).find("committee is") != std::string::npos);
  }
  wrong = of_three;
  wrong.deviation_scales = {1, 0};
  CHECK_THROWS_AS((void)make_potential(wrong), InputError);
  CHECK(make_potential(of_three).description().to_json().find("\"committee\":3") != std::string::npos);
  CHECK(make_potential().description().to_json().find("committee") == std::string::npos);
}

TEST_CASE("Potential: constant parameters, with updates computed again in blocks, give the same values") {
  const Communicator world = Communicator::world();
  constexpr Index side = 12, of_first = 1200;  // rank 0 has more than a block of atoms
  std::vector<double> x;
  std::vector<Index> species;
  for (Index i = 0; i < side * side * side; ++i) {
    if ((i < of_first ? 0 : i % world.size()) != world.rank()) continue;
    for (const Index site : {i % side, i / side % side, i / side / side})
      x.push_back(2.0 * static_cast<double>(site) + 0.1 * std::sin(static_cast<double>(7 * i + site)));
    species.push_back(i % 2);
  }
  const double length = 2.0 * side;
  const Cell cell{.vectors = {{{length, 0, 0}, {0, length, 0}, {0, 0, length}}},
                  .periodic = {true, true, true}};
  ModelDescription description = described;
  description.cutoff = 2.5;
  for (const bool reproducible : {false, true}) {
    const NeighborList list(world, x, cell, description.cutoff, 0, {.reproducible = reproducible});
    const Tensor vectors = list.vectors();
    const std::vector<double> edges(vectors.data(), vectors.data() + vectors.size());
    Potential varied = make_potential(description), constant = make_potential(description);
    for (const NamedParameter& each : constant.network().named_parameters())
      constant.network().freeze(each.name);
    const PotentialAtoms atoms{.species = species, .edge_vectors = edges};
    const PotentialValues expected = varied(list.graph(), atoms, true);
    const PotentialValues found = constant(list.graph(), atoms, true);
    check_near(found.energy, expected.energy, std::abs(expected.energy));
    for (Index i = 0; i < found.forces.size(); ++i)
      check_near(found.forces.data()[i], expected.forces.data()[i], 1);
    for (Index i = 0; i < found.virials.size(); ++i)
      check_near(found.virials.data()[i], expected.virials.data()[i], 1);
  }
}

TEST_CASE("with_species: old species are as they were, and a new one may begin as one of them") {
  const Communicator world = Communicator::world();
  const Crystal crystal = unit_crystal();
  const CrystalPart part(world, crystal, test_books(crystal.graph, world.size()).back());
  Potential potential = make_potential();
  Generator gen(7);
  const std::vector<NewSpecies> added{{"Ge", "Si"}, {"Sn", ""}};
  const std::unique_ptr<Potential> more = with_species(potential, added, gen);
  CHECK(more->description().species == std::vector<std::string>{"Si", "O", "Ge", "Sn"});
  CHECK(more->description().energy_shifts == std::vector<double>{-7, 3.5, 0, 0});
  CHECK(more->description().energy_scales == std::vector<double>{2, 0.5, 1.25, 1.25});
  for (const Variable& parameter : more->network().parameters()) CHECK(parameter.requires_grad());
  const PotentialValues before = at_positions(potential, part), after = at_positions(*more, part);
  CHECK(after.energy == before.energy);
  CHECK(same_bits(after.forces, before.forces));
  // Ge has the network's results of Si, with another shift and scale
  const auto energies_of_all = [&](Index species) {
    const std::vector<Index> kinds(part.species.size(), species);
    return (*more)(part.graph, {.species = kinds, .positions = part.mine(crystal.x), .shifts = part.shifts})
        .energies;
  };
  const std::vector<double> of_si = energies_of_all(0), of_ge = energies_of_all(2),
                            of_sn = energies_of_all(3);
  double difference = 0;
  for (std::size_t i = 0; i < of_si.size(); ++i) {
    check_near(of_ge[i] / 1.25, (of_si[i] + 7) / 2, 1);
    difference += std::abs(of_sn[i] - of_ge[i]);
  }
  CHECK(world.all_reduce(difference) > 1e-3);
  CHECK(thrown<InputError>([&] { (void)with_species(potential, std::vector<NewSpecies>{{"Si"}}, gen); }) ==
        "the potential knows the species 'Si' already");
  CHECK(thrown<InputError>([&] {
          (void)with_species(potential, std::vector<NewSpecies>{{"Ge", "C"}}, gen);
        }) == "the potential does not know the species 'C', expected one of Si, O");
}

TEST_CASE("Potential: a committee of files has their means and deviations, for every number of ranks") {
  const Communicator world = Communicator::world();
  const TemporaryDirectory directory(world);
  const std::string folder = directory.path() + "/", json = folder + "committee.json";
  const Crystal crystal = unit_crystal();
  const CrystalPart part(world, crystal, test_books(crystal.graph, world.size()).back());
  // the second one has another order of species and a smaller cutoff
  ModelDescription other = described;
  other.species = {"O", "Si"};
  other.energy_shifts = {3, -7.5};
  other.cutoff = 0.9 * crystal_cutoff;
  Potential a = make_potential(), b = make_potential(other);
  save_potential(world, folder + "a.safetensors", a);
  save_potential(world, folder + "b.safetensors", b);
  const auto write = [&](const std::string& text) {
    if (world.rank() == 0) write_text(json, text);
    world.barrier();
  };
  const std::string named =
      R"({"sar_model": 1, "type": "committee", "members": ["a.safetensors", "b.safetensors"])";
  write(named + R"(, "deviation_scales": [2, 3]})");
  const std::unique_ptr<Potential> both = load_potential(world, json);
  CHECK(both->has_members());
  CHECK(both->committee() == 2);
  CHECK(both->cutoff() == crystal_cutoff);
  CHECK(both->species("O") == 1);
  const auto at = [&](Potential& potential, const std::vector<Index>& species, bool deviations) {
    return potential(part.graph,
                     {.species = species, .positions = part.mine(crystal.x), .shifts = part.shifts}, true,
                     deviations);
  };
  std::vector<Index> swapped;
  for (const Index kind : part.species) swapped.push_back(1 - kind);
  const PotentialValues of_a = at(a, part.species, false), of_b = at(b, swapped, false);
  const PotentialValues found = at(*both, part.species, true);
  check_near(found.energy, (of_a.energy + of_b.energy) / 2, std::abs(of_a.energy));
  check_near(found.energy_deviation, std::abs(of_a.energy - of_b.energy), std::abs(of_a.energy));
  CHECK(found.energy_deviation > 1e-3);
  for (std::size_t c = 0; c < 9; ++c) check_near(found.virial[c], (of_a.virial[c] + of_b.virial[c]) / 2, 1);
  for (Index i = 0; i < part.graph.num_nodes(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    const double shift = described.energy_shifts[static_cast<std::size_t>(part.species[k])];
    check_near(found.energies[k], (of_a.energies[k] + of_b.energies[k]) / 2, 10);
    check_near(static_cast<double>(found.head_energies.row(i)[0]), of_a.energies[k] - shift, 10);
    check_near(static_cast<double>(found.head_energies.row(i)[1]), of_b.energies[k] - shift, 10);
    double squares = 0;
    for (Index c = 0; c < 3; ++c) {
      const double f = static_cast<double>(of_a.forces.row(i)[c]),
                   g = static_cast<double>(of_b.forces.row(i)[c]);
      check_near(static_cast<double>(found.forces.row(i)[c]), (f + g) / 2, 1);
      squares += (f - g) * (f - g) / 4;
    }
    check_near(found.force_deviations[k], 3 * std::sqrt(squares), 1);
    for (Index c = 0; c < 9; ++c)
      check_near(static_cast<double>(found.virials.row(i)[c]),
                 static_cast<double>(of_a.virials.row(i)[c] + of_b.virials.row(i)[c]) / 2, 1);
  }
  CHECK(at(*both, part.species, false).force_deviations.empty());
  CHECK(load_potential(world, {folder + "a.safetensors", folder + "b.safetensors"})->committee() == 2);
  CHECK(load_potential(world, {folder + "a.safetensors"})->committee() == 1);

  const auto error = [&] {
    return thrown_by_all<InputError>(world, [&] { (void)load_potential(world, json); });
  };
  CHECK(thrown_by_all<InputError>(world, [&] { (void)load_potential(world, json, true); }) ==
        json + ": is a committee of 2 files, which is not trained as one, expected one of its members");
  CHECK(thrown_by_all<InputError>(world, [&] {
          save_potential(world, folder + "c.safetensors", *both);
        }).starts_with(folder + "c.safetensors: a committee of potentials is not one file"));
  Generator gen(1);
  CHECK(thrown<InputError>([&] { (void)with_species(*both, std::vector<NewSpecies>{{"Ge"}}, gen); }) ==
        "a committee of potentials learns no new species, expected one of its members");
  write(named + R"(, "hidden": 4})");
  CHECK(error() ==
        json +
            " has the key 'hidden', which a committee has not, expected sar_model, type, members or "
            "deviation_scales");
  write(R"({"sar_model": 1, "type": "committee", "members": ["a.safetensors"]})");
  CHECK(error() == json + ": a committee of 1 potentials, expected 2 to 64");
  write(R"({"sar_model": 1, "type": "committee", "members": ["a.safetensors", "committee.json"]})");
  CHECK(error() == json + ".members names the file itself");
  write(named + R"(, "deviation_scales": [2]})");
  CHECK(error() ==
        json + ": deviation_scales of a committee has 1 numbers, expected two, of energies and forces");
  other.species = {"O", "C"};
  save_potential(world, folder + "b.safetensors", make_potential(other));
  write(named + "}");
  CHECK(
      error() ==
      json +
          ": member 1 of a committee does not know the species 'Si' of member 0, expected the same species");
}

TEST_CASE("Potential: what is refused") {
  const Communicator world = Communicator::world();
  const TemporaryDirectory directory(world);
  const std::string path = directory.path() + "/potential.safetensors";
  const Crystal crystal = unit_crystal();
  const CrystalPart part(world, crystal, test_books(crystal.graph, world.size())[0]);
  Potential potential = make_potential();
  const bool last = world.rank() == world.size() - 1;
  const std::vector<double> vectors = vectors_of(part, crystal.x, part.shifts);
  const PotentialValues before = at_positions(potential, part);
  const auto error_at = [&](const PotentialAtoms& atoms) {
    return thrown_by_all<InputError>(world, [&] { (void)potential(part.graph, atoms); });
  };
  CHECK(thrown<InputError>([&] { (void)potential.species("C"); }) ==
        "the potential does not know the species 'C', expected one of Si, O");
  CHECK(error_at({.species = part.species, .edge_vectors = vectors, .list_cutoff = last ? 1.5 : 2}) ==
        "a potential with the cutoff 2 on a neighbor list with the cutoff 1.5, expected 2 or more");
  std::vector<double> not_finite = vectors;
  if (!not_finite.empty()) not_finite[1] = std::numeric_limits<double>::quiet_NaN();
  CHECK(error_at({.species = part.species, .edge_vectors = not_finite}).find(", nan, ") != std::string::npos);
  const std::vector<double> same_place(vectors.size(), 1e-9);
  const std::string text = error_at({.species = part.species, .edge_vectors = same_place});
  CHECK(text.starts_with("a potential got atom "));
  CHECK(text.ends_with(" at the same place, expected different places"));
  std::vector<Index> unknown = part.species;
  if (!unknown.empty()) unknown[0] = 2;
  CHECK(error_at({.species = unknown, .edge_vectors = vectors}) == "PaiNN of 2 species got species 2");
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          std::vector<double> more = vectors;
          if (last) more.resize(more.size() + 3, 1);
          (void)potential(part.graph, {.species = part.species, .edge_vectors = more});
        }).starts_with("a potential got "));
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)potential(part.graph, {.species = part.species,
                                       .positions = part.mine(crystal.x),
                                       .shifts = Tensor::zeros({last ? 1 : part.graph.num_edges(), 3})});
        }).starts_with("a potential got shifts of shape [1, 3], expected ["));
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)potential(part.graph,
                          {.species = part.species, .positions = Tensor::zeros({part.graph.num_nodes(), 2})});
        }).starts_with("a potential got positions of shape ["));
  const PotentialValues after = at_positions(potential, part);
  CHECK(after.energy == before.energy);
  CHECK(same_bits(after.forces, before.forces));

  const auto file_error = [&](const std::string& description) {
    save_weights(world, path, potential.network(), real_type, {{model_key, description}});
    return thrown_by_all<InputError>(world, [&] { (void)load_potential(world, path); });
  };
  const auto description = [](const std::string& more) {
    return R"({"sar_model": 1, "type": "painn", "hidden": 4, "layers": 2, "num_basis": 5, "species": ["Si", "O"])" +
           more + "}";
  };
  const std::string where = path + ": sar.model";
  CHECK(file_error(description("")) == where + " has no cutoff, expected one");
  CHECK(file_error(description(R"(, "cutoff": -1)")) == where + ".cutoff is -1, expected a positive number");
  CHECK(file_error(description(R"(, "cutoff": 2, "energy_shifts": [1])")) ==
        where + ".energy_shifts has 1 numbers, expected one for each of 2 species");
  CHECK(file_error(description(R"(, "cutoff": 2, "radial_basis": "sine")")) ==
        where + ".radial_basis is 'sine', expected sinc, gaussian or bessel");
  CHECK(file_error(description(R"(, "cutoff": 2, "cutoff_function": "step")")) ==
        where + ".cutoff_function is 'step', expected cosine or polynomial");
  CHECK(file_error(description(R"(, "cutoff": 2, "in_feats": 3)"))
            .starts_with(where + " has the key 'in_feats', which a network of type painn has not"));
  ModelDescription other = described;
  other.layers = 3;
  CHECK(file_error(other.to_json()).find("convs.2.filter_net.weight") != std::string::npos);
  other = described;
  other.species = {"Si", "O", "C"};
  other.energy_shifts.clear();
  other.energy_scales.clear();
  CHECK(file_error(other.to_json()).find("embedding") != std::string::npos);
  other.species = {"Si", "Si"};
  CHECK(thrown<InputError>([&] { make_potential(other); }) ==
        "the description.species has 'Si' twice, expected names that differ");
  other.species.clear();
  CHECK(thrown<InputError>([&] { make_potential(other); }) ==
        "the description.species has no name, expected one or more");

  save_potential(world, path, potential);
  CHECK(thrown_by_all<InputError>(world, [&] { (void)load_model(world, path); }) ==
        path + ": is a network of type painn, expected load_potential for it");
  Generator gen(1);
  CHECK(thrown<InputError>([&] {
          (void)GraphModel(described, world, gen);
        }).starts_with("a GraphModel of type painn, which is a potential, expected sage, "));
  const ModelDescription gcn{.type = "gcn", .in_feats = 3, .out_feats = 2};
  CHECK(thrown<InputError>([&] { make_potential(gcn); }) ==
        "a Potential of type gcn, expected painn or mace");
  save_model(world, path, GraphModel(gcn, world, gen));
  CHECK(thrown_by_all<InputError>(world, [&] { (void)load_potential(world, path); }) ==
        path + ": is a network of type gcn, which is no potential, expected load_model for it");
}
