// SPDX-License-Identifier: MIT

/// load_model_program MODEL LOGITS [DATASET CATEGORY]: loads a network that `train` saved and compares its
/// result on the graph of `train --graph sbm --nodes 40 --classes 4 --features 5`, or on a dataset with
/// types, with the predictions of `train` in a .npy file.
#include <sar/core/files/npy.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace sar;

/// What a network computes for some nodes.
struct Found {
  std::string description;
  Tensor rows;
  Array<Index> ids;
};

Found result_of(const Communicator& comm, const std::string& model_file) {
  NodeData data = make_sbm(comm, {.nodes = 40, .classes = 4, .features = 5});
  const Graph graph = construct_full_graph(comm, data);
  const std::unique_ptr<GraphModel> model = load_model(comm, model_file);
  return {model->description().to_json(), (*model)(graph, data.features).value(), graph.dst_ids()};
}

/// Node types without features have the learnable rows beside the weights.
Found result_of(const Communicator& comm, const std::string& model_file, const std::string& dataset,
                const std::string& category) {
  GraphData data = load_graph(comm, dataset);
  take_edge_weights(data);
  const Graph graph = construct_hetero_graph(comm, data);
  const std::unique_ptr<GraphModel> model = load_model(comm, model_file);
  GraphModel::Rows x;
  for (const std::string& type : graph.node_types()) {
    if (graph.ndata(type).contains("features")) {
      x[type] = graph.ndata(type).at("features");
      continue;
    }
    const NpyFile file(model_file + ".rows." + type + ".npy");
    Tensor rows({graph.num_nodes(type), file.row_size()});
    file.read_rows(graph.node_ids(type), rows.values());
    x[type] = rows;
  }
  return {model->description().to_json(), (*model)(graph, x).at(category).value(), graph.node_ids(category)};
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  if (argc != 3 && argc != 5) return 2;
  try {
    const Found found = argc == 3 ? result_of(comm, argv[1]) : result_of(comm, argv[1], argv[3], argv[4]);
    const Tensor& result = found.rows;
    std::vector<real> expected(static_cast<std::size_t>(result.size()));
    NpyFile(argv[2]).read_rows<real>(found.ids, expected);
    double error = 0, largest = 0;
    for (Index i = 0; i < result.size(); ++i) {
      const auto value = static_cast<double>(expected[static_cast<std::size_t>(i)]);
      error = std::max(error, std::abs(static_cast<double>(result.data()[i]) - value));
      largest = std::max(largest, std::abs(value));
    }
    error = comm.all_reduce(error, ReduceOp::max);
    largest = comm.all_reduce(largest, ReduceOp::max);
    const bool is_equal = largest > 0 && error <= (sizeof(real) == 8 ? 1e-12 : 1e-5) * largest;
    if (comm.rank() == 0)
      std::cout << found.description << ": "
                << (is_equal ? "the logits of train" : "other logits than those of train")
                << ", largest difference " << error << " of " << largest << std::endl;
    return is_equal ? 0 : 1;
  } catch (const Error& error) {
    if (comm.rank() == 0) std::cerr << error.what() << std::endl;
    return 1;
  }
}
