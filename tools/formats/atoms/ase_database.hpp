// SPDX-License-Identifier: MIT

/// Databases of ASE: .db files of SQLite and .aselmdb files of LMDB.
#pragma once

#include "raw_structures.hpp"

#include <sar/core/memory/memory.hpp>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace sar::formats {

/// A database that this process reads. Functions throw InputError with the path.
class AseDatabase {
 public:
  virtual ~AseDatabase() = default;

  /// The ids of the rows, in ascending order.
  [[nodiscard]] virtual Array<Index> ids() = 0;
  /// Returns the row with this id as structure_of_row() reads it.
  [[nodiscard]] virtual nlohmann::json row(Index id) = 0;
};

/// Throw InputError for a file that is damaged or something else, and where sar was built without the
/// library.
std::unique_ptr<AseDatabase> open_ase_sqlite(const std::string& path);
std::unique_ptr<AseDatabase> open_ase_lmdb(const std::string& path);

/// Returns the value of a JSON text. The numbers NaN, Infinity and -Infinity, which Python writes and JSON
/// does not have, become texts. Throws InputError, which begins with `name`, for anything else.
[[nodiscard]] nlohmann::json parsed_json(const char* name, std::string_view text);

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
