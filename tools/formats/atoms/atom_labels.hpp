// SPDX-License-Identifier: MIT

/// Which keys of extended XYZ are labels of a training.
#pragma once

#include "atom_dataset.hpp"

#include <map>
#include <string>
#include <vector>

namespace sar::formats {

/// Keys of the comments, and columns of the atoms, with the number of structures that have them.
struct KeyCounts {
  std::map<std::string, Index> keys, columns;
  Index structures = 0;
};

/// The keys of the labels; empty: there is none.
struct ChosenKeys {
  std::string energy, forces, stress;
  bool is_virial = false;  ///< stress is a virial, -dE/d strain
  std::vector<std::string> notes;
};

/// Returns whether a column could be forces by its name.
bool is_forces_name(const std::string& column);

/// Returns whether a key could be an energy or a stress by its name.
bool is_label_name(const std::string& key);

/// Returns the labels among the keys. Names are compared without upper case and without "ref_" or "dft_" at
/// their beginning. Throws InputError with `path`: for several keys of one label, but energy beside
/// free_energy and stress beside virial; and for a given key that no structure has.
ChosenKeys choose_keys(const std::string& path, const KeyCounts& found, const AtomLabelKeys& given);

}  // namespace sar::formats
