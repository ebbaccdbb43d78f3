#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/agreement.hpp>
#include <sar/graph/graph_shard_manager.hpp>
#include <sar/graph/kernels/extremum.hpp>
#include <sar/graph/kernels/linear.hpp>
#include <sar/graph/sequential.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace sar {
namespace {

const real* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data() : nullptr;
}

void check_operands(const GraphShardManager& graph, const Message& message) {
  const bool weighted =
      message.op == Message::Op::mul && message.reads(Target::u) && message.reads(Target::e);
  require<InputError>(weighted || (message.op == Message::Op::copy && message.lhs == Target::u),
                      "update_all knows copy_u and u_mul_e");
  require<ShapeError>(message.u.defined() && message.u.num_rows() == graph.num_src_nodes(),
                      "the message's source rows have shape ", message.u.shape(), ", the graph has ",
                      graph.num_src_nodes(), " source nodes on rank ", graph.comm().rank());
  if (weighted)
    require<ShapeError>(
        message.e.defined() && message.e.num_rows() == graph.num_edges() && message.e.shape().row_size() == 1,
        "the message's edge weights have shape ", message.e.shape(), ", the graph has ", graph.num_edges(),
        " edges on rank ", graph.comm().rank(), " and wants one number for each");
}

/// The ranks agree that their operands are right and their calls are the same one, before rows travel.
void agree_on_call(const GraphShardManager& graph, const Message& message, Reduce reduce) {
  std::vector<AgreedItem> items = agreed_items(graph.options());
  items.insert(items.end(), {{"message", message.op},
                             {"reduction", reduce},
                             {"shape of the source rows", message.u.shape()},
                             {"wish for the sources' gradient", message.u.requires_grad()},
                             {"wish for the edges' gradient", message.e.requires_grad()}});
  agree_on_call(
      graph.comm(), "update_all", [&] { check_operands(graph, message); }, items);
}

/// Values to add to, in memory that may be overwritten.
Tensor own_values(Variable base, const Shape& shape) {
  require<ShapeError>(base.shape() == shape, "a base of shape ", base.shape(), " for a result of shape ",
                      shape);
  Tensor values = base.value();
  base = Variable();
  return values.unique() ? values : values.clone();
}

/// What the way back of an update_all needs, whatever the kernel.
struct WayBack {
  std::shared_ptr<const ShardedGraph> graph;
  GraphOptions options;
  Shape u_shape;
  GradientPtr u_gradient, e_gradient;
  Tensor u_value;  ///< where the kernel needs values of the sources, that is, when e wants a gradient
  std::shared_ptr<KeptRows> kept;  ///< null: fetched again
  Tensor e;

  WayBack(std::shared_ptr<const ShardedGraph> g, const GraphOptions& o, const Message& message, bool recorded)
      : graph(std::move(g)),
        options(o),
        u_shape(message.u.shape()),
        u_gradient(message.u.gradient()),
        e_gradient(message.e.gradient()),
        e(message.e.value()) {
    if (!recorded || e_gradient == nullptr) return;
    u_value = message.u.value();
    if (options.mode != Mode::rematerialize) kept = std::make_shared<KeptRows>();
  }

  /// Adds to the gradients of u and e; make_kernel(real* grad_e) gives the kernel, grad_e null when not
  /// wanted.
  template <class MakeKernel>
  void run(const MakeKernel& make_kernel) const {
    Tensor grad_e;
    if (e_gradient != nullptr) grad_e = Tensor(e_gradient->shape());
    auto kernel = make_kernel(grad_e.defined() ? grad_e.data() : nullptr);
    const auto walk = [&](Tensor* grad_u, bool accumulate) {
      backward_shards(*graph, options, u_value, u_shape, kernel, kept.get(), grad_u, accumulate);
    };
    if (u_gradient != nullptr)
      u_gradient->add([&](Tensor& grad_u, bool accumulate) { walk(&grad_u, accumulate); });
    else if (e_gradient != nullptr)
      walk(nullptr, false);
    if (e_gradient != nullptr) e_gradient->add(std::move(grad_e));
  }
};

