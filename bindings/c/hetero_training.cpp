// SPDX-License-Identifier: MIT
#include <sar/autograd/tape.hpp>
#include <sar/bindings/c/array.hpp>
#include <sar/bindings/c/hetero_object.hpp>
#include <sar/bindings/c/status.hpp>
#include <sar/bindings/c/step_loss.hpp>
#include <sar/graph/message/halo_step.hpp>

using namespace sar;
using namespace sar::c_interface;

namespace {

/// The operands of a forward pass, and the node type whose results are read.
struct TypedOperands {
  std::shared_ptr<ModelObject> model;
  std::shared_ptr<HeteroObject> graph;
  std::string type;

  [[nodiscard]] Variable predict() const {
    const HaloStep step(model->rounded_operations);
    GraphModel::Rows x;
    for (const auto& [of_type, rows] : graph->rows) x.emplace(of_type, rows);
    return typed(*model)(*graph->graph, x).at(type);
  }
  [[nodiscard]] ResultRows results() const { return {num_nodes_of(*graph, type), model->plan.out_feats}; }
  [[nodiscard]] std::vector<StepRows> inputs() const {
    std::vector<StepRows> all;
    for (const auto& [of_type, rows] : graph->rows) all.push_back({of_type.c_str(), rows});
    return all;
  }
};

void add_arguments(CollectiveCall& call, const TypedOperands& operands) {
  call.equal(*operands.model).equal(*operands.graph).equal("node type", operands.type);
}

TypedOperands typed_operands_of(sar_model model, sar_hetero graph, const char* type) {
  TypedOperands all{object<ModelObject>(model, "model"), object<HeteroObject>(graph, "graph"),
                    text_of(type, "type")};
  typed(*all.model);
  return all;
}

/// A step of training. make_loss(rows) returns the loss of a prediction with these rows.
template <class MakeLoss>
int train_step(const char* name, sar_model model, sar_optimizer optimizer, sar_hetero graph, const char* type,
               double* loss, const MakeLoss& make_loss) {
  std::shared_ptr<ModelObject> found;
  double result = 0;
  const auto step = [&](const Communicator& comm, CollectiveCall& call) {
    const auto its = object<OptimizerObject>(optimizer, "optimizer");
    const TypedOperands operands = typed_operands_of(model, graph, type);
    found = operands.model;
    const StepLoss wanted = make_loss(operands.results());
    require_optimizer_of(*operands.model, *its);
    call.equal(operands).equal("optimizer", its->optimizer->kind());
    call.equal("learning rate", its->optimizer->lr());
    result = take_step(
        comm, *its, operands.inputs(), wanted, [&] { return operands.predict(); },
        operands.graph->graph->options().reproducible);
  };
  const int status =
      collective_call(name, {{model, "model"}, {optimizer, "optimizer"}, {graph, "graph"}}, step);
  if (status == SAR_OK && loss != nullptr) *loss = result;
  return after_comparison(status, found);
}

/// Calls body(comm, operands) after the ranks have compared the operands.
template <class Body>
int with_typed_operands(const char* name, sar_model model, sar_hetero graph, const char* type,
                        const Body& body) {
  std::shared_ptr<ModelObject> found;
  const auto pass = [&](const Communicator& comm, CollectiveCall& call) {
    const TypedOperands operands = typed_operands_of(model, graph, type);
    found = operands.model;
    call.equal(operands);
    body(comm, operands);
  };
  return after_comparison(collective_call(name, {{model, "model"}, {graph, "graph"}}, pass), found);
}

/// The loss without a step.
template <class MakeLoss>
int evaluate(const char* name, sar_model model, sar_hetero graph, const char* type, double* loss,
             const MakeLoss& make_loss) {
  return with_typed_operands(
      name, model, graph, type, [&](const Communicator& comm, const TypedOperands& operands) {
        const StepLoss wanted = make_loss(operands.results());
        require_pointer(loss, "loss");
        *loss = loss_without_step(comm, operands.model->network, wanted, [&] { return operands.predict(); });
      });
}

}  // namespace

int sar_hetero_train_step(sar_model model, sar_optimizer optimizer, sar_hetero graph, const char* type,
                          int32_t loss_kind, const sar_array* target, int64_t mask_length,
                          const uint8_t* mask, double* loss) {
  return train_step(
      "sar_hetero_train_step", model, optimizer, graph, type, loss,
      [&](const ResultRows& rows) { return field_loss(rows, loss_kind, target, mask_length, mask); });
}

int sar_hetero_train_step_labels(sar_model model, sar_optimizer optimizer, sar_hetero graph, const char* type,
                                 int64_t num_labels, const int64_t* labels, int64_t mask_length,
                                 const uint8_t* mask, double* loss) {
  return train_step(
      "sar_hetero_train_step_labels", model, optimizer, graph, type, loss,
      [&](const ResultRows& rows) { return label_loss(rows, num_labels, labels, mask_length, mask); });
}

int sar_hetero_evaluate(sar_model model, sar_hetero graph, const char* type, int32_t loss_kind,
                        const sar_array* target, int64_t mask_length, const uint8_t* mask, double* loss) {
  return evaluate("sar_hetero_evaluate", model, graph, type, loss, [&](const ResultRows& rows) {
    return field_loss(rows, loss_kind, target, mask_length, mask);
  });
}

int sar_hetero_evaluate_labels(sar_model model, sar_hetero graph, const char* type, int64_t num_labels,
                               const int64_t* labels, int64_t mask_length, const uint8_t* mask,
                               double* loss) {
  return evaluate("sar_hetero_evaluate_labels", model, graph, type, loss, [&](const ResultRows& rows) {
    return label_loss(rows, num_labels, labels, mask_length, mask);
  });
}

int sar_hetero_predict(sar_model model, sar_hetero graph, const char* type, sar_array* out) {
  return with_typed_operands("sar_hetero_predict", model, graph, type,
                             [&](const Communicator&, const TypedOperands& operands) {
                               const ResultRows rows = operands.results();
                               check_array(out, {"out", rows.rows, rows.fields});
                               const NoTape no_tape;
                               operands.model->network.eval();
                               write_array(operands.predict().value(), *out);
                             });
}
