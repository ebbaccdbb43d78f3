// SPDX-License-Identifier: MIT

/// Messages of the caller's own: what a function reads is learned from a call without edges; the rest is
/// UserMessageKernel.
#include <sar/autograd/layout.hpp>
#include <sar/autograd/op_support.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/graph/kernels/user_message_kernel.hpp>
#include <sar/graph/message/degree_factors.hpp>
#include <sar/graph/message/frame.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/message/operation.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// A batch without edges that writes down what it is asked for.
class Probe final : public EdgeBatch {
 public:
  Probe(const Graph& graph, Frames& frames, MessageInputs& inputs)
      : graph_(graph), frames_(frames), inputs_(inputs) {}
  [[nodiscard]] Index num_edges() const override { return 0; }
  [[nodiscard]] Variable src(const Variable& x) const override {
    if (x.is_dual()) return apply_linear(x, [&](const Variable& part) { return src(part); });
    return note(inputs_.u, x, graph_.num_src_nodes(), "src", "source nodes");
  }
  [[nodiscard]] Variable dst(const Variable& x) const override {
    if (x.is_dual()) return apply_linear(x, [&](const Variable& part) { return dst(part); });
    return note(inputs_.v, x, graph_.num_dst_nodes(), "dst", "destination nodes");
  }
  [[nodiscard]] Variable edata(const Variable& x) const override {
    if (x.is_dual()) return apply_linear(x, [&](const Variable& part) { return edata(part); });
    return note(inputs_.e, x, graph_.num_edges(), "edata", "edges");
  }
  [[nodiscard]] RowIds ids() const override {
    (void)graph_.edge_ids();  // throws where they were dropped
    return {};
  }
  [[nodiscard]] RowIds rows() const override { return {}; }

 private:
  Variable note(MessageOperands& operands, const Variable& x, Index rows, const char* call,
                const char* what) const {
    require<ShapeError>(x.defined() && x.num_rows() == rows, "edges.", call, "() of a tensor of shape ",
                        x.shape(), ", the graph has ", rows, " ", what, " on rank ", graph_.comm().rank());
    const std::size_t slot = operands.find(x, operands.calls.size());
    if (slot == operands.slots.size()) operands.slots.push_back(x);
    operands.calls.push_back(slot);
    return {Tensor(x.shape().with_rows(0)), x.requires_grad() && Tape::current() != nullptr};
  }
  [[nodiscard]] const Variable& field(MessageTarget of, const std::string& name) const override {
    const auto take = [&](MessageOperands& operands, const Frame& frame) -> const Variable& {
      return operands.fields.insert_or_assign(name, frame.at(name)).first->second;
    };
    if (of == MessageTarget::u) return take(inputs_.u, *frames_.src);
    return of == MessageTarget::v ? take(inputs_.v, *frames_.dst) : take(inputs_.e, *frames_.edge);
  }

  const Graph& graph_;
  Frames& frames_;
  MessageInputs& inputs_;
};

struct Probed {
  MessageInputs inputs;
  Shape value;  ///< shape of the message's value without edges: [0, ...]
};

/// Whether gradients of captured variables are exact sums over the edges of all ranks.
bool captures_exactly(const Graph& graph) {
  return graph.options().reproducible && rank_sums() != nullptr;
}

/// If gradients of captured variables are exact sums, also runs the function backward: it throws InputError
/// where such a sum cannot be passed on.
Probed probe(const Graph& graph, Frames& frames, const MessageFunction& function) {
  require<InputError>(static_cast<bool>(function), "an empty message function");
  MessageInputs inputs;
  const bool exact = captures_exactly(graph);
  OuterGradients dropped;
  std::optional<Tape> tape;
  std::optional<OuterGradients::Scope> gradients;
  const RankSumsScope scope(exact ? chunk_sums() : nullptr);
  if (Tape::current() != nullptr) {
    tape.emplace();
    if (exact) gradients.emplace(dropped);
  }
  const Variable message = function(Probe(graph, frames, inputs));
  require<ShapeError>(message.defined() && message.num_rows() == 0,
                      "a message function returns a tensor of shape ", message.shape(), " for 0 edges");
  const Variable rows = beside_tangent(message);
  inputs.dual = message.is_dual();
  inputs.message = rows.shape();
  inputs.requires_grad = rows.requires_grad();
  if (gradients && rows.requires_grad()) tape->backward(rows, Tensor(rows.shape()));
  return {std::move(inputs), message.shape()};
}

