// SPDX-License-Identifier: MIT

// update_all and apply_edges of built-in messages. MessagePass chooses the kernel: LinearKernel for sums
// and means of copy_u and of u times one number per edge and head, and for the forward pass of sums and
// means of edge rows; BinaryKernel for all other messages and reductions. On one rank, a sum of rows that
// are a selection of a table (GatheredRows) reads the table.
//
// The kernels apply 1 / in-degree of a mean and the factors of scaled_sum(). Two cases take a pass of
// their own: the gradient of a mean in BinaryKernel, and factors beside edge weights that want a gradient
// (SumBetweenScales).
#include <sar/autograd/gathered_rows.hpp>
#include <sar/autograd/op_support.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/graph/kernels/binary.hpp>
#include <sar/graph/kernels/linear.hpp>
#include <sar/graph/message/degree_factors.hpp>
#include <sar/graph/message/edge_messages.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/message/operation.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

using Result = BinaryKernel::Result;

/// Rows of this type to add to, in memory that may be overwritten.
TypedRows own_rows(Variable base, NumberType type) {
  const TypedRows rows = base.take_rows().as(type);
  return rows.unique() ? rows : rows.clone();
}

/// row[v] *= scale[v], in the memory of `x` if nobody else refers to it.
Tensor scaled_rows(Tensor x, const Tensor& scale) {
  const Shape rows{x.num_rows(), x.row_size()};
  return compute_elementwise(std::move(x), [&](Index, Tensor& to, const Tensor& from) {
    Tensor out = to.reshape(rows);
    binary(BinaryOp::mul, from.reshape(rows), Tensor::borrow(scale.data(), {rows[0], 1}), out);
  });
}

/// Whether rows of `e` are one number, or one for each of the lines along the last dimension of rows of `u`.
bool is_number_per_head(const Shape& e, const Shape& u) {
  if (e.row_size() == 1) return true;
  if (e.dims() != u.dims() || e[e.dims() - 1] != 1) return false;
  for (int d = 1; d + 1 < e.dims(); ++d)
    if (e[d] != u[d]) return false;
  return true;
}

/// Whether a message is a row of u, or one times a number per edge and head.
bool is_linear(const Message& message) {
  if (message.op == Message::Op::copy) return message.lhs == MessageTarget::u;
  return message.op == Message::Op::mul && message.reads(MessageTarget::u) &&
         message.reads(MessageTarget::e) && is_number_per_head(message.e.shape(), message.u.shape());
}

/// The factors of rows of a linear message.
struct RowScales {
  Tensor dst;  ///< undefined: 1
  PassVector<LinearKernel::SourceScale> src;
  std::array<Tensor, 2> of_sources;  ///< their memory

  [[nodiscard]] const real* of_destinations() const { return dst.defined() ? dst.data() : nullptr; }
  void add_source(const GraphShard& shard, Tensor factors) {
    src.push_back({&shard, factors.data()});
    of_sources[src.size() - 1] = std::move(factors);
  }
};

/// Collective where sources have factors and the graph does not know those of the halo rows yet.
RowScales row_scales(const Graph& graph, const SumFactors& factors) {
  RowScales scales;
  if (factors.dst) scales.dst = degree_factors(graph, NodeDegree::in, *factors.dst);
  if (!factors.src) return scales;
  const GraphTopology& g = graph.topology();
  scales.add_source(g.local, degree_factors(graph, factors.src_degree, *factors.src));
  if (g.comm.size() > 1)
    scales.add_source(g.remote, halo_degree_factors(graph, factors.src_degree, *factors.src));
  return scales;
}

