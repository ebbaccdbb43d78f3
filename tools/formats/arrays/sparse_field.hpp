// SPDX-License-Identifier: MIT

/// Data of nodes or edges in a sparse matrix, whose rows are asked for as dense ones.
#pragma once

#include "csr_matrix.hpp"
#include "formats/field_data.hpp"

namespace sar::formats {

/// The rows of a matrix; each rank keeps its slice. Entries of the same row and column are added, as by
/// SciPy.
class SparseFieldData : public FieldData {
 public:
  explicit SparseFieldData(CsrMatrix matrix) : matrix_(std::move(matrix)) {}
  /// Sends the entries of these rows, not the zeros between them. Needs memory for the dense rows.
  [[nodiscard]] DataArray read(const Communicator& comm, std::span<const Index> rows) const override;

 private:
  CsrMatrix matrix_;
};

}  // namespace sar::formats
