// SPDX-License-Identifier: MIT

/// The data of one field of the nodes or edges of a FileSource, wherever its rows are, and lists of the nodes
/// of a split, in place of masks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/files/npy.hpp>
#include <sar/core/memory/memory.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sar::formats {

/// Returns the listed rows of a field. Collective; throws InputError, the same on every rank.
using ReadRows = std::function<DataArray(const Communicator& comm, std::span<const Index> rows)>;

/// Local. The listed columns of rows of float64, side by side; one that is no list is a number for each row.
DataArray take_columns(const DataArray& rows, std::span<const Index> columns, bool is_list);
/// The numbers of an array of float64.
std::span<double> doubles_in(DataArray& array);

/// The fields of the nodes or edges of one type.
struct FieldTable {
  struct Field {
    DataField field;
    ReadRows read;
    std::string place;  ///< its file, for messages
  };
  std::vector<Field> fields;

  void add(DataField field, ReadRows read, std::string place);
  /// A field whose rows each rank has of its slice.
  void add(const std::string& name, PartitionBook slices, DataArray mine, std::string place);
  /// A field in a file, of which each rank reads the rows that it is asked for.
  void add(DataField field, std::shared_ptr<const NpyFile> file, std::string place);
  /// nullptr: there is none of this name.
  [[nodiscard]] const Field* find(const std::string& field) const;
  [[nodiscard]] bool contains(const std::string& field) const { return find(field) != nullptr; }
  /// The listed rows of a field. Collective; throws InputError, which begins with `path`, when there is none.
  [[nodiscard]] DataArray read(const Communicator& comm, const std::string& path, const std::string& field,
                               std::span<const Index> rows) const;
};

/// Local. Returns the mask that a list with this name becomes: train_mask of train_nodes, val_mask of
/// val_nodes, test_mask of test_nodes; nothing for other names.
std::string mask_of_list(const std::string& name);

/// Local. Returns the pairs NAME=FILE of --node-data, lists of nodes last: the rows of other files may say
/// how many nodes there are. A name may begin with a type and a slash.
std::vector<std::pair<std::string, std::string>> lists_last(const std::map<std::string, std::string>& files);

/// Local. This rank's slice of a mask: 1 for the nodes of a list, which each rank has, 0 for all others.
/// Throws InputError, beginning with `place`, for a number that is no node, and for a node that is listed
/// twice.
DataArray mask_of(Array<std::int64_t> nodes, const PartitionBook& slices, int rank, const std::string& place);

}  // namespace sar::formats
