// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/bindings/c/array.hpp>
#include <sar/bindings/c/graph.hpp>
#include <sar/bindings/c/status.hpp>
#include <sar/bindings/c/training.hpp>
#include <sar/comm/reproducible_scope.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/threads/mixed_precision.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/nn/models/predictor.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

// Reads each gradient once for the check and once for the norm; arrays are searched only after a loss that is
// not finite.

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {
namespace {

constexpr const char* nothing_changed =
    "; nothing has changed (with \"require_finite\": false, the optimizer takes such steps)";

bool is_finite(real value) {
  return std::isfinite(value);
}

bool all_finite(const Tensor& x) {
  // A sum of squares that is finite has finite parts; in double precision it may overflow.
  return std::isfinite(sum_squares(x)) || std::ranges::all_of(std::as_const(x).values(), is_finite);
}

/// Throws InputError if a row that counts has a value that is not finite.
void require_finite_rows(double loss, const StepRows& given) {
  if (!given.rows.defined()) return;
  const Index width = given.rows.row_size();
  for (Index i = 0; i < given.rows.num_rows(); ++i) {
    if (!given.mask.empty() && given.mask[static_cast<std::size_t>(i)] == 0) continue;
    const std::span<const real> row(std::as_const(given.rows).row(i), static_cast<std::size_t>(width));
    const auto found = std::ranges::find_if_not(row, is_finite);
    require<InputError>(found == row.end(), "the loss is ", loss, ", expected a finite number: the array '",
                        given.name, "' has the value ", found == row.end() ? real{0} : *found, " in row ", i,
                        ", field ", found - row.begin(), nothing_changed);
  }
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

}  // namespace

void require_finite_loss(const Communicator& comm, double loss, std::span<const StepRows> given) {
  if (std::isfinite(loss)) return;
  comm.agree([&] {
    for (const StepRows& rows : given) require_finite_rows(loss, rows);
  });
  throw InputError(concat("the loss is ", loss, ", expected a finite number", nothing_changed));
}

void prepare_gradients(Module& model, const GradientOptions& options) {
  if (options.require_finite)
    for (const auto& [name, parameter] : model.named_parameters())
      if (const Tensor gradient = parameter.grad(); gradient.defined())
        require<InputError>(all_finite(gradient), "the gradient of ", name, " has a value that is not finite",
                            nothing_changed);
  if (std::isfinite(options.clip_grad_norm)) clip_grad_norm(model, options.clip_grad_norm);
  if (std::isfinite(options.clip_grad_value)) clip_grad_value(model, options.clip_grad_value);
}

StepLoss field_loss(const ResultRows& rows, std::int32_t kind, const sar_array* target,
                    std::int64_t mask_length, const std::uint8_t* mask) {
  require<InputError>(SAR_LOSS_MSE <= kind && kind <= SAR_LOSS_BCE, "the kind of the loss is ", kind,
                      ", expected ", SAR_LOSS_MSE, " to ", SAR_LOSS_BCE, " (SAR_LOSS_MSE and others)");
  const Tensor wanted = read_array(target, {"target", rows.rows, rows.fields});
  const std::span<const std::uint8_t> given = mask_of(mask_length, mask, rows.rows);
  std::vector<Index> counted;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (given[i] != 0) counted.push_back(static_cast<Index>(i));
  const auto loss = [kind, wanted, has_mask = mask != nullptr, counted = std::move(counted)](
                        const Variable& y, const Communicator& comm) {
    if (!has_mask) return loss_of(kind, y, wanted, comm);
    const RowIds ids(std::span<const Index>{counted});
    return loss_of(kind, gather_rows(y, ids), gather_rows(Variable(wanted), ids).value(), comm);
  };
  return {loss, wanted, given};
}

StepLoss label_loss(const ResultRows& rows, std::int64_t num_labels, const std::int64_t* labels,
                    std::int64_t mask_length, const std::uint8_t* mask) {
  const std::span<const std::int64_t> classes = list_of(labels, num_labels, "labels");
  const std::span<const std::uint8_t> given = mask_of(mask_length, mask, rows.rows);
  require<ShapeError>(num_labels == rows.rows, "'labels' has ", num_labels, " numbers, expected ", rows.rows,
                      ", the nodes of the rank");
  const std::vector<std::uint8_t> all(mask == nullptr ? classes.size() : 0, 1);
  const auto loss = [classes, given, all, has_mask = mask != nullptr](const Variable& y,
                                                                      const Communicator& comm) {
    return cross_entropy(y, classes, has_mask ? given : all, comm);
  };
  return {loss, {}, {}};
}

double take_step(const Communicator& comm, OptimizerObject& optimizer, std::vector<StepRows> inputs,
                 const StepLoss& loss, const std::function<Variable()>& predict, bool reproducible) {
  Module& network = optimizer.model->network;
  network.train();
  const ReproducibleScope sums(comm, reproducible);
  const MixedPrecisionScope mixed(optimizer.gradients.mixed_precision);
  Tape tape;
  const Variable value = loss.of(predict(), comm);
  const double result = value.value().item();
  if (optimizer.gradients.require_finite) {
    inputs.push_back({"target", loss.target, loss.mask});
    require_finite_loss(comm, result, inputs);
  }
  tape.backward(value);
  gather_grads(comm, network);
  prepare_gradients(network, optimizer.gradients);
  optimizer.optimizer->step();
  network.zero_grad();
  return result;
}

double loss_without_step(const Communicator& comm, Module& network, const StepLoss& loss,
                         const std::function<Variable()>& predict) {
  const NoTape no_tape;
  network.eval();
  return loss.of(predict(), comm).value().item();
}
}}}  // namespace sar

