// SPDX-License-Identifier: MIT

/// Extended XYZ: every spelling of keys, reading in parts, writing, and what is refused.
#include "formats/atoms/extended_xyz.hpp"
#include "formats/atoms/comment_keys.hpp"
#include "support/damage.hpp"
#include "whole_source.hpp"

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::formats;
using namespace sar::test;

namespace {

/// A file that all ranks read.
struct Written {
  Written(const Communicator& world, const std::string& text)
      : comm(world), directory(world), path(directory.path() + "/atoms.xyz") {
    if (comm.rank() == 0) write_bytes(path, text);
    comm.barrier();
  }
  [[nodiscard]] AtomDataset read(const AtomLabelKeys& keys = {}) const {
    return read_extended_xyz(comm, path, keys);
  }
  [[nodiscard]] std::string refused(const AtomLabelKeys& keys = {}) const {
    const std::string text = thrown_by_all<InputError>(comm, [&] { (void)read(keys); });
    return text.starts_with(path) ? text.substr(path.size()) : text;
  }
  const Communicator& comm;
  TemporaryDirectory directory;
  std::string path;
};

void write_extended_xyz(const Communicator& comm, const std::string& path, const AtomDataset& data) {
  StructureWriter writer(comm, path);
  writer.write(data);
  writer.commit();
}

const std::string cubic = "Lattice=\"4 0 0 0 5 0 0 0 6\" ";
const std::string columns = "Properties=species:S:1:pos:R:3:forces:R:3 ";

/// A structure of one atom.
std::string one_atom(const std::string& comment, const std::string& atom = "Si 0 0.5 1 1 2 3") {
  return "1\n" + comment + "\n" + atom + "\n";
}

/// Structures of 1 to 7 atoms, with numbers that tell them apart. If not extended, comments are numbers, too,
/// and behind a long line, so that a rank whose part begins there takes them for the begin of a structure.
std::string many(Index count, bool extended) {
  std::string text;
  for (Index s = 0; s < count; ++s) {
    const Index atoms = 1 + s % 7;
    text += std::to_string(atoms) + std::string(extended ? 0 : 40, ' ') + "\n";
    text += extended ? cubic + columns + "energy=" + std::to_string(s) + "\n" : std::to_string(s) + "\n";
    for (Index i = 0; i < atoms; ++i)
      text += (i % 2 == 0 ? "Si " : "O ") + std::to_string(s) + ".25 " + std::to_string(i) + " -1e-3" +
              (extended ? " 1 2 3\n" : "\n");
    if (s % 5 == 0) text += "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("extended XYZ: the comment's keys, quoted in any way") {
  const auto keys = comment_keys(
      R"(Lattice="5 0 0 0 5 0 0 0 5" energy=-3.5 name='it is "so"' a="x \" y" pbc=[T, T, F] old={1 2} "two words"=3 s = 4 relaxed)");
  CHECK(keys == std::map<std::string, std::string>{{"Lattice", "5 0 0 0 5 0 0 0 5"},
                                                   {"energy", "-3.5"},
                                                   {"name", "it is \"so\""},
                                                   {"a", "x \" y"},
                                                   {"pbc", "[T, T, F]"},
                                                   {"old", "{1 2}"},
                                                   {"two words", "3"},
                                                   {"s", "4"},
                                                   {"relaxed", "T"}});
  CHECK(comment_keys("made by a program that isn't careful").empty());
  const Cell cell = cell_of(keys);
  CHECK(cell.vectors[1] == Vector3{0, 5, 0});
  CHECK(cell.periodic == std::array{true, true, false});
  CHECK(cell_of(comment_keys("Lattice=[[1,2,3],[4,5,6],[7,8,10]]")).vectors[2] == Vector3{7, 8, 10});
  CHECK(cell_of(comment_keys("Lattice='3 4 5'")).vectors[1] == Vector3{0, 4, 0});
  CHECK(cell_of(comment_keys("a=1")).periodic == std::array{false, false, false});
  for (const char* pbc : {"\"F T F\"", "[False, True, False]", "'0 1 0'"})
    CHECK(cell_of(comment_keys(std::string("pbc=") + pbc)).periodic == std::array{false, true, false});
  CHECK(cell_of(comment_keys("lattice='3 4 5' PBC=\"_JSON [false, true, false]\"")).periodic ==
        std::array{false, true, false});
  for (const auto& [key, value] : keys) {
    CAPTURE(key);
    CHECK(comment_keys(key_text(key, value)) == std::map<std::string, std::string>{{key, value}});
  }
}

TEST_CASE("extended XYZ: energies, forces and stresses by all of their names, and what the notes say") {
  const Communicator world = Communicator::world();
  const auto one = [&](const std::string& text, const AtomLabelKeys& keys = {}) {
    const AtomDataset data = Written(world, text).read(keys);
    CHECK(data.count == 1);
    double sums[] = {0, 0, 0, 0};  // energy, force in x, stress yy and xz
    for (const AtomStructure& atoms : data.structures) {
      sums[0] += atoms.energy;
      sums[1] += data.has_forces ? atoms.forces[0] : 0;
      sums[2] += atoms.stress[1][1];
      sums[3] += atoms.stress[2][0];
    }
    world.all_reduce(std::span<double>(sums));
    return std::make_pair(data.notes, std::vector<double>(std::begin(sums), std::end(sums)));
  };
  for (const char* energy :
       {"energy", "Energy", "REF_energy", "dft_energy", "total_energy", "free_energy", "toten"}) {
    const auto [notes, values] = one(one_atom(cubic + columns + energy + "=-2.5"));
    CHECK(values[0] == -2.5);
    CHECK(notes[0] == std::string("energies: ") + energy + ", in eV");
  }
  for (const char* forces : {"forces", "force", "REF_forces", "DFT_force"}) {
    const auto [notes, values] =
        one(one_atom("Properties=species:S:1:pos:R:3:tag:I:1:" + std::string(forces) + ":R:3 energy=1",
                     "Si 0 0 0 9 7 8 9"));
    CHECK(values[1] == 7);
    CHECK(notes[1] == std::string("forces: ") + forces + ", -dE/dx in eV/A");
    CHECK(notes[3] == "not used: tag");
  }
  const std::string begin = cubic + columns;
  const auto nine = one(one_atom(begin + "stress=\"1 0 3 0 5 0 3 0 9\" virial='0 0 0 0 0 0 0 0 0' energy=1"));
  CHECK(nine.second[2] == 5);
  CHECK(nine.second[3] == 3);
  CHECK(nine.first[2] == "stresses: stress, dE/d strain / volume in eV/A^3");
  CHECK(nine.first[3] == "not used: virial");
  const auto six = one(one_atom(begin + "REF_stress=[1,5,9,2,3,4] energy=1 free_energy=2 config_type=a"));
  CHECK(six.second[2] == 5);
  CHECK(six.second[3] == 3);
  CHECK(six.second[0] == 1);
  CHECK(six.first[3] == "not used: config_type, free_energy");
  const auto virial = one(one_atom(begin + "virial=\"1 0 3 0 240 0 3 0 9\" energy=1"));
  CHECK(virial.second[2] == -2);
  CHECK(virial.first[2] == "stresses: virial, -dE/d strain in eV, divided by -volume");
  AtomLabelKeys key;
  key.stress = "qm_Virial";
  const std::string value = "=\"1 0 3 0 240 0 3 0 9\" energy=1";
  CHECK(one(one_atom(begin + "qm_Virial" + value), key).second[2] == -2);
  key.stress = "w";
  CHECK(Written(world, one_atom(begin + "w" + value)).refused(key) ==
        ": --stress-key: 'w' does not say whether it is a stress or a virial, expected a name with one of "
        "these words");
  const AtomLabelKeys keys{.energy = "mine", .forces = "none", .stress = "none"};
  const auto given = one(one_atom(begin + "mine=4 energy=1 stress=7"), keys);
  CHECK(given.second[0] == 4);
  CHECK(given.first == std::vector<std::string>{"energies: mine, in eV", "forces: none", "stresses: none",
                                                "not used: energy, forces, stress"});
}

TEST_CASE(
    "extended XYZ: spellings of other programs: keys in any case, atomic numbers, values in JSON, gzip") {
  const Communicator world = Communicator::world();
  const std::string expected = many(20, true);
  const auto with = [&](std::vector<std::pair<std::string, std::string>> replaced) {
    std::string text = expected;
    for (const auto& [from, to] : replaced)
      for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
  };
  const auto written_again = [&](const std::string& name, const std::string& text) {
    const Written file(world, "");
    const std::string path = file.path + name, copy = file.path + ".copy";
    if (world.rank() == 0) write_bytes(path, text);
    world.barrier();
    write_extended_xyz(world, copy, read_extended_xyz(world, path, {}));
    return read_bytes(copy);
  };
  const auto same = written_again("", expected);
  CHECK(written_again("", with({{"Lattice", "lattice"}, {"Properties", "properties"}})) == same);
  CHECK(written_again("", with({{"Lattice", "LATTICE"}, {"species:S:1:pos", "Species:S:1:Pos"}})) == same);
  for (const char* name : {"species:I", "Z:I"})
    CHECK(written_again("", with({{"\nSi ", "\n14 "}, {"\nO ", "\n8 "}, {"species:S", name}})) == same);
  CHECK(written_again("", with({{"energy=1\n", "energy=\"_JSON 1.0\"\n"}})) == same);
  CHECK(written_again("", "\xEF\xBB\xBF" + expected) == same);
  CHECK(written_again(".gz", gzip(expected)) == same);
  CHECK(written_again("", gzip(expected, 3)) == same);
}

TEST_CASE("extended XYZ: stresses of zeros are labels of structures that repeat only") {
  const Communicator world = Communicator::world();
  const std::string zeros = " energy=1 stress=\"0 0 0 0 0 0 0 0 0\" ";
  const std::string slab = "Lattice=\"4 0 0 0 4 0 0 0 0\" pbc=\"T T F\" " + columns + "energy=1 ";
  const Written file(world, one_atom(columns + zeros) + one_atom(cubic + "pbc=\"F F F\" " + columns + zeros) +
                                one_atom(cubic + columns + zeros) +
                                one_atom("Lattice=\"0 0 0 0 0 0 0 0 0\" pbc=\"F F F\" " + columns + zeros));
  const AtomDataset data = file.read();
  Index labels = 0;
  for (const AtomStructure& atoms : data.structures) labels += atoms.has_stress() ? 1 : 0;
  CHECK(world.all_reduce(labels) == 1);
  CHECK(data.has_stresses);
  CHECK(data.notes.back() == "zeros as stress of 3 structures that do not repeat are not labels");
  CHECK(!Written(world, one_atom(columns + zeros)).read().has_stresses);
  CHECK(!Written(world, one_atom(slab + "virial=\"0 0 0 0 0 0\"")).read().has_stresses);
  CHECK(Written(world, one_atom(slab + "virial=\"1 0 0 0 0 0\""))
            .refused()
            .starts_with(": line 2: the structure has a virial and a Lattice without a volume, expected "));
}

TEST_CASE("extended XYZ: files of ASE") {
  const Communicator world = Communicator::world();
  const std::string folder = SAR_TEST_DATA "/formats/atoms/";
  for (const char* name : {"calculator.xyz", "own_names.xyz", "plain.xyz"}) {
    CAPTURE(name);
    const bool labelled = name != std::string("plain.xyz");
    const AtomDataset data = read_extended_xyz(world, folder + name, {});
    CHECK(data.count == 3);
    CHECK(data.species == std::vector<std::string>{"H", "O", "Si"});
    CHECK(data.has_energies == labelled);
    CHECK(data.has_forces == labelled);
    CHECK(data.has_stresses == labelled);
    for (std::size_t k = 0; k < data.structures.size(); ++k) {
      const AtomStructure& atoms = data.structures[k];
      const auto s = static_cast<double>(data.first) + static_cast<double>(k);
      REQUIRE(static_cast<double>(atoms.num_atoms()) == s + 2);
      CHECK(atoms.elements[1] == 8);
      CHECK(atoms.positions[3] == 0.25 * s);
      CHECK(atoms.positions[5] == -1e-3);
      CHECK(atoms.cell.vectors[2] == (labelled ? Vector3{0, -0.5, 6} : Vector3{}));
      CHECK(atoms.cell.periodic == std::array{labelled, labelled, labelled && s == 0});
      if (!labelled) continue;
      CHECK(atoms.energy == -3.5 - s);
      for (std::size_t i = 0; i < atoms.forces.size(); ++i)
        CHECK(atoms.forces[i] ==
              doctest::Approx(0.1 * static_cast<double>((i / 3 + 1) * (i % 3 + 1)) - s).epsilon(1e-9));
      const double voigt[3][3] = {{1, 6, 5}, {6, 2, 4}, {5, 4, 3}};
      for (std::size_t a = 0; a < 3; ++a)
        for (std::size_t b = 0; b < 3; ++b)
          CHECK(atoms.stress[a][b] == doctest::Approx(0.01 * (s + 1) * voigt[a][b]));
    }
  }
  const AtomDataset own = read_extended_xyz(world, folder + "own_names.xyz", {});
  CHECK(own.notes == std::vector<std::string>{"energies: REF_energy, in eV",
                                              "forces: REF_forces, -dE/dx in eV/A",
                                              "stresses: REF_virial, -dE/d strain in eV, divided by -volume",
                                              "not used: config_type, energies, fixed, relaxed, steps"});
}

TEST_CASE("extended XYZ: all ranks read parts, aligned to structures; what is written is read alike") {
  const Communicator world = Communicator::world();
  for (const bool extended : {true, false})
    for (const Index count : {1, 2, 35, 36, 37, 38, 39, 40}) {
      const Written file(world, many(count, extended));
      const AtomDataset data = file.read();
      CHECK(data.count == count);
      CHECK(world.all_reduce(std::ssize(data.structures)) == count);
      if (count == 40 && world.size() > 1) CHECK(!data.structures.empty());
      for (std::size_t k = 0; k < data.structures.size(); ++k) {
        const AtomStructure& atoms = data.structures[k];
        const Index number = data.first + static_cast<Index>(k);
        CHECK(atoms.num_atoms() == 1 + number % 7);
        CHECK(atoms.positions.back() == -1e-3);
        CHECK(atoms.positions[0] == static_cast<double>(number) + 0.25);
        CHECK(atoms.elements[0] == 14);
        if (extended) CHECK(atoms.energy == static_cast<double>(number));
      }
      const std::string copy = file.path + ".copy";
      write_extended_xyz(world, copy, data);
      const AtomDataset again = read_extended_xyz(world, copy, {});
      CHECK(again.count == count);
      CHECK(again.has_forces == extended);
      std::string with_returns;
      for (const char c : many(count, extended))
        with_returns += c == '\n' ? std::string("\r\n") : std::string(1, c);
      if (count == 40) CHECK(Written(world, with_returns).read().count == count);
      const std::string third = file.path + ".third";
      write_extended_xyz(world, third, again);
      CHECK(read_bytes(third) == read_bytes(copy));
    }
}

TEST_CASE("extended XYZ: what is refused names file, line and value") {
  const Communicator world = Communicator::world();
  const auto refused = [&](const std::string& text, const AtomLabelKeys& keys = {}) {
    return Written(world, text).refused(keys);
  };
  const std::string good = one_atom(cubic + columns + "energy=1");
  CHECK(refused("") == ": there is no structure, expected one at least");
  CHECK(refused(good + "x\n") == ": line 4: 'x', expected the number of atoms of a structure");
  CHECK(refused(good + "0\n\n") == ": line 4: '0', expected the number of atoms of a structure");
  CHECK(refused(good + "2\nenergy=1\nSi 0 0 0\n") ==
        ": line 7: the file ends, expected the atoms of a structure of 2 atoms");
  CHECK(refused(good + one_atom(cubic + columns + "energy=1", "Si 0 0 0")) ==
        ": line 6: 4 columns of atom 1 of 1, expected 7");
  CHECK(refused(good + one_atom(cubic + columns + "energy=1", "Si 0 x 0 1 2 3")) ==
        ": line 6: pos has 'x', expected a number");
  CHECK(refused(good + one_atom(cubic + columns + "energy=1", "Si 0 0 nan 1 2 3")) ==
        ": line 6: pos has 'nan', expected a number");
  CHECK(refused(good + one_atom(cubic + columns + "energy=-")) ==
        ": line 5: energy is '-', expected a number");
  CHECK(refused(good + one_atom(cubic + columns + "energy=\"1")) ==
        ": line 5: a \" without its end in the comment, at '\"1'");
  CHECK(refused(good + one_atom(cubic + columns + "energy=1 energy=2")) ==
        ": line 5: the comment has the key 'energy' twice");
  CHECK(refused(good + one_atom("Lattice=\"1 2\" energy=1 " + columns)) ==
        ": line 5: Lattice has 2 numbers, expected 9");
  CHECK(refused(good + one_atom("pbc=\"T T\" energy=1 " + columns)) ==
        ": line 5: pbc is 'T T', expected three of T and F");
  CHECK(refused(good + one_atom("Properties=species:S:1:pos:R energy=1")).find("expected names with type") !=
        std::string::npos);
  CHECK(refused(good + one_atom("Properties=Z:I:2:pos:R:3 energy=1")).ends_with("1 column of species"));
  const std::pair<const char*, std::string> twice[] = {
      {"species:S:1:species:S:1:pos:R:3", "species"},
      {"species:S:1:pos:R:3:Pos:R:3", "pos"},
      {"species:S:1:pos:R:3:forces:R:3:forces:R:3", "forces"},
      {"species:S:1:pos:R:3:t:I:1:t:I:1", "t"}};
  for (const auto& [properties, name] : twice) {
    const std::string text = refused(good + one_atom(std::string("Properties=") + properties + " energy=1"));
    CHECK(text.starts_with(": line 5: Properties is 'species:S:1:"));
    CHECK(text.ends_with(", which names " + name + " twice, expected it once"));
  }
  CHECK(refused(one_atom("Lattice=\"1 2 3\" lattice=\"1 2 3\" energy=1 " + columns)) ==
        ": line 2: the comment has the key 'Lattice' twice");
  for (const char* species : {"Zz", "0", "119", "si", "29.0"})
    CHECK(refused(good + one_atom(cubic + columns + "energy=1", species + std::string(" 0 0 0 1 2 3"))) ==
          ": line 6: species has '" + std::string(species) +
              "', expected a chemical symbol, such as Si, or an atomic number");
  CHECK(refused(good + one_atom(cubic + columns + "energy=\"_JSON [1, 2]\"")).find("expected a number") !=
        std::string::npos);
  CHECK(refused(one_atom(cubic + columns + "energy=1 REF_energy=2")) ==
        ": there are REF_energy, energy, expected --energy-key with one of them, or none");
  CHECK(refused(good, {.energy = "U", .forces = "", .stress = ""}) ==
        ": no structure has U, expected for --energy-key one of energy");
  CHECK(refused(one_atom("energy=1 stress=\"1 2 3\"", "Si 0 0 0")) ==
        ": line 2: stress: 3 numbers, expected 9 of a matrix, or 6: xx, yy, zz, yz, xz, xy");
  CHECK(refused(one_atom("energy=1 stress=\"1 2 0 0 1 0 0 0 1\"", "Si 0 0 0")).find("a symmetric matrix") !=
        std::string::npos);
  CHECK(refused(one_atom("energy=1 virial=\"1 0 0 0 1 0 0 0 1\"", "Si 0 0 0"))
            .find("a virial and no Lattice") != std::string::npos);
  CHECK(thrown_by_all<InputError>(world, [&] {
          (void)read_extended_xyz(world, "/no/such.xyz", {});
        }).find("expected a file of structures in extended XYZ") != std::string::npos);
  // one rank's part is wrong in a long file
  std::string long_text = many(60, true);
  const std::size_t at = long_text.rfind("energy=55") + 7;
  CHECK(refused(long_text.replace(at, 2, "@@")).find("energy is '@@'") != std::string::npos);
}

TEST_CASE("extended XYZ: labels that only some structures have") {
  const Communicator world = Communicator::world();
  const std::string text = one_atom(cubic + columns + "energy=1 stress=\"1 0 0 0 1 0 0 0 1\"") +
                           one_atom(cubic + columns) +
                           one_atom(cubic + "Properties=species:S:1:pos:R:3 energy=2", "Si 0 0 0");
  const Written file(world, text);
  const AtomDataset data = file.read();
  CHECK(data.notes[0] == "energies: energy, in eV; 2 of 3 structures have them");
  CHECK(data.notes[1] == "forces: forces, -dE/dx in eV/A; 2 of 3 structures have them");
  CHECK(data.notes[2] == "stresses: stress, dE/d strain / volume in eV/A^3; 1 of 3 structures have them");
  CHECK(data.has_energies);
  CHECK(data.has_forces);
  CHECK(data.has_stresses);
  Index first = data.first;
  for (const AtomStructure& atoms : data.structures) {
    CHECK(atoms.has_energy() == (first != 1));
    CHECK(atoms.forces.size() == (first < 2 ? 3 : 0));
    CHECK(atoms.has_stress() == (first == 0));
    ++first;
  }
  const std::string two_columns =
      one_atom("Properties=species:S:1:pos:R:3:forces:R:2 energy=2", "Si 0 0 0 1 1");
  CHECK(Written(world, text + two_columns).refused() ==
        ": line 11: forces has another number of columns, expected 3 for each atom");
}

TEST_CASE("extended XYZ: a damaged file is refused or read, never anything else") {
  const Communicator self = Communicator::self();
  const TemporaryDirectory directory(self);
  const std::string path = directory.path() + "/atoms.xyz", text = many(3, true);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(~damaged[i]);
    write_bytes(path, damaged);
    const std::string message = thrown<InputError>([&] { (void)read_extended_xyz(self, path, {}); });
    const bool expected = message == "nothing" || message.starts_with(path + ": ");
    CHECK(expected);
  }
}

TEST_CASE(
    "atoms sorted in space: along the longest direction of the cell, written in the order of the file") {
  const Communicator world = Communicator::world();
  // The second direction is the longest, and not along an axis; the last atom has an image at 0.6 of it.
  const Written file(world,
                     "4\nLattice=\"3 0 0 2 8 0 0 0 4\" Properties=species:S:1:pos:R:3:forces:R:3 energy=1\n"
                     "Si 1 6 0 1 2 3\nO 0 2 3 4 5 6\nH 2.5 4 1 7 8 9\nC 0 -3.2 0 0 1 2\n");
  AtomDataset data = file.read();
  for (AtomStructure& atoms : data.structures) {
    sort_in_space(atoms);
    CHECK(atoms.elements == std::vector<std::uint8_t>{8, 1, 6, 14});
    CHECK(atoms.positions[7] == -3.2);
    CHECK(atoms.forces == std::vector<double>{4, 5, 6, 7, 8, 9, 0, 1, 2, 1, 2, 3});
  }
  const std::string copy = file.path + ".copy";
  write_extended_xyz(world, copy, data);
  for (const AtomStructure& atoms : read_extended_xyz(world, copy, {}).structures) {
    CHECK(atoms.elements == std::vector<std::uint8_t>{14, 8, 1, 6});
    CHECK(atoms.positions == std::vector<double>{1, 6, 0, 0, 2, 3, 2.5, 4, 1, 0, -3.2, 0});
    CHECK(atoms.forces == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2});
  }
  // Without a cell, the direction in which the atoms are farthest apart.
  AtomStructure molecule;
  molecule.elements = {1, 8};
  molecule.positions = {0, 0, 5, 1, 2, -3};
  sort_in_space(molecule);
  CHECK(molecule.numbers == std::vector<std::int32_t>{1, 0});
}
