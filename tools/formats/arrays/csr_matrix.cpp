// SPDX-License-Identifier: MIT

// Rows are divided evenly; then `indptr` says which entries each rank reads. O((rows + entries) / P) memory
// on a rank, and each array is read once.
//
// A row of a field is asked for at its owner, which sends the number of its entries, then their columns and
// values: 8 bytes a row, and 8 bytes and a value for each entry. Time is that of writing the dense rows.

#include "csr_matrix.hpp"

#include "npz_arrays.hpp"

#include <sar/comm/rows/node_directory.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/npy.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace sar::formats {
namespace {

/// Where my rows begin and end among all entries. The last rank has the element behind the last row.
Array<Index> read_offsets(const Communicator& comm, const NpzMember& indptr, const PartitionBook& rows,
                          Index num_entries) {
  std::vector<Index> begins;
  for (int rank = 0; rank < comm.size(); ++rank) begins.push_back(rows.begin(rank));
  begins.push_back(rows.num_nodes() + 1);
  const PartitionBook book(begins);
  const DataArray list = read_numbers(comm, indptr, book, "one for each row of the matrix, and one more");
  const std::string place = indptr.place();
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

Array<Index> to_indices(const DataArray& list, const std::string& place, Index first) {
  Array<Index> values(static_cast<std::size_t>(list.num_rows));
  const Index held = convert_elements(list.type, list.bytes.data(), list.num_rows, values.data());
  if (held < list.num_rows)
    throw_not_held<Index>(place, concat("element ", first + held), list.type, list.row(held));
  return values;
}

bool CsrMatrix::is_all_ones(const Communicator& comm) const {
  Array<double> numbers(static_cast<std::size_t>(values.num_rows));
  convert_elements(values.type, values.bytes.data(), values.num_rows, numbers.data());
  const bool mine = std::ranges::all_of(numbers, [](double value) { return value == 1; });
  return comm.all_reduce(mine ? 1 : 0, ReduceOp::min) == 1;
}

std::array<Index, 2> read_shape(const Communicator& comm, const NpzMember& member) {
  const std::vector<Index> shape = read_integers(comm, member);
  require<InputError>(shape.size() == 2 && shape[0] >= 0 && shape[1] >= 0 && shape[0] < Index{1} << 60 &&
                          shape[1] < Index{1} << 60,
                      member.place(), ": is ", shape_to_string(shape),
                      ", expected the numbers of rows and columns of a matrix");
  return {shape[0], shape[1]};
}

Index length_of(const Communicator& comm, const NpzMember& member) {
  const std::vector<Index> shape = shape_of(comm, member);
  require<InputError>(shape.size() == 1, member.place(), ": shape is ", shape_to_string(shape),
                      ", expected a list");
  return shape[0];
}

DataArray read_numbers(const Communicator& comm, const NpzMember& member, const PartitionBook& book,
                       const std::string& what) {
  NpzArray array(comm, member);
  require<InputError>(array.shape() == std::vector<Index>{book.num_nodes()}, member.place(), ": shape is ",
                      shape_to_string(array.shape()), ", expected (", book.num_nodes(), ",), ", what);
  return array.read_rows(book);
}

CsrMatrix read_csr(const Communicator& comm, const CsrArrays& arrays, bool by_column) {
  for (const auto& [member, name] :
       {std::pair{arrays.indices, "indices"}, {arrays.indptr, "indptr"}, {arrays.shape, "shape"}})
    require<InputError>(member != nullptr, arrays.name, ": the sparse matrix has no array ", name,
                        ", expected data, indices, indptr and shape, as scipy.sparse.save_npz writes them");
  auto [num_rows, num_columns] = read_shape(comm, *arrays.shape);
  if (by_column) std::swap(num_rows, num_columns);
  const Index num_entries = length_of(comm, *arrays.indices);
  CsrMatrix matrix{.num_rows = num_rows, .num_columns = num_columns};
  matrix.rows = PartitionBook::even(num_rows, comm.size());
  require<InputError>(num_rows < arrays.indptr->bytes, arrays.indptr->place(), ": has ", arrays.indptr->bytes,
                      " bytes, expected an element for each of ", num_rows, " rows");
  matrix.offsets = read_offsets(comm, *arrays.indptr, matrix.rows, num_entries);
  const Index first = matrix.offsets.front();
  std::vector<Index> begins = comm.all_gather(first);
  begins.push_back(num_entries);
  matrix.entries = PartitionBook(begins);
  for (Index& offset : matrix.offsets) offset -= first;
  const DataArray indices = read_numbers(comm, *arrays.indices, matrix.entries, "the entries of the matrix");
  comm.agree([&] {
    const std::string place = arrays.indices->place();
    matrix.columns = to_indices(indices, place, first);
    const auto bad = std::ranges::find_if_not(
        matrix.columns, [&](Index column) { return 0 <= column && column < matrix.num_columns; });
    if (bad != matrix.columns.end())
      throw InputError(concat(place, ": element ", first + (bad - matrix.columns.begin()), " is ", *bad,
                              ", expected ", index_range(matrix.num_columns), " by the shape (", num_rows,
                              ", ", num_columns, ")"));
  });
  if (arrays.data != nullptr)
    matrix.values = read_numbers(comm, *arrays.data, matrix.entries, "one for each of the indices");
  else
    comm.agree([&] { matrix.values = ones(matrix.entries.num_nodes(comm.rank())); });
  return matrix;
}

namespace {

/// Entries of rows, as they are sent.
struct SentRows {
  Communicator::Received<Index> counts;  ///< of entries, for each row
  std::vector<Index> columns;
  std::vector<std::byte> values;
};

/// Sends each rank the rows that it asks for. Collective.
SentRows send_rows_of(const Communicator& comm, const CsrMatrix& matrix,
                      const Communicator::Received<Index>& asked) {
  const Index begin = matrix.rows.begin(comm.rank()), width = matrix.values.row_bytes();
  std::vector<Index> counts, columns, entries(asked.counts.size(), 0), bytes(asked.counts.size(), 0);
  std::vector<std::byte> values;
  comm.agree([&] {
    auto row = asked.values.begin();
    for (std::size_t rank = 0; rank < asked.counts.size(); ++rank) {
      for (Index i = 0; i < asked.counts[rank]; ++i, ++row) {
        const Index first = matrix.offsets[*row - begin], last = matrix.offsets[*row - begin + 1];
        counts.push_back(last - first);
        columns.insert(columns.end(), matrix.columns.begin() + first, matrix.columns.begin() + last);
        values.insert(values.end(), matrix.values.row(first), matrix.values.row(last));
        entries[rank] += last - first;
      }
      bytes[rank] = entries[rank] * width;
    }
  });
  return {comm.all_to_all_v(std::span<const Index>(counts), asked.counts),
          comm.all_to_all_v(std::span<const Index>(columns), entries).values,
          comm.all_to_all_v(std::span<const std::byte>(values), bytes).values};
}

/// Adds elements of the type in the file.
void add_element(NpyType type, const std::byte* value, std::byte* to, bool is_first) {
  const Index bytes = element_bytes(type);
  if (is_first) {
    std::copy_n(value, bytes, to);
    return;
  }
  with_npy_type(type, [&](auto element) {
    using Element = decltype(element);
    if constexpr (requires { element + element; }) {
      Element a{}, b{};
      std::copy_n(to, bytes, reinterpret_cast<std::byte*>(&a));
      std::copy_n(value, bytes, reinterpret_cast<std::byte*>(&b));
      a = static_cast<Element>(a + b);
      std::copy_n(reinterpret_cast<const std::byte*>(&a), bytes, to);
    }
  });
}

DataArray dense_rows(const Communicator& comm, const CsrMatrix& matrix, std::span<const Index> rows) {
  Array<Index> order;
  std::vector<Index> sorted, counts(static_cast<std::size_t>(comm.size()), 0);
  comm.agree([&] {
    for (const Index row : rows) {
      require<InputError>(0 <= row && row < matrix.num_rows, "there is no row ", row, ", expected ",
                          index_range(matrix.num_rows));
      ++counts[matrix.rows.owner(row)];
    }
    order = sorted_order(rows);
    for (const Index i : order) sorted.push_back(rows[i]);
  });
  const auto asked = comm.all_to_all_v(std::span<const Index>(sorted), counts);
  const SentRows got = send_rows_of(comm, matrix, asked);
  return comm.agree([&] {
    DataArray dense(matrix.values.type, {matrix.num_columns}, std::ssize(rows));
    std::ranges::fill(dense.bytes, std::byte{0});
    std::vector<Index> last_row(static_cast<std::size_t>(matrix.num_columns), -1);  // that has the column
    const Index width = matrix.values.row_bytes();
    Index k = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
      for (Index n = 0; n < got.counts.values[i]; ++n, ++k) {
        const Index column = got.columns[k];
        add_element(dense.type, got.values.data() + k * width, dense.row(order[i]) + column * width,
                    std::exchange(last_row[column], static_cast<Index>(i)) != static_cast<Index>(i));
      }
    return dense;
  });
}

}  // namespace

ReadRows rows_of(CsrMatrix matrix) {
  return [kept = std::move(matrix)](const Communicator& comm, std::span<const Index> rows) {
    return dense_rows(comm, kept, rows);
  };
}

}  // namespace sar::formats
