// SPDX-License-Identifier: MIT

// Rows are divided evenly; then `indptr` says which entries each rank reads. O((rows + entries) / P) memory
// on a rank, and each array is read once.

#include "csr_matrix.hpp"

#include "formats/packed/npz_rows.hpp"
#include "npz_arrays.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace sar::formats {
namespace {

/// A list of numbers of this rank's range. Collective.
DataArray read_list(const Communicator& comm, const NpzFile& archive, const NpzMember& member, Index length,
                    const PartitionBook& book, const std::string& what) {
  comm.agree([&] { require_numbers(archive, member); });
  NpzArray array(comm, archive, member);
  require<InputError>(array.header().shape == std::vector<Index>{length}, archive.place_of(member),
                      ": shape is ", shape_to_string(array.header().shape), ", expected (", length, ",), ",
                      what);
  return array.read_rows(book);
}

Array<Index> to_indices(const DataArray& list, const std::string& place, Index first) {
  Array<Index> values(static_cast<std::size_t>(list.num_rows));
  const Index held = convert_elements(list.type, list.bytes.data(), list.num_rows, values.data());
  if (held < list.num_rows)
    throw_not_held<Index>(place, concat("element ", first + held), list.type, list.row(held));
  return values;
}

/// Where my rows begin and end among all entries. The last rank has the element behind the last row.
Array<Index> read_offsets(const Communicator& comm, const NpzFile& archive, const CsrArrays& arrays,
                          const PartitionBook& rows, Index num_entries) {
  std::vector<Index> begins;
  for (int rank = 0; rank < comm.size(); ++rank) begins.push_back(rows.begin(rank));
  begins.push_back(rows.num_nodes() + 1);
  const PartitionBook book(begins);
  const DataArray list = read_list(comm, archive, *arrays.indptr, book.num_nodes(), book,
                                   "one for each row of the matrix, and one more");
  const std::string place = archive.place_of(*arrays.indptr);
  Array<Index> offsets;
  comm.agree([&] { offsets = to_indices(list, place, book.begin(comm.rank())); });
  const std::vector<Index> firsts = comm.all_gather(offsets.empty() ? Index{-1} : offsets.front());
  Index behind = -1;
  for (std::size_t rank = firsts.size(); rank-- > static_cast<std::size_t>(comm.rank()) + 1;)
    if (firsts[rank] >= 0) behind = firsts[rank];
  if (comm.rank() + 1 < comm.size()) offsets.push_back(behind);
  comm.agree([&] {
    const Index first = book.begin(comm.rank());
    const auto bad = std::ranges::adjacent_find(offsets, std::ranges::greater());
    require<InputError>(firsts[0] == 0, place, ": element 0 is ", firsts[0], ", expected 0");
    if (bad != offsets.end())
      throw InputError(concat(place, ": element ", first + (bad - offsets.begin()) + 1, " is ", bad[1],
                              ", expected at least ", bad[0], ", the one before it"));
    require<InputError>(comm.rank() + 1 < comm.size() || offsets.back() == num_entries, place, ": element ",
                        rows.num_nodes(), " is ", offsets.back(), ", expected ", num_entries,
                        ", the number of entries of the matrix");
  });
  return offsets;
}

DataArray ones(Index count) {
  DataArray values(NpyType::uint8, {}, count);
  std::ranges::fill(values.bytes, std::byte{1});
  return values;
}

}  // namespace

bool CsrMatrix::is_all_ones(const Communicator& comm) const {
  Array<double> numbers(static_cast<std::size_t>(values.num_rows));
  convert_elements(values.type, values.bytes.data(), values.num_rows, numbers.data());
  const bool mine = std::ranges::all_of(numbers, [](double value) { return value == 1; });
  return comm.all_reduce(mine ? 1 : 0, ReduceOp::min) == 1;
}

std::array<Index, 2> read_shape(const Communicator& comm, const NpzFile& archive, const NpzMember& member) {
  comm.agree([&] { require_numbers(archive, member); });
  const std::vector<Index> shape = read_integers(comm, archive, member);
  require<InputError>(shape.size() == 2 && shape[0] >= 0 && shape[1] >= 0 && shape[0] < Index{1} << 60 &&
                          shape[1] < Index{1} << 60,
                      archive.place_of(member), ": is ", shape_to_string(shape),
                      ", expected the numbers of rows and columns of a matrix");
  return {shape[0], shape[1]};
}

CsrMatrix read_csr(const Communicator& comm, const NpzFile& archive, const CsrArrays& arrays,
                   bool by_column) {
  for (const auto& [member, name] :
       {std::pair{arrays.indices, "indices"}, {arrays.indptr, "indptr"}, {arrays.shape, "shape"}})
    require<InputError>(member != nullptr, arrays.name, ": the sparse matrix has no array ", name,
                        ", expected data, indices, indptr and shape, as scipy.sparse.save_npz writes them");
  auto [num_rows, num_columns] = read_shape(comm, archive, *arrays.shape);
  if (by_column) std::swap(num_rows, num_columns);
  const std::vector<Index> shape = header_of(comm, archive, *arrays.indices).shape;
  require<InputError>(shape.size() == 1, archive.place_of(*arrays.indices), ": shape is ",
                      shape_to_string(shape), ", expected a list");
  CsrMatrix matrix{.num_rows = num_rows, .num_columns = num_columns};
  matrix.rows = PartitionBook::even(num_rows, comm.size());
  require<InputError>(num_rows < arrays.indptr->bytes, archive.place_of(*arrays.indptr), ": has ",
                      arrays.indptr->bytes, " bytes, expected an element for each of ", num_rows, " rows");
  matrix.offsets = read_offsets(comm, archive, arrays, matrix.rows, shape[0]);
  const Index first = matrix.offsets.front();
  std::vector<Index> begins = comm.all_gather(first);
  begins.push_back(shape[0]);
  matrix.entries = PartitionBook(begins);
  for (Index& offset : matrix.offsets) offset -= first;
  const DataArray indices =
      read_list(comm, archive, *arrays.indices, shape[0], matrix.entries, "the entries of the matrix");
  comm.agree([&] {
    const std::string place = archive.place_of(*arrays.indices);
    matrix.columns = to_indices(indices, place, first);
    const auto bad = std::ranges::find_if_not(
        matrix.columns, [&](Index column) { return 0 <= column && column < matrix.num_columns; });
    if (bad != matrix.columns.end())
      throw InputError(concat(place, ": element ", first + (bad - matrix.columns.begin()), " is ", *bad,
                              ", expected ", index_range(matrix.num_columns), " by the shape (", num_rows,
                              ", ", num_columns, ")"));
  });
  if (arrays.data != nullptr)
    matrix.values =
        read_list(comm, archive, *arrays.data, shape[0], matrix.entries, "one for each of the indices");
  else
    comm.agree([&] { matrix.values = ones(matrix.entries.num_nodes(comm.rank())); });
  return matrix;
}

}  // namespace sar::formats
