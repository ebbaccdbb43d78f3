#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/permutation.hpp>
#include <sar/core/error.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace sar {

void require_permutation(const Communicator& comm, std::span<const Index> ids, Index n,
                         const std::string& what) {
  const auto total = comm.all_reduce(static_cast<Index>(ids.size()));
  comm.agree([&] {
    require<InputError>(total == n, what, ": there are ", total, " ids, expected ", n);
    for (const Index id : ids)
      require<InputError>(0 <= id && id < n, what, ": id ", id, " does not exist, expected 0 to ", n - 1);
  });
  // n ids below n are all of them when none comes twice; each rank sees to a range of them
  const PartitionBook book = PartitionBook::even(n, comm.size());
  const Index first = book.begin(comm.rank());
  std::vector<bool> seen(book.num_nodes(comm.rank()), false);
  constexpr std::size_t round = std::size_t{1} << 19;
  const auto rounds = comm.all_reduce(static_cast<Index>((ids.size() + round - 1) / round), ReduceOp::max);
  std::vector<Index> grouped, counts, next;
  for (Index r = 0; r < rounds; ++r) {
    const std::size_t begin = std::min(ids.size(), static_cast<std::size_t>(r) * round);
    const auto part = ids.subspan(begin, std::min(round, ids.size() - begin));
    counts.assign(comm.size(), 0);
    for (const Index id : part) ++counts[book.owner(id)];
    next.assign(counts.size(), 0);
    std::partial_sum(counts.begin(), counts.end() - 1, next.begin() + 1);
    grouped.resize(part.size());
    for (const Index id : part) grouped[next[book.owner(id)]++] = id;
    const auto received = comm.all_to_all_v(std::span<const Index>(grouped), counts);
    comm.agree([&] {
      for (const Index id : received.values) {
        const auto i = static_cast<std::size_t>(id - first);
        require<InputError>(!seen[i], what, ": id ", id, " comes twice, expected each once");
        seen[i] = true;
      }
    });
  }
}

}  // namespace sar
