// SPDX-License-Identifier: MIT
#include "raw_structures.hpp"

#include "comment_keys.hpp"
#include "formats/node_keys.hpp"
#include "formats/text.hpp"

#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/atoms/zbl.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

namespace sar::formats {
namespace {

KeyCounts count_keys(const Communicator& comm, const std::vector<RawStructure>& structures) {
  std::map<std::string, Index> keys, columns;
  for (const RawStructure& raw : structures) {
    for (const auto& [key, value] : raw.keys) ++keys[key];
    for (const std::string& name : raw.names) ++columns[name];
  }
  return {.keys = count_names(comm, keys),
          .columns = count_names(comm, columns),
          .structures = comm.all_reduce(std::ssize(structures))};
}

/// Takes the labels out of a raw structure. A stress of zeros of a structure that does not repeat is what
/// programs write that have none to write: no label, which `no_stresses` counts.
AtomStructure labelled(RawStructure& raw, const ChosenKeys& chosen, Index& no_stresses) {
  AtomStructure atoms = std::move(raw.atoms);
  if (const auto given = raw.keys.find(chosen.energy); given != raw.keys.end()) {
    const std::string& text = given->second;
    std::vector<double> numbers;
    try {
      numbers = numbers_of(text);
    } catch (const InputError&) {
    }
    require<InputError>(numbers.size() == 1, chosen.energy, " is ", in_quotes(text), ", expected a number");
    atoms.energy = numbers[0];
  }
  if (std::ranges::find(raw.names, chosen.forces) != raw.names.end()) {
    const auto found = raw.columns.find(chosen.forces);
    require<InputError>(found != raw.columns.end(), chosen.forces,
                        " has another number of columns, expected 3 for each atom");
    atoms.forces = std::move(found->second);
  }
  if (const auto given = raw.keys.find(chosen.stress); given != raw.keys.end()) {
    try {
      atoms.stress = symmetric_matrix(given->second);
    } catch (const InputError& error) {
      throw InputError(concat(chosen.stress, ": ", error.what()));
    }
    const Cell& cell = atoms.cell;
    const double volume = cell.volume();
    if (atoms.stress == Matrix3{} && (volume == 0 || cell.periodic == std::array{false, false, false})) {
      atoms.stress = AtomStructure{}.stress;
      ++no_stresses;
    } else {
      require<InputError>(volume > 0, "the structure has a ", chosen.stress,
                          cell.vectors == Matrix3{}
                              ? " and no Lattice, expected both, or --stress-key none"
                              : " and a Lattice without a volume, expected three vectors that are not in a "
                                "plane, or --stress-key none");
      if (chosen.is_virial)
        for (Vector3& row : atoms.stress)
          for (double& x : row) x /= -volume;
    }
  }
  std::erase_if(raw.keys, [&](const auto& each) {
    return each.first == chosen.energy || each.first == chosen.stress || is_label_name(each.first);
  });
  atoms.keys = std::move(raw.keys);
  return atoms;
}

}  // namespace

std::map<std::string, Index> count_names(const Communicator& comm, const std::map<std::string, Index>& mine) {
  WordSet names;
  for (const auto& [name, count] : mine) names.insert(name);
  std::map<std::string, Index> all;
  for (const std::string& name : gather_words(comm, names)) all[name] = 0;
  std::vector<Index> counts;
  for (const auto& entry : all) counts.push_back(mine.contains(entry.first) ? mine.at(entry.first) : 0);
  comm.all_reduce(std::span<Index>(counts));
  std::size_t i = 0;
  for (auto& [name, count] : all) count = counts[i++];
  return all;
}

AtomDataset labelled_structures(const Communicator& comm, const std::string& path,
                                std::vector<RawStructure> structures, const AtomLabelKeys& keys,
                                FunctionRef<void(const RawStructure&, const std::string&)> throw_wrong) {
  return comm.agree([&] {
    const KeyCounts found = count_keys(comm, structures);
    require<InputError>(found.structures > 0, path, ": there is no structure, expected one at least");
    const ChosenKeys chosen = choose_keys(path, found, keys);
    AtomDataset data;
    data.path = path;
    data.count = found.structures;
    data.first = gather_book(comm, std::ssize(structures)).begin(comm.rank());
    data.has_energies = !chosen.energy.empty();
    data.has_forces = !chosen.forces.empty();
    data.notes = chosen.notes;
    std::array<Index, 256> atoms_of{};
    for (const RawStructure& raw : structures)
      for (const std::uint8_t element : raw.atoms.elements) ++atoms_of[element];
    std::map<std::string, Index> species;
    for (std::size_t z = 0; z < atoms_of.size(); ++z)
      if (atoms_of[z] > 0) species[chemical_symbol(static_cast<Index>(z))] = atoms_of[z];
    for (const auto& [name, atoms] : count_names(comm, species)) data.species.push_back(name);
    Index no_stresses = 0;
    data.structures.reserve(structures.size());
    for (RawStructure& raw : structures) {
      try {
        data.structures.push_back(labelled(raw, chosen, no_stresses));
      } catch (const InputError& error) {
        throw_wrong(raw, error.what());
      }
      raw = {};
    }
    const Index with_stress = std::ranges::count_if(data.structures, &AtomStructure::has_stress);
    data.has_stresses = comm.all_reduce(with_stress) > 0;
    no_stresses = comm.all_reduce(no_stresses);
    if (no_stresses > 0)
      data.notes.push_back(concat("zeros as ", chosen.stress, " of ", no_stresses,
                                  " structures that do not repeat are not labels"));
    return data;
  });
}

}  // namespace sar::formats
