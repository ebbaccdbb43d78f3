// SPDX-License-Identifier: MIT
#include "atom_labels.hpp"

#include "comment_keys.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace sar::formats {
namespace {

constexpr std::array<std::string_view, 5> energies{"energy", "free_energy", "total_energy",
                                                   "potential_energy", "toten"};
constexpr std::array<std::string_view, 2> forces{"forces", "force"};
constexpr std::array<std::string_view, 1> stresses{"stress"};
constexpr std::array<std::string_view, 2> virials{"virial", "virials"};

/// "ref_" or "dft_", if a key in lower case begins so.
std::string prefix_of(const std::string& key) {
  return key.starts_with("ref_") || key.starts_with("dft_") ? key.substr(0, 4) : "";
}

template <class Names>
bool is_one_of(const Names& names, const std::string& key) {
  const std::string word = lower_case(key);
  return std::ranges::find(names, std::string_view(word).substr(prefix_of(word).size())) != names.end();
}

bool is_virial_name(const std::string& key) {
  return is_one_of(virials, key);
}

/// Chooses the key of one label. `lesser`: names that count only where no other name is found.
template <class IsName, class IsLesser>
std::string choose(const std::string& path, const std::map<std::string, Index>& keys,
                   const std::string& given, const std::string& option, const IsName& is_name,
                   const IsLesser& is_lesser) {
  if (given == "none") return "";
  std::vector<std::string> candidates, names;
  for (const auto& [key, count] : keys) {
    names.push_back(key);
    if (given.empty() ? is_name(key) : key == given) candidates.push_back(key);
  }
  require<InputError>(given.empty() || !candidates.empty(), path, ": no structure has ", given,
                      ", expected for ", option, " one of ", names.empty() ? "none" : joined(names));
  if (candidates.size() > 1) {
    std::vector<std::string> first;
    for (const std::string& key : candidates)
      if (!is_lesser(key)) first.push_back(key);
    if (!first.empty()) candidates = first;
  }
  require<InputError>(candidates.size() < 2, path, ": there are ", joined(candidates), ", expected ", option,
                      " with one of them, or none");
  return candidates.empty() ? "" : candidates[0];
}

}  // namespace

bool is_forces_name(const std::string& column) {
  return is_one_of(forces, column);
}

bool is_label_name(const std::string& key) {
  return is_one_of(energies, key) || is_one_of(stresses, key) || is_virial_name(key);
}

ChosenKeys choose_keys(const std::string& path, const KeyCounts& found, const AtomLabelKeys& given) {
  ChosenKeys chosen;
  const auto free_energy = [](const std::string& key) { return lower_case(key).ends_with("free_energy"); };
  const auto never = [](const std::string&) { return false; };
  chosen.energy = choose(
      path, found.keys, given.energy, "--energy-key",
      [](const std::string& key) { return is_one_of(energies, key); }, free_energy);
  chosen.forces = choose(path, found.columns, given.forces, "--forces-key", is_forces_name, never);
  const auto is_stress = [](const std::string& key) {
    return is_one_of(stresses, key) || is_virial_name(key);
  };
  chosen.stress = choose(path, found.keys, given.stress, "--stress-key", is_stress, is_virial_name);
  chosen.is_virial = is_virial_name(chosen.stress);
  const auto note = [&](const std::string& label, const std::string& key,
                        const std::map<std::string, Index>& counts, const std::string& meaning) {
    if (key.empty()) {
      chosen.notes.push_back(label + ": none");
      return;
    }
    const Index count = counts.at(key);
    chosen.notes.push_back(concat(label, ": ", key, ", ", meaning));
    if (count < found.structures)
      chosen.notes.back() += concat("; ", count, " of ", found.structures, " structures have them");
  };
  note("energies", chosen.energy, found.keys, "in eV");
  note("forces", chosen.forces, found.columns, "-dE/dx in eV/A");
  note("stresses", chosen.stress, found.keys,
       chosen.is_virial ? "-dE/d strain in eV, divided by -volume" : "dE/d strain / volume in eV/A^3");
  std::vector<std::string> unused;
  for (const auto& [key, count] : found.keys)
    if (key != chosen.energy && key != chosen.stress) unused.push_back(key);
  for (const auto& [key, count] : found.columns)
    if (key != chosen.forces) unused.push_back(key);
  std::ranges::sort(unused);
  chosen.notes.push_back("not used: " + (unused.empty() ? "none" : joined(unused)));
  return chosen;
}

}  // namespace sar::formats