/// The forward and the backward pass of a message. Between the two it keeps the values that gradients depend
/// on, and no others.
class MessagePass {
 public:
  MessagePass(const Graph& graph, const Message& message, Result result, Reduce reduce, RowScales scales)
      : graph_(graph.shards()),
        options_(graph.options()),
        op_(message.op),
        lhs_(message.lhs),
        rhs_(message.op == Message::Op::copy ? message.lhs : message.rhs),
        row_(message.op, message.operand(lhs_).shape(), message.operand(rhs_).shape()),
        result_(result),
        reduce_(reduce),
        scales_(std::move(scales)) {
    if (const auto factor = in_degree_factor(reduce))
      scales_.dst = degree_factors(graph, NodeDegree::in, *factor);
    for (const MessageTarget target : {lhs_, rhs_}) {
      const Variable& x = message.operand(target);
      Side& s = side(target);
      s.shape = x.shape();
      s.width = x.shape().row_size();
      if (Tape::current() != nullptr) s.gradient = x.gradient();
    }
    recorded_ = side(lhs_).gradient != nullptr || side(rhs_).gradient != nullptr;
    linear_ = result == Result::sum && is_linear(message);
    for (const MessageTarget target : {lhs_, rhs_}) {
      const Variable& x = message.operand(target);
      if (target == MessageTarget::u && reads_by_number()) gathered_ = gathered_rows(x);
      if (target != MessageTarget::u && !sums_edge_rows())
        side(target).value = x.value();
      else if (gathered_ == nullptr)
        side(target).value = x.rows();
    }
  }

  [[nodiscard]] bool is_extremum() const { return result_ == Result::max || result_ == Result::min; }
  [[nodiscard]] Driver driver() const {
    return {graph_, options_, recorded_ && needs_value(MessageTarget::u)};
  }
  [[nodiscard]] const TypedRows& source_rows() const { return side(MessageTarget::u).value; }
  [[nodiscard]] bool recorded() const { return recorded_; }
  [[nodiscard]] const GradientPtr& source_gradient() const { return side(MessageTarget::u).gradient; }
  [[nodiscard]] NumberType base_type() const { return is_extremum() ? type_of_results() : sum_type(); }
  [[nodiscard]] bool adds_to_base() const { return !is_extremum(); }

  [[nodiscard]] Shape shape() const {
    return row_.shape(result_ == Result::edges ? graph_->topology->num_edges()
                                               : graph_->topology->local.num_dst);
  }

  /// The type in which sums are added: those of several stages are rounded when they are complete.
  [[nodiscard]] NumberType sum_type() const {
    const bool one_gather = (sums_edge_rows() || (linear_ && edge_heads() == 1)) && !exact();
    return one_gather && graph_->topology->comm.size() == 1 ? type_of_results() : NumberType::reals;
  }

