/// NodeDirectory: who owns which node, for nodes with any ids on any ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>

#include <cstddef>
#include <limits>
#include <span>

namespace sar::inline SAR_PRECISION {

/// Numbers for ids: a hash table with open addressing. About 40 bytes an id.
class IdTable {
 public:
  /// Has room for `size` ids; it grows.
  explicit IdTable(Index size = 0);
  /// Gives a new id `number`, which is not `none`. Returns the number that the id has now.
  Index insert(Index id, Index number);
  /// The number of an id, or `none`.
  [[nodiscard]] Index find(Index id) const noexcept;

  static constexpr Index none = std::numeric_limits<Index>::min();

 private:
  struct Slot {
    Index id, number;
  };
  [[nodiscard]] std::size_t slot_of(Index id) const noexcept;
  void make_slots(std::size_t count);

  Array<Slot> slots_;  // a power of two, half of them in use at most
  std::size_t used_ = 0;
};

/// A hash of the id chooses the rank that knows it and that all others ask.
class NodeDirectory {
 public:
  /// `ids` are those of this rank's nodes, whose global ids are book.begin(rank), .... `what` they are called
  /// in errors. Collective. Throws InputError, the same on every rank, for an id that occurs twice.
  NodeDirectory(const Communicator& comm, const PartitionBook& book, std::span<const Index> ids,
                const char* what = "node");
  /// The global ids, and -1 for an id that no rank has. Collective.
  [[nodiscard]] Array<Index> find(std::span<const Index> ids) const;

 private:
  Communicator comm_;
  IdTable entries_;
};

}  // namespace sar
