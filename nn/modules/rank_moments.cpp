// SPDX-License-Identifier: MIT
#include <sar/comm/rows/partition_book.hpp>
#include <sar/nn/modules/rank_moments.hpp>

#include <span>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

ColumnMoments merge_over_ranks(const Communicator& comm, const ColumnMoments& mine) {
  return comm.agree([&] {
    const auto columns = static_cast<Index>(mine.mean.size());
    const PartitionBook shares = PartitionBook::even(columns, comm.size());
    std::vector<double> packed;  // for each rank: count, means and second moments of its columns
    std::vector<Index> counts;
    for (int q = 0; q < comm.size(); ++q) {
      packed.push_back(mine.count);
      for (const std::vector<double>* numbers : {&mine.mean, &mine.m2})
        packed.insert(packed.end(), numbers->begin() + shares.begin(q), numbers->begin() + shares.end(q));
      counts.push_back(1 + 2 * shares.num_nodes(q));
    }
    const Index width = shares.num_nodes(comm.rank());
    const std::vector<Index> arriving(counts.size(), 1 + 2 * width);
    const std::vector<double> arrived = comm.all_to_all_v(std::span<const double>(packed), counts, arriving);
    ColumnMoments share{0, std::vector<double>(width), std::vector<double>(width)};
    for (auto from = arrived.begin(); from != arrived.end(); from += 1 + 2 * width)
      share.merge({*from, {from + 1, from + 1 + width}, {from + 1 + width, from + 1 + 2 * width}});
    share.mean.insert(share.mean.end(), share.m2.begin(), share.m2.end());
    const std::vector<double> merged = comm.all_gather(std::span<const double>(share.mean));
    ColumnMoments total{share.count, {}, {}};
    auto from = merged.begin();
    for (int q = 0; q < comm.size(); ++q)
      for (std::vector<double>* numbers : {&total.mean, &total.m2}) {
        numbers->insert(numbers->end(), from, from + shares.num_nodes(q));
        from += shares.num_nodes(q);
      }
    return total;
  });
}

}}  // namespace sar
