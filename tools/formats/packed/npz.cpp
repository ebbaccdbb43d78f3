// SPDX-License-Identifier: MIT
#include "npz.hpp"

#include "sliced_rows.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/npy.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sar::formats {

NpzFile::NpzFile(const std::string& path) : zip_(path, "a .npz file") {
  constexpr std::size_t extension = 4;
  for (NpzMember member : zip_.members()) {
    if (!member.name.ends_with(".npy")) continue;
    member.name.resize(member.name.size() - extension);
    members_.push_back(std::move(member));
  }
}

const NpzMember* NpzFile::find(const std::string& name) const {
  const auto found = std::ranges::find(members_, name, &NpzMember::name);
  return found == members_.end() ? nullptr : &*found;
}

PackedArray::PackedArray(const NpzFile& archive, const NpzMember& member)
    : place_(archive.place_of(member)), bytes_(archive.zip(), member, place_), left_(member.bytes) {
  unsigned char head[12] = {};
  const Index head_bytes = std::min<Index>(left_, 10);
  unpack(head, head_bytes);
  if (head_bytes == 10 && head[6] > 1 && left_ >= 2) unpack(head + 10, 2);
  const NpyPreamble preamble = parse_npy_preamble(head, member.bytes, place_);
  std::string text(static_cast<std::size_t>(preamble.data_begin - preamble.text_begin), ' ');
  unpack(text.data(), static_cast<Index>(text.size()));
  header_ = parse_npy_header(text, place_);
  const Index bytes = checked_num_elements(header_.shape, header_.type, place_) * element_bytes(header_.type);
  require<InputError>(bytes == left_, place_, ": the file has ", left_, " bytes of data, expected ", bytes,
                      " for shape ", shape_to_string(header_.shape), " of ", to_string(header_.type));
}

void PackedArray::read(std::byte* out, Index bytes) {
  require<ShapeError>(bytes <= left_, place_, ": cannot read ", bytes, " bytes of ", left_);
  unpack(out, bytes);
  if (header_.big_endian) swap_bytes(header_.type, {out, static_cast<std::size_t>(bytes)});
}

void PackedArray::unpack(void* out, Index bytes) {
  left_ -= bytes_.read(static_cast<char*>(out), bytes);
}

std::unique_ptr<const NpzFile> open_npz(const Communicator& comm, const std::string& path) {
  std::unique_ptr<const NpzFile> archive;
  std::string members;
  comm.agree([&] {
    archive = std::make_unique<const NpzFile>(path);
    for (const NpzMember& member : archive->members())
      members += concat(member.name, ' ', member.begin, ' ', member.bytes, ' ');
  });
  const std::string expected = comm.broadcast(members, 0);
  comm.agree([&] {
    require<InputError>(members == expected, path, ": rank ", comm.rank(), " finds members ", members,
                        "expected ", expected, "as on rank 0");
  });
  return archive;
}

NpzArray::NpzArray(const Communicator& comm, const NpzFile& archive, const NpzMember& member, bool transposed)
    : comm_(comm) {
  const bool stored = !member.packed && !transposed;
  comm.agree([&] {
    if (stored) {
      stored_ = std::make_unique<const NpyFile>(archive.path(),
                                                NpySection{member.name, member.begin, member.bytes});
      header_ = {stored_->type(), stored_->shape(), stored_->fortran_order()};
    } else if (comm_.rank() == 0) {
      packed_.emplace(archive, member);
      header_ = packed_->header();
      if (transposed) {
        std::ranges::reverse(header_.shape);
        header_.fortran_order = !header_.fortran_order;
      }
    }
  });
  if (stored) return;
  struct {
    NpyType type;
    bool fortran_order;
    std::size_t dims;
  } known{header_.type, header_.fortran_order, header_.shape.size()};
  comm.broadcast(std::span(&known, 1), 0);
  header_.type = known.type;
  header_.fortran_order = known.fortran_order;
  header_.shape.resize(known.dims);
  comm.broadcast(std::span<Index>(header_.shape), 0);
}

DataArray NpzArray::read_rows(const PartitionBook& book) {
  DataArray mine, column;
  comm_.agree([&] {
    const auto behind_first = header_.shape.begin() + (header_.shape.empty() ? 0 : 1);  // a number: one row
    mine = DataArray(header_.type, {behind_first, header_.shape.end()}, book.num_nodes(comm_.rank()));
    if (stored_)
      stored_->read_rows_raw(book.begin(comm_.rank()), book.end(comm_.rank()), mine.bytes);
    else if (header_.fortran_order)
      column = DataArray(header_.type, {}, mine.num_rows);
  });
  if (stored_) return mine;
  if (!header_.fortran_order) {
    deal(book, mine.row_bytes(), mine.bytes.data());
    return mine;
  }
  const Index columns = book.num_nodes() == 0 ? 0 : mine.row_size();  // without rows, there may be very many
  for (Index i = 0; i < columns; ++i) {
    deal(book, column.row_bytes(), column.bytes.data());
    const Index at = column_of_file(header_.shape, i) * column.row_bytes();
    for (Index row = 0; row < mine.num_rows; ++row)
      std::copy_n(column.row(row), column.row_bytes(), mine.row(row) + at);
  }
  return mine;
}

void NpzArray::deal(const PartitionBook& book, Index row_bytes, std::byte* mine) {
  const Index block = std::max<Index>(1, (Index{1} << 22) / std::max<Index>(1, row_bytes));
  std::vector<std::byte> rows;
  for (Index first = 0; first < book.num_nodes(); first += block) {
    comm_.agree([&] {
      if (comm_.rank() != 0) return;
      rows.resize(static_cast<std::size_t>(std::min(block, book.num_nodes() - first) * row_bytes));
      packed_->read(rows.data(), static_cast<Index>(rows.size()));
    });
    send_rows(comm_, book, first, rows, row_bytes, mine);
  }
}

}  // namespace sar::formats
