// SPDX-License-Identifier: MIT

/// Groups the edges of a block of rows by type and, within a type, by row, for kernels with one matrix per
/// edge type. For implementation files.
///
/// A pair is a row and the type of one or more of its edges. A kernel processes some pairs of a type at a
/// time: it sums, or attends over, the edges of each pair into one row per pair, and multiplies these rows by
/// the type's matrix while they are in the cache.
///
///     EdgesByType block(num_types);
///     block.group(edges, first, last);
///     for (const EdgesByType::Group& group : block.groups())
///       for (Index p = group.first; p < group.last; ++p)           // pair (block.row(p), group.type)
///         for (Index x = block.begin()[p]; x < block.begin()[p + 1]; ++x)
///           use(block.other()[x], block.edge()[x]);
///
/// Cost: the indices of a block are read twice and written once, about 20 bytes per edge, in the cache for
/// blocks of a few thousand edges. The order is that of the rows and depends neither on threads nor on
/// addresses.
#pragma once

#include <sar/core/threads/parallel.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstdint>
#include <limits>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The edges of rows of a shard or of its transpose. Row i has the edges [begin[i], end[i]).
struct TypedEdges {
  const local_index* begin = nullptr;
  const local_index* end = nullptr;
  const local_index* other = nullptr;        ///< row at the other end of each edge
  const local_index* position_of = nullptr;  ///< position in the shard of each edge; null: the same
  Index first_edge = 0;                      ///< index of the edge at position 0
  const std::uint16_t* types = nullptr;      ///< per edge index
};

/// Groups the edges of one block. Used by one thread; its memory is reused from block to block.
class EdgesByType {
 public:
  struct Group {
    Index type;
    Index first, last;  ///< its pairs
  };

  explicit EdgesByType(Index num_types) : edges_of_type_(num_types, 0) {}

  /// Groups the edges of the rows [first, last), skipping rows with more than `longest` edges.
  void group(const TypedEdges& edges, Index first, Index last,
             Index longest = std::numeric_limits<Index>::max());

  /// Returns the groups, one per type that occurs, in ascending order.
  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }
  /// Returns the row of a pair, in [first, last). Rows ascend within a type.
  [[nodiscard]] Index row(Index pair) const { return rows_[pair]; }
  /// The edges of pair p are begin()[p] .. begin()[p + 1] - 1 in the arrays below, in the order of their row.
  [[nodiscard]] const local_index* begin() const { return begin_.data(); }
  [[nodiscard]] const local_index* other() const { return other_.data(); }  ///< row at the other end
  [[nodiscard]] const local_index* edge() const { return edge_.data(); }    ///< index of the edge

 private:
  void list_pairs();

  std::vector<local_index> edges_of_type_;  // next free position of each type; all 0 between two blocks
  std::vector<std::uint16_t> types_;        // types that occur
  std::vector<Group> groups_;
  std::vector<local_index> rows_, begin_;  // one entry per pair
  std::vector<local_index> row_, other_, edge_;
};

/// Splits the rows [0, num_rows) into blocks and returns the first row of each block, followed by num_rows. A
/// block has about `most` edges plus rows. Blocks are larger if there are many types, so that a type has
/// several pairs, and smaller if there are few edges. `offsets` as in for_row_blocks().
std::vector<Index> typed_blocks(const local_index* offsets, Index num_rows, Index num_types,
                                Index most = Index{1} << 13);

/// Calls body(first, last) for these blocks, in parallel.
void for_typed_blocks(const local_index* offsets, Index num_rows, Index num_types,
                      FunctionRef<void(Index first, Index last)> body);

}}  // namespace sar