  /// The result, added to `base` (sum and mean only) if it is defined.
  TypedRows forward(ForwardPass& forward_pass, Variable base) {
    TraceScope scope(result_ == Result::edges ? "apply_edges" : "update_all", TraceKind::compute);
    describe(scope);
    const bool has_base = base.defined();
    const NumberType type = extremum_in_bfloat16() ? NumberType::bfloat16 : sum_type();
    TypedRows out = has_base ? own_rows(std::move(base), type) : TypedRows(shape(), type);
    const auto forward = [&](auto& kernel) {
      kernel.set_output(out, has_base);
      forward_pass.finish(kernel);
    };
    if (linear_ || sums_edge_rows()) {
      LinearKernel kernel(
          {.width = row_.width(),
           .heads = linear_ ? edge_heads() : 1,
           .edge_weight = linear_ ? data(MessageTarget::e) : nullptr,
           .edge_rows = sums_edge_rows() ? side(MessageTarget::e).value.numbers() : ConstTypedNumbers(),
           .table = gathered_ != nullptr ? std::as_const(gathered_->table()).numbers() : ConstTypedNumbers(),
           .table_rows = gathered_ != nullptr ? gathered_->rows().data() : nullptr,
           .dst_scale = scales_.of_destinations(),
           .src_scales = scales_.src,
           .accumulator = options_.accumulator(),
           .one_stage = graph_->topology->comm.size() == 1});
      forward(kernel);
    } else {
      if (is_extremum()) argmax_ = std::make_shared<Array<local_index>>(shape().size());
      BinaryKernel::Operands operands = kernel_operands();
      operands.dst_scale = scales_.of_destinations();
      if (is_extremum()) operands.edge_ids = graph_->topology->edge_ids().data();
      forward(*make_binary_kernel(std::move(operands)));
    }

    return result_ == Result::edges || exact() ? out : std::move(out).as(type_of_results());
  }
  void release(bool recorded) {
    for (const MessageTarget target : {lhs_, rhs_})
      if (!recorded || !needs_value(target)) side(target).value = {};
    gathered_ = nullptr;
  }
  void backward(const Driver& driver, BackwardPass& rows, TypedRows grad) const {
    TraceScope scope(result_ == Result::edges ? "apply_edges backward" : "update_all backward",
                     TraceKind::compute);
    describe(scope);
    const Side& u = side(MessageTarget::u);
    Tensor grad_v;
    TypedRows grad_e;
    if (wants(MessageTarget::v)) grad_v = Tensor::zeros(side(MessageTarget::v).shape);
    if (wants(MessageTarget::e)) {
      const Side& e = side(MessageTarget::e);
      grad_e = TypedRows(e.shape, sums_edge_rows() ? e.gradient->type() : NumberType::reals);
    }
    real* const grad_e_reals = grad_e.defined() && grad_e.is_real() ? grad_e.reals().data() : nullptr;
    const auto run = [&](ShardKernel&& kernel) { rows.start(driver, u.value, u.shape, kernel, u.gradient); };
    if (!linear_ && !sums_edge_rows() && !(extremum_of_rows() && u.gradient->type() == NumberType::bfloat16))
      grad = grad.as(NumberType::reals);
    if (linear_) {
      run(LinearKernel({.width = row_.width(),
                        .heads = edge_heads(),
                        .edge_weight = data(MessageTarget::e),
                        .dst_scale = scales_.of_destinations(),
                        .src_scales = scales_.src,
                        .grad_out = grad.numbers(),
                        .grad_edge_weight = grad_e_reals,
                        .accumulator = options_.accumulator()}));
    } else if (sums_edge_rows()) {
      run(LinearKernel({.width = row_.width(),
                        .dst_scale = scales_.of_destinations(),
                        .grad_out = grad.numbers(),
                        .grad_of_edge_rows = grad_e.numbers()}));
    } else {
      if (scales_.dst.defined()) grad = scaled_rows(std::move(grad.reals()), scales_.dst);
      BinaryKernel::Operands operands = kernel_operands();
      operands.v.grad = grad_v.defined() ? grad_v.data() : nullptr;
      operands.e.grad = grad_e_reals;
      operands.wants_u = u.gradient != nullptr;
      operands.grad_out = grad.numbers();
      run(std::move(*make_binary_kernel(std::move(operands))));
    }
    if (wants(MessageTarget::v)) side(MessageTarget::v).gradient->add(std::move(grad_v));
    if (wants(MessageTarget::e)) side(MessageTarget::e).gradient->add(std::move(grad_e));
  }

 private:
  struct Side {
    Shape shape;
    Index width = 0;
    TypedRows value;
    GradientPtr gradient;
  };
  [[nodiscard]] Side& side(MessageTarget target) { return sides_[static_cast<std::size_t>(target)]; }
  [[nodiscard]] const Side& side(MessageTarget target) const {
    return sides_[static_cast<std::size_t>(target)];
  }
  [[nodiscard]] const real* data(MessageTarget target) const {
    const TypedRows& value = side(target).value;
    return value.defined() && value.is_real() ? value.reals().data() : nullptr;
  }
  /// Numbers of an edge, of which each multiplies the columns of a head of u.
  [[nodiscard]] Index edge_heads() const { return std::max<Index>(side(MessageTarget::e).width, 1); }
  [[nodiscard]] bool wants(MessageTarget target) const { return side(target).gradient != nullptr; }
  /// Whether source rows can be read in a table of more rows: none of them travels, and none is read again.
  [[nodiscard]] bool reads_by_number() const {
    return linear_ && edge_heads() == 1 && graph_->topology->comm.size() == 1 &&
           !needs_value(MessageTarget::u);
  }
  /// Whether a gradient depends on the operand's values.
  [[nodiscard]] bool needs_value(MessageTarget target) const {
    return (lhs_ == target && row_.reads_a(wants(lhs_), wants(rhs_))) ||
           (rhs_ == target && row_.reads_b(wants(lhs_), wants(rhs_)));
  }

