// SPDX-License-Identifier: MIT
#include "field_data.hpp"

#include <sar/comm/files/fetch_rows.hpp>
#include <sar/core/error.hpp>

#include <algorithm>
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

std::span<double> doubles_in(DataArray& array) {
  return {reinterpret_cast<double*>(array.bytes.data()), array.bytes.size() / sizeof(double)};
}

DataArray take_columns(const DataArray& rows, std::span<const Index> columns, bool is_list) {
  DataArray taken(NpyType::float64, {}, rows.num_rows);
  if (is_list) taken = DataArray(NpyType::float64, {std::ssize(columns)}, rows.num_rows);
  constexpr auto bytes = static_cast<Index>(sizeof(double));
  for (Index row = 0; row < rows.num_rows; ++row)
    for (std::size_t i = 0; i < columns.size(); ++i)
      std::copy_n(rows.row(row) + columns[i] * bytes, bytes, taken.row(row) + static_cast<Index>(i) * bytes);
  return taken;
}

void FieldTable::add(DataField field, std::unique_ptr<const FieldData> of, std::string place) {
  data.emplace(field.name, std::move(of));
  places.emplace(field.name, std::move(place));
  fields.push_back(std::move(field));
}

void FieldTable::add(std::string name, PartitionBook slices, DataArray mine, std::string place) {
  DataField field{std::move(name), mine.type, mine.row_shape};
  add(std::move(field), std::make_unique<SlicedFieldData>(std::move(slices), std::move(mine)),
      std::move(place));
}
DataArray FieldTable::read(const Communicator& comm, const std::string& path, const std::string& field,
                           std::span<const Index> rows) const {
  const auto found = data.find(field);
  comm.agree([&] { require<InputError>(found != data.end(), path, ": there are no data named ", field); });
  return found->second->read(comm, rows);
}

std::string mask_of_list(const std::string& name) {
  for (const char* part : {"train", "val", "test"})
    if (name == concat(part, "_nodes")) return concat(part, "_mask");
  return {};
}

std::vector<std::pair<std::string, std::string>> lists_last(const std::map<std::string, std::string>& files) {
  std::vector<std::pair<std::string, std::string>> ordered(files.begin(), files.end());
  std::ranges::stable_partition(ordered, [](const auto& file) {
    return mask_of_list(file.first.substr(file.first.find('/') + 1)).empty();
  });
  return ordered;
}

ListedNodes::ListedNodes(Array<std::int64_t> nodes, Index num_nodes, const std::string& place)
    : nodes_(std::move(nodes)) {
  const auto bad = std::ranges::find_if(nodes_, [&](Index node) { return node < 0 || node >= num_nodes; });
  require<InputError>(bad == nodes_.end(), place, ": element ", bad - nodes_.begin(), " is ",
                      bad == nodes_.end() ? 0 : *bad, ", expected the number of a node, ",
                      index_range(num_nodes));
  std::ranges::sort(nodes_);
  const auto twice = std::ranges::adjacent_find(nodes_);
  require<InputError>(twice == nodes_.end(), place, ": node ", twice == nodes_.end() ? 0 : *twice,
                      " is listed twice, expected each node once; zeros and ones for all nodes are a mask, "
                      "such as train_mask");
}

DataArray ListedNodes::read(const Communicator&, std::span<const Index> rows) const {
  DataArray mask(NpyType::uint8, {}, std::ssize(rows));
  for (std::size_t i = 0; i < rows.size(); ++i)
    mask.bytes[i] = static_cast<std::byte>(std::ranges::binary_search(nodes_, rows[i]) ? 1 : 0);
  return mask;
}

}  // namespace sar::formats