using namespace sar;
using namespace sar::c_interface;

namespace {

/// The operands of a forward pass, and the node type whose results are read.
struct Operands {
  std::shared_ptr<ModelObject> model;
  std::shared_ptr<GraphObject> graph;
  std::string type;
  Tensor x, edges;

  [[nodiscard]] Variable predict() const {
    const HaloStep step(model->rounded_operations);
    const HostGraph& g = graph->built();
    if (!model_type(model->plan.type).has_relations)
      return (*model->model)(g, x, edges.defined() ? Variable(edges) : Variable());
    GraphModel::Rows rows{{type, x}};
    for (const auto& [of_type, values] : graph->rows) rows.emplace(of_type, values);
    return (*model->model)(g, rows).at(type);
  }
  [[nodiscard]] ResultRows results() const { return {graph->built().num_nodes(type), model->plan.out_feats}; }
  [[nodiscard]] std::vector<StepRows> inputs() const {
    std::vector<StepRows> all{{"x", x}, {"edges", edges}};
    for (const auto& [of_type, rows] : graph->rows)
      if (of_type != type) all.push_back({of_type.c_str(), rows});
    return all;
  }
};

void add_arguments(CollectiveCall& call, const Operands& operands) {
  call.equal(*operands.model).equal(*operands.graph).equal("node type", operands.type);
}

Operands operands_of(sar_model model, sar_graph graph, const char* type, const sar_array* x,
                     const sar_array* edges) {
  Operands all{object<ModelObject>(model, "model"), object<GraphObject>(graph, "graph"), {}, {}, {}};
  require_statistics(*all.model);
  const ModelDescription& description = all.model->plan;
  const HostGraph& g = all.graph->built();
  require_types(*all.model, *all.graph);
  all.type = all.graph->node_type(type);
  const auto width = description.inputs.find(all.type);
  all.x = read_array(x, {"x", g.num_nodes(all.type),
                         width == description.inputs.end() ? description.in_feats : width->second});
  all.edges = read_edges(edges, g.num_edges(), description.edge_feats);
  return all;
}

/// A step of training. make_loss(rows) returns the loss of a prediction with these rows.
template <class MakeLoss>
int train_step(const char* name, sar_model model, sar_optimizer optimizer, sar_graph graph, const char* type,
               const sar_array* x, const sar_array* edges, double* loss, const MakeLoss& make_loss) {
  std::shared_ptr<ModelObject> found;
  double result = 0;
  const auto step = [&](const Communicator& comm, CollectiveCall& call) {
    const auto its = object<OptimizerObject>(optimizer, "optimizer");
    const Operands operands = operands_of(model, graph, type, x, edges);
    found = operands.model;
    const StepLoss wanted = make_loss(operands.results());
    require_optimizer_of(*operands.model, *its);
    call.equal(operands).equal("optimizer", its->optimizer->kind());
    call.equal("learning rate", its->optimizer->lr());
    result = take_step(
        comm, *its, operands.inputs(), wanted, [&] { return operands.predict(); },
        operands.graph->built().options().reproducible);
  };
  const int status =
      collective_call(name, {{model, "model"}, {optimizer, "optimizer"}, {graph, "graph"}}, step);
  if (status == SAR_OK && loss != nullptr) *loss = result;
  return after_comparison(status, found);
}

/// Calls body(comm, call, operands) with the operands of a pass in evaluation mode. The body compares them.
template <class Body>
int with_operands(const char* name, sar_model model, sar_graph graph, const char* type, const sar_array* x,
                  const sar_array* edges, const Body& body) {
  std::shared_ptr<ModelObject> found;
  const auto pass = [&](const Communicator& comm, CollectiveCall& call) {
    const Operands operands = operands_of(model, graph, type, x, edges);
    found = operands.model;
    body(comm, call, operands);
  };
  return after_comparison(collective_call(name, {{model, "model"}, {graph, "graph"}}, pass), found);
}

/// The loss without a step.
template <class MakeLoss>
int evaluate(const char* name, sar_model model, sar_graph graph, const char* type, const sar_array* x,
             const sar_array* edges, double* loss, const MakeLoss& make_loss) {
  return with_operands(name, model, graph, type, x, edges,
                       [&](const Communicator& comm, CollectiveCall& call, const Operands& operands) {
                         const StepLoss wanted = make_loss(operands.results());
                         require_pointer(loss, "loss");
                         call.equal(operands);
                         *loss = loss_without_step(comm, operands.model->network, wanted,
                                                   [&] { return operands.predict(); });
                       });
}

}  // namespace

