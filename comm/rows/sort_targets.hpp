// SPDX-License-Identifier: MIT

/// Sample sort over the ranks: which rank sorts which keys.
#pragma once

#include <sar/comm/communicator.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Divides the keys of all ranks into ranges that ascend with the rank, one per rank. Returns
/// the rank of each key. This rank has n keys; key(i), i = 0, ..., n - 1, are in ascending order. If keys
/// are distinct, a rank gets at most about twice the mean number, whatever their values; equal keys get the
/// same rank. Memory: P^2 samples of the keys (regular sampling; H. Shi, J. Schaeffer: "Parallel sorting by
/// regular sampling", 1992).
template <class KeyOf>
[[nodiscard]] std::vector<std::int32_t> sort_targets(const Communicator& comm, Index n, const KeyOf& key) {
  using Key = std::decay_t<std::invoke_result_t<KeyOf, Index>>;
  return comm.agree([&] {
    const auto ranks = static_cast<Index>(comm.size());
    const Index step = std::max<Index>(1, comm.all_reduce(n) / (ranks * ranks));
    std::vector<Key> samples;
    for (Index i = step / 2; i < n; i += step) samples.push_back(key(i));
    samples = comm.all_gather(std::span<const Key>(samples));
    std::sort(samples.begin(), samples.end());
    std::vector<std::int32_t> targets(static_cast<std::size_t>(n), 0);
    std::int32_t rank = 0;
    const auto begins = [&](Index p) -> const Key& {
      return samples[static_cast<std::size_t>(p * std::ssize(samples) / ranks)];
    };
    for (Index i = 0; i < n; ++i) {
      while (rank + 1 < ranks && !(key(i) < begins(rank + 1))) ++rank;
      targets[static_cast<std::size_t>(i)] = rank;
    }
    return targets;
  });
}

}}  // namespace sar
