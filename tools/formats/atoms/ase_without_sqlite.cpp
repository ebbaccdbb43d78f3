// SPDX-License-Identifier: MIT
#include "ase_database.hpp"

#include <sar/core/error.hpp>

namespace sar::formats {

std::unique_ptr<AseDatabase> open_ase_sqlite(const std::string& path) {
  throw InputError(concat(
      path, ": databases of ASE are read where sar was built with SQLite 3, and it was built without, ",
      "expected extended XYZ; in Python: from ase.io import read, write; write('structures.xyz', read('",
      path, "', ':'))"));
}

}  // namespace sar::formats
