/// The sequential driver: the one place where message passing meets communication. A shard kernel knows one
/// piece of graph in local memory; the driver walks the shards, brings the source rows, and takes gradients
/// home.
///
/// Forward, the local shard is aggregated while the first halo rows travel; each piece of halo rows is
/// dropped after its use. Backward, gradients of halo rows are computed piece by piece and leave first, and
/// the local shard is computed while the last of them travel. Memory besides the operands: forward
/// pipeline_depth + 1 pieces; backward, where pieces are cut in four, pipeline_depth pieces' worth outgoing,
/// as much incoming, and a quarter being filled; where the rows are fetched again on the way back, both, with
/// pieces half as large.
#pragma once

#include <sar/core/tensor.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/message/sharded_graph.hpp>

#include <vector>

namespace sar {

/// Source rows [begin, end) of a shard, with their values where a kernel asked for them.
struct SourcePiece {
  const GraphShard& shard;
  Index begin;
  Index end;
  const real* rows;  ///< [end - begin, ...]; null where values are not needed
};

class ShardKernel {
 public:
  virtual ~ShardKernel() = default;
  /// Takes the messages of the edges whose sources are in the piece. The local shard comes first and in one
  /// piece; the pieces of another shard come in ascending order.
  virtual void accumulate(const SourcePiece& piece) = 0;
  /// Whether backward() reads the values of source rows.
  [[nodiscard]] virtual bool needs_source_in_backward() const = 0;
  /// Writes (or adds, when `accumulate`) the gradient of the piece's source rows to grad_src [end - begin,
  /// ...]; also collects gradients of other operands. `grad_src` is null when no gradient of the sources is
  /// wanted. The local shard comes first or last and in one piece; pieces of a shard come in ascending order,
  /// perhaps smaller ones than forward.
  virtual void backward(const SourcePiece& piece, real* grad_src, bool accumulate) = 0;
};

/// Halo rows that a forward pass kept for the way back.
using KeptRows = std::vector<HaloFetch::Piece>;

/// Fetches and accumulates all shards. `local_work` runs after the first messages are under way, before the
/// local shard. Halo rows are left in `keep` when it is given. Without `src` (undefined on all ranks) nothing
/// travels, and every shard is one piece without rows. Collective.
void forward_shards(const ShardedGraph& graph, const GraphOptions& options, const Tensor& src,
                    ShardKernel& kernel, KeptRows* keep, FunctionRef<void()> local_work);

/// Walks all shards backward. `src`: values of the local source rows, when the kernel needs them.
/// `src_shape`: theirs; undefined when no source row is read. `kept`: the halo rows of the forward pass, or
/// null to fetch them again if needed. `grad_src` [as src]: added to when `accumulate`, overwritten
/// otherwise; null when no gradient of the sources is wanted on any rank. Collective.
void backward_shards(const ShardedGraph& graph, const GraphOptions& options, const Tensor& src,
                     const Shape& src_shape, ShardKernel& kernel, const KeptRows* kept, Tensor* grad_src,
                     bool accumulate);

}  // namespace sar
