// SPDX-License-Identifier: MIT

/// Databases of ASE: the same structures as in extended XYZ, keys and data as labels, and what is refused.
#include "formats/atoms/ase_database.hpp"
#include "formats/atoms/atom_dataset.hpp"
#include "support/damage.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::formats;
using namespace sar::test;

namespace {

const std::string folder = SAR_TEST_DATA "/formats/atoms/";

std::vector<std::string> databases() {
  std::vector<std::string> names;
  if (SAR_HAVE_SQLITE) names.emplace_back("calculator.db");
  if (SAR_HAVE_LMDB) names.emplace_back("calculator.aselmdb");
  return names;
}

/// A copy of a file that `change` has changed, which all ranks read.
struct Changed {
  Changed(const Communicator& world, const std::string& name, const std::function<void(std::string&)>& change)
      : directory(world), path(directory.path() + "/" + name) {
    if (world.rank() == 0) {
      std::string bytes = read_bytes(folder + name);
      change(bytes);
      write_bytes(path, bytes);
    }
    world.barrier();
  }
  /// The message without the path.
  [[nodiscard]] std::string refused(const Communicator& comm, const AtomLabelKeys& keys = {}) const {
    const std::string text =
        thrown_by_all<InputError>(comm, [&] { (void)read_structures(comm, path, keys); });
    return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : "without path: " + text;
  }
  TemporaryDirectory directory;
  std::string path;
};

/// Changes all of a text, of which there must be some.
void change_text(std::string& bytes, const std::string& from, const std::string& to) {
  REQUIRE(from.size() == to.size());
  std::size_t at = bytes.find(from);
  REQUIRE(at != std::string::npos);
  for (; at != std::string::npos; at = bytes.find(from, at)) bytes.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("databases of ASE: the structures of extended XYZ, each rank reads a part") {
  const Communicator world = Communicator::world();
  // all of them on each rank
  const AtomDataset expected = read_structures(Communicator::self(), folder + "calculator.xyz", {});
  CHECK(expected.format == "extended XYZ");
  for (const std::string& name : databases()) {
    CAPTURE(name);
    const AtomDataset data = read_structures(world, folder + name, {});
    CHECK(data.format == "ASE database");
    CHECK(data.count == 3);
    CHECK(world.all_reduce(std::ssize(data.structures)) == 3);
    CHECK(std::ssize(data.structures) <= (3 + world.size() - 1) / world.size());
    CHECK(data.species == expected.species);
    CHECK(data.notes ==
          std::vector<std::string>{"energies: energy, in eV", "forces: forces, -dE/dx in eV/A",
                                   "stresses: stress, dE/d strain / volume in eV/A^3",
                                   "not used: config_type, free_energy, many, name, own_energy, own_forces, "
                                   "own_stress, relaxed, steps, weight"});
    for (std::size_t k = 0; k < data.structures.size(); ++k) {
      const AtomStructure& atoms = data.structures[k];
      const AtomStructure& same = expected.structures[static_cast<std::size_t>(data.first) + k];
      CHECK(atoms.elements == same.elements);
      CHECK(atoms.positions == same.positions);
      CHECK(atoms.cell == same.cell);
      CHECK(atoms.energy == same.energy);
      REQUIRE(atoms.forces.size() == same.forces.size());
      for (std::size_t i = 0; i < same.forces.size(); ++i)
        CHECK(atoms.forces[i] == doctest::Approx(same.forces[i]).epsilon(1e-9));
      CHECK(atoms.stress == same.stress);
      std::map<std::string, std::string> found = atoms.keys;
      CHECK(std::stod(found.at("own_energy")) == 2 * atoms.energy);
      found.erase("own_energy");
      found.erase("own_stress");  // 6 numbers, which are 3 for each of 2 atoms, too
      CHECK(found == std::map<std::string, std::string>{{"config_type", "two \"words\""},
                                                        {"name", "none"},
                                                        {"relaxed", "T"},
                                                        {"steps", "3"},
                                                        {"weight", "2.5"}});
    }
    const AtomDataset own = read_structures(
        world, folder + name, {.energy = "own_energy", .forces = "own_forces", .stress = "own_stress"});
    for (std::size_t k = 0; k < own.structures.size(); ++k) {
      const AtomStructure &atoms = own.structures[k], &calculated = data.structures[k];
      CHECK(atoms.energy == 2 * calculated.energy);
      CHECK(atoms.forces.at(2) == 2 * calculated.forces[2]);
      CHECK(atoms.stress[1][2] == 2 * calculated.stress[1][2]);
    }
  }
}

TEST_CASE("databases of ASE: what is refused names the file and the id of the row") {
  const Communicator world = Communicator::world();
  for (const std::string& name : databases()) {
    CAPTURE(name);
    CHECK(
        Changed(world, name, [](std::string& bytes) { bytes = "1\n\nSi 0 0 0\n"; })
            .refused(world)
            .ends_with("expected a database of ASE" + std::string(name.ends_with("lmdb") ? " in LMDB" : "")));
    const Changed whole(world, name, [](std::string&) {});
    CHECK(
        whole.refused(world, {.energy = "U", .forces = "", .stress = ""}).starts_with("no structure has U"));
    CHECK(whole.refused(world, {.energy = "name", .forces = "", .stress = ""}) ==
          "the row with id 2: name is 'none', expected a number");
    const std::size_t length = std::filesystem::file_size(folder + name);
    for (const std::size_t cut :
         {std::size_t{0}, std::size_t{10}, length / 3, 2 * length / 3, length - 600}) {
      CAPTURE(cut);
      const std::string message =
          Changed(world, name, [cut](std::string& bytes) { bytes.resize(cut); }).refused(world);
      CHECK(!message.starts_with("without path"));
      CHECK(message != "nothing");
    }
  }
  if (!SAR_HAVE_SQLITE) return;
  const auto changed = [&](const std::string& from, const std::string& to) {
    return Changed(world, "calculator.db", [&](std::string& bytes) { change_text(bytes, from, to); })
        .refused(world);
  };
  CHECK(changed("positions BLOB", "pasitions BLOB") ==
        "no such column: positions, expected a database of ASE");
  CHECK(changed("TABLE systems", "TABLE systams").ends_with(", expected a database of ASE"));
  CHECK(changed("{\"config_type", "(\"config_type") == "the row with id 2: key_value_pairs is no JSON");
  CHECK(changed("\"weight\": 2.5", "\"weight\": +.5") == "the row with id 2: key_value_pairs is no JSON");
  CHECK(changed("[[2,3]", "[[9,9]") == "the row with id 2: data has an array that is larger than the data");
}

TEST_CASE("databases of ASE: numbers that are none, as Python writes them") {
  if (!SAR_HAVE_SQLITE) return;
  const Communicator world = Communicator::world();
  const auto with = [&](const std::string& from, const std::string& to) {
    return Changed(world, "calculator.db", [&](std::string& bytes) { change_text(bytes, from, to); });
  };
  const Changed weight = with("\"weight\": 2.5", "\"weight\": NaN");
  for (const AtomStructure& atoms : read_structures(world, weight.path, {}).structures)
    if (atoms.keys.contains("weight")) CHECK(atoms.keys.at("weight") == "NaN");
  CHECK(weight.refused(world, {.energy = "weight", .forces = "", .stress = ""}) ==
        "the row with id 2: weight is 'NaN', expected a number");
  const Changed text = with("two \\\"words\\\"", "NaN \\\"words\\\"");
  for (const AtomStructure& atoms : read_structures(world, text.path, {}).structures)
    CHECK(atoms.keys.at("config_type") == "NaN \"words\"");
}

TEST_CASE("databases of ASE: a damaged .db is refused or read, never anything else") {
  if (!SAR_HAVE_SQLITE) return;
  mistreat(folder + "calculator.db",
           [](const std::string& path) { (void)read_structures(Communicator::self(), path, {}); });
}

TEST_CASE("databases of ASE: where a library is missing, the error says so") {
  const Communicator world = Communicator::world();
  const std::pair<const char*, const char*> libraries[] = {{"calculator.db", "SQLite 3"},
                                                           {"calculator.aselmdb", "LMDB"}};
  for (const auto& [name, library] : libraries) {
    if (std::ranges::count(databases(), name) > 0) continue;
    const std::string message = Changed(world, name, [](std::string&) {}).refused(world);
    CHECK(message.find(std::string("are read where sar was built with ") + library) != std::string::npos);
    CHECK(message.find("from ase.io import read, write") != std::string::npos);
  }
}
