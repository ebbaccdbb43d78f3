// SPDX-License-Identifier: MIT
#include <sar/bindings/c/array.hpp>
#include <sar/bindings/c/graph_object.hpp>
#include <sar/bindings/c/status.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/nn/models/predictor.hpp>

using namespace sar;
using namespace sar::c_interface;

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
