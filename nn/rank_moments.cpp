#include <sar/nn/rank_moments.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace sar::inline SAR_PRECISION {

ColumnMoments merge_over_ranks(const Communicator& comm, const ColumnMoments& mine) {
  std::vector<double> packed{mine.count};
  packed.insert(packed.end(), mine.mean.begin(), mine.mean.end());
  packed.insert(packed.end(), mine.m2.begin(), mine.m2.end());
  const std::vector<double> all = comm.all_gather(std::span<const double>(packed));

  const std::size_t columns = mine.mean.size();
  ColumnMoments total{0, std::vector<double>(columns), std::vector<double>(columns)};
  for (auto rank = all.begin(); rank != all.end(); rank += static_cast<std::ptrdiff_t>(packed.size())) {
    const auto mean = rank + 1;
    const auto m2 = mean + static_cast<std::ptrdiff_t>(columns);
    const auto end = m2 + static_cast<std::ptrdiff_t>(columns);
    total.merge({*rank, {mean, m2}, {m2, end}});
  }
  return total;
}

}  // namespace sar
