// SPDX-License-Identifier: MIT

/// What structures have: their neighbors, and what is suspicious: repeated ones, training structures among
/// those of the validation, energies and forces far from the others, labels with another sign or unit.
#pragma once

#include "train/options/train_options.hpp"
#include "train/train_graph.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace sar::tools {

/// How labels of derivatives compare with differences of energies: y = slope x by least squares, over pairs
/// of successive structures of the same atoms.
struct DifferenceFit {
  double xx = 0, xy = 0, yy = 0, pairs = 0;

  void add(double x, double y) noexcept {
    xx += x * x;
    xy += x * y;
    yy += y * y;
    pairs += 1;
  }
};

/// Of one file: x is what forces or stresses say of the difference y of two energies.
struct DifferenceFits {
  DifferenceFit forces, stresses;
};

/// Collective. Compares energies, forces and stresses of successive structures of each file in which no atom
/// has moved far. For positions x, cells with volumes V, and forces F and stresses sigma as means of both
/// structures:
///
///     E_2 - E_1 = -sum F (x_2 - (1 + e) x_1) + V sigma : e        with the strain e from cell 1 to cell 2
///
/// Forces are compared where the cell has not changed. Structures have their atoms in the order of the file.
std::vector<DifferenceFits> compare_differences(const Communicator& comm, const PotentialTask& task);

/// What is compared of a structure.
struct StructureFacts {
  Index file = 0, number = 0, atoms = 0, edges = 0;
  Index fewest = 0, most = 0, lonely = 0;                  ///< neighbors of an atom, and atoms without one
  double least = std::numeric_limits<double>::infinity();  ///< distance of two atoms
  std::uint64_t hash = 0;                                  ///< of species, positions and cell
  double energy = formats::no_label;  ///< an atom, without those of single atoms; set by check_structures()
  double largest_force = formats::no_label;
  double net_force = 0;   ///< length of the sum of all forces
  double all_forces = 0;  ///< sum of their lengths
};

/// Local. Returns what is compared of a structure of this rank, which has this graph.
StructureFacts facts_of(const PotentialTask& task, Index structure, const GraphSamples& graph);

/// Collective. Prints how many neighbors atoms have and how near they are, with warnings of numbers that a
/// file or a cutoff in another unit has; unless `fits` are empty, also warnings of what is suspicious in the
/// structures, and with --describe a table of each file. `facts`: of the structures of this rank; `fits`: of
/// each file, by compare_differences().
void check_structures(const Communicator& comm, const PotentialTask& task, std::vector<StructureFacts> facts,
                      const std::vector<DifferenceFits>& fits, const TrainOptions& o);

}  // namespace sar::tools
