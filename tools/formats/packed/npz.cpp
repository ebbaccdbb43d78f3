// SPDX-License-Identifier: MIT
#include "npz.hpp"

#include "sliced_rows.hpp"

#include <sar/core/error.hpp>

#include <algorithm>

namespace sar::formats {

namespace {

/// The header of an array as it stands in the file; `bytes` go on with the elements.
std::string header_text(const NpzMember& member, MemberBytes& bytes) {
  char head[12] = {};
  bytes.read(head, std::min<Index>(member.bytes, 10));
  if (member.bytes >= 12 && head[6] > 1) bytes.read(head + 10, 2);
  const NpyPreamble preamble =
      parse_npy_preamble(reinterpret_cast<const unsigned char*>(head), member.bytes, member.place());
  std::string text(static_cast<std::size_t>(preamble.data_begin - preamble.text_begin), ' ');
  bytes.read(text.data(), std::ssize(text));
  return text;
}

/// NumPy's type of the elements, whatever it is: "<f4", "<U33", "|O".
std::string dtype_in(const std::string& header) {
  const std::size_t key = header.find("descr");
  const std::size_t begin = key == std::string::npos ? key : header.find_first_not_of("'\": ", key + 5);
  if (begin == std::string::npos || header[begin] == '[') return "structured";
  return header.substr(begin, header.find_first_of("'\"", begin) - begin);
}

bool is_text_type(const std::string& dtype) {
  return dtype.size() > 1 && (dtype[1] == 'U' || dtype[1] == 'S' || dtype[1] == 'a');
}

void require_numbers(const NpzMember& member, const std::string& header) {
  const std::string dtype = dtype_in(header);
  const std::string python =
      concat("in Python: arrays = dict(numpy.load('", member.archive->path(),
             "', allow_pickle=True)); x = arrays['", member.name, "']; arrays['", member.name, "'] = ");
  const char* const end = "; numpy.savez('numbers.npz', **arrays)";
  require<InputError>(
      !is_text_type(dtype), member.place(), ": the array has texts (dtype '", dtype, "'), expected numbers; ",
      python, "x.astype(float), or for names of classes numpy.unique(x, return_inverse=True)[1]", end);
  require<InputError>(!dtype.ends_with('O'), member.place(),
                      ": the array has pickled Python objects, which are not read; ", python,
                      "numpy.array(x.tolist(), float)", end);
}

}  // namespace

NpzFile::NpzFile(const std::string& path) : zip_(path, "a .npz file") {
  constexpr std::size_t extension = 4;
  for (const ZipMember& file : zip_.members()) {
    if (!file.name.ends_with(".npy")) continue;
    members_.push_back({file, &zip_});
    members_.back().name.resize(file.name.size() - extension);
  }
}

const NpzMember* NpzFile::find(const std::string& name) const {
  const auto found = std::ranges::find(members_, name, &NpzMember::name);
  return found == members_.end() ? nullptr : &*found;
}

std::string text_of(const NpzMember& member) {
  MemberBytes bytes(*member.archive, member, member.place());
  const std::string dtype = dtype_in(header_text(member, bytes));
  require<InputError>(is_text_type(dtype) && bytes.left() <= 64, member.place(), ": dtype is '", dtype,
                      "', expected a short text");
  std::string text(static_cast<std::size_t>(bytes.left()), ' ');
  bytes.read(text.data(), std::ssize(text));
  std::erase(text, '\0');  // also between the letters of a text of 32 bits
  return text;
}

PackedArray::PackedArray(const NpzMember& member)
    : place_(member.place()), bytes_(*member.archive, member, place_) {
  const std::string text = header_text(member, bytes_);
  require_numbers(member, text);
  header_ = parse_npy_header(text, place_);
  const Index bytes = checked_num_elements(header_.shape, header_.type, place_) * element_bytes(header_.type);
  require<InputError>(bytes == bytes_.left(), place_, ": the file has ", bytes_.left(),
                      " bytes of data, expected ", bytes, " for shape ", shape_to_string(header_.shape),
                      " of ", to_string(header_.type));
}

void PackedArray::read(std::byte* out, Index bytes) {
  require<ShapeError>(bytes <= bytes_.left(), place_, ": cannot read ", bytes, " bytes of ", bytes_.left());
  bytes_.read(reinterpret_cast<char*>(out), bytes);
  if (header_.big_endian) swap_bytes(header_.type, {out, static_cast<std::size_t>(bytes)});
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

NpzArray::NpzArray(const Communicator& comm, const NpzMember& member, bool transposed) : comm_(comm) {
  const bool stored = !member.packed && !transposed;
  comm.agree([&] {
    if (stored) {
      MemberBytes bytes(*member.archive, member, member.place());
      require_numbers(member, header_text(member, bytes));
      stored_ = std::make_unique<const NpyFile>(member.archive->path(),
                                                NpySection{member.name, member.begin, member.bytes});
      header_ = {stored_->type(), stored_->shape(), stored_->fortran_order()};
    } else if (comm_.rank() == 0) {
      packed_.emplace(member);
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