int sar_train_step(sar_model model, sar_optimizer optimizer, sar_graph graph, const char* type,
                   const sar_array* x, const sar_array* edges, int32_t loss_kind, const sar_array* target,
                   int64_t mask_length, const uint8_t* mask, double* loss) {
  return train_step(
      "sar_train_step", model, optimizer, graph, type, x, edges, loss,
      [&](const ResultRows& rows) { return field_loss(rows, loss_kind, target, mask_length, mask); });
}

int sar_train_step_labels(sar_model model, sar_optimizer optimizer, sar_graph graph, const char* type,
                          const sar_array* x, const sar_array* edges, int64_t num_labels,
                          const int64_t* labels, int64_t mask_length, const uint8_t* mask, double* loss) {
  return train_step(
      "sar_train_step_labels", model, optimizer, graph, type, x, edges, loss,
      [&](const ResultRows& rows) { return label_loss(rows, num_labels, labels, mask_length, mask); });
}

int sar_evaluate(sar_model model, sar_graph graph, const char* type, const sar_array* x,
                 const sar_array* edges, int32_t loss_kind, const sar_array* target, int64_t mask_length,
                 const uint8_t* mask, double* loss) {
  return evaluate("sar_evaluate", model, graph, type, x, edges, loss, [&](const ResultRows& rows) {
    return field_loss(rows, loss_kind, target, mask_length, mask);
  });
}

