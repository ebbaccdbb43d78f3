// SPDX-License-Identifier: MIT

// A kernel that copies: the forward pass writes each source row, local or from a stage, to its place; the
// backward pass copies or adds the gradient of a stage from its place. Parallel blocks of 2^16 numbers;
// each row is read and written once.
#include <sar/autograd/tape.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/kernels/message_row.hpp>
#include <sar/graph/message/held_rows.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Copies rows of the stages to where they are held, and gradients back.
class HeldRowsKernel final : public ShardKernel {
 public:
  HeldRowsKernel(const GraphTopology& graph, const Tensor& held, Tensor* filled = nullptr)
      : graph_(graph), held_(held), filled_(filled) {}

  void accumulate(const Stage& stage) override {
    copy(stage, [&](Index row, Index count, Index first) {
      std::copy_n(stage.rows.reals() + first, count, filled_->row(row) + first);
    });
  }
  [[nodiscard]] bool needs_source_in_backward() const override { return false; }
  void backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) override {
    copy(stage, [&](Index row, Index count, Index first) {
      const real* from = held_.row(row) + first;
      real* to = grad_src.reals() + first;
      if (accumulate)
        for (Index i = 0; i < count; ++i) to[i] += from[i];
      else
        std::copy_n(from, count, to);
    });
  }

 private:
  /// body(first row of the stage among those held, numbers, number of the first one in the stage), in blocks
  template <class Body>
  void copy(const Stage& stage, const Body& body) const {
    constexpr Index grain = Index{1} << 16;
    const Index row = (&stage.shard == &graph_.local ? 0 : graph_.local.num_src_rows) + stage.begin;
    parallel_for(stage.size() * held_.row_size(), grain,
                 [&](Index first, Index last) { body(row, last - first, first); });
  }

  const GraphTopology& graph_;
  const Tensor& held_;
  Tensor* filled_;
};

}  // namespace

bool keeps_source_rows(const Message& message) {
  if (!message.reads(MessageTarget::u) || message.op == Message::Op::copy) return false;
  const Variable& a = message.operand(message.lhs);
  const Variable& b = message.operand(message.rhs);
  const MessageRow row(message.op, a.shape(), b.shape());
  return message.lhs == MessageTarget::u ? row.reads_a(a.requires_grad(), b.requires_grad())
                                         : row.reads_b(a.requires_grad(), b.requires_grad());
}

HeldRows::HeldRows(const Graph& graph, const Variable& x)
    : driver_(graph.shards(), graph.options(), false),
      x_(x.value()),
      gradient_(Tape::current() != nullptr ? x.gradient() : nullptr) {}

Tensor HeldRows::fetch() const {
  const TraceScope scope("fetch shared halo", TraceKind::compute);
  const GraphTopology& graph = driver_.graph();
  Tensor held(x_.shape().with_rows(graph.local.num_src_rows + graph.remote.num_src_rows));
  HeldRowsKernel kernel(graph, held, &held);
  driver_.forward(x_, kernel);
  return held;
}

void HeldRows::push(const Tensor& gradient) const {
  const TraceScope scope("push shared halo", TraceKind::compute);
  HeldRowsKernel kernel(driver_.graph(), gradient);
  driver_.backward(x_, x_.shape(), kernel, gradient_);
}

}}  // namespace sar
