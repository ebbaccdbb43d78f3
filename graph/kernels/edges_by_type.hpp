/// The edges of a block of rows, grouped by type and, within a type, by row: what kernels go through that have
/// a matrix for each type of edge. For implementation files.
///
/// A row and a type of edges that ends (or begins) there are a pair. A kernel takes the pairs of a type some
/// at a time: it adds up, or attends over, the edges of each pair into a row of its own, and multiplies these
/// rows by the matrix of the type while they are in cache.
///
///     EdgesByType block(num_types);
///     block.group(edges, first, last);
///     for (const EdgesByType::Group& group : block.groups())
///       for (Index p = group.first; p < group.last; ++p)           // pair (block.row(p), group.type)
///         for (Index x = block.begin()[p]; x < block.begin()[p + 1]; ++x)
///           use(block.other()[x], block.edge()[x]);
///
/// Cost: the indices of a block are read twice and written once, about 20 bytes an edge, in cache for blocks
/// of some thousand edges. The order is that of the rows: it depends neither on threads nor on addresses.
#pragma once

#include <sar/core/parallel.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <cstdint>
#include <limits>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// The edges of rows, of a shard or of its transpose: those of row i are [begin[i], end[i]).
struct TypedEdges {
  const local_index* begin = nullptr;
  const local_index* end = nullptr;
  const local_index* other = nullptr;        ///< row at the other end of each
  const local_index* position_of = nullptr;  ///< position in the shard of each; null: its own
  Index first_edge = 0;                      ///< the number of the edge at position 0
  const std::uint16_t* types = nullptr;      ///< per edge number
};

/// For one thread. The memory of the last block is used again.
class EdgesByType {
 public:
  struct Group {
    Index type;
    Index first, last;  ///< its pairs
  };

  explicit EdgesByType(Index num_types) : edges_of_type_(num_types, 0) {}

  /// Takes the edges of rows [first, last), but of rows with more than `longest`.
  void group(const TypedEdges& edges, Index first, Index last,
             Index longest = std::numeric_limits<Index>::max());

  /// The types that occur, ascending.
  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }
  /// Of a pair: its row, of [first, last) above. Ascends within a type.
  [[nodiscard]] Index row(Index pair) const { return rows_[pair]; }
  /// The edges of pair p are begin()[p] .. begin()[p + 1] - 1 of the arrays below, in the order that they
  /// have in their row.
  [[nodiscard]] const local_index* begin() const { return begin_.data(); }
  [[nodiscard]] const local_index* other() const { return other_.data(); }  ///< row at the other end
  [[nodiscard]] const local_index* edge() const { return edge_.data(); }    ///< number of the edge

 private:
  void list_pairs();

  std::vector<local_index> edges_of_type_;  // where the next edge of each type goes; 0 between two blocks
  std::vector<std::uint16_t> types_;        // that occur
  std::vector<Group> groups_;
  std::vector<local_index> rows_, begin_;  // of each pair
  std::vector<local_index> row_, other_, edge_;
};

/// The first rows of blocks of the rows [0, num_rows), and num_rows behind them. A block has about `most`
/// edges and rows, and more where there are many types, so that a type has several pairs; less where there
/// are few edges. `offsets` as for for_row_blocks().
std::vector<Index> typed_blocks(const local_index* offsets, Index num_rows, Index num_types,
                                Index most = Index{1} << 13);

/// body(first, last) for these blocks, in parallel.
void for_typed_blocks(const local_index* offsets, Index num_rows, Index num_types,
                      FunctionRef<void(Index first, Index last)> body);

}  // namespace sar
