// SPDX-License-Identifier: MIT

/// One part of a partition directory: its arrays on disk.
///
/// Errors are InputError naming the file.
#pragma once

#include <sar/core/error.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/files/npy.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/partition_description.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// What the description says of a part that has been written.
struct PartSummary {
  std::vector<Index> num_edges;  ///< by edge type
  std::uint64_t checksum = 0;
};

/// Where the arrays of a part lie in a partition directory. Names are escaped as far as files need it.
std::string node_file(const std::string& directory, int part, const std::string& type,
                      const std::string& array);
std::string node_data_file(const std::string& directory, int part, const std::string& type,
                           const std::string& field);
/// The folder of a sparse field.
std::string sparse_folder(const std::string& directory, int part, const std::string& type,
                          const std::string& field);
std::string edge_file(const std::string& directory, int part, const EdgeTypeData& type,
                      const std::string& array);

/// Local. Writes the arrays of one part into a directory that is being made. `graph` holds the part, with
/// its edges in any order. Needs 24 bytes an edge of the largest edge type besides the graph. Throws
/// ShapeError for fields of other lengths.
PartSummary write_part(const std::string& directory, int part, const GraphData& graph);

/// Local. Reads the parts [first, last) and concatenates them. Within a part, edges are grouped by the part
/// of their source and sorted by destination, source and id. Partition books are those of the directory.
/// Checks type, length and range of every array, but not that ids are unique (load_partition does).
GraphData read_parts(const std::string& directory, const PartitionDescription& description, int first,
                     int last);

// Files of the parts of a partition directory: one array of several consecutive parts, read as one.

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

// A sparse field of the nodes of one part: three arrays in a folder of their own,
//     row_offsets.npy   [nodes + 1]       where the values of each row begin, and the end
//     columns.npy       [stored values]   32 bits; in increasing order within a row
//     values.npy        [stored values]   of the type of the field

/// Local. Writes the arrays. Throws ShapeError unless there are `num_rows` rows, InputError.
void write_sparse_part(const std::string& folder, const SparseArray& rows, Index num_rows);

/// Local. Appends the rows of a part to `all`. Throws InputError, naming the file, for another type or
/// length and for columns that are out of range or out of order.
void read_sparse_part(const std::string& folder, const DataField& field, Index num_rows, SparseArray& all);
}}  // namespace sar
