// SPDX-License-Identifier: MIT
#include <sar/autograd/tape.hpp>
#include <sar/bindings/c/array.hpp>
#include <sar/bindings/c/graph_object.hpp>
#include <sar/bindings/c/status.hpp>
#include <sar/bindings/c/step_loss.hpp>
#include <sar/graph/message/halo_step.hpp>

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
