#include <sar/autograd/tape.hpp>
#include <sar/nn/c/array.hpp>
#include <sar/nn/c/status.hpp>

using namespace sar;
using namespace sar::c_interface;

namespace {

struct PredictorObject final : Object {
  static constexpr const char* name = "sar_predictor";
  PredictorObject(std::shared_ptr<ModelObject> m, std::shared_ptr<GraphObject> g)
      : Object(m->comm), model(std::move(m)), graph(std::move(g)) {}
  [[nodiscard]] const char* kind() const noexcept override { return name; }

  std::shared_ptr<ModelObject> model;
  std::shared_ptr<GraphObject> graph;
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
    const HostGraph& graph = found->graph->graph;
    GraphModel& model = *found->model->model;
    const ModelDescription& description = model.description();
    const Tensor rows = read_array(x, {"x", graph.num_nodes(), description.in_feats});
    const Tensor edge_rows = read_edges(edges, graph.num_edges(), description.edge_feats);
    check_array(out, {"out", graph.num_nodes(), description.out_feats});
    const NoTape no_tape;
    model.eval();
    const Variable y = model(graph, rows, edge_rows.defined() ? Variable(edge_rows) : Variable());
    write_array(y.value(), *out);
  });
}

int sar_predictor_free(sar_predictor predictor) {
  return free_object<PredictorObject>(predictor, "predictor");
}
