// SPDX-License-Identifier: MIT

/// EdgeList: edges as columns. GraphShard: some of a rank's in-edges in local memory, as a bipartite graph
/// from source rows to destination rows. A ShardKernel runs on it; it has no knowledge of
/// ranks.
///
/// Room graph/shard: Edges in local memory and the interface of the kernels that run on them. Nothing here
/// depends on ranks or tapes.
#pragma once

#include <sar/config.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/typed_rows.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace sar { inline namespace SAR_PRECISION {

// EdgeList: edges as columns, the input of graph construction.

/// In-edges of this rank's nodes, in no particular order. Node ids are global ids (PartitionBook). `id`
/// identifies the edge in the whole graph: it is unique, and the same for every partitioning.
struct EdgeList {
  Array<Index> src;
  Array<Index> dst;
  Array<Index> id;
  Array<real> weight;  ///< empty, or one per edge

  void append(const EdgeList& from, Index e) {
    src.push_back(from.src[e]);
    dst.push_back(from.dst[e]);
    id.push_back(from.id[e]);
    if (!from.weight.empty()) weight.push_back(from.weight[e]);
  }
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(src.size()); }
};

/// A row index inside a shard.
using local_index = std::int32_t;

/// The same edges sorted by source row, for the backward pass. SourceOffsets gives the first edge of each
/// row.
struct ShardTranspose {
  Array<local_index> dst;  ///< destination row (of this rank) per edge
};

struct GraphShard {
  /// Source rows which kernels read. Every row has an edge, except in the local shard and where relations
  /// share a halo.
  Index num_src_rows = 0;
  Index num_dst = 0;     ///< destination rows of this rank
  Index first_edge = 0;  ///< index of this shard's first edge among this rank's edges

  /// Whether kernels process all destination rows, including those without edges (EdgeWalk); set for the
  /// local shard.
  bool every_row = false;
  /// Destination rows with edges, ascending; empty: no edges, or all rows 0 .. num_dst-1 (num_rows()).
  Array<local_index> dst_rows;
  /// Edges of dst_rows[i]: [row_begin[i], row_begin[i+1]), sorted by source row, then by edge id.
  Array<local_index> row_begin;
  Array<local_index> src;  ///< source row per edge

  [[nodiscard]] Index num_rows() const noexcept { return static_cast<Index>(row_begin.size()) - 1; }
  [[nodiscard]] Index num_edges() const noexcept { return static_cast<Index>(src.size()); }
  [[nodiscard]] Index dst_row(Index i) const { return dst_rows.empty() ? i : dst_rows[i]; }
  [[nodiscard]] Index edge(Index position) const { return first_edge + position; }

  /// Returns the offsets of all destination rows [num_dst + 1]: row_begin, or an expanded copy in `made`.
  [[nodiscard]] const local_index* offsets_of_every_row(Array<local_index>& made) const;

  /// Returns the memory of all arrays that currently exist.
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// Returns the edges sorted by source row. Computed at the first call and cached.
  [[nodiscard]] const ShardTranspose& transpose() const;
  /// Returns, for each edge of transpose(), its position among the edges of this shard. Computed at the first
  /// call and cached.
  [[nodiscard]] const Array<local_index>& transpose_positions() const;
  /// Returns, for each edge of this shard, its position among the edges of transpose(). Computed at the first
  /// call and cached.
  [[nodiscard]] const Array<local_index>& positions_in_transpose() const;

 private:
  friend class SourceOffsets;
  /// Offsets of the transpose as bit sets, for shards with many more source rows than edges.
  struct FewEdges {
    IndexSet rows;         ///< rows with edges
    IndexSet first_edges;  ///< first edges of these rows, among the edges of the transpose
    Array<local_index> before;  ///< number of edges before each rows_of_block rows
    static constexpr Index rows_of_block = 1 << 10;
  };
  struct Lazy {
    std::once_flag transpose_once, positions_once, inverse_once;
    ShardTranspose transpose;
    Array<local_index> begin;      ///< [source rows + 1] offsets of the transpose; empty if `bits` is used
    std::optional<FewEdges> bits;  ///< the same with one bit per source row and one per edge
    Array<local_index> positions, inverse;
  };
  std::unique_ptr<Lazy> lazy_ = std::make_unique<Lazy>();
};

/// The offsets of the source rows [first, last) in the transpose: row first + i has the edges [data()[i],
/// data()[i + 1]). They are a view, or are expanded from the bit sets of a shard with few edges, in time
/// linear in these rows and their edges.
class SourceOffsets {
 public:
  SourceOffsets(const GraphShard& shard, Index first, Index last);
  [[nodiscard]] const local_index* data() const noexcept { return begin_; }
  [[nodiscard]] local_index operator[](Index i) const noexcept { return begin_[i]; }

 private:
  Array<local_index> made_;
  const local_index* begin_;
};

/// An in-edge before it is assigned to a shard.
struct LocalEdge {
  local_index dst;  ///< destination row of this rank
  local_index src;  ///< source row of the shard; before that is known, row in the range of the source's owner
  Index id;
  real weight;
};

