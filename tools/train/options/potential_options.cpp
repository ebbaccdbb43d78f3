// SPDX-License-Identifier: MIT
#include "potential_options.hpp"

#include "options.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/models/model_description.hpp>

#include <CLI/CLI.hpp>

#include <string>

namespace sar::tools {

void add_potential_options(CLI::App& app, PotentialOptions& o) {
  constexpr double most = 1e30;
  begin_group(app, "Potentials of atoms");
  add_path(app, "--valid-file", o.valid_file, "FILE", "validation structures, in extended XYZ as --dataset");
  add_path(app, "--test-file", o.test_file, "FILE", "test structures");
  const auto key = [&](const char* name, std::string& value, const char* help) {
    app.add_option(name, value, help)->option_text("KEY");
  };
  key("--energy-key", o.keys.energy, "key of the energies, where a file has several; none: no energies");
  key("--forces-key", o.keys.forces, "column of the forces; none: no forces");
  key("--stress-key", o.keys.stress, "key of the stresses or virials; none: no stresses");
  add_number(app, "--cutoff", o.cutoff, "distance up to which atoms interact, in the unit of the positions",
             0, most);
  add_number(app, "--num-basis", o.num_basis, "radial basis functions", 1, 1 << 16);
  add_choice(app, "--radial-basis", o.radial_basis, named(ModelDescription::radial_bases()),
             "radial basis functions");
  add_choice(app, "--cutoff-function", o.cutoff_function, named(ModelDescription::cutoff_functions()),
             "how messages vanish at the cutoff");
  add_number(app, "--zbl-inner", o.zbl_inner, "ZBL repulsion is switched off from this distance on", 0, most);
  add_number(app, "--zbl-outer", o.zbl_outer, "ZBL repulsion vanishes at this distance; 0: no ZBL", 0, most);
  add_number(app, "--energy-weight", o.energy_weight, "weight of energies per atom in the loss", 0, most);
  add_number(app, "--forces-weight", o.forces_weight, "weight of forces in the loss", 0, most);
  add_number(app, "--stress-weight", o.stress_weight, "weight of stresses in the loss", 0, most);
}

std::string describe(const PotentialOptions& o) {
  const auto key = [](const std::string& name) { return name.empty() ? std::string("found") : name; };
  return concat("potential --energy-key ", key(o.keys.energy), " --forces-key ", key(o.keys.forces),
                " --stress-key ", key(o.keys.stress), " --energy-weight ", o.energy_weight,
                " --forces-weight ", o.forces_weight, " --stress-weight ", o.stress_weight);
}

}  // namespace sar::tools
