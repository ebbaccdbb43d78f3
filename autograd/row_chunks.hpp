/// For authors of operations: the rows of an operand a chunk at a time.
#pragma once

#include <sar/autograd/deferred_rows.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/core/parallel.hpp>

#include <algorithm>

namespace sar::inline SAR_PRECISION {

/// body(first, rows) for chunks of x that follow each other: all rows at once where they are in memory, and
/// at least one call. Rows that are computed are at most an eighth of all (or 1024), so that their memory
/// falls with the rows of a worker. `rows` is valid during the call.
inline void for_row_chunks(const Variable& x, FunctionRef<void(Index first, const Tensor& rows)> body) {
  constexpr Index chunk_elements = Index{1} << 22;
  const auto& deferred = x.deferred();
  if (deferred == nullptr) return body(0, x.value());
  if (const Tensor all = deferred->computed(); all.defined()) return body(0, all);
  const Shape& shape = x.shape();
  const Index most = std::min(shape[0] / 8, chunk_elements / std::max<Index>(shape.row_size(), 1));
  const Index chunk = std::max<Index>(1024, most);
  Tensor buffer(shape.with_rows(std::min(chunk, shape[0])));
  for (Index first = 0; first == 0 || first < shape[0]; first += chunk) {
    Tensor rows = buffer.slice_rows(0, std::min(chunk, shape[0] - first));
    deferred->compute(first, rows);
    body(first, rows);
  }
}

}  // namespace sar