/// Sum and mean, added to the base in its memory.
Variable update_all_linear(const std::shared_ptr<const ShardedGraph>& graph, const GraphOptions& options,
                           const Message& message, Reduce reduce, FunctionRef<Variable()> make_base) {
  const Shape shape = message.u.shape().with_rows(graph->local.num_dst);
  const bool recorded = recording({&message.u, &message.e});
  WayBack back(graph, options, message, recorded);
  const real* dst_scale = reduce == Reduce::mean ? graph->inverse_in_degrees.data() : nullptr;

  // The base is made while the first halo rows travel; the output lives in its memory if nobody else does.
  Tensor out;
  GradientPtr base_gradient;
  LinearKernel::Operands operands{
      .width = shape.row_size(), .edge_weight = data_or_null(back.e), .dst_scale = dst_scale};
  LinearKernel kernel(operands);
  forward_shards(*graph, options, message.u.value(), kernel, back.kept.get(), [&] {
    Variable base = make_base();
    operands.has_base = base.defined();
    base_gradient = base.gradient();
    out = base.defined() ? own_values(std::move(base), shape) : Tensor(shape);
    operands.out = out.data();
    kernel = LinearKernel(operands);
  });

  if (!recorded && (base_gradient == nullptr || Tape::current() == nullptr)) return out;
  return record(std::move(out), [back = std::move(back), base_gradient, dst_scale](Tensor grad) {
    if (base_gradient != nullptr) base_gradient->add(grad);
    back.run([&](real* grad_e) {
      return LinearKernel({.width = back.u_shape.row_size(),
                           .edge_weight = data_or_null(back.e),
                           .dst_scale = dst_scale,
                           .grad_out = grad.data(),
                           .grad_edge_weight = grad_e});
    });
  });
}

/// Max and min; the base is added afterwards.
Variable update_all_extremum(const std::shared_ptr<const ShardedGraph>& graph, const GraphOptions& options,
                             const Message& message, Reduce reduce, FunctionRef<Variable()> make_base) {
  const Shape shape = message.u.shape().with_rows(graph->local.num_dst);
  const bool recorded = recording({&message.u, &message.e});
  WayBack back(graph, options, message, recorded);
  Tensor out = Tensor::zeros(shape);
  const auto winners = std::make_shared<Array<local_index>>();
  winners->assign(static_cast<std::size_t>(shape.size()), -1);
  ExtremumKernel::Operands operands{.width = shape.row_size(),
                                    .minimum = reduce == Reduce::min,
                                    .edge_weight = data_or_null(back.e),
                                    .edge_ids = graph->edge_ids.data(),
                                    .winners = winners->data(),
                                    .out = out.data()};
  ExtremumKernel kernel(operands);
  Variable base;
  forward_shards(*graph, options, message.u.value(), kernel, back.kept.get(), [&] { base = make_base(); });

  Variable result = out;
  if (recorded)
    result = record(std::move(out), [back = std::move(back), winners, operands](Tensor grad) {
      back.run([&](real* grad_e) {
        ExtremumKernel::Operands with_gradients = operands;
        with_gradients.grad_out = grad.data();
        with_gradients.grad_edge_weight = grad_e;
        return ExtremumKernel(with_gradients);
      });
    });
  if (!base.defined()) return result;
  require<ShapeError>(base.shape() == shape, "a base of shape ", base.shape(), " for a result of shape ",
                      shape);
  return add(std::move(base), std::move(result));
}

}  // namespace

Variable GraphShardManager::update_all(const Message& message, Reduce reduce, Variable base) const {
  return update_all(message, reduce, [&] { return std::move(base); });
}

Variable GraphShardManager::update_all(const Message& message, Reduce reduce,
                                       FunctionRef<Variable()> make_base) const {
  agree_on_call(*this, message, reduce);
  const bool linear = reduce == Reduce::sum || reduce == Reduce::mean;
  return (linear ? update_all_linear : update_all_extremum)(state_, options_, message, reduce, make_base);
}

}  // namespace sar
