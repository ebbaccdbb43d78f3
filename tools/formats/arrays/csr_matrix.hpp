// SPDX-License-Identifier: MIT

/// Sparse matrices in compressed rows, as SciPy and published datasets have them: `indptr`, `indices`,
/// `data`; also as data of nodes or edges, whose rows are asked for as dense ones.
#pragma once

#include "formats/field_data.hpp"
#include "formats/packed/npz.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/memory/memory.hpp>

#include <array>
#include <string>

namespace sar::formats {

/// The arrays of a matrix. `data` may be missing: then all entries are 1.
struct CsrArrays {
  std::string name;  ///< for messages: "data.npz: adj"
  const NpzMember* data = nullptr;
  const NpzMember* indices = nullptr;
  const NpzMember* indptr = nullptr;
  const NpzMember* shape = nullptr;
};

/// This rank's slice of the rows of a matrix: entry k of row i is values[k] in column columns[k], for k from
/// offsets[i] to offsets[i + 1] - 1.
struct CsrMatrix {
  Index num_rows = 0, num_columns = 0;
  PartitionBook rows = {};     ///< even slices
  PartitionBook entries = {};  ///< those of each rank's rows, in the order of the file
  Array<Index> offsets = {};   ///< of my rows, and one more
  Array<Index> columns = {};
  DataArray values = {};

  /// Collective. Whether all values of all ranks are 1.
  [[nodiscard]] bool is_all_ones(const Communicator& comm) const;
};

/// Local. The integers of a list that begins with element `first` of an array. Throws InputError, beginning
/// with `place`, for other numbers.
Array<Index> to_indices(const DataArray& list, const std::string& place, Index first);

/// The two numbers of the array `shape`. Collective; throws InputError, the same on every rank.
std::array<Index, 2> read_shape(const Communicator& comm, const NpzMember& member);

/// The length of an array that is a list. Collective; throws InputError, the same on every rank.
Index length_of(const Communicator& comm, const NpzMember& member);
/// This rank's part of a list of numbers that is as long as the book says; `what` says why, for messages.
/// Collective; throws InputError, the same on every rank.
DataArray read_numbers(const Communicator& comm, const NpzMember& member, const PartitionBook& book,
                       const std::string& what);

/// Reads a matrix. `by_column`: the arrays are in compressed columns, and the matrix is the transpose of the
/// one that `shape` describes. A rank needs memory for its rows. Collective; throws InputError, the same on
/// every rank, for arrays that do not fit together.
CsrMatrix read_csr(const Communicator& comm, const CsrArrays& arrays, bool by_column = false);

/// The rows of a matrix, of which each rank keeps its slice, as a field. Sends the entries of rows, not the
/// zeros between them; entries of the same row and column are added, as by SciPy. Needs memory for the dense
/// rows.
ReadRows rows_of(CsrMatrix matrix);

}  // namespace sar::formats
