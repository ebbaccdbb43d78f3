// SPDX-License-Identifier: MIT

// Each id is sent to the rank that checks it, 8 bytes per id in chunks. If ids are dense (at most about 64
// times their number), that rank has a bitmap of its share of the ids: O(ids) time. Otherwise it sorts its
// list: O(n log n). The rank depends on a hash, because ids may all be multiples of one number.
#include <sar/comm/rows/row_route.hpp>
#include <sar/comm/rows/unique_ids.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_set.hpp>
#include <sar/core/random/mix.hpp>

#include <algorithm>
#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

void require_unique_ids(const Communicator& comm, std::span<const Index> ids, const std::string& place) {
  comm.agree([&] {
    const auto ranks = static_cast<Index>(comm.size());
    Index largest = 0;
    for (const Index id : ids) largest = std::max(largest, id);
    largest = comm.all_reduce(largest, ReduceOp::max);
    const Index total = comm.all_reduce(static_cast<Index>(ids.size()));
    // Dense ids: a bitmap of id / ranks, which has one id for each rank. Sparse ids: sorted lists.
    const bool dense = largest / 64 <= total;
    const auto hashed = [ranks](Index id) {
      const std::uint64_t mixed = static_cast<std::uint64_t>(id) * golden_ratio >> 32;
      return static_cast<Index>(mixed * static_cast<std::uint64_t>(ranks) >> 32);
    };
    // Returns the rank that checks an id for duplicates. Ids may all be multiples of one number, hence the
    // hash.
    const auto owner = [&](Index i) {
      return dense ? (ids[i] % ranks + hashed(ids[i] / ranks)) % ranks : hashed(ids[i]);
    };
    IndexSet seen(dense ? largest / ranks + 1 : 0);
    Array<Index> sparse;
    Index twice = -1;
    route_chunks(comm, static_cast<Index>(ids.size()), sizeof(Index), owner,
                 [&](const RowRoute& route, Index first, Index last) {
                   const Array<Index> arrived = route.forward(ids.subspan(first, last - first));
                   if (!dense) sparse.insert(sparse.end(), arrived.begin(), arrived.end());
                   for (std::size_t i = 0; dense && i < arrived.size(); ++i) {
                     if (seen.contains(arrived[i] / ranks)) twice = arrived[i];
                     seen.insert(arrived[i] / ranks);
                   }
                 });
    std::sort(sparse.begin(), sparse.end());
    if (const auto pair = std::adjacent_find(sparse.begin(), sparse.end()); pair != sparse.end())
      twice = *pair;
    twice = comm.all_reduce(twice, ReduceOp::max);
    require<InputError>(twice < 0, place, ": ", twice, " occurs twice, expected each id once");
  });
}

void require_permutation(const Communicator& comm, std::span<const Index> ids, Index n,
                         const std::string& place) {
  const auto total = comm.all_reduce(static_cast<Index>(ids.size()));
  comm.agree([&] {
    require<InputError>(total == n, place, ": there are ", total, " ids, expected ", n);
    const std::string expected = index_range(n);
    for (const Index id : ids)
      require<InputError>(0 <= id && id < n, place, ": id ", id, " does not exist, expected ", expected);
  });
  require_unique_ids(comm, ids, place);  // n distinct ids below n are all of them
}

}}  // namespace sar
