// SPDX-License-Identifier: MIT
#include <sar/comm/exact_sums.hpp>

namespace sar { inline namespace SAR_PRECISION {

std::vector<ExactSum> exact_sum_over_ranks(const Communicator& comm, std::span<const ExactSum> mine) {
  const std::vector<ExactSum> all = comm.all_gather(mine);
  std::vector<ExactSum> total(mine.size());
  for (std::size_t i = 0; i < all.size(); ++i) total[i % mine.size()].add(all[i]);
  return total;
}

}}  // namespace sar
