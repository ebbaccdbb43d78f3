// SPDX-License-Identifier: MIT
#include "parquet_table.hpp"

#include <sar/core/error.hpp>

namespace sar::formats {

std::unique_ptr<ParquetTable> ParquetTable::open(const std::string& path) {
  throw InputError(
      concat(path, ": Parquet is read where sar was built with Apache Arrow, and it was built without, ",
             "expected a text; in Python: import pandas; pandas.read_parquet('", path,
             "').to_csv('graph.csv', index=False)"));
}

}  // namespace sar::formats
