// SPDX-License-Identifier: MIT

/// Rows of ASE's databases: what a row means, whatever the database.
#pragma once

#include "raw_structures.hpp"

#include <nlohmann/json.hpp>

namespace sar::formats {

/// Returns the structure of a row:
///
///     numbers, positions, cell, pbc              the atoms; pbc is a list, or the bits of a number
///     energy, free_energy, forces, stress        keys and columns with these names
///     key_value_pairs, data                      objects with further keys, and columns of forces
///
/// Arrays are lists, nested or not, or {"__ndarray__": [shape, type, values]}. Values that are null are as
/// none. `keys`: labels with other names. Throws InputError, which names the value, unless
/// there is an atom, and for other counts of numbers and numbers that are not finite.
RawStructure structure_of_row(const nlohmann::json& row, const AtomLabelKeys& keys);

}  // namespace sar::formats
