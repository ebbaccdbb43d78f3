// SPDX-License-Identifier: MIT

/// PaiNN on neighbor lists of crystals: forces near symmetric sites, crystals far from the origin,
/// supercells.
#include "support/rows.hpp"

#include <sar/core/random.hpp>
#include <sar/nn/atoms/neighbor_list.hpp>
#include <sar/nn/atoms/painn.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr bool is_double = sizeof(real) == 8;
constexpr double cutoff = 2.2;

PaiNN make_model(double norm_epsilon = 0.01) {
  Generator gen(4);
  return PaiNN({.num_species = 1,
                .feats = 8,
                .convs = 2,
                .cutoff = cutoff,
                .num_basis = 5,
                .norm_epsilon = norm_epsilon},
               gen);
}

/// Energy and forces of this rank's atoms.
EnergyAndForces energy_of(const PaiNN& model, const Communicator& comm, const std::vector<double>& x,
                          const Cell& cell, const PartitionBook& book) {
  const auto first = static_cast<std::size_t>(3 * book.begin(comm.rank()));
  const auto size = static_cast<std::size_t>(3 * book.num_nodes(comm.rank()));
  const NeighborList list(comm, std::span(x).subspan(first, size), cell, cutoff);
  const RowIds species(std::vector<Index>(size / 3, 0));
  return model.energy_and_forces(list.graph(), species, list.displacements(), list.vectors());
}

EnergyAndForces alone(const PaiNN& model, const std::vector<double>& x, const Cell& cell) {
  return energy_of(model, Communicator::self(), x, cell, PartitionBook::even(std::ssize(x) / 3, 1));
}

/// A body-centered cubic crystal of 2 x 2 x 2 cells.
struct Lattice {
  Cell cell{.vectors = {{{3.2, 0, 0}, {0, 3.2, 0}, {0, 0, 3.2}}}, .periodic = {true, true, true}};
  std::vector<double> x;

  Lattice() {
    for (int i = 0; i < 16; ++i)
      for (int k = 0; k < 3; ++k) x.push_back(1.6 * (i >> k & 1) + (i >= 8 ? 0.8 : 0));
  }
};

/// The force on an atom of a lattice that is moved by d along an axis, divided by d.
double stiffness(const PaiNN& model, double d) {
  Lattice lattice;
  lattice.x[0] += d;
  return static_cast<double>(alone(model, lattice.x, lattice.cell).forces.row(0)[0]) / d;
}

/// Atoms at random in a triclinic cell.
struct Crystal {
  Cell cell{.vectors = {{{3.5, 0.2, 0}, {-0.8, 3.1, 0.3}, {0.4, -0.5, 3.8}}}, .periodic = {true, true, true}};
  std::vector<double> x;

  Crystal() {
    const Random random({.seed = 9});
    for (std::uint64_t i = 0; i < 6; ++i)
      for (std::size_t j = 0; j < 3; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < 3; ++k) sum += random.uniform(i, k) * cell.vectors[k][j];
        x.push_back(sum);
      }
  }
};

}  // namespace

TEST_CASE("PaiNN: the forces on an atom near a lattice site are linear in its displacement") {
  const PaiNN model = make_model();
  const double far = stiffness(model, 0.01);
  CHECK(std::abs(far) > 1e-3);
  for (const double d : {0.005, 0.001, 1e-4, 1e-5})
    if (is_double || d >= 0.001) CHECK(std::abs(stiffness(model, d) / far - 1) < 0.05);
  if (!is_double) return;
  const PaiNN sharp = make_model(1e-8);  // the cusp that a small constant makes
  CHECK(std::abs(stiffness(sharp, 1e-5) / stiffness(sharp, 0.01) - 1) > 0.2);
}

TEST_CASE("PaiNN: a crystal at 1000 A has the energy and forces of one at the origin") {
  const PaiNN model = make_model();
  const Crystal crystal;
  const EnergyAndForces expected = alone(model, crystal.x, crystal.cell);
  std::vector<double> far = crystal.x;
  for (double& x : far) x += 1000;
  const EnergyAndForces found = alone(model, far, crystal.cell);
  const double tolerance = is_double ? 1e-10 : 1e-5;
  CHECK(std::abs(found.energy - expected.energy) < tolerance * std::abs(expected.energy));
  CHECK(error_of_part(found.forces, expected.forces, expected.forces) < 10 * tolerance);
}

TEST_CASE("PaiNN: a supercell has the energy of its cells and their forces, on all ranks") {
  const Communicator world = Communicator::world();
  const PaiNN model = make_model();
  const Crystal crystal;
  const EnergyAndForces expected = alone(model, crystal.x, crystal.cell);
  const Index atoms = std::ssize(crystal.x) / 3;
  Crystal super;
  super.x.clear();
  Tensor forces({12 * atoms, 3});
  const std::array<int, 3> times{2, 2, 3};
  for (int cell = 0; cell < 12; ++cell) {
    const std::array<int, 3> n{cell % 2, cell / 2 % 2, cell / 4};
    for (Index i = 0; i < atoms; ++i)
      for (std::size_t j = 0; j < 3; ++j) {
        double x = crystal.x[static_cast<std::size_t>(3 * i) + j];
        for (std::size_t k = 0; k < 3; ++k) x += n[k] * crystal.cell.vectors[k][j];
        super.x.push_back(x);
        forces.row(cell * atoms + i)[j] = expected.forces.row(i)[j];
      }
  }
  for (std::size_t k = 0; k < 3; ++k)
    for (double& x : super.cell.vectors[k]) x *= times[k];
  const double tolerance = is_double ? 1e-11 : 1e-5;
  for (const PartitionBook& book : row_splits(12 * atoms, world.size())) {
    const EnergyAndForces found = energy_of(model, world, super.x, super.cell, book);
    CHECK(std::abs(found.energy - 12 * expected.energy) < tolerance * std::abs(found.energy));
    CHECK(error_of_rows(found.forces, forces, book.begin(world.rank())) < 10 * tolerance);
  }
}
