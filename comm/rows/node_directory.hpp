// SPDX-License-Identifier: MIT

/// Node ids that are distributed over the ranks: whether they are unique, their order, and NodeDirectory,
/// which maps them to global ids.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// Ids that are distributed over the ranks: checks that they are unique, sorts them, renumbers them.

/// Collective. Throws InputError, the same on every rank, if an id occurs twice among the ids of all ranks:
/// "<place>: 7 occurs twice, ...". Ids must not be negative. Memory per rank: 1 / ranks bits per number up
/// to the largest id or, for sparse ids, 8 / ranks bytes per id of all ranks.
void require_unique_ids(const Communicator& comm, std::span<const Index> ids, const std::string& place);

/// Collective. Throws InputError with a message that begins with `place`, the same on every rank, unless
/// the ids of all ranks together are 0 to n - 1, each once. Memory: n / ranks bits and a few MB.
void require_permutation(const Communicator& comm, std::span<const Index> ids, Index n,
                         const std::string& place);

/// Local. Returns the positions of the ids in ascending order of the ids; equal ids keep their order.
[[nodiscard]] Array<Index> sorted_order(std::span<const Index> ids);

// Sample sort over the ranks: which rank sorts which keys.

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

// Renumbers ids: by their rank in the sorted order, or by a table that is distributed over the ranks.

/// Collective. Returns the position of each id among the sorted ids of all ranks. Equal ids are ordered by
/// rank, then by their position in a rank's list. Each rank may have up to 2^31 - 1 ids. A rank sorts at
/// most about twice the mean number of ids, whatever their values. Memory: about 40 bytes per id.
Array<Index> numbers_of_ids(const Communicator& comm, std::span<const Index> ids);

/// Collective. Replaces each id by table[id]. Rank slices.owner(i) stores table[i] as element i -
/// slices.begin(rank) of `mine`. All ids must exist. Each rank requests every distinct id once. Memory: at
/// most about 32 bytes per distinct id, plus some MB.
void replace_ids(const Communicator& comm, const PartitionBook& slices, std::span<const Index> mine,
                 std::span<Index> ids);

/// A map from ids to numbers: a hash table with open addressing. 32 to 64 bytes per id.
class IdTable {
 public:
  /// Reserves room for `size` ids; the table grows as needed.
  explicit IdTable(Index size = 0) { make_slots(std::bit_ceil(2 * static_cast<std::size_t>(size) + 2)); }
  /// Inserts an id with a number other than `none`, unless the id is present. Returns the number stored for
  /// the id.
  Index insert(Index id, Index number);
  /// Returns the number of an id, or `none`.
  [[nodiscard]] Index find(Index id) const noexcept { return slots_[slot_of(id)].number; }

  static constexpr Index none = std::numeric_limits<Index>::min();

 private:
  struct Slot {
    Index id, number;
  };
  [[nodiscard]] std::size_t slot_of(Index id) const noexcept;
  void make_slots(std::size_t count) { slots_.assign(count, {0, none}); }

  Array<Slot> slots_;  // size is a power of two; at most half are used
  std::size_t used_ = 0;
};

/// A distributed map from ids to global ids: a hash of the id chooses the rank that stores its entry.
class NodeDirectory {
 public:
  /// Collective. `ids` are the ids of this rank's nodes, whose global ids are book.begin(rank),
  /// book.begin(rank) + 1, ...; `what` names them in messages. Throws InputError, the same on every rank,
  /// if an id occurs twice.
  NodeDirectory(const Communicator& comm, const PartitionBook& book, std::span<const Index> ids,
                const char* what = "node");
  /// Collective. Returns the global ids, and -1 for an id that no rank has.
  [[nodiscard]] Array<Index> find(std::span<const Index> ids) const;

 private:
  Communicator comm_;
  IdTable entries_;
};
}}  // namespace sar
