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
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sar::formats {

class FieldData {
 public:
  virtual ~FieldData() = default;
  /// The listed rows. Collective; throws InputError, the same on every rank.
  [[nodiscard]] virtual DataArray read(const Communicator& comm, std::span<const Index> rows) const = 0;
};

/// Rows kept in memory, each rank its slice.
class SlicedFieldData : public FieldData {
 public:
  SlicedFieldData(PartitionBook book, DataArray mine);
  [[nodiscard]] DataArray read(const Communicator& comm, std::span<const Index> rows) const override;

 private:
  PartitionBook book_;
  DataArray mine_;
};

/// Rows of a .npy file. Each rank reads those that it is asked for.
class NpyFieldData : public FieldData {
 public:
  explicit NpyFieldData(std::unique_ptr<const NpyFile> file);
  [[nodiscard]] DataArray read(const Communicator& comm, std::span<const Index> rows) const override;

 private:
  std::unique_ptr<const NpyFile> file_;
};

/// Local. The listed columns of rows of float64, side by side; one that is no list is a number for each row.
DataArray take_columns(const DataArray& rows, std::span<const Index> columns, bool is_list);
/// The numbers of an array of float64.
std::span<double> doubles_in(DataArray& array);

/// The fields of the nodes or edges of one type.
struct FieldTable {
  std::vector<DataField> fields;
  std::map<std::string, std::unique_ptr<const FieldData>> data;
  std::map<std::string, std::string> places;  ///< by field: its file, for messages

  void add(DataField field, std::unique_ptr<const FieldData> of, std::string place);
  /// A field whose rows each rank has of its slice.
  void add(std::string name, PartitionBook slices, DataArray mine, std::string place);
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

/// A mask: 1 for the nodes of a list, 0 for all others. Each rank keeps the list, 8 bytes a node of it.
class ListedNodes : public FieldData {
 public:
  /// Local. Throws InputError, beginning with `place`, for a number that is none of `num_nodes` nodes, and
  /// for a node that is listed twice.
  ListedNodes(Array<std::int64_t> nodes, Index num_nodes, const std::string& place);
  [[nodiscard]] DataArray read(const Communicator& comm, std::span<const Index> rows) const override;

 private:
  Array<std::int64_t> nodes_;  // in increasing order
};

}  // namespace sar::formats
