/// NodeDirectory: who owns which node, for nodes with any ids that lie on any ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/memory.hpp>

#include <cstddef>
#include <limits>
#include <span>

namespace sar {

/// Numbers for ids, by open addressing. About 40 bytes an id.
class IdTable {
 public:
  /// For `size` ids at first; it grows.
  explicit IdTable(Index size = 0);
  /// The number of an id; a new one gets `number`, which is what comes back. Anything but `none`.
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

/// Each id is entered at one rank, told by a hash of the id, where all others ask for it.
class NodeDirectory {
 public:
  /// `ids` of this rank's nodes, which get the partitioned ids book.begin(rank), .... Collective. Throws
  /// InputError, the same on every rank, for an id that comes twice.
  NodeDirectory(const Communicator& comm, const PartitionBook& book, std::span<const Index> ids);
  /// The partitioned ids, -1 for an id that nobody has. Collective.
  [[nodiscard]] Array<Index> find(std::span<const Index> ids) const;

 private:
  Communicator comm_;
  IdTable entries_;
};

}  // namespace sar
