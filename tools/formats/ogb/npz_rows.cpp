#include "npz_rows.hpp"

#include "formats/sliced_rows.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace sar::formats {

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

NpzArray::NpzArray(const Communicator& comm, const NpzFile& archive, const NpzMember& member,
                   NpyOrder accepted)
    : comm_(comm) {
  const std::string place = archive.place_of(member);
  std::string header;
  comm.agree([&] {
    if (!member.packed) {
      stored_ = std::make_unique<const NpyFile>(
          archive.path(), NpySection{member.name, member.begin, member.bytes}, accepted);
      header_ = {stored_->type(), stored_->shape(), stored_->fortran_order()};
    } else if (comm_.rank() == 0) {
      packed_.emplace(archive, member);
      header_ = packed_->header();
    }
  });
  if (!member.packed) return;
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
  require<InputError>(!header_.fortran_order || accepted == NpyOrder::c_or_fortran, place,
                      ": the array is in Fortran order, expected C order");
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
