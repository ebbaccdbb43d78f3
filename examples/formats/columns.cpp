#include "columns.hpp"

#include <sar/graph/distributed_rows.hpp>

#include <utility>

namespace sar::formats {

SlicedColumn::SlicedColumn(PartitionBook book, DataArray mine)
    : book_(std::move(book)), mine_(std::move(mine)) {}

DataArray SlicedColumn::read(const Communicator& comm, std::span<const Index> rows) const {
  return fetch_rows(comm, book_, mine_, rows);
}

NpyColumn::NpyColumn(std::unique_ptr<const NpyFile> file) : file_(std::move(file)) {}

DataArray NpyColumn::read(const Communicator& comm, std::span<const Index> rows) const {
  DataArray data;
  comm.agree([&] {
    const DataField field = field_of("", *file_);
    data = DataArray(field.type, field.row_shape, static_cast<Index>(rows.size()));
    file_->read_rows_raw(rows, data.bytes);
  });
  return data;
}

DataField field_of(const std::string& name, const NpyFile& file) {
  return {name, file.type(), {file.shape().begin() + 1, file.shape().end()}};
}

}  // namespace sar::formats
