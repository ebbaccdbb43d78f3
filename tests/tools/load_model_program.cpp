/// load_model_program MODEL LOGITS: loads a network that `train` saved and compares its result on the graph
/// of `train --graph sbm --nodes 40 --classes 4 --features 5` with the predictions of `train` in a .npy file.
#include <sar/core/files/npy.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <vector>

int main(int argc, char** argv) {
  using namespace sar;
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  if (argc != 3) return 2;
  try {
    NodeData data = make_sbm(comm, {.nodes = 40, .classes = 4, .features = 5});
    const GraphShardManager graph = construct_full_graph(comm, data);
    const std::unique_ptr<GraphModel> model = load_model(comm, argv[1]);
    const Tensor result = (*model)(graph, data.features).value();
    std::vector<real> expected(static_cast<std::size_t>(result.size()));
    const std::vector<Index> ids(graph.dst_ids().begin(), graph.dst_ids().end());
    NpyFile(argv[2]).read_rows<real>(ids, expected);
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
      std::cout << model->description().to_json() << ": "
                << (is_equal ? "the logits of train" : "other logits than those of train")
                << ", largest difference " << error << " of " << largest << std::endl;
    return is_equal ? 0 : 1;
  } catch (const Error& error) {
    if (comm.rank() == 0) std::cerr << error.what() << std::endl;
    return 1;
  }
}
