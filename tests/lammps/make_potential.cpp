/// make_potential FILE CUTOFF SCALE SPECIES ...: writes a potential with random weights.
#include <sar/models.hpp>

#include <cstdlib>

int main(int argc, char** argv) {
  using namespace sar;
  const Environment environment(argc, argv);
  ModelDescription description{.type = "painn", .hidden = 16, .layers = 2, .num_basis = 8};
  description.cutoff = std::atof(argv[2]);
  for (int k = 4; k < argc; ++k) {
    description.species.emplace_back(argv[k]);
    description.energy_shifts.push_back(-4 + k);
    description.energy_scales.push_back(std::atof(argv[3]));
  }
  Generator gen(1);
  save_potential(Communicator::world(), argv[1], Potential(description, gen));
}
