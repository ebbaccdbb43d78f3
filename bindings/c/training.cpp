#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/bindings/c/array.hpp>
#include <sar/bindings/c/finite_step.hpp>
#include <sar/bindings/c/status.hpp>
#include <sar/core/threads/mixed_precision.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/loss.hpp>

#include <vector>

using namespace sar;
using namespace sar::c_interface;

namespace {

/// The operands of a forward pass.
struct Operands {
  std::shared_ptr<ModelObject> model;
  std::shared_ptr<GraphObject> graph;
  Tensor x, edges, target;  // without a target: labels
  std::span<const std::uint8_t> mask;

  [[nodiscard]] Variable predict() const {
    const HaloStep step(model->rounded_operations);
    return (*model->model)(graph->graph, x, edges.defined() ? Variable(edges) : Variable());
  }
  [[nodiscard]] Index num_nodes() const { return graph->graph.num_nodes(); }
  [[nodiscard]] Index out_feats() const { return model->model->description().out_feats; }
};

void add_arguments(CollectiveCall& call, const Operands& operands) {
  call.equal(*operands.model).equal(*operands.graph);
}

Operands operands_of(sar_model model, sar_graph graph, const sar_array* x, const sar_array* edges) {
  Operands all{object<ModelObject>(model, "model"), object<GraphObject>(graph, "graph"), {}, {}, {}, {}};
  require_statistics(*all.model);
  const ModelDescription& description = all.model->model->description();
  const HostGraph& g = all.graph->graph;
  all.x = read_array(x, {"x", g.num_nodes(), description.in_feats});
  all.edges = read_edges(edges, g.num_edges(), description.edge_feats);
  return all;
}

/// Returns the mask of the caller, or an empty span without one.
std::span<const std::uint8_t> mask_of(std::int64_t length, const std::uint8_t* mask, Index num_nodes) {
  const std::span<const std::uint8_t> given = list_of(mask, length, "mask");
  require<ShapeError>(mask == nullptr || length == num_nodes, "'mask' has ", length, " numbers, expected ",
                      num_nodes, ", the nodes of the rank");
  return given;
}

Variable loss_of(std::int32_t kind, const Variable& y, const Tensor& target, const Communicator& comm) {
  switch (kind) {
    case SAR_LOSS_MSE:
      return mse(y, target, comm);
    case SAR_LOSS_L1:
      return l1(y, target, comm);
    case SAR_LOSS_HUBER:
      return huber(y, target, comm);
    default:  // SAR_LOSS_BCE: field_loss() has checked it
      return bce_with_logits(y, target, comm);
  }
}

/// Checks the arguments of a loss of fields, and returns the loss as a function of the prediction.
auto field_loss(Operands& operands, std::int32_t kind, const sar_array* target, std::int64_t mask_length,
                const std::uint8_t* mask) {
  require<InputError>(SAR_LOSS_MSE <= kind && kind <= SAR_LOSS_BCE, "the kind of the loss is ", kind,
                      ", expected ", SAR_LOSS_MSE, " to ", SAR_LOSS_BCE, " (SAR_LOSS_MSE and others)");
  const Tensor wanted = read_array(target, {"target", operands.num_nodes(), operands.out_feats()});
  const std::span<const std::uint8_t> given = mask_of(mask_length, mask, operands.num_nodes());
  operands.target = wanted;
  operands.mask = given;
  std::vector<Index> rows;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (given[i] != 0) rows.push_back(static_cast<Index>(i));
  return [=, rows = std::move(rows)](const Variable& y, const Communicator& comm) {
    if (mask == nullptr) return loss_of(kind, y, wanted, comm);
    const RowIds ids(std::span<const Index>{rows});
    return loss_of(kind, gather_rows(y, ids), gather_rows(Variable(wanted), ids).value(), comm);
  };
}

/// The same for the cross entropy.
auto label_loss(const Operands& operands, std::int64_t num_labels, const std::int64_t* labels,
                std::int64_t mask_length, const std::uint8_t* mask) {
  const std::span<const std::int64_t> classes = list_of(labels, num_labels, "labels");
  const std::span<const std::uint8_t> given = mask_of(mask_length, mask, operands.num_nodes());
  require<ShapeError>(num_labels == operands.num_nodes(), "'labels' has ", num_labels, " numbers, expected ",
                      operands.num_nodes(), ", the nodes of the rank");
  const std::vector<std::uint8_t> all(mask == nullptr ? classes.size() : 0, 1);
  return [=](const Variable& y, const Communicator& comm) {
    return cross_entropy(y, classes, mask == nullptr ? all : given, comm);
  };
}

/// A step of training. make_loss(operands) returns the loss as a function of the prediction.
template <class MakeLoss>
int train_step(const char* name, sar_model model, sar_optimizer optimizer, sar_graph graph,
               const sar_array* x, const sar_array* edges, double* loss, const MakeLoss& make_loss) {
  std::shared_ptr<ModelObject> found;
  double result = 0;
  const auto step = [&](const Communicator& comm, CollectiveCall& call) {
    const auto its = object<OptimizerObject>(optimizer, "optimizer");
    Operands operands = operands_of(model, graph, x, edges);
    found = operands.model;
    const auto wanted = make_loss(operands);
    require_optimizer_of(*operands.model, *its);
    call.equal(operands).equal("optimizer", its->optimizer->kind());
    call.equal("learning rate", its->optimizer->lr());
    GraphModel& network = *operands.model->model;
    network.train();
    const MixedPrecisionScope mixed(its->gradients.mixed_precision);
    Tape tape;
    const Variable value = wanted(operands.predict(), comm);
    result = value.value().item();
    if (its->gradients.require_finite)
      require_finite_loss(
          comm, result,
          {{"x", operands.x}, {"edges", operands.edges}, {"target", operands.target, operands.mask}});
    tape.backward(value);
    gather_grads(comm, network);
    prepare_gradients(network, its->gradients);
    its->optimizer->step();
    network.zero_grad();
  };
  const int status =
      collective_call(name, {{model, "model"}, {optimizer, "optimizer"}, {graph, "graph"}}, step);
  if (status == SAR_OK && loss != nullptr) *loss = result;
  return after_comparison(status, found);
}

/// The loss without a step.
template <class MakeLoss>
int evaluate(const char* name, sar_model model, sar_graph graph, const sar_array* x, const sar_array* edges,
             double* loss, const MakeLoss& make_loss) {
  std::shared_ptr<ModelObject> found;
  const auto pass = [&](const Communicator& comm, CollectiveCall& call) {
    Operands operands = operands_of(model, graph, x, edges);
    found = operands.model;
    const auto wanted = make_loss(operands);
    require_pointer(loss, "loss");
    call.equal(operands);
    const NoTape no_tape;
    operands.model->model->eval();
    *loss = wanted(operands.predict(), comm).value().item();
  };
  return after_comparison(collective_call(name, {{model, "model"}, {graph, "graph"}}, pass), found);
}

}  // namespace

