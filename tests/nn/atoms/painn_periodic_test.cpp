// SPDX-License-Identifier: MIT

/// PaiNN with shifts of edges in a periodic box: differences of energies, larger boxes, atoms that leave the
/// box, ranks, errors.
#include "nn/atoms/crystal.hpp"
#include "nn/conv/conv_cases.hpp"
#include "support/effort.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/atoms/painn.hpp>
#include <sar/nn/conv/edge_conv.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// What a rank has of a crystal.
struct Part : CrystalPart {
  using CrystalPart::CrystalPart;
  [[nodiscard]] EnergyAndForces operator()(const PaiNN& model) const {
    return model.energy_and_forces(graph, species, mine(crystal.x), shifts);
  }
};

PaiNN make_model() {
  Generator gen(4);
  return PaiNN({.num_species = 2, .feats = 4, .convs = 2, .cutoff = crystal_cutoff, .num_basis = 5}, gen);
}

/// The crystal and its energy and forces on one rank.
EnergyAndForces alone(const PaiNN& model, const Crystal& crystal) {
  const Communicator self = Communicator::self();
  return Part(self, crystal, test_books(crystal.graph, 1)[0])(model);
}

}  // namespace

TEST_CASE(
    "PaiNN in a periodic box: forces are differences of energies, and the same for every number of ranks") {
  const Communicator world = Communicator::world();
  const Crystal crystal = unit_crystal();
  const PaiNN model = make_model();
  const EnergyAndForces one = alone(model, crystal);
  for (const Books& books : test_books(crystal.graph, world.size()))
    for (const GraphOptions& options : graph_ways()) {
      const Part part(world, crystal, books, options);
      const EnergyAndForces found = part(model);
      CHECK(std::abs(found.energy - one.energy) < tolerance() * std::abs(one.energy));
      CHECK(error_of_part(found.forces, part.mine(one.forces), one.forces) < 10 * tolerance());
    }
  if (sizeof(real) < 8) return;  // differences need the digits
  const Part part(world, crystal, test_books(crystal.graph, world.size()).back());
  Tensor x = crystal.x.clone();
  const double step = 2e-5;
  double largest = 0;
  for (Index i = 0; i < x.size(); i += sanitized ? 5 : 1) {
    const auto energy_at = [&](double moved) {
      x.data()[i] = crystal.x.data()[i] + static_cast<real>(moved);
      const Variable energy = model.energy(part.graph, part.species, part.mine(x), part.shifts);
      x.data()[i] = crystal.x.data()[i];
      return static_cast<double>(energy.value().item());
    };
    const double force = -(energy_at(step) - energy_at(-step)) / (2 * step);
    CHECK(std::abs(force - static_cast<double>(one.forces.data()[i])) < 1e-6);
    largest = std::max(largest, std::abs(force));
  }
  CHECK(largest > 1e-2);
}

TEST_CASE("PaiNN in a periodic box: two boxes have twice the energy and the same forces") {
  const PaiNN model = make_model();
  const Crystal one = unit_crystal();
  const EnergyAndForces expected = alone(model, one);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    Tensor x({16, 3});
    for (Index i = 0; i < x.num_rows(); ++i)
      for (std::size_t k = 0; k < 3; ++k)
        x.row(i)[k] = one.x.row(i % 8)[k] + static_cast<real>(i >= 8 && k == axis ? unit_box[k] : 0);
    Vector box = unit_box;
    box[axis] *= 2;
    const Crystal two(box, x);
    REQUIRE(two.graph.src.size() == 2 * one.graph.src.size());
    const EnergyAndForces found = alone(model, two);
    CHECK(std::abs(found.energy - 2 * expected.energy) < tolerance() * std::abs(found.energy));
    for (const Index first : {0, 8})
      CHECK(error_of_part(found.forces.slice_rows(first, first + 8), expected.forces, expected.forces) <
            10 * tolerance());
  }
}

TEST_CASE(
    "PaiNN in a periodic box: an atom that is counted at its image changes nothing; without shifts it does") {
  const PaiNN model = make_model();
  const Crystal inside = unit_crystal();
  const EnergyAndForces expected = alone(model, inside);
  Tensor x = inside.x.clone();
  for (std::size_t k = 0; k < 3; ++k) x.row(5)[k] += static_cast<real>(unit_box[k]);
  Crystal outside = inside;
  outside.x = x;
  outside.shifts = inside.shifts.clone();
  for (std::size_t e = 0; e < inside.graph.src.size(); ++e)
    for (std::size_t k = 0; k < 3; ++k) {
      real& shift = outside.shifts.row(static_cast<Index>(e))[k];
      if (inside.graph.src[e] == 5) shift -= static_cast<real>(unit_box[k]);
      if (inside.graph.dst[e] == 5) shift += static_cast<real>(unit_box[k]);
    }
  const EnergyAndForces found = alone(model, outside);
  CHECK(std::abs(found.energy - expected.energy) < tolerance() * std::abs(expected.energy));
  CHECK(error_of_part(found.forces, expected.forces, expected.forces) < 10 * tolerance());

  Crystal torn = inside;
  torn.shifts = Tensor::zeros(inside.shifts.shape());
  CHECK(std::abs(alone(model, torn).energy - expected.energy) > 1e-3);
}

TEST_CASE("PaiNN: shifts of another shape are refused") {
  const Communicator world = Communicator::world();
  const Crystal crystal = unit_crystal();
  const Part part(world, crystal, test_books(crystal.graph, world.size())[0]);
  const PaiNN model = make_model();
  const bool last = world.rank() == world.size() - 1;
  const Index m = part.graph.num_edges();
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)model.energy_and_forces(part.graph, part.species, part.mine(crystal.x),
                                        Tensor::zeros({m + (last ? 1 : 0), 3}));
        }).starts_with("PaiNNConv, shifts have shape ["));
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)relative_positions(part.graph, part.mine(crystal.x), Tensor::zeros({m, last ? 2 : 3}));
        }).starts_with("relative_positions, shifts have shape ["));
  const std::vector<double> flat{1, 1}, wrong{1, last ? 0. : 1., 1};
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)minimum_image_shifts(part.graph, part.mine(crystal.x), flat);
        }) == "minimum_image_shifts: a box of 2 sides for positions of 3 coordinates");
  CHECK(thrown_by_all<InputError>(world, [&] {
          (void)minimum_image_shifts(part.graph, part.mine(crystal.x), wrong);
        }) == "minimum_image_shifts: a box with a side of 0, expected a positive number");
}
