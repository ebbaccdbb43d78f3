/// A message of the caller's own, a block of edges at a time.
///
///     forward     m = f(rows of u, v, e of the block);  out[v] = reduce of m, or out[e] = m
///     backward    f again on a tape of the block, seeded with dm: g[v], g[v] / in-degree, g[v] where the edge
///                 is the argmax, or g[e]; what the tape collects is added up for u and v, set for e
///
/// A row of the message must depend on its own edge only: in the backward pass blocks are others, by source,
/// so that gradients of sources are sums of consecutive rows. Traffic besides the function's own: forward a
/// row read and written per edge and operand, and a row of m read; backward the same, a row of g read and
/// written per edge, and a row of gradient read per edge and operand.
///
/// Several blocks are computed at the same time, each by one thread (by all threads when there is only one).
/// Rows of the result that a block shares with its neighbours, the first one's, gradients of destinations,
/// and those of what the function captures are added afterwards, in the order of the blocks. Memory: that of
/// one block for each thread, and of the results of two.
#pragma once

#include <sar/autograd/outer_gradients.hpp>
#include <sar/core/workspace.hpp>
#include <sar/graph/kernels/edge_batch.hpp>
#include <sar/graph/kernels/edge_block.hpp>
#include <sar/graph/kernels/message_op.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <exception>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// What a message function reads of one kind (sources, destinations or edges).
struct MessageOperands {
  PassVector<Variable> slots;                           ///< each variable once
  PassVector<std::size_t> calls;                        ///< slot that the k-th call asked for
  std::map<std::string, Variable, std::less<>> fields;  ///< variables behind names

  /// The slot of x in the `call`-th call, or slots.size().
  [[nodiscard]] std::size_t find(const Variable& x, std::size_t call) const;
};

struct MessageInputs {
  MessageOperands u, v, e;
  Shape message;               ///< of the result without edges: [0, ...]
  bool requires_grad = false;  ///< whether the result wants a gradient

  /// Numbers in a row of all source variables side by side.
  [[nodiscard]] Index u_width() const;
};

class UserMessageKernel : public ShardKernel {
 public:
  struct Operands {
    const MessageFunction& function;
    const MessageInputs& inputs;
    Index edge_block = 1;
    bool serial = false;              ///< the function is called by one thread at a time
    Index num_edges = 0;              ///< of this worker
    std::span<const Index> edge_ids;  ///< original id per local edge; none where the graph has dropped them
    std::optional<Reduce> reduce;     ///< empty: a row per edge
    const real* dst_scale = nullptr;  ///< of a mean: per destination
    local_index* argmax = nullptr;    ///< of max and min: [destinations, width]
    Tensor out;                       ///< forward: [destinations or edges, ...]
    const real* grad_out = nullptr;   ///< backward: as out
    std::vector<Tensor> grad_v;       ///< backward, by slot: added to; undefined: not wanted
    std::vector<Tensor> grad_e;       ///< backward, by slot: set; undefined: not wanted
  };
  explicit UserMessageKernel(Operands operands) : o_(std::move(operands)), blocks_(o_.edge_block) {}

  void begin() override;
  void accumulate(const Stage& stage) override;
  /// Throws what the function threw first. After that nothing was computed any more.
  void finish() override { rethrow(); }
  [[nodiscard]] bool needs_source_in_backward() const override { return !o_.inputs.u.slots.empty(); }
  /// On a worker without edges the function runs backward on a block without edges: what it captures receives
  /// gradients of zeros there.
  void begin_backward() override;
  void backward(const Stage& stage, real* grad_src, bool accumulate) override;
  void finish_backward() override { rethrow(); }

 private:
  class Batch;
  /// A block and what is added in the order of the blocks.
  struct Work {
    EdgeBlock block;
    BlockGroups groups;               // by the rows that ascend from block to block
    BlockGroups groups_v;             // backward: by destination
    Tensor first;                     // the sum, or the extremum, of groups.rows[0]; undefined: nothing
    Array<local_index> first_argmax;  // of max and min
    std::vector<Tensor> rows_v;       // backward: gradients of the destinations' rows, by slot
    OuterGradients outer;
    std::exception_ptr failure;
  };

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }
  /// Calls compute(work) for all blocks of the stage, for several at the same time, and add(works) for these
  /// in order.
  void for_blocks(FunctionRef<void(Work&)> compute, FunctionRef<void(std::span<Work>)> add);
  Variable call(const Batch& batch) const;
  void reduce(Work& work, const Tensor& messages);
  void reduce_extremum(Work& work, const Tensor& messages);
  void take_extremum(const real* m, local_index edge, real* out, local_index* argmax, Index width) const;
  void add_first(const Work& work);
  [[nodiscard]] Tensor seed(const EdgeBlock& block) const;
  void differentiate(Work& work, const Stage& stage, real* grad_src);
  [[nodiscard]] Tensor source_gradients(const Batch& batch) const;
  void add_gradients(std::span<Work> works, real* grad_src);

  Operands o_;
  EdgeBlocks blocks_;
  PassVector<Work> works_;
  std::exception_ptr failure_;
};

}  // namespace sar
