#include "field_data.hpp"

#include <sar/graph/data/fetch_rows.hpp>

#include <utility>

namespace sar::formats {

SlicedFieldData::SlicedFieldData(PartitionBook book, DataArray mine)
    : book_(std::move(book)), mine_(std::move(mine)) {}

DataArray SlicedFieldData::read(const Communicator& comm, std::span<const Index> rows) const {
  return fetch_rows(comm, book_, mine_, rows);
}

NpyFieldData::NpyFieldData(std::unique_ptr<const NpyFile> file) : file_(std::move(file)) {}

DataArray NpyFieldData::read(const Communicator& comm, std::span<const Index> rows) const {
  DataArray data;
  comm.agree([&] { data = read_rows(*file_, rows); });
  return data;
}

}  // namespace sar::formats
