// SPDX-License-Identifier: MIT

/// Files of the parts of a partition directory: one array of several consecutive parts, read as one. For
/// implementation files.
#pragma once

#include <sar/core/error.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/files/npy.hpp>
#include <sar/core/memory/memory.hpp>

#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Makes a folder and those above it. Throws InputError.
void make_directories(const std::string& path);

/// Local. Writes integers of 64 bits. Throws InputError.
void write_ids(const std::string& path, const Array<Index>& ids);

/// One array of several consecutive parts: its files, and how many rows each must have.
struct PartFiles {
  std::vector<std::string> paths;
  std::vector<Index> rows;

  /// Reads all files one after the other to `allocate(number of rows)`, after a check of all headers.
  template <class Allocate>
  void read(NpyType type, const std::vector<Index>& row_shape, const Allocate& allocate) const {
    Index total = 0;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      check(NpyFile(paths[i]), i, type, row_shape);
      require<InputError>(!__builtin_add_overflow(total, rows[i], &total), paths[i], ": too many rows");
    }
    std::span<std::byte> out = allocate(total);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const NpyFile file(paths[i]);
      check(file, i, type, row_shape);
      const auto bytes = static_cast<std::size_t>(file.size() * element_bytes(type));
      file.read_rows_raw(0, file.num_rows(), out.first(bytes));
      out = out.subspan(bytes);
    }
  }
  [[nodiscard]] Array<Index> read_ids() const;
  [[nodiscard]] DataArray read_data(const DataField& field) const;

 private:
  void check(const NpyFile& file, std::size_t i, NpyType type, const std::vector<Index>& row_shape) const;
};

}}  // namespace sar