int sar_evaluate_labels(sar_model model, sar_graph graph, const char* type, const sar_array* x,
                        const sar_array* edges, int64_t num_labels, const int64_t* labels,
                        int64_t mask_length, const uint8_t* mask, double* loss) {
  return evaluate("sar_evaluate_labels", model, graph, type, x, edges, loss, [&](const ResultRows& rows) {
    return label_loss(rows, num_labels, labels, mask_length, mask);
  });
}

int sar_predict(sar_model model, sar_graph graph, const char* type, const sar_array* x,
                const sar_array* edges, sar_array* out) {
  return with_operands("sar_predict", model, graph, type, x, edges,
                       [&](const Communicator&, CollectiveCall& call, const Operands& operands) {
                         const ResultRows rows = operands.results();
                         check_array(out, {"out", rows.rows, rows.fields});
                         call.equal(operands);
                         const NoTape no_tape;
                         operands.model->network.eval();
                         write_array(operands.predict().value(), *out);
                       });
}

namespace {

struct PredictorObject final : Object {
  static constexpr const char* name = "sar_predictor";
  PredictorObject(std::shared_ptr<ModelObject> m, std::shared_ptr<GraphObject> g)
      : Object(m->comm, name),
        model(std::move(m)),
        graph(std::move(g)),
        num_rebuilds(graph->num_rebuilds),
        predictor(*model->model, graph->built()) {}

  /// Replaces the predictor if the graph was rebuilt. Collective.
  void follow_graph() {
    if (num_rebuilds == graph->num_rebuilds) return;
    require_types(*model, *graph);
    predictor = Predictor(*model->model, graph->built());
    num_rebuilds = graph->num_rebuilds;
  }

  std::shared_ptr<ModelObject> model;
  std::shared_ptr<GraphObject> graph;
  std::uint64_t num_rebuilds;  // number of rebuilds that `predictor` has seen
  Predictor predictor;
};

}  // namespace

int sar_predictor_create(sar_model model, sar_graph graph, sar_predictor* predictor) {
  return make_object("sar_predictor_create", {{model, "model"}, {graph, "graph"}}, predictor,
                     [&](const Communicator&, CollectiveCall& call) {
                       const auto of = object<ModelObject>(model, "model");
                       const auto on = object<GraphObject>(graph, "graph");
                       require<InputError>(!model_type(of->plan.type).has_relations, "a network of type ",
                                           of->plan.type,
                                           ", which reads relations, in a predictor, expected sar_predict()");
                       require_types(*of, *on);
                       call.equal(*of).equal(*on);
                       return std::make_shared<PredictorObject>(of, on);
                     });
}

int sar_predictor_run(sar_predictor predictor, const sar_array* x, const sar_array* edges, sar_array* out) {
  std::shared_ptr<PredictorObject> found;
  const auto run = [&](const Communicator&, CollectiveCall& call) {
    found = object<PredictorObject>(predictor, "predictor");
    call.equal(*found->model).equal(*found->graph);
    require_statistics(*found->model);
    const ModelDescription& description = found->model->plan;
    found->follow_graph();
    const Index num_nodes = found->graph->built().num_nodes();
    const Tensor rows = read_array(x, {"x", num_nodes, description.in_feats});
    const Tensor edge_rows = read_edges(edges, found->graph->built().num_edges(), description.edge_feats);
    check_array(out, {"out", num_nodes, description.out_feats});
    const Shape shape{out->rows, out->fields};
    const bool in_place = lies_as_tensor(*out);
    Tensor result = in_place ? Tensor::borrow(static_cast<real*>(out->data), shape) : Tensor(shape);
    const HaloStep step(found->model->rounded_operations);
    found->predictor(rows, edge_rows, result);
    if (!in_place) write_array(result, *out);
  };
  const int status = collective_call("sar_predictor_run", {{predictor, "predictor"}}, run);
  return after_comparison(status, found != nullptr ? found->model : nullptr);
}

int sar_predictor_free(sar_predictor predictor) {
  return free_object<PredictorObject>(predictor, "predictor");
}
