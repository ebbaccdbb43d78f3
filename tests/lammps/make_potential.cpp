// SPDX-License-Identifier: MIT

/// make_potential FILE CUTOFF SCALE ZBL COMMITTEE SPECIES ...: writes a potential with random weights, with
/// ZBL from ZBL / 2 to ZBL unless this is 0, and with COMMITTEE heads; of MACE if COMMITTEE is "mace".
///
/// make_potential FILE deviations LENGTH: reads lines SPECIES X Y Z of atoms in a periodic cube from standard
/// input. Prints the committee's deviation of the energy and then those of the forces of each atom.
#include <sar/models.hpp>

#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace sar;

void print_deviations(const Communicator& comm, const std::string& file, double length) {
  const std::unique_ptr<Potential> potential = load_potential(comm, file);
  std::vector<double> positions;
  std::vector<Index> species;
  std::string name;
  for (double x = 0, y = 0, z = 0; std::cin >> name >> x >> y >> z;) {
    species.push_back(potential->species(name));
    positions.insert(positions.end(), {x, y, z});
  }
  const Cell cube{.vectors = {{{length, 0, 0}, {0, length, 0}, {0, 0, length}}},
                  .periodic = {true, true, true}};
  const NeighborList list(comm, positions, cube, potential->cutoff());
  const std::vector<double> vectors(list.vectors().data(), list.vectors().data() + list.vectors().size());
  const PotentialValues found = (*potential)(list.graph(), {.species = species, .edge_vectors = vectors},
                                             /*per_atom_virials=*/false, /*force_deviations=*/true);
  std::cout << std::setprecision(17) << found.energy_deviation << '\n';
  for (const double deviation : found.force_deviations) std::cout << deviation << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  if (std::string(argv[2]) == "deviations") {
    print_deviations(Communicator::world(), argv[1], std::atof(argv[3]));
    return 0;
  }
  ModelDescription description{.type = "painn", .hidden = 16, .layers = 2, .num_basis = 8};
  description.cutoff = std::atof(argv[2]);
  description.zbl_outer = std::atof(argv[4]);
  description.zbl_inner = description.zbl_outer / 2;
  if (std::string(argv[5]) == "mace") {
    description.type = "mace";
    description.max_l = 2;
    description.neighbors = 20;
  } else {
    description.committee = std::atoi(argv[5]);
  }
  for (int k = 6; k < argc; ++k) {
    description.species.emplace_back(argv[k]);
    description.energy_shifts.push_back(-6 + k);
    description.energy_scales.push_back(std::atof(argv[3]));
  }
  Generator gen(1);
  save_potential(Communicator::world(), argv[1], Potential(description, gen));
}
