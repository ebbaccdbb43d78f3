// SPDX-License-Identifier: MIT

// What a built-in message is to automatic differentiation: operations on rows, and the product rule.
//
// DGL's broadcasting is that of elementwise operations once rows are padded with dimensions of 1 on the left.
#include <sar/autograd/ops.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/kernels/message_row.hpp>
#include <sar/graph/message/edge_messages.hpp>
#include <sar/graph/message/frame.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

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

Variable rows_of(const EdgeBatch& edges, const Message& message, MessageTarget target) {
  const Variable& x = message.operand(target);
  if (target == MessageTarget::e) return edges.edata(x);
  return target == MessageTarget::u ? edges.src(x) : edges.dst(x);
}

Variable combined(MessageOp op, Variable a, Variable b) {
  switch (op) {
    case MessageOp::copy:
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

class FunctionReduction final : public StartedSum::Operation {
 public:
  FunctionReduction(const Graph& graph, const Shape& shape, MessageFunction function, Reduce reduce)
      : graph_(graph), shape_(shape), function_(std::move(function)), reduce_(reduce) {}

  [[nodiscard]] Shape shape() const override { return shape_; }
  Variable finish(Variable base) override {
    Variable result = graph_.update_all(std::exchange(function_, {}), reduce_);
    return base.defined() ? add(std::move(base), std::move(result)) : result;
  }
  void discard() override {}
  [[nodiscard]] bool in_flight() const override { return false; }

 private:
  Graph graph_;
  Shape shape_;
  MessageFunction function_;
  Reduce reduce_;
};

}  // namespace

MessageFunction function_of_edges(const Message& message) {
  const Variable& first = message.operand(message.lhs);
  if (message.op == MessageOp::copy)
    return [message](const EdgeBatch& edges) { return rows_of(edges, message, message.lhs); };
  const Shape shape = MessageRow(message.op, first.shape(), message.operand(message.rhs).shape()).shape(0);
  return [message, shape](const EdgeBatch& edges) {
    Variable a = rows_of(edges, message, message.lhs), b = rows_of(edges, message, message.rhs);
    const int dims = std::max({a.shape().dims(), b.shape().dims(), 2});
    a = with_dims(a, dims);
    b = with_dims(b, dims);
    return reshape(combined(message.op, std::move(a), std::move(b)), shape.with_rows(edges.num_edges()));
  };
}

bool is_dual(const Message& message) {
  return (message.reads(MessageTarget::u) && message.u.is_dual()) ||
         (message.reads(MessageTarget::v) && message.v.is_dual()) ||
         (message.reads(MessageTarget::e) && message.e.is_dual());
}

Message primal_of(Message message) {
  for (Variable* x : {&message.u, &message.v, &message.e}) *x = x->primal();
  return message;
}

PassVector<Message> tangent_messages(const Message& message) {
  PassVector<Message> terms;
  const Message value = primal_of(message);
  const Variable &a = message.operand(message.lhs), &b = message.operand(message.rhs);
  const auto add_term = [&](Message::Op op, const Variable& of_lhs, const Variable& of_rhs) {
    Message& term = terms.emplace_back(value);
    term.op = op;
    term.operand(message.lhs) = of_lhs;
    if (op != Message::Op::copy) term.operand(message.rhs) = of_rhs;
  };
  if (!is_dual(message)) return terms;
  switch (message.op) {
    case Message::Op::copy:
      add_term(message.op, a.tangent(), {});
      break;
    case Message::Op::add:
    case Message::Op::sub:
      add_term(message.op, tangent_or_zeros(a), tangent_or_zeros(b));
      break;
    case Message::Op::mul:
    case Message::Op::dot:
      if (a.is_dual()) add_term(message.op, a.tangent(), b.primal());
      if (b.is_dual()) add_term(message.op, a.primal(), b.tangent());
      break;
    case Message::Op::div:
      if (a.is_dual()) add_term(message.op, a.tangent(), b.primal());
      if (b.is_dual())  // a / b changes by -a db / b^2
        add_term(Message::Op::mul, a.primal(), -(b.tangent() / (b.primal() * b.primal())));
  }
  return terms;
}

std::unique_ptr<StartedSum::Operation> reduction_of(const Graph& graph, const Shape& shape,
                                                    MessageFunction function, Reduce reduce) {
  return std::make_unique<FunctionReduction>(graph, shape, std::move(function), reduce);
}

// Messages on frames: each function resolves the names of fields to Variables and calls the function for
// Variables.

namespace {

const Variable& field_of(const Graph& graph, MessageTarget target, const std::string& field) {
  const Frame& frame = target == MessageTarget::u   ? graph.srcdata()
                       : target == MessageTarget::v ? graph.dstdata()
                                                    : graph.edata();
  return frame.at(field);
}

}  // namespace

Message resolve(const Graph& graph, const NamedMessage& named) {
  Message message{.op = named.op, .lhs = named.lhs, .rhs = named.rhs, .u = {}, .v = {}, .e = {}};
  message.operand(named.lhs) = field_of(graph, named.lhs, named.lhs_field);
  if (named.op != Message::Op::copy) message.operand(named.rhs) = field_of(graph, named.rhs, named.rhs_field);
  return message;
}

void Graph::update_all(const NamedMessage& message, const NamedReduce& reduce) const {
  comm().agree([&] {
    require<InputError>(message.message == reduce.message, "update_all: the message is called \"",
                        message.message, "\", the reduction wants \"", reduce.message, "\"");
    dstdata()[reduce.out] = update_all(resolve(*this, message), reduce.reduce);
  });
}

void Graph::update_all(const MessageFunction& message, const NamedReduce& reduce) const {
  comm().agree([&] { dstdata()[reduce.out] = update_all(message, reduce.reduce); });
}

void Graph::apply_edges(const NamedMessage& message) const {
  comm().agree([&] { edata()[message.message] = apply_edges(resolve(*this, message)); });
}

void Graph::apply_edges(const MessageFunction& message, const std::string& out) const {
  comm().agree([&] { edata()[out] = apply_edges(message); });
}
}}  // namespace sar
