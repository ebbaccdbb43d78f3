/// The classes of sar_cxx11.hpp, compiled as C++11: a training, its file, its checkpoint and its prediction.
/// The argument is a folder for files.
#include <sar_cxx11.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "FAILED: %s\n", what);
}

const char* const sage =
    R"({"sar_model": 1, "type": "sage", "in_feats": 1, "hidden": 8, "out_feats": 2, "layers": 2})";

void trains(const std::string& folder) {
  const sar_cxx11::Comm comm(MPI_COMM_WORLD);
  const int rank = comm.rank(), size = comm.size(), nodes = 5;
  std::vector<std::int64_t> ids, src, dst, labels;
  std::vector<double> x;
  sar_cxx11::LocalToGlobal numbering{nodes, {}};
  std::vector<std::int32_t> local_src, local_dst;
  for (int i = 0; i < nodes; ++i) {  // a ring
    const std::int64_t node = rank * nodes + i;
    ids.push_back(node);
    src.push_back((node + size * nodes - 1) % (size * nodes));
    dst.push_back(node);
    local_src.push_back(i == 0 ? nodes : i - 1);
    local_dst.push_back(i);
    labels.push_back(node % 2);
    x.push_back(std::sin(static_cast<double>(node)));
  }
  numbering.global_ids = ids;
  numbering.global_ids.push_back(src[0]);
  if (size == 1) {  // the predecessor of the first node is no ghost
    numbering.global_ids.pop_back();
    local_src[0] = nodes - 1;
  }
  sar_cxx11::Graph graph(comm, ids, src, dst);
  const sar_cxx11::Graph same(comm, numbering, local_src, local_dst);
  expect(graph.sizes().edges == nodes && same.sizes().edges == nodes, "each node has an in-edge");
  const std::vector<double> lengths = graph.to_graph_order(x, 1);
  expect(lengths.size() == static_cast<std::size_t>(nodes), "a row for each edge");

  sar_cxx11::Model model(comm, sage, 3), twin(comm, sage, 3);
  const sar_cxx11::Optimizer optimizer(model, R"({"optimizer": "sgd", "lr": 0.5, "momentum": 0.5})");
  const sar_cxx11::Optimizer twins(twin, R"({"optimizer": "sgd", "lr": 0.5, "momentum": 0.5})");
  double first = 0, last = 0;
  bool equal = true;
  for (int step = 0; step < 20; ++step) {
    last = model.train_step(optimizer, graph, sar_cxx11::array(x, 1), labels);
    equal = equal && last == twin.train_step(twins, same, sar_cxx11::array(x, 1), labels);
    if (step == 0) first = last;
  }
  expect(last < first, "the loss falls");
  expect(equal, "both numberings give the same losses");

  // the mesh changes: edges go the other way around the ring, and then back
  const sar_cxx11::Predictor predictor(model, graph);
  const sar_cxx11::Graph reversed(comm, ids, dst, src);
  std::vector<double> once(2 * nodes), there(2 * nodes), wanted(2 * nodes), back(2 * nodes);
  sar_array out_once = sar_cxx11::array(once, 2), out_there = sar_cxx11::array(there, 2);
  sar_array out_wanted = sar_cxx11::array(wanted, 2), out_back = sar_cxx11::array(back, 2);
  predictor.run(sar_cxx11::array(x, 1), out_once);
  graph.rebuild(ids, dst, src);
  predictor.run(sar_cxx11::array(x, 1), out_there);
  sar_cxx11::Predictor(model, reversed).run(sar_cxx11::array(x, 1), out_wanted);
  graph.rebuild(numbering, local_src, local_dst);
  predictor.run(sar_cxx11::array(x, 1), out_back);
  expect(there == wanted && there != once, "the predictor follows the graph that is rebuilt");
  expect(back == once, "a graph that is rebuilt as it was predicts as it did");
  try {
    graph.rebuild(ids, src, std::vector<std::int64_t>(1));
    expect(false, "edges with fewer destinations than sources are refused");
  } catch (const sar_cxx11::Error& error) {
    expect(error.status() == SAR_ERROR_SHAPE, "the status of that error");
  }

  const std::string file = folder + ".safetensors";
  model.save(file);
  const sar_cxx11::Model loaded = sar_cxx11::Model::load(comm, file);
  expect(loaded.description() == model.description(), "the file has the description");
  std::vector<double> y(2 * nodes), of_file(2 * nodes);
  sar_array out = sar_cxx11::array(y, 2), out_of_file = sar_cxx11::array(of_file, 2);
  sar_cxx11::Predictor(model, graph).run(sar_cxx11::array(x, 1), out);
  sar_cxx11::Predictor(loaded, graph).run(sar_cxx11::array(x, 1), out_of_file);
  expect(y == of_file, "the model of the file predicts the same");

  const sar_cxx11::Checkpoints checkpoints(comm, folder);
  checkpoints.save(1, model, optimizer);
  expect(checkpoints.load_latest(model, optimizer) == 1, "the epoch of the checkpoint");

  try {
    sar_cxx11::Model(comm, "{}", 1);
    expect(false, "an empty description is refused");
  } catch (const sar_cxx11::Error& error) {
    expect(error.status() == SAR_ERROR_INPUT && !std::string(error.what()).empty(),
           "the status of the error");
  }
}

}  // namespace

int main(int argc, char** argv) {
  sar_cxx11::check(sar_init());
  trains(argc > 1 ? argv[1] : "cxx11");
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  sar_cxx11::check(sar_finalize());
  return all == 0 ? 0 : 1;
}
