// SPDX-License-Identifier: MIT

/// The data of one field of the nodes or edges of a FileSource, wherever its rows are.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/files/npy.hpp>

#include <map>
#include <memory>
#include <span>
#include <string>
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

/// The fields of the nodes or edges of one type.
struct FieldTable {
  std::vector<DataField> fields;
  std::map<std::string, std::unique_ptr<const FieldData>> data;
  std::map<std::string, std::string> places;  ///< by field: its file, for messages

  void add(DataField field, std::unique_ptr<const FieldData> of, std::string place);
  /// The listed rows of a field. Collective; throws InputError, which begins with `path`, when there is none.
  [[nodiscard]] DataArray read(const Communicator& comm, const std::string& path, const std::string& field,
                               std::span<const Index> rows) const;
};

}  // namespace sar::formats
