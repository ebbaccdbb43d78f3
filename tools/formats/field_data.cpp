// SPDX-License-Identifier: MIT
#include "field_data.hpp"

#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/error.hpp>

#include <algorithm>

namespace sar::formats {

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

void FieldTable::add(DataField field, ReadRows read_rows_of_field, std::string place) {
  fields.push_back({std::move(field), std::move(read_rows_of_field), std::move(place)});
}
void FieldTable::add(const std::string& name, PartitionBook slices, DataArray mine, std::string place) {
  DataField field{name, mine.type, mine.row_shape};
  add(
      std::move(field),
      [book = std::move(slices), held = std::move(mine)](const Communicator& comm,
                                                         std::span<const Index> rows) {
        return fetch_rows(comm, book, held, rows);
      },
      std::move(place));
}
void FieldTable::add(DataField field, std::shared_ptr<const NpyFile> file, std::string place) {
  add(
      std::move(field),
      [of = std::move(file)](const Communicator& comm, std::span<const Index> rows) {
        return comm.agree([&] { return read_rows(*of, rows); });
      },
      std::move(place));
}

const FieldTable::Field* FieldTable::find(const std::string& name) const {
  const auto found = std::ranges::find(
      fields, name, [](const Field& each) -> const std::string& { return each.field.name; });
  return found == fields.end() ? nullptr : &*found;
}

DataArray FieldTable::read(const Communicator& comm, const std::string& path, const std::string& field,
                           std::span<const Index> rows) const {
  const Field* found = find(field);
  comm.agree([&] { require<InputError>(found != nullptr, path, ": there are no data named ", field); });
  return found->read(comm, rows);
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

DataArray mask_of(Array<std::int64_t> nodes, const PartitionBook& slices, int rank,
                  const std::string& place) {
  const Index num_nodes = slices.num_nodes();
  const auto bad = std::ranges::find_if(nodes, [&](Index node) { return node < 0 || node >= num_nodes; });
  require<InputError>(bad == nodes.end(), place, ": element ", bad - nodes.begin(), " is ",
                      bad == nodes.end() ? 0 : *bad, ", expected the number of a node, ",
                      index_range(num_nodes));
  std::ranges::sort(nodes);
  const auto twice = std::ranges::adjacent_find(nodes);
  require<InputError>(twice == nodes.end(), place, ": node ", twice == nodes.end() ? 0 : *twice,
                      " is listed twice, expected each node once; zeros and ones for all nodes are a mask, "
                      "such as train_mask");
  DataArray mask(NpyType::uint8, {}, slices.num_nodes(rank));
  std::ranges::fill(mask.bytes, std::byte{0});
  for (const Index node : nodes)
    if (slices.owner(node) == rank) mask.bytes[node - slices.begin(rank)] = std::byte{1};
  return mask;
}

}  // namespace sar::formats
