// SPDX-License-Identifier: MIT
#include "sparse_trial.hpp"

#include <sar/core/random.hpp>
#include <sar/core/tensor/sparse_matrix.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

namespace sar::tools {

void make_features_sparse(NodeData& data, Index columns, double stored) {
  const Index in_row = std::clamp<Index>(std::llround(stored), 1, columns);
  Array<Index> offsets{0};
  Array<std::int32_t> at;
  const Random random({});
  for (const Index id : data.original_ids) {
    const auto first =
        static_cast<Index>(random.bits(static_cast<std::uint64_t>(id)) % static_cast<std::uint64_t>(columns));
    for (Index k = 0; k < in_row; ++k)
      at.push_back(static_cast<std::int32_t>((first + k * columns / in_row) % columns));
    offsets.push_back(std::ssize(at));
  }
  Array<real> values(at.size(), real{1});
  data.features = {};
  data.sparse_features =
      std::make_shared<const SparseMatrix>(columns, std::move(offsets), std::move(at), std::move(values));
}

}  // namespace sar::tools
