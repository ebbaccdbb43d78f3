// SPDX-License-Identifier: MIT
#include <sar/autograd/sparse_variable.hpp>

namespace sar { inline namespace SAR_PRECISION {

std::shared_ptr<const SparseMatrix> sparse_matrix(const Variable& x) {
  return std::dynamic_pointer_cast<const SparseMatrix>(x.deferred());
}

Variable concat_sparse(std::span<const std::shared_ptr<const SparseMatrix>> parts) {
  require<ShapeError>(!parts.empty(), "concat of no sparse rows");
  const Index width = parts.front()->num_columns();
  Array<Index> offsets{0};
  Array<std::int32_t> columns;
  Array<real> values;
  for (const auto& part : parts) {
    require<ShapeError>(part->num_columns() == width, "concat of sparse rows of shapes ",
                        parts.front()->shape(), " and ", part->shape(), ", expected rows of one width");
    const Index before = offsets.back();
    for (const Index offset : part->row_offsets().subspan(1)) offsets.push_back(before + offset);
    columns.insert(columns.end(), part->columns().begin(), part->columns().end());
    values.insert(values.end(), part->values().begin(), part->values().end());
  }
  return Variable(
      std::make_shared<const SparseMatrix>(width, std::move(offsets), std::move(columns), std::move(values)));
}

}}  // namespace sar
