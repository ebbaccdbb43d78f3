// SPDX-License-Identifier: MIT

/// Sparse matrices in compressed rows, as SciPy and published datasets have them: `indptr`, `indices`,
/// `data`.
#pragma once

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

/// The two numbers of the array `shape`. Collective; throws InputError, the same on every rank.
std::array<Index, 2> read_shape(const Communicator& comm, const NpzFile& archive, const NpzMember& member);

/// Reads a matrix. `by_column`: the arrays are in compressed columns, and the matrix is the transpose of the
/// one that `shape` describes. A rank needs memory for its rows. Collective; throws InputError, the same on
/// every rank, for arrays that do not fit together.
CsrMatrix read_csr(const Communicator& comm, const NpzFile& archive, const CsrArrays& arrays,
                   bool by_column = false);

}  // namespace sar::formats
