// SPDX-License-Identifier: MIT

/// make_potential FILE CUTOFF SCALE ZBL SPECIES ...: writes a potential with random weights, and with ZBL
/// from ZBL / 2 to ZBL unless this is 0.
#include <sar/models.hpp>

#include <cstdlib>

int main(int argc, char** argv) {
  using namespace sar;
  const Environment environment(argc, argv);
  ModelDescription description{.type = "painn", .hidden = 16, .layers = 2, .num_basis = 8};
  description.cutoff = std::atof(argv[2]);
  description.zbl_outer = std::atof(argv[4]);
  description.zbl_inner = description.zbl_outer / 2;
  for (int k = 5; k < argc; ++k) {
    description.species.emplace_back(argv[k]);
    description.energy_shifts.push_back(-5 + k);
    description.energy_scales.push_back(std::atof(argv[3]));
  }
  Generator gen(1);
  save_potential(Communicator::world(), argv[1], Potential(description, gen));
}
