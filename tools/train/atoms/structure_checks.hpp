// SPDX-License-Identifier: MIT

/// What structures have: their neighbors, and what is suspicious: repeated ones, training structures among
/// those of the validation, energies and forces far from the others, labels with another sign or unit.
#pragma once

#include "train/options/train_options.hpp"
#include "train/train_graph.hpp"

#include <string>
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

/// Collective. Prints how many neighbors atoms have and how near they are, with warnings of numbers that a
/// file or a cutoff in another unit has; unless `fits` are empty, also warnings of what is suspicious in the
/// structures, and with --describe a table of each file. `samples`: their graphs, in the order of the files;
/// `fits`: of each file, by compare_differences().
void check_structures(const Communicator& comm, const PotentialTask& task, const GraphSamples& samples,
                      const std::vector<DifferenceFits>& fits, const TrainOptions& o);

}  // namespace sar::tools