/// Two calls ask for the same source variable where they do so on every rank: constants without rows cannot
/// be told apart on the ranks that have none. Collective.
void agree_on_sources(const Graph& graph, const char* operation, MessageOperands& u) {
  if (u.calls.size() > 1) {
    std::vector<Variable> asked;
    std::vector<std::int64_t> first(u.calls.size());  // call that asked for the same variable first
    for (std::size_t k = 0; k < first.size(); ++k) {
      asked.push_back(u.slots[u.calls[k]]);
      first[k] = std::find(u.calls.begin(), u.calls.end(), u.calls[k]) - u.calls.begin();
    }
    graph.comm().all_reduce(std::span<std::int64_t>(first), ReduceOp::max);
    u.slots.clear();
    std::vector<std::size_t> slot_of(first.size());
    for (std::size_t k = 0; k < first.size(); ++k) {
      const std::size_t at = first[k];
      if (at == k) {
        slot_of[k] = u.slots.size();
        u.slots.push_back(asked[k]);
      }
      u.calls[k] = slot_of[at];
    }
  }
  CollectiveCall call(operation);
  for (const Variable& x : u.slots)
    call.equal("shape of edges.src()", x.shape())
        .equal("type of edges.src()", x.type() == NumberType::bfloat16 ? "bfloat16" : "real")
        .equal("wish for the gradient of edges.src()", x.requires_grad());
  if (!u.slots.empty()) graph.comm().require_equal(call);
}

/// What the function reads, agreed upon by all ranks before rows travel. Collective.
Probed agreed_inputs(const Graph& graph, Frames& frames, const char* operation,
                     const MessageFunction& function, Reduce reduce) {
  Probed probed = probe(graph, frames, function);
  MessageInputs& inputs = probed.inputs;
  require<InputError>(!inputs.dual || !is_extremum(reduce), operation, ": the ", to_string(reduce),
                      " of messages that are dual variables has no tangent, and so "
                      "no second derivative");
  graph.comm().require_equal(
      OperationCall(operation, graph)
          .equal("reduction", reduce, name_of<Reduce>)
          .equal("shape of the message", inputs.message)
          .equal("tangent of the message", inputs.dual)
          .equal("wish for gradients", Tape::current() != nullptr && inputs.requires_grad)
          .equal("number of calls of edges.src()", inputs.u.calls.size()));
  agree_on_sources(graph, operation, inputs.u);
  return probed;
}

/// All source variables side by side; a single one as it is.
TypedRows packed_sources(const MessageInputs& inputs, Index rows) {
  const PassVector<Variable>& slots = inputs.u.slots;
  if (slots.size() <= 1) return slots.empty() ? TypedRows() : slots.front().rows();
  Tensor packed({rows, inputs.u_width()});
  Index offset = 0;
  for (const Variable& x : slots) {
    const Index width = x.shape().row_size();
    copy_columns(x.rows().to_tensor().reshape({rows, width}), 0, packed, offset, width);
    offset += width;
  }
  return packed;
}

/// What the backward pass needs.
struct UserMessage {
  std::shared_ptr<const ShardedGraph> graph;
  GraphOptions options;
  MessageFunction function;
  MessageInputs inputs;
  bool by_edge;   ///< a row per edge; otherwise reduced
  Reduce reduce;  ///< sum if by_edge
  RankSumsPtr sums;  ///< defined: gradients of captured variables are exact sums over the edges of all ranks
  std::shared_ptr<Array<local_index>> argmax = nullptr;
  Tensor factors{};  ///< of destinations; undefined: 1

  /// Of sums over edges.
  [[nodiscard]] NumberType sum_type() const {
    return options.reproducible ? NumberType::exact_sums : NumberType::reals;
  }
  /// None where the graph has dropped them and only the function can ask for them.
  [[nodiscard]] std::span<const Index> ids() const {
    if (!is_extremum(reduce) && !graph->topology->has_edge_ids()) return {};
    return {graph->topology->edge_ids().data(), graph->topology->edge_ids().size()};
  }
  [[nodiscard]] UserMessageKernel::Operands operands() const {
    return {.function = function,
            .inputs = inputs,
            .edge_chunk = options.edge_chunk,
            .serial = options.serial_messages,
            .num_edges = graph->topology->num_edges(),
            .edge_ids = ids(),
            .by_edge = by_edge,
            .reduce = reduce,
            .dst_scale = factors.defined() ? factors.data() : nullptr,
            .argmax = argmax != nullptr ? argmax->data() : nullptr,
            .accumulator = options.accumulator(),
            .captures_exactly = sums != nullptr};
  }
  [[nodiscard]] TypedRows sources() const { return packed_sources(inputs, graph->num_src_rows()); }

