// SPDX-License-Identifier: MIT
#include "parquet_table.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace sar::formats {

bool is_parquet(const std::string& path) {
  std::error_code unreachable;
  if (std::filesystem::is_directory(path, unreachable))
    return std::ranges::any_of(names_in(path, unreachable),
                               [](const std::string& name) { return name.ends_with(".parquet"); });
  if (!std::filesystem::is_regular_file(path, unreachable)) return false;
  const InputFile file(path, "a file that can be read");
  std::string magic(4, ' ');
  if (file.size() < std::ssize(magic)) return false;
  file.read(0, magic.data(), std::ssize(magic));
  return magic == "PAR1";
}

std::string ParquetTable::beginning(Index bytes) {
  constexpr Index most_rows = 100;
  std::string text = header();
  for (Index group = 0; group < std::ssize(groups()) && std::ssize(text) < bytes; ++group)
    for (Index row = 0, rows = groups()[group].num_rows; row < rows && std::ssize(text) < bytes;
         row += most_rows)
      text += read(group, row, std::min(row + most_rows, rows));
  return text.substr(0, static_cast<std::size_t>(bytes));
}

#if !SAR_HAVE_ARROW
std::unique_ptr<ParquetTable> ParquetTable::open(const std::string& path) {
  throw InputError(
      concat(path, ": Parquet is read where sar was built with Apache Arrow, and it was built without, ",
             "expected a text; in Python: import pandas; pandas.read_parquet('", path,
             "').to_csv('graph.csv', index=False)"));
}
#endif

}  // namespace sar::formats