  [[nodiscard]] bool exact() const { return options_.reproducible; }
  [[nodiscard]] bool sums_edge_rows() const {
    return result_ == Result::sum && row_.is_copy() && lhs_ == MessageTarget::e;
  }
  [[nodiscard]] bool extremum_of_rows() const {
    return is_extremum() && row_.is_copy() && lhs_ == MessageTarget::u;
  }
  [[nodiscard]] bool extremum_in_bfloat16() const {
    return extremum_of_rows() && mixed_precision() && source_rows().is_bfloat16();
  }

  [[nodiscard]] BinaryKernel::Operands kernel_operands() const {
    return {.row = row_,
            .lhs = lhs_,
            .rhs = rhs_,
            .result = result_,
            .u = {.width = side(MessageTarget::u).width},
            .v = {.width = side(MessageTarget::v).width, .values = data(MessageTarget::v)},
            .e = {.width = side(MessageTarget::e).width, .values = data(MessageTarget::e)},
            .argmax = argmax_ ? argmax_->data() : nullptr};
  }

  /// What a timeline says of this pass.
  void describe(TraceScope& scope) const {
    if (!tracing()) return;
    scope.detail(trace_name(op_, lhs_, rhs_), " ", result_ == Result::edges ? "" : to_string(reduce_), " ",
                 trace_name(options_.mode));
  }

  std::shared_ptr<const ShardedGraph> graph_;
  GraphOptions options_;
  Message::Op op_;
  MessageTarget lhs_, rhs_;
  MessageRow row_;
  Result result_;
  Reduce reduce_;  ///< sum if the result is of edges
  RowScales scales_;
  bool linear_ = false;  ///< sum of u or of u * e with a number e per head: LinearKernel knows it
  bool recorded_ = false;
  std::array<Side, 3> sides_;                     ///< of u, v, e
  std::shared_ptr<const GatheredRows> gathered_;  ///< of u, forward, in place of values
  std::shared_ptr<Array<local_index>> argmax_;
};

/// Shape of `rows` messages. Throws ShapeError unless the operands fit the graph and each other.
Shape check_operands(const Graph& graph, const Message& message, Index rows) {
  const auto check = [&](MessageTarget target, const char* name, Index count, const char* what) {
    if (!message.reads(target)) return;
    const Variable& x = message.operand(target);
    require<ShapeError>(x.defined() && x.num_rows() == count, "the message's ", name, " rows have shape ",
                        x.shape(), ", the graph has ", count, " ", what, " on rank ", graph.comm().rank());
  };
  require<InputError>(message.op == Message::Op::copy || message.lhs != message.rhs,
                      "a message needs operands of two kinds: of sources, destinations or edges");
  check(MessageTarget::u, "source", graph.num_src_nodes(), "source nodes");
  check(MessageTarget::v, "destination", graph.num_dst_nodes(), "destination nodes");
  check(MessageTarget::e, "edge", graph.num_edges(), "edges");
  const MessageTarget rhs = message.op == Message::Op::copy ? message.lhs : message.rhs;
  return MessageRow(message.op, message.operand(message.lhs).shape(), message.operand(rhs).shape())
      .shape(rows);
}

