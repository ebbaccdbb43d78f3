#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/graph_shard_manager.hpp>
#include <sar/graph/kernels/linear.hpp>
#include <sar/graph/sequential.hpp>

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

namespace sar {
namespace {

const real* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.data() : nullptr;
}

void check_operands(const GraphShardManager& graph, const Message& message) {
  require<InputError>(message.kind == Message::Kind::u_mul_e || !message.e.defined(),
                      "copy_u takes no edge values");
  require<ShapeError>(message.u.defined() && message.u.num_rows() == graph.num_src_nodes(),
                      "the message's source rows have shape ", message.u.shape(), ", the graph has ",
                      graph.num_src_nodes(), " source nodes on rank ", graph.comm().rank());
  if (message.kind == Message::Kind::u_mul_e)
    require<ShapeError>(
        message.e.defined() && message.e.num_rows() == graph.num_edges() && message.e.shape().row_size() == 1,
        "the message's edge weights have shape ", message.e.shape(), ", the graph has ", graph.num_edges(),
        " edges on rank ", graph.comm().rank(), " and wants one number for each");
}

/// The ranks agree that their operands are right and their calls are the same one, before rows travel: one
/// small all_reduce when they do; otherwise the same exception on all.
void agree_on_call(const GraphShardManager& graph, const Message& message, Reduce reduce) {
  std::exception_ptr failure;
  try {
    check_operands(graph, message);
  } catch (...) {
    failure = std::current_exception();
  }
  struct Item {
    const char* what;
    std::int64_t value;
  };
  const GraphOptions& options = graph.options();
  const Item items[] = {{"message", static_cast<std::int64_t>(message.kind)},
                        {"reduction", static_cast<std::int64_t>(reduce)},
                        {"width of the source rows", failure ? 0 : message.u.shape().row_size()},
                        {"wish for the sources' gradient", message.u.requires_grad()},
                        {"wish for the edges' gradient", message.e.requires_grad()},
                        {"mode", static_cast<std::int64_t>(options.mode)},
                        {"pipeline_depth", options.pipeline_depth},
                        {"max_halo_bytes", options.max_halo_bytes}};
  constexpr std::size_t count = std::size(items);
  std::array<std::int64_t, 2 * count + 1> largest{};  // of every value, of its negative, and of "failed"
  for (std::size_t i = 0; i < count; ++i)
    largest[2 * i] = items[i].value, largest[2 * i + 1] = -items[i].value;
  largest.back() = failure ? 1 : 0;
  graph.comm().all_reduce(std::span<std::int64_t>(largest), ReduceOp::max);
  if (largest.back() != 0)
    graph.comm().agree([&] {
      if (failure) std::rethrow_exception(failure);
    });
  for (std::size_t i = 0; i < count; ++i)
    require<InputError>(largest[2 * i] == -largest[2 * i + 1], "update_all is called with a different ",
                        items[i].what, " on different ranks: ", -largest[2 * i + 1], " to ", largest[2 * i]);
}

/// Values to add to, in memory that may be overwritten.
Tensor own_values(Variable base, const Shape& shape) {
  require<ShapeError>(base.shape() == shape, "a base of shape ", base.shape(), " for a result of shape ",
                      shape);
  Tensor values = base.value();
  base = Variable();
  return values.unique() ? values : values.clone();
}

}  // namespace

Variable GraphShardManager::update_all(const Message& message, Reduce reduce, Variable base) const {
  return update_all(message, reduce, [&] { return std::move(base); });
}

Variable GraphShardManager::update_all(const Message& message, Reduce reduce,
                                       FunctionRef<Variable()> make_base) const {
  agree_on_call(*this, message, reduce);
  const Tensor& u = message.u.value();
  const Shape shape = u.shape().with_rows(num_dst_nodes());
  const real* dst_scale = reduce == Reduce::mean ? state_->inverse_in_degrees.data() : nullptr;

  const bool e_wants = message.e.requires_grad();
  const bool recorded = recording({&message.u, &message.e});
  const bool keep_rows = recorded && e_wants && options_.mode != Mode::rematerialize;
  auto kept = std::make_shared<KeptRows>();

  // The base is made while the first halo rows travel; the output lives in its memory if nobody else does.
  Tensor out;
  GradientPtr base_gradient;
  LinearKernel::Operands operands{
      .width = u.row_size(), .edge_weight = data_or_null(message.e.value()), .dst_scale = dst_scale};
  LinearKernel kernel(operands);
  forward_shards(*state_, options_, u, kernel, keep_rows ? kept.get() : nullptr, [&] {
    Variable base = make_base();
    operands.has_base = base.defined();
    base_gradient = base.gradient();
    out = base.defined() ? own_values(std::move(base), shape) : Tensor(shape);
    operands.out = out.data();
    kernel = LinearKernel(operands);
  });

  if (!recorded && (base_gradient == nullptr || Tape::current() == nullptr)) return out;
  return record(
      std::move(out), [state = state_, options = options_, shape = u.shape(),
                       u_gradient = message.u.gradient(), e_gradient = message.e.gradient(), base_gradient,
                       e = message.e.value(), u_value = recorded && e_wants ? u : Tensor(),
                       kept = keep_rows ? kept : nullptr, dst_scale](Tensor grad) {
        if (base_gradient != nullptr) base_gradient->add(grad);
        if (u_gradient == nullptr && e_gradient == nullptr) return;
        LinearKernel::Operands back{.width = shape.row_size(),
                                    .edge_weight = data_or_null(e),
                                    .dst_scale = dst_scale,
                                    .grad_out = grad.data()};
        const auto run = [&](Tensor* grad_u, bool accumulate) {
          LinearKernel backward_kernel(back);
          backward_shards(*state, options, u_value, shape, backward_kernel, kept.get(), grad_u, accumulate);
        };
        Tensor grad_e;
        if (e_gradient != nullptr) {
          grad_e = Tensor(e_gradient->shape());
          back.grad_edge_weight = grad_e.data();
        }
        if (u_gradient != nullptr)
          u_gradient->add([&](Tensor& grad_u, bool accumulate) { run(&grad_u, accumulate); });
        else
          run(nullptr, false);
        if (e_gradient != nullptr) e_gradient->add(std::move(grad_e));
      });
}

}  // namespace sar
