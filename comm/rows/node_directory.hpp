// SPDX-License-Identifier: MIT

/// NodeDirectory: maps arbitrary node ids, distributed over the ranks, to global ids.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory/memory.hpp>

#include <bit>
#include <cstddef>
#include <limits>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

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
