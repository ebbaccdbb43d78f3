// SPDX-License-Identifier: MIT

/// User-defined messages, computed for a chunk of edges at a time.
///
/// Forward, for each chunk:
///
///     m      = f(rows of u, v, e of the chunk)
///     out[v] = reduce of m        or out[e] = m
///
/// Backward: f runs again on a tape of the chunk, which is seeded with the gradient of m:
///
///     dm = g[v], g[v] / in-degree, g[v] where the edge is the argmax, or g[e]
///
/// The resulting gradients are summed for u and v and assigned for e.
///
/// A row of the message must depend on its own edge only: the backward pass forms other chunks, by source, so
/// that gradients of sources are sums of consecutive rows. Bytes moved, besides the function's own: forward,
/// per edge, a row read and written for each operand and a row of m read; backward, per edge, the same again,
/// a row of g read and written, and a row of gradient read for each operand.
///
/// Several chunks are computed concurrently, one per thread; a single chunk uses all threads. Chunks may
/// share the first row of their results with the previous chunk, and all of them contribute to gradients of
/// destinations and of captured variables. These are added afterwards in the order of the chunks. Memory: the
/// rows of one chunk per thread, and the results of two.
///
/// With the accumulator `exact`, sums, means, and gradients of sources and destinations are exact sums, which
/// the caller rounds. If captures_exactly, so are gradients of captured variables whose operations know
/// chunk_sums(); captured() has them after the pass.
#pragma once

#include <sar/autograd/gradient.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/kernels/edge_batch.hpp>
#include <sar/graph/kernels/edge_walk.hpp>
#include <sar/graph/kernels/message_op.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <exception>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The variables that a message function reads from one end (sources, destinations or edges).
struct MessageOperands {
  PassVector<Variable> slots;                           ///< each variable once
  PassVector<std::size_t> calls;                        ///< slot of the k-th call
  std::map<std::string, Variable, std::less<>> fields;  ///< variables by field name

  /// Returns the slot of x in the `call`-th call, or slots.size().
  [[nodiscard]] std::size_t find(const Variable& x, std::size_t call) const;
};

struct MessageInputs {
  MessageOperands u, v, e;
  Shape message;               ///< shape of the result without edges: [0, ...]
  bool dual = false;           ///< whether the rows have the tangent beside the value: [0, 2 width]
  bool requires_grad = false;  ///< whether the result requires a gradient

  [[nodiscard]] const MessageOperands& of(MessageTarget end) const {
    return end == MessageTarget::u ? u : end == MessageTarget::v ? v : e;
  }
  /// Width of a row with all source variables side by side.
  [[nodiscard]] Index u_width() const;
};

/// Returns a message with its tangent beside it, [edges, 2 width]: sums and means reduce both alike. Returns
/// a message without a tangent as it is.
Variable beside_tangent(const Variable& message);

class UserMessageKernel : public ShardKernel {
 public:
  struct Operands {
    const MessageFunction& function;
    const MessageInputs& inputs;
    Index edge_chunk = 1;
    bool serial = false;              ///< one thread at a time calls the function
    Index num_edges = 0;              ///< of this rank
    std::span<const Index> edge_ids;  ///< original id per local edge; empty if the graph has dropped them
    bool by_edge = false;             ///< a row per edge; otherwise reduced
    Reduce reduce = Reduce::sum;
    const real* dst_scale = nullptr;  ///< of a mean: per destination
    local_index* argmax = nullptr;    ///< of max and min: [destinations, width]
    Accumulator accumulator = Accumulator::rounded;
    bool captures_exactly = false;    ///< exact: also gradients of captured variables are exact sums
    TypedRows out{};                  ///< forward: [destinations or edges, ...], or exact sums
    TypedRows grad_out{};             ///< backward: as out
    std::vector<TypedRows> grad_v{};  ///< backward, by slot: added to; undefined: not required
    std::vector<TypedRows> grad_e{};  ///< backward, by slot: overwritten; undefined: not required
  };
  explicit UserMessageKernel(Operands operands) : o_(std::move(operands)), blocks_(o_.edge_chunk) {}

  void begin() override;
  void accumulate(const Stage& stage) override;
  /// Rethrows the first exception of the function. No chunk was computed after it.
  void finish() override { rethrow(); }
  [[nodiscard]] bool reads_bfloat16() const override { return true; }
  [[nodiscard]] bool needs_source_in_backward() const override { return !o_.inputs.u.slots.empty(); }
  /// On a rank without edges, runs the function backward on an empty chunk, so that what it captures receives
  /// zero gradients.
  void begin_backward() override;
  void backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) override;
  void finish_backward() override { rethrow(); }
  [[nodiscard]] NumberType gradient_type(NumberType wanted) const override {
    return exact() ? NumberType::exact_sums : wanted;
  }
  [[nodiscard]] bool writes(NumberType type) const override {
    return type == (exact() ? NumberType::exact_sums : NumberType::reals);
  }
  /// Gradients of captured variables, if these are exact sums: those of all chunks.
  [[nodiscard]] OuterGradients& captured() { return captured_; }

 private:
  class Batch;
  /// A chunk, and the partial results that are added in the order of the chunks.
  struct Work {
    EdgeBlock block;
    BlockGroups groups;               // by the rows that ascend over the chunks
    BlockGroups groups_v;             // backward: by destination
    TypedRows first;                  // sum or extremum of groups.rows[0]; undefined: nothing
    Array<local_index> first_argmax;  // for max and min
    std::vector<Tensor> rows_v;       // backward: gradients of the destinations' rows, by slot
    OuterGradients outer;
    std::exception_ptr failure;
  };

  [[nodiscard]] bool exact() const { return o_.accumulator == Accumulator::exact; }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }
  /// Calls compute(work) for all chunks of the stage, several at a time in parallel, and then add(works) for
  /// these chunks in order.
  void for_blocks(FunctionRef<void(Work&)> compute, FunctionRef<void(std::span<Work>)> add);
  Variable call(const Batch& batch) const;
  void reduce(Work& work, const Tensor& messages);
  void reduce_extremum(Work& work, const Tensor& messages);
  template <class EdgeOf>
  void take_extremum(const real* m, const EdgeOf& edge_of, real* out, local_index* argmax, Index width) const;
  void add_first(const Work& work);
  [[nodiscard]] Tensor seed(const EdgeBlock& block) const;
  void differentiate(Work& work, const Stage& stage, TypedNumbers grad_src);
  [[nodiscard]] Tensor source_gradients(const Batch& batch) const;
  void add_gradients(std::span<Work> works, TypedNumbers grad_src);
  void pass_on(OuterGradients& of_chunk);

  Operands o_;
  EdgeBlocks blocks_;
  PassVector<Work> works_;
  OuterGradients captured_;
  std::exception_ptr failure_;
};

}}  // namespace sar