/// What must be the same on all ranks. `reduction` is -1 for none.
CollectiveCall collective_call(const Graph& graph, const char* operation, const Message& message,
                               int reduction) {
  const auto read = [&](MessageTarget target) -> const Variable& {
    static const Variable none;
    return message.reads(target) ? message.operand(target) : none;
  };
  OperationCall call(operation, graph, Tangents::known);
  call.equal("message", message.op, name_of<Message::Op>)
      .equal("left operand", message.lhs, name_of<MessageTarget>)
      .equal("right operand", message.op == Message::Op::copy ? message.lhs : message.rhs,
             name_of<MessageTarget>)
      .equal("reduction", reduction, name_of<Reduce>);
  call.sources("the source rows", read(MessageTarget::u))
      .operand("the destination rows", read(MessageTarget::v))
      .operand("the edge rows", read(MessageTarget::e));
  return call;
}

/// Throws InputError unless the reduction of dual messages has a tangent.
void check_reduction(const Message& message, Reduce reduce) {
  require<InputError>(!is_dual(message) || !is_extremum(reduce), "update_all: the ", to_string(reduce),
                      " of messages that are dual variables has no tangent, and so no second derivative");
}

Result result_of(Reduce reduce) {
  return reduce == Reduce::max ? Result::max : reduce == Reduce::min ? Result::min : Result::sum;
}

using StartedMessage = StartedPass<MessagePass>;

/// A message whose source rows are in flight.
std::unique_ptr<StartedMessage> started(const Graph& graph, const Message& message, Result result,
                                        Reduce reduce = Reduce::sum, RowScales scales = {}) {
  return std::make_unique<StartedMessage>(graph.comm(),
                                          MessagePass(graph, message, result, reduce, std::move(scales)));
}

/// Starts a reduction. On a reproducible graph, a message whose sums over edges would depend on their order
/// is a function of edges. Collective.
std::unique_ptr<StartedSum::Operation> start(const Graph& graph, const Message& message, Reduce reduce) {
  const bool copies_edges = message.op == Message::Op::copy && message.lhs == MessageTarget::e;
  const bool in_any_order = copies_edges || (result_of(reduce) == Result::sum && is_linear(message));
  if (!graph.options().reproducible || in_any_order)
    return started(graph, message, result_of(reduce), reduce);
  const Shape shape = check_operands(graph, message, graph.num_dst_nodes());
  return reduction_of(graph, shape, function_of_edges(message), reduce);
}

/// A scaled sum with passes of their own for the factors.
class SumBetweenScales final : public StartedSum::Operation {
 public:
  SumBetweenScales(const Graph& graph, const Message& message, const SumFactors& factors)
      : graph_(graph), factor_(factors.dst), sum_(start(graph, message, Reduce::sum)) {}

  [[nodiscard]] Shape shape() const override { return sum_->shape(); }
  Variable finish(Variable base) override {
    Variable sum = sum_->finish({});
    if (factor_) sum = scale_rows(std::move(sum), degree_factors(graph_, NodeDegree::in, *factor_));
    return base.defined() ? add(std::move(base), std::move(sum)) : sum;
  }
  void discard() override { sum_->discard(); }
  [[nodiscard]] bool in_flight() const override { return sum_->in_flight(); }

 private:
  Graph graph_;
  std::optional<DegreeFactor> factor_;
  std::unique_ptr<StartedSum::Operation> sum_;
};

/// A sum of dual messages: the tangent is a sum of its own, started when the first is finished.
class DualSum final : public StartedSum::Operation {
 public:
  DualSum(std::unique_ptr<StartedSum::Operation> value, std::function<Variable()> tangent)
      : value_(std::move(value)), tangent_(std::move(tangent)) {}

  [[nodiscard]] Shape shape() const override { return value_->shape(); }
  [[nodiscard]] NumberType base_type() const override { return value_->base_type(); }
  Variable finish(Variable base) override {
    const Variable y = value_->finish(std::move(base));
    return make_dual(y, tangent_());
  }
  void discard() override { value_->discard(); }
  [[nodiscard]] bool in_flight() const override { return value_->in_flight(); }

 private:
  std::unique_ptr<StartedSum::Operation> value_;
  std::function<Variable()> tangent_;
};

}  // namespace

