#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/bindings/c/array.hpp>
#include <sar/bindings/c/status.hpp>
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
  Tensor x, edges;

  [[nodiscard]] Variable predict() const {
    const HaloStep step(model->rounded_operations);
    return (*model->model)(graph->graph, x, edges.defined() ? Variable(edges) : Variable());
  }
  [[nodiscard]] Index num_nodes() const { return graph->graph.num_nodes(); }
  [[nodiscard]] Index out_feats() const { return model->model->description().out_feats; }
};

Operands operands_of(sar_model model, sar_graph graph, const sar_array* x, const sar_array* edges) {
  Operands all{object<ModelObject>(model, "model"), object<GraphObject>(graph, "graph"), {}, {}};
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
    case SAR_LOSS_BCE:
      return bce_with_logits(y, target, comm);
    default:
      throw InputError(concat("the kind of the loss is ", kind, ", expected ", SAR_LOSS_MSE, " to ",
                              SAR_LOSS_BCE, " (SAR_LOSS_MSE and others)"));
  }
}

/// A loss of fields with its checked arguments.
class FieldLoss {
 public:
  FieldLoss(const Operands& operands, std::int32_t kind, const sar_array* target, std::int64_t mask_length,
            const std::uint8_t* mask)
      : kind_(kind), has_mask_(mask != nullptr) {
    require<InputError>(SAR_LOSS_MSE <= kind && kind <= SAR_LOSS_BCE, "the kind of the loss is ", kind,
                        ", expected ", SAR_LOSS_MSE, " to ", SAR_LOSS_BCE, " (SAR_LOSS_MSE and others)");
    target_ = read_array(target, {"target", operands.num_nodes(), operands.out_feats()});
    const std::span<const std::uint8_t> given = mask_of(mask_length, mask, operands.num_nodes());
    for (std::size_t i = 0; i < given.size(); ++i)
      if (given[i] != 0) rows_.push_back(static_cast<Index>(i));
  }
  Variable operator()(const Variable& y, const Communicator& comm) const {
    if (!has_mask_) return loss_of(kind_, y, target_, comm);
    const RowIds rows(std::span<const Index>{rows_});
    return loss_of(kind_, gather_rows(y, rows), gather_rows(Variable(target_), rows).value(), comm);
  }

 private:
  std::int32_t kind_;
  bool has_mask_;
  Tensor target_;
  std::vector<Index> rows_;
};

/// The cross entropy with its checked arguments.
class LabelLoss {
 public:
  LabelLoss(const Operands& operands, std::int64_t num_labels, const std::int64_t* labels,
            std::int64_t mask_length, const std::uint8_t* mask)
      : labels_(list_of(labels, num_labels, "labels")),
        mask_(mask_of(mask_length, mask, operands.num_nodes())) {
    require<ShapeError>(num_labels == operands.num_nodes(), "'labels' has ", num_labels,
                        " numbers, expected ", operands.num_nodes(), ", the nodes of the rank");
    if (mask == nullptr) {
      all_.assign(labels_.size(), 1);
      mask_ = all_;
    }
  }
  LabelLoss(const LabelLoss&) = delete;
  LabelLoss& operator=(const LabelLoss&) = delete;

  Variable operator()(const Variable& y, const Communicator& comm) const {
    return cross_entropy(y, labels_, mask_, comm);
  }

 private:
  std::span<const std::int64_t> labels_;
  std::span<const std::uint8_t> mask_;
  std::vector<std::uint8_t> all_;
};

/// Clears the gradients at the end of a training step, also if it fails.
struct GradientScope {
  explicit GradientScope(GraphModel& m) : model(m) {}
  ~GradientScope() { model.zero_grad(); }
  GradientScope(const GradientScope&) = delete;
  GradientScope& operator=(const GradientScope&) = delete;

  GraphModel& model;
};

template <class Loss>
double train(const Operands& operands, OptimizerObject& optimizer, const Loss& loss,
             const Communicator& comm) {
  require<InputError>(optimizer.model == operands.model,
                      "the optimizer was made for another model, expected one of this model");
  GraphModel& model = *operands.model->model;
  const GradientScope gradients(model);
  model.train();
  Tape tape;
  const Variable value = loss(operands.predict(), comm);
  const double result = value.value().item();
  tape.backward(value);
  gather_grads(comm, model);
  optimizer.optimizer->step();
  return result;
}

template <class Loss>
double evaluate(const Operands& operands, const Loss& loss, const Communicator& comm) {
  const NoTape no_tape;
  operands.model->model->eval();
  return loss(operands.predict(), comm).value().item();
}

}  // namespace

int sar_train_step(sar_model model, sar_optimizer optimizer, sar_graph graph, const sar_array* x,
                   const sar_array* edges, int32_t loss_kind, const sar_array* target, int64_t mask_length,
                   const uint8_t* mask, double* loss) {
  return collective_call("sar_train_step", {{model, "model"}, {optimizer, "optimizer"}, {graph, "graph"}},
                         [&](const Communicator& comm) {
                           const auto its = object<OptimizerObject>(optimizer, "optimizer");
                           const Operands operands = operands_of(model, graph, x, edges);
                           const FieldLoss wanted(operands, loss_kind, target, mask_length, mask);
                           const double value = train(operands, *its, wanted, comm);
                           if (loss != nullptr) *loss = value;
                         });
}

int sar_train_step_labels(sar_model model, sar_optimizer optimizer, sar_graph graph, const sar_array* x,
                          const sar_array* edges, int64_t num_labels, const int64_t* labels,
                          int64_t mask_length, const uint8_t* mask, double* loss) {
  return collective_call("sar_train_step_labels",
                         {{model, "model"}, {optimizer, "optimizer"}, {graph, "graph"}},
                         [&](const Communicator& comm) {
                           const auto its = object<OptimizerObject>(optimizer, "optimizer");
                           const Operands operands = operands_of(model, graph, x, edges);
                           const LabelLoss wanted(operands, num_labels, labels, mask_length, mask);
                           const double value = train(operands, *its, wanted, comm);
                           if (loss != nullptr) *loss = value;
                         });
}

int sar_evaluate(sar_model model, sar_graph graph, const sar_array* x, const sar_array* edges,
                 int32_t loss_kind, const sar_array* target, int64_t mask_length, const uint8_t* mask,
                 double* loss) {
  return collective_call("sar_evaluate", {{model, "model"}, {graph, "graph"}}, [&](const Communicator& comm) {
    const Operands operands = operands_of(model, graph, x, edges);
    const FieldLoss wanted(operands, loss_kind, target, mask_length, mask);
    require_pointer(loss, "loss");
    *loss = evaluate(operands, wanted, comm);
  });
}

int sar_evaluate_labels(sar_model model, sar_graph graph, const sar_array* x, const sar_array* edges,
                        int64_t num_labels, const int64_t* labels, int64_t mask_length, const uint8_t* mask,
                        double* loss) {
  return collective_call("sar_evaluate_labels", {{model, "model"}, {graph, "graph"}},
                         [&](const Communicator& comm) {
                           const Operands operands = operands_of(model, graph, x, edges);
                           const LabelLoss wanted(operands, num_labels, labels, mask_length, mask);
                           require_pointer(loss, "loss");
                           *loss = evaluate(operands, wanted, comm);
                         });
}
