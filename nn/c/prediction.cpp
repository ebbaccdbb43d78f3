#include <sar/nn/c/array.hpp>
#include <sar/nn/c/status.hpp>
#include <sar/nn/model/predictor.hpp>

using namespace sar;
using namespace sar::c_interface;

namespace {

struct PredictorObject final : Object {
  static constexpr const char* name = "sar_predictor";
  PredictorObject(std::shared_ptr<ModelObject> m, const std::shared_ptr<GraphObject>& g)
      : Object(m->comm),
        model(std::move(m)),
        num_nodes(g->graph.num_nodes()),
        num_edges(g->graph.num_edges()),
        predictor(*model->model, g->graph) {}
  [[nodiscard]] const char* kind() const noexcept override { return name; }

  std::shared_ptr<ModelObject> model;
  Index num_nodes, num_edges;
  Predictor predictor;
};

}  // namespace

int sar_predictor_create(sar_model model, sar_graph graph, sar_predictor* predictor) {
  return make_object("sar_predictor_create", {{model, "model"}, {graph, "graph"}}, predictor,
                     [&](const Communicator&) {
                       return std::make_shared<PredictorObject>(object<ModelObject>(model, "model"),
                                                                object<GraphObject>(graph, "graph"));
                     });
}

int sar_predictor_run(sar_predictor predictor, const sar_array* x, const sar_array* edges, sar_array* out) {
  return collective_call("sar_predictor_run", {{predictor, "predictor"}}, [&](const Communicator&) {
    const auto found = object<PredictorObject>(predictor, "predictor");
    const ModelDescription& description = found->model->model->description();
    const Tensor rows = read_array(x, {"x", found->num_nodes, description.in_feats});
    const Tensor edge_rows = read_edges(edges, found->num_edges, description.edge_feats);
    check_array(out, {"out", found->num_nodes, description.out_feats});
    const Shape shape{out->rows, out->fields};
    const bool in_place = lies_as_tensor(*out);
    Tensor result = in_place ? Tensor::borrow(static_cast<real*>(out->data), shape) : Tensor(shape);
    found->predictor(rows, edge_rows, result);
    if (!in_place) write_array(result, *out);
  });
}

int sar_predictor_free(sar_predictor predictor) {
  return free_object<PredictorObject>(predictor, "predictor");
}
