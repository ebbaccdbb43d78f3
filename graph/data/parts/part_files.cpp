// SPDX-License-Identifier: MIT
#include <sar/graph/data/parts/part_files.hpp>

#include <array>
#include <filesystem>
#include <system_error>

namespace sar { inline namespace SAR_PRECISION {

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  require<InputError>(!error, path, ": cannot make the directory (", error.message(), ")");
}

void write_ids(const std::string& path, const Array<Index>& ids) {
  const std::array<Index, 1> shape{static_cast<Index>(ids.size())};
  NpyWriter file(path, shape, NpyType::int64);
  file.write(std::as_bytes(std::span<const Index>(ids)));
  file.commit(/*flushed=*/false);
}

Array<Index> PartFiles::read_ids() const {
  Array<Index> ids;
  read(NpyType::int64, {}, [&](Index total) {
    ids.resize(total);
    return std::as_writable_bytes(std::span<Index>(ids));
  });
  return ids;
}

DataArray PartFiles::read_data(const DataField& field) const {
  DataArray data;
  read(field.type, field.row_shape, [&](Index total) {
    data = DataArray(field.type, field.row_shape, total);
    return std::span<std::byte>(data.bytes);
  });
  return data;
}

void PartFiles::check(const NpyFile& file, std::size_t i, NpyType type,
                      const std::vector<Index>& row_shape) const {
  std::vector<Index> shape{rows[i]};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  require<InputError>(file.type() == type, paths[i], ": dtype is ", to_string(file.type()), ", expected ",
                      to_string(type), " as in partition.json");
  require<InputError>(file.shape() == shape, paths[i], ": shape is ", shape_to_string(file.shape()),
                      ", expected ", shape_to_string(shape), " as in partition.json");
}

}}  // namespace sar
