// SPDX-License-Identifier: MIT

/// The comment line of a structure in extended XYZ: keys with values, and which keys are labels of a
/// training.
#pragma once

#include "atom_dataset.hpp"

#include <sar/nn/atoms/cell.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sar::formats {

/// Returns the values of the keys, without their quotes:
///
///     Lattice="5 0 0 0 5 0 0 0 5" energy=-3.5 config_type='a b' pbc=[T, T, F] relaxed
///
/// Values are words, or texts in "", '', {} or []; in quotes, a backslash precedes a quote or a backslash. A
/// key alone has the value "T". Lattice, Properties and pbc are so spelled, whatever their case in the
/// comment. Throws InputError for a text without its end, a value without a key, and a key that is given
/// twice. A comment without "=" has no keys.
std::map<std::string, std::string> comment_keys(std::string_view comment);

/// Returns a key and its value as comment_keys() reads them: config_type="a b".
std::string key_text(const std::string& key, const std::string& value);

/// Returns the numbers of a value, separated by blanks, commas or brackets; ASE writes "_JSON " before some.
/// Throws InputError with the value for anything else, and for a number that is not finite.
std::vector<double> numbers_of(std::string_view value);

/// Returns the cell of the keys Lattice (the vectors one after another, or the lengths of three orthogonal
/// ones) and pbc; without pbc, a Lattice is periodic in all directions. Throws InputError for other values.
Cell cell_of(const std::map<std::string, std::string>& keys);

/// Returns the matrix of a stress or virial: 9 numbers of a symmetric matrix, or 6 in the order xx, yy, zz,
/// yz, xz, xy. Throws InputError for others.
Matrix3 symmetric_matrix(std::string_view value);

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
/// free_energy and stress beside virial; for a given key that no structure has; and for a given stress whose
/// name has not just one of the words stress and virial.
ChosenKeys choose_keys(const std::string& path, const KeyCounts& found, const AtomLabelKeys& given);

}  // namespace sar::formats
