// SPDX-License-Identifier: MIT

/// Neighbor lists of atoms at random in a periodic box with about 29 neighbors each, and a margin:
/// microseconds per atom of a new list, of an update that keeps the graph, and, as their reference, of
/// energies and forces. Run it on one or several ranks; the atoms of a rank are a slab of the box.
///     bench_neighbor_list [atoms per rank] [threads]          default 2000 1
#include "bench.hpp"

#include <sar/comm/environment.hpp>
#include <sar/models.hpp>

#include <cmath>
#include <numbers>
#include <vector>

using namespace sar;

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const auto argument = [&](int k, Index otherwise) { return argc > k ? std::atoll(argv[k]) : otherwise; };
  const Index atoms = argument(1, 2000);
  const ThreadLimit threads(static_cast<int>(argument(2, 1)));
  const Communicator comm = Communicator::world();
  constexpr double cutoff = 5, neighbors = 29;
  const double side =
      std::cbrt(4 * std::numbers::pi / 3 * std::pow(cutoff, 3) * static_cast<double>(atoms) / neighbors);
  const double length = side * comm.size();
  const Cell cell{.vectors = {{{side, 0, 0}, {0, side, 0}, {0, 0, length}}}, .periodic = {true, true, true}};
  const Random random({.seed = 7, .stream = static_cast<std::uint64_t>(comm.rank())});
  std::vector<double> x;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(3 * atoms); ++i)
    x.push_back(side * (random.uniform(i) + (i % 3 == 2 ? comm.rank() : 0)));
  Generator gen(0);
  const PaiNN model({.num_species = 1, .feats = 64, .convs = 3, .cutoff = cutoff}, gen);
  const std::vector<Index> species(static_cast<std::size_t>(atoms), 0);
  NeighborList list(comm, x, cell, cutoff, /*margin=*/0.5);
  const auto make = [&] { (void)NeighborList(comm, x, cell, cutoff, 0.5); };
  const auto update = [&] { (void)list.update(x, cell); };
  const auto forces = [&] {
    (void)model.energy_and_forces(list.graph(), species, list.displacements(), list.vectors());
  };
  const auto seconds = bench::best_seconds(7, make, update, forces);
  const char* const names[] = {"new_list", "kept_list", "energies_and_forces"};
  for (std::size_t i = 0; i < 3 && comm.rank() == 0; ++i) {
    const auto per_atom = [&](std::size_t k) { return seconds[k] / static_cast<double>(atoms) * 1e6; };
    bench::print({.name = names[i],
                  .ranks = comm.size(),
                  .seconds = seconds[i],
                  .rate = per_atom(i),
                  .unit = "us per atom",
                  .reference = i < 2 ? per_atom(2) : 0});
  }
  return 0;
}
