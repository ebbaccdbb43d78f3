// SPDX-License-Identifier: MIT

/// Databases of ASE: .db files of SQLite and .aselmdb files of LMDB.
#pragma once

#include "atom_dataset.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/memory.hpp>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>

namespace sar::formats {

/// Local. Returns whether a file is a database of ASE, by its first bytes or the end of its name. Throws
/// InputError if it cannot be read.
bool is_ase_database(const std::string& path);

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

/// Collective. Reads the rows of a database in the order of their ids; each rank reads a part. Labels are as
/// in read_extended_xyz(). Throws InputError, the same on every rank, with the path and the id of the row.
AtomDataset read_ase_database(const Communicator& comm, const std::string& path, const AtomLabelKeys& keys);

}  // namespace sar::formats
