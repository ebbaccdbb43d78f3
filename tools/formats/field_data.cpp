// SPDX-License-Identifier: MIT
#include "field_data.hpp"

#include <sar/comm/files/fetch_rows.hpp>
#include <sar/core/error.hpp>

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

void FieldTable::add(DataField field, std::unique_ptr<const FieldData> of, std::string place) {
  data.emplace(field.name, std::move(of));
  places.emplace(field.name, std::move(place));
  fields.push_back(std::move(field));
}

DataArray FieldTable::read(const Communicator& comm, const std::string& path, const std::string& field,
                           std::span<const Index> rows) const {
  const auto found = data.find(field);
  comm.agree([&] { require<InputError>(found != data.end(), path, ": there are no data named ", field); });
  return found->second->read(comm, rows);
}

}  // namespace sar::formats
