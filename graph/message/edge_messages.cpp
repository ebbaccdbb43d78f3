// SPDX-License-Identifier: MIT

// The rows of sources are copied by the kernel of copy_u as stages arrive; their gradients are summed per
// source over the transpose and pushed to the owners as exact sums. DGL's broadcasting is that of elementwise
// operations once rows are padded with dimensions of 1 on the left.
#include <sar/autograd/dual.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/graph/kernels/binary.hpp>
#include <sar/graph/kernels/linear.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/message/driver.hpp>
#include <sar/graph/message/edge_messages.hpp>
#include <sar/graph/message/frame.hpp>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The rows of one end of each edge.
Tensor copied_to_edges(const GraphShardManager& graph, MessageTarget end, const Variable& x) {
  const Shape shape = x.shape().with_rows(graph.num_edges());
  BinaryKernel::Operands operands;
  operands.row = MessageRow(MessageOp::copy, x.shape(), x.shape());
  operands.lhs = operands.rhs = end;
  operands.result = BinaryKernel::Result::edges;
  operands.u.width = operands.v.width = x.shape().row_size();
  operands.v.values = std::as_const(x.value()).data();
  const auto kernel = make_binary_kernel(std::move(operands));
  Tensor rows(shape);
  kernel->set_output(rows, false);
  const Driver driver(graph.shards(), graph.options(), /*keeps_rows=*/false);
  driver.forward(end == MessageTarget::u ? TypedRows(x.value()) : TypedRows(), *kernel);
  return rows;
}

/// [rows, ...] with dimensions of 1 behind the first one, so that there are `dims`.
Variable with_dims(const Variable& x, int dims) {
  std::vector<Index> extents{x.num_rows()};
  extents.resize(static_cast<std::size_t>(1 + dims - x.shape().dims()), 1);
  for (int d = 1; d < x.shape().dims(); ++d) extents.push_back(x.shape()[d]);
  return std::ssize(extents) == x.shape().dims() ? x : reshape(x, Shape(extents));
}

/// Sums over the last dimension, which becomes 1.
Variable sums_of_lines(Variable x) {
  const Shape shape = x.shape();
  const int last = shape.dims() - 1;
  std::vector<Index> extents;
  for (int d = 0; d < last; ++d) extents.push_back(shape[d]);
  extents.push_back(1);
  const Index lines = shape[last] == 0 ? Shape(extents).size() : shape.size() / shape[last];
  return reshape(sum(reshape(std::move(x), {lines, shape[last]}), ReduceDim::columns), Shape(extents));
}

/// All edges of a rank.
class AllEdges final : public EdgeBatch {
 public:
  explicit AllEdges(const GraphShardManager& graph) : graph_(graph) {}
  [[nodiscard]] Index num_edges() const override { return graph_.num_edges(); }
  [[nodiscard]] Variable src(const Variable& x) const override { return rows_of_sources(graph_, x); }
  [[nodiscard]] Variable dst(const Variable& x) const override { return rows_of_destinations(graph_, x); }
  [[nodiscard]] Variable edata(const Variable& x) const override { return x; }
  [[nodiscard]] RowIds ids() const override { return RowIds(std::span<const Index>(graph_.edge_ids())); }
  [[nodiscard]] RowIds rows() const override {
    std::vector<Index> numbers(static_cast<std::size_t>(graph_.num_edges()));
    std::iota(numbers.begin(), numbers.end(), Index{0});
    return RowIds(std::move(numbers));
  }

 private:
  [[nodiscard]] const Variable& field(MessageTarget of, const std::string& name) const override {
    if (of == MessageTarget::u) return graph_.srcdata().at(name);
    return (of == MessageTarget::v ? graph_.dstdata() : graph_.edata()).at(name);
  }

  const GraphShardManager& graph_;
};

}  // namespace

Variable rows_of_sources(const GraphShardManager& graph, const Variable& x) {
  if (x.is_dual()) return apply_linear(x, [&](const Variable& part) { return rows_of_sources(graph, part); });
  Tensor rows = copied_to_edges(graph, MessageTarget::u, x);
  if (!recording({&x})) return rows;
  return record_collective(
      graph.comm(), std::move(rows), [graph, shape = x.shape(), to = x.gradient()](const Tensor& grad) {
        LinearKernel kernel(
            {.width = shape.row_size(), .grad_edge_rows = grad.data(), .accumulator = Accumulator::exact});
        const Driver driver(graph.shards(), graph.options(), /*keeps_rows=*/false);
        driver.backward(TypedRows(), shape, kernel, to);
      });
}

Variable rows_of_destinations(const GraphShardManager& graph, const Variable& x) {
  if (x.is_dual())
    return apply_linear(x, [&](const Variable& part) { return rows_of_destinations(graph, part); });
  Tensor rows = copied_to_edges(graph, MessageTarget::v, x);
  if (!recording({&x})) return rows;
  return record_collective(graph.comm(), std::move(rows), [graph, to = x.gradient()](const Tensor& grad) {
    to->add(graph.update_all(fn::copy_e(Variable(grad)), fn::sum).value());
  });
}

Variable edge_rows_of(const GraphShardManager& graph, const Message& message) {
  const auto rows_of = [&](MessageTarget target) -> Variable {
    const Variable& x = message.operand(target);
    if (target == MessageTarget::e) return x;
    return target == MessageTarget::u ? rows_of_sources(graph, x) : rows_of_destinations(graph, x);
  };
  Variable a = rows_of(message.lhs);
  if (message.op == MessageOp::copy) return a;
  Variable b = rows_of(message.rhs);
  const int dims = std::max({a.shape().dims(), b.shape().dims(), 2});
  a = with_dims(a, dims);
  b = with_dims(b, dims);
  switch (message.op) {
    case MessageOp::copy:  // see above
      break;
    case MessageOp::add:
      return add(std::move(a), std::move(b));
    case MessageOp::sub:
      return sub(std::move(a), std::move(b));
    case MessageOp::mul:
      return mul(std::move(a), std::move(b));
    case MessageOp::div:
      return div(std::move(a), std::move(b));
    case MessageOp::dot:
      return sums_of_lines(mul(std::move(a), std::move(b)));
  }
  return a;
}

Variable edge_rows_of(const GraphShardManager& graph, const MessageFunction& function) {
  require<InputError>(static_cast<bool>(function), "an empty message function");
  const AllEdges edges(graph);
  Variable rows = function(edges);
  require<ShapeError>(rows.defined() && rows.num_rows() == graph.num_edges(),
                      "a message function returns a tensor of shape ", rows.shape(), " for ",
                      graph.num_edges(), " edges");
  return rows;
}

}}  // namespace sar
