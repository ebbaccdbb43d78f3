#include <sar/comm/rows/replace_ids.hpp>
#include <sar/comm/rows/unique_ids.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sar {
namespace {

constexpr std::size_t round_ids = std::size_t{1} << 18;  // that a rank sends at a time

}  // namespace

void require_unique_ids(const Communicator& comm, std::span<const Index> ids, const std::string& place) {
  const auto ranks = static_cast<Index>(comm.size());
  Index largest = 0;
  for (const Index id : ids) largest = std::max(largest, id);
  largest = comm.all_reduce(largest, ReduceOp::max);
  const Index total = comm.all_reduce(static_cast<Index>(ids.size()));
  const bool dense = largest / 64 <= total;
  IndexSet seen(dense ? largest / ranks + 1 : 0);
  // Who looks after an id. Sparse ones may be multiples of the same number all of them, hence the hash.
  const auto keeper = [&](Index id) {
    if (dense) return static_cast<std::size_t>(id % ranks);
    const std::uint64_t mixed = static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15u >> 32;
    return static_cast<std::size_t>(mixed * static_cast<std::uint64_t>(ranks) >> 32);
  };
  Array<Index> sparse;
  Index twice = -1;

  const auto rounds =
      comm.all_reduce(static_cast<Index>((ids.size() + round_ids - 1) / round_ids), ReduceOp::max);
  std::vector<Index> sorted;
  for (Index r = 0; r < rounds; ++r) {
    const std::size_t begin = std::min(ids.size(), static_cast<std::size_t>(r) * round_ids);
    const auto block = ids.subspan(begin, std::min(round_ids, ids.size() - begin));
    std::vector<Index> counts(ranks, 0);
    for (const Index id : block) ++counts[keeper(id)];
    std::vector<Index> next(counts.size(), 0);
    for (std::size_t p = 1; p < next.size(); ++p) next[p] = next[p - 1] + counts[p - 1];
    sorted.resize(block.size());
    for (const Index id : block) sorted[next[keeper(id)]++] = id;
    const auto received = comm.all_to_all_v(std::span<const Index>(sorted), counts).values;
    if (!dense) {
      sparse.insert(sparse.end(), received.begin(), received.end());
      continue;
    }
    for (const Index id : received) {
      if (seen.contains(id / ranks)) twice = id;
      seen.insert(id / ranks);
    }
  }
  std::sort(sparse.begin(), sparse.end());
  if (const auto pair = std::adjacent_find(sparse.begin(), sparse.end()); pair != sparse.end()) twice = *pair;
  twice = comm.all_reduce(twice, ReduceOp::max);
  require<InputError>(twice < 0, place, ": ", twice, " occurs twice, expected each id once");
}

}  // namespace sar