/// Returns the shard of `edges`, which must be sorted by (dst, src, id); their indices start at `first_edge`.
/// `every_row` as in GraphShard. Throws InputError for more than 2^31-1 edges.
GraphShard build_shard(const LocalEdge* edges, Index num_edges, Index first_edge, Index num_dst,
                       Index num_src_rows, bool every_row);

/// Sets every_row, dst_rows and row_begin of a shard whose `num_edges` edges are sorted by their destination
/// row, dst_of(k). Lists only the rows with edges, or all rows if `every_row` is set and that takes less
/// memory.
template <class DstOf>
void list_rows(GraphShard& shard, Index num_edges, const DstOf& dst_of, bool every_row) {
  Index rows = 0;
  for (Index k = 0; k < num_edges; ++k) rows += k == 0 || dst_of(k) != dst_of(k - 1) ? 1 : 0;
  shard.every_row = every_row;
  if (!every_row || 2 * rows < shard.num_dst) {
    shard.dst_rows.reserve(rows);
    shard.row_begin.reserve(rows + 1);
    for (Index k = 0; k < num_edges; ++k) {
      if (k > 0 && dst_of(k) == dst_of(k - 1)) continue;
      shard.dst_rows.push_back(dst_of(k));
      shard.row_begin.push_back(static_cast<local_index>(k));
    }
    shard.row_begin.push_back(static_cast<local_index>(num_edges));
  } else {
    shard.row_begin.resize(shard.num_dst + 1);
    Index k = 0;
    for (Index i = 0; i < shard.num_dst; ++i) {
      shard.row_begin[i] = static_cast<local_index>(k);
      while (k < num_edges && dst_of(k) == i) ++k;
    }
    shard.row_begin[shard.num_dst] = static_cast<local_index>(num_edges);
  }
}

// The interface between message passing and its kernels. A kernel computes one stage in local memory; the
// driver (graph/message/driver.hpp) fetches the source rows of the stages and sends their gradients to the
// owners. A kernel depends neither on ranks nor on tapes.
//
// The driver calls, in this order:
//
//     forward     begin()    accumulate(local shard)    accumulate(stage) ...    finish()
//
//     backward    begin_backward()    backward(stage) ...    finish_backward()
//
// In the backward pass the local shard comes first or last. Kernels that support parts get the local shard
// in parts, between the stages of the remote shard.

/// The edges of a shard whose sources are the rows [begin, end), with the values of these rows if the kernel
/// needs them. A stage of the local shard has all sources; in the forward pass it may be a part, the
/// destination rows [first_row, end_row).
struct Stage {
  const GraphShard& shard;
  Index begin;
  Index end;
  ConstTypedNumbers rows;  ///< [end - begin, ...]; null if values are not needed
  Index first_row = 0;
  Index end_row = -1;  ///< -1: all rows

  [[nodiscard]] bool is_part() const noexcept { return end_row >= 0; }
  [[nodiscard]] Index size() const noexcept { return end - begin; }
  /// The stage of the source rows [from, to) of this one, with `width` numbers each.
  [[nodiscard]] Stage of_sources(Index from, Index to, Index width) const {
    return {shard, from, to, rows.from((from - begin) * width)};
  }
};

class ShardKernel : NonCopyable {
 public:
  virtual ~ShardKernel() = default;

  virtual void begin() {}
  /// Processes the messages of the stage's edges. The first call after begin() has the whole local shard, or
  /// its part that starts at destination row 0. In both cases EdgeWalk lists all destinations (those of
  /// other parts without edges), so that a kernel can write its results there and add to them later. Stages
  /// of the remote shard, and parts, come in ascending order.
  virtual void accumulate(const Stage& stage) = 0;
  /// Called after the last stage.
  virtual void finish() {}

  /// Returns whether the kernel reads rows in bfloat16. For other kernels the driver widens the rows of a
  /// stage.
  [[nodiscard]] virtual bool reads_bfloat16() const { return false; }
  /// Returns whether the local shard may come in parts: of its destination rows forward, of its source rows
  /// backward.
  [[nodiscard]] virtual bool takes_parts() const { return false; }

  /// Returns whether backward() reads the values of source rows.
  [[nodiscard]] virtual bool needs_source_in_backward() const = 0;
  virtual void begin_backward() {}
  /// Writes the gradient of the stage's source rows to grad_src [end - begin, ...], or adds it if
  /// `accumulate`, and collects the gradients of the other operands. `grad_src` is null if the sources
  /// require no gradient. The local shard is one stage, unless the kernel supports parts. Stages of a shard
  /// come in ascending order and may be smaller than in the forward pass.
  virtual void backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) = 0;
  /// Returns the type in which gradients of the sources are sent and added up where their gradient is of type
  /// `wanted`.
  [[nodiscard]] virtual NumberType gradient_type(NumberType wanted) const { return wanted; }
  /// Returns whether backward() writes numbers of this type. Others are computed as reals and rounded by the
  /// driver.
  [[nodiscard]] virtual bool writes(NumberType type) const { return type == NumberType::reals; }
  /// Called after the last stage.
  virtual void finish_backward() {}
};
}}  // namespace sar
