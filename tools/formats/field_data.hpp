/// The data of one field of the nodes or edges of a FileSource, wherever its rows are.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/io/data_array.hpp>
#include <sar/graph/io/npy.hpp>

#include <memory>
#include <span>
#include <string>

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

}  // namespace sar::formats
