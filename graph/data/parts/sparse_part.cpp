// SPDX-License-Identifier: MIT
#include <sar/graph/data/parts/part_files.hpp>
#include <sar/graph/data/parts/sparse_part.hpp>

#include <algorithm>
#include <array>
#include <span>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The arrays of a sparse field.
struct SparseFiles {
  explicit SparseFiles(const std::string& folder)
      : row_offsets(folder + "/row_offsets.npy"),
        columns(folder + "/columns.npy"),
        values(folder + "/values.npy") {}
  std::string row_offsets, columns, values;
};

}  // namespace

void write_sparse_part(const std::string& folder, const SparseArray& rows, Index num_rows) {
  const SparseFiles files(folder);
  require<ShapeError>(rows.num_rows() == num_rows, files.row_offsets, ": the data have ", rows.num_rows(),
                      " rows, expected ", num_rows);
  make_directories(folder);
  write_ids(files.row_offsets, rows.row_offsets);
  const auto write = [&](const std::string& path, NpyType type, std::span<const std::byte> bytes) {
    const std::array<Index, 1> shape{rows.num_stored()};
    NpyWriter file(path, shape, type);
    file.write(bytes);
    file.commit(/*flushed=*/false);
  };
  write(files.columns, NpyType::int32, std::as_bytes(std::span(rows.columns)));
  write(files.values, rows.type, rows.bytes);
}

void read_sparse_part(const std::string& folder, const DataField& field, Index num_rows, SparseArray& all) {
  const SparseFiles files(folder);
  const Array<Index> offsets = PartFiles{{files.row_offsets}, {num_rows + 1}}.read_ids();
  require<InputError>(offsets.front() == 0 && std::ranges::is_sorted(offsets), files.row_offsets,
                      ": the numbers go from ", offsets.front(), " to ", offsets.back(),
                      ", expected numbers from 0 on that do not decrease");
  const Index before = all.num_stored(), stored = offsets.back(), element = element_bytes(field.type);
  PartFiles{{files.columns}, {stored}}.read(NpyType::int32, {}, [&](Index total) {
    all.columns.resize(before + total);
    return std::as_writable_bytes(std::span(all.columns).subspan(before));
  });
  PartFiles{{files.values}, {stored}}.read(field.type, {}, [&](Index total) {
    all.bytes.resize((before + total) * element);
    return std::span<std::byte>(all.bytes).subspan(before * element);
  });
  const Index width = field.row_size();
  for (Index i = 0; i < num_rows; ++i)
    for (Index k = offsets[i]; k < offsets[i + 1]; ++k) {
      const Index column = all.columns[before + k];
      const Index least = k == offsets[i] ? 0 : Index{all.columns[before + k - 1]} + 1;
      require<InputError>(least <= column && column < width, files.columns, ": row ", i, " has column ",
                          column, ", expected columns from ", least, " to ", width - 1,
                          " in increasing order");
    }
  for (const Index offset : std::span(offsets).subspan(1)) all.row_offsets.push_back(before + offset);
}

}}  // namespace sar