int sar_train_step(sar_model model, sar_optimizer optimizer, sar_graph graph, const sar_array* x,
                   const sar_array* edges, int32_t loss_kind, const sar_array* target, int64_t mask_length,
                   const uint8_t* mask, double* loss) {
  return train_step("sar_train_step", model, optimizer, graph, x, edges, loss, [&](Operands& operands) {
    return field_loss(operands, loss_kind, target, mask_length, mask);
  });
}

int sar_train_step_labels(sar_model model, sar_optimizer optimizer, sar_graph graph, const sar_array* x,
                          const sar_array* edges, int64_t num_labels, const int64_t* labels,
                          int64_t mask_length, const uint8_t* mask, double* loss) {
  return train_step(
      "sar_train_step_labels", model, optimizer, graph, x, edges, loss,
      [&](Operands& operands) { return label_loss(operands, num_labels, labels, mask_length, mask); });
}

int sar_evaluate(sar_model model, sar_graph graph, const sar_array* x, const sar_array* edges,
                 int32_t loss_kind, const sar_array* target, int64_t mask_length, const uint8_t* mask,
                 double* loss) {
  return evaluate("sar_evaluate", model, graph, x, edges, loss, [&](Operands& operands) {
    return field_loss(operands, loss_kind, target, mask_length, mask);
  });
}

int sar_evaluate_labels(sar_model model, sar_graph graph, const sar_array* x, const sar_array* edges,
                        int64_t num_labels, const int64_t* labels, int64_t mask_length, const uint8_t* mask,
                        double* loss) {
  return evaluate("sar_evaluate_labels", model, graph, x, edges, loss, [&](Operands& operands) {
    return label_loss(operands, num_labels, labels, mask_length, mask);
  });
}
