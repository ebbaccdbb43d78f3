// SPDX-License-Identifier: MIT

/// The options of --task potential.
#pragma once

#include "formats/atoms/atom_dataset.hpp"

#include <sar/config.hpp>

#include <string>

namespace CLI {
class App;
}

namespace sar::tools {

struct PotentialOptions {
  std::string valid_file, test_file;  ///< empty: none
  formats::AtomLabelKeys keys;
  double cutoff = 5;
  Index num_basis = 20;
  std::string radial_basis = "sinc", cutoff_function = "cosine";
  double zbl_inner = 0, zbl_outer = 0;                                ///< 0: no ZBL
  double energy_weight = 10, forces_weight = 10, stress_weight = 10;  ///< of the terms of the loss
  // known when the files have been read
  bool has_forces = false, has_stresses = false;
};

void add_potential_options(CLI::App& app, PotentialOptions& o);

/// Returns the settings that results depend on, as options.
std::string describe(const PotentialOptions& o);

}  // namespace sar::tools