StartedSum start_scaled_sum(const Graph& graph, Variable x, const Variable& edge_weight,
                            const SumFactors& factors) {
  const Message given =
      edge_weight.defined() ? fn::u_mul_e(std::move(x), edge_weight) : fn::copy_u(std::move(x));
  Message message = primal_of(given);
  const bool scales_rows =
      edge_weight.defined() && (edge_weight.requires_grad() || edge_weight.shape().row_size() != 1);
  return StartedSum(
      graph.comm(),
      [&] {
        (void)check_operands(graph, message, graph.num_dst_nodes());
        return collective_call(graph, "update_all", given, static_cast<int>(Reduce::sum));
      },
      [&]() -> std::unique_ptr<StartedSum::Operation> {
        const auto value = [&]() -> std::unique_ptr<StartedSum::Operation> {
          if (!scales_rows)
            return started(graph, message, Result::sum, Reduce::sum, row_scales(graph, factors));
          if (factors.src)
            message.u =
                scale_rows(std::move(message.u), degree_factors(graph, factors.src_degree, *factors.src));
          return std::make_unique<SumBetweenScales>(graph, message, factors);
        };
        if (!is_dual(given)) return value();
        return std::make_unique<DualSum>(value(), [graph, factors, terms = tangent_messages(given)] {
          Variable sum;
          for (const Message& term : terms) sum = scaled_sum(graph, term.u, term.e, factors, std::move(sum));
          return sum;
        });
      },
      "scaled_sum");
}

Variable scaled_sum(const Graph& graph, Variable x, const Variable& edge_weight, const SumFactors& factors,
                    Variable base) {
  return start_scaled_sum(graph, std::move(x), edge_weight, factors).finish(std::move(base));
}

StartedSum Graph::start_update_all(const Message& message, Reduce reduce) const {
  return StartedSum(
      comm(),
      [&] {
        (void)check_operands(*this, message, num_dst_nodes());
        check_reduction(message, reduce);
        return collective_call(*this, "update_all", message, static_cast<int>(reduce));
      },
      [&]() -> std::unique_ptr<StartedSum::Operation> {
        auto value = start(*this, primal_of(message), reduce);
        if (!is_dual(message)) return value;
        return std::make_unique<DualSum>(std::move(value),
                                         [graph = *this, reduce, terms = tangent_messages(message)] {
                                           Variable sum;
                                           for (const Message& term : terms)
                                             sum = graph.update_all(term, reduce, std::move(sum));
                                           return sum;
                                         });
      },
      "update_all");
}

Variable Graph::update_all(const Message& message, Reduce reduce, Variable base) const {
  if (is_dual(message) || base.is_dual())
    return comm().agree([&] { return start_update_all(message, reduce).finish(std::move(base)); });
  return collective(
      comm(),
      [&] {
        const Shape shape = check_operands(*this, message, num_dst_nodes());
        require<ShapeError>(!base.defined() || base.shape() == shape, "a base of shape ", base.shape(),
                            " for a result of shape ", shape);
        return collective_call(*this, "update_all", message, static_cast<int>(reduce));
      },
      [&] { return start(*this, message, reduce)->finish(std::move(base)); });
}

Variable Graph::apply_edges(const Message& message) const {
  return collective(
      comm(),
      [&] {
        (void)check_operands(*this, message, num_edges());
        return collective_call(*this, "apply_edges", message, -1);
      },
      [&] {
        const auto sums_gradients = [&](MessageTarget end) {
          return Tape::current() != nullptr && message.reads(end) && message.operand(end).requires_grad();
        };
        if (options().reproducible && (sums_gradients(MessageTarget::u) || sums_gradients(MessageTarget::v)))
          return apply_edges(function_of_edges(message));
        Variable y = started(*this, primal_of(message), Result::edges)->finish({});
        Variable change;
        for (const Message& term : tangent_messages(message))
          change = tangent_sum(apply_edges(term), change, y.shape());
        return make_dual(y, change);
      });
}
}}  // namespace sar
