// SPDX-License-Identifier: MIT
#include <sar/graph/data/dataset_options.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

bool is_sampled(Index node, Index num_nodes) {
  constexpr Index most = 4096;
  return node % std::max<Index>((num_nodes + most - 1) / most, 1) == 0;
}

bool becomes_sparse(SparseFeatures sparse, const DataField& field, Index rows, Index stored) {
  constexpr Index least_columns = 64, one_in = 8;
  const Index columns = field.row_size();
  if (sparse != SparseFeatures::automatic) return sparse == SparseFeatures::yes && columns > 1;
  return columns >= least_columns && one_in * stored <= rows * columns;
}
}}  // namespace sar