  void describe(TraceScope& scope) const { scope.detail("function of edges, ", trace_name(options.mode)); }
  TypedRows forward(const Driver& driver) {
    TypedRows out(
        inputs.message.with_rows(by_edge ? graph->topology->num_edges() : graph->topology->local.num_dst),
        by_edge               ? type_of_results()
        : is_extremum(reduce) ? NumberType::reals
                              : sum_type());
    if (is_extremum(reduce)) argmax = std::make_shared<Array<local_index>>(out.size());
    {
      auto with_result = operands();
      with_result.out = out;
      UserMessageKernel kernel(std::move(with_result));
      driver.forward(sources(), kernel);
    }
    return std::move(out).as(type_of_results());  // sums are rounded when they are complete
  }

  void backward(const Driver& driver, TypedRows grad) const {
    auto with_gradients = operands();
    with_gradients.grad_out = std::move(grad);
    for (const Variable& x : inputs.v.slots) {
      TypedRows& rows = with_gradients.grad_v.emplace_back();
      if (!x.requires_grad()) continue;
      rows = TypedRows(x.shape(), sum_type());
      rows.set_zero();
    }
    for (const Variable& x : inputs.e.slots) {
      TypedRows& rows = with_gradients.grad_e.emplace_back();
      if (!x.requires_grad()) continue;
      rows = TypedRows(x.shape(), x.gradient()->type());
      rows.set_zero();
    }
    const std::vector<TypedRows> grad_v = with_gradients.grad_v, grad_e = with_gradients.grad_e;
    UserMessageKernel kernel(std::move(with_gradients));

    const PassVector<Variable>& slots = inputs.u.slots;
    const auto wants_gradient = [](const Variable& x) { return x.requires_grad(); };
    GradientPtr all;  // of all source variables side by side
    {
      const TypedRows src = sources();
      if (std::any_of(slots.begin(), slots.end(), wants_gradient))
        all = OuterGradients::make_gradient(src.shape());
      driver.backward(src, src.shape(), kernel, all);
    }
    if (sums != nullptr) pass_on_sums(*sums, kernel.captured());
    TypedRows grad_u = all != nullptr ? all->take() : TypedRows();

    Index offset = 0;
    for (const Variable& x : slots) {
      const Index width = x.shape().row_size();
      if (x.requires_grad() && slots.size() == 1) {
        x.gradient()->add(std::exchange(grad_u, {}).as(x.gradient()->type()));
      } else if (x.requires_grad()) {
        x.gradient()->add([&](Tensor& sum, bool accumulate) {
          Tensor flat = sum.reshape({sum.num_rows(), width});
          copy_columns(grad_u.reals(), offset, flat, 0, width, accumulate);
        });
      }
      offset += width;
    }
    const auto pass_on = [](const PassVector<Variable>& variables, const auto& gradients) {
      for (std::size_t i = 0; i < variables.size(); ++i)
        if (const TypedRows sum = gradients[i]; sum.defined())
          variables[i].gradient()->add(sum.as(variables[i].gradient()->type()));
    };
    pass_on(inputs.v.slots, grad_v);
    pass_on(inputs.e.slots, grad_e);
  }
};

/// Returns rows with values and tangents side by side as a dual variable. `value`: shape of the values.
Variable split_dual(const Variable& rows, const Shape& value) {
  const Index width = value.row_size();
  const auto part = [&](Index k) { return reshape(slice_columns(rows, k * width, (k + 1) * width), value); };
  return make_dual(part(0), part(1));
}

Variable run(const Graph& graph, Frames& frames, const char* operation, const MessageFunction& function,
             bool by_edge, Reduce reduce) {
  Probed probed = agreed_inputs(graph, frames, operation, function, reduce);
  UserMessage message{.graph = graph.shards(),
                      .options = graph.options(),
                      .function = function,
                      .inputs = std::move(probed.inputs),
                      .by_edge = by_edge,
                      .reduce = reduce,
                      .sums = captures_exactly(graph) ? rank_sums() : nullptr};
  if (const auto factor = in_degree_factor(reduce))
    message.factors = degree_factors(graph, NodeDegree::in, *factor);
  const bool dual = message.inputs.dual;
  const bool recorded = Tape::current() != nullptr && message.inputs.requires_grad;
  const PassNames names = by_edge ? PassNames{"apply_edges", "apply_edges backward"}
                                  : PassNames{"update_all", "update_all backward"};
  Variable out = run_pass(graph, names, recorded, std::move(message));
  return dual ? split_dual(out, probed.value.with_rows(out.num_rows())) : out;
}

}  // namespace

Variable Graph::update_all(const MessageFunction& message, Reduce reduce) const {
  return comm().agree([&] { return run(*this, *frames_, "update_all", message, false, reduce); });
}

Variable Graph::apply_edges(const MessageFunction& message) const {
  return comm().agree([&] { return run(*this, *frames_, "apply_edges", message, true, Reduce::sum); });
}
}}  // namespace sar
