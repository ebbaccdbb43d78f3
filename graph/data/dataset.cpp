#include <sar/graph/data/dataset.hpp>
#include <sar/graph/data/dataset_source.hpp>
#include <sar/graph/data/distribute.hpp>
#include <sar/graph/data/node_columns.hpp>

namespace sar::inline SAR_PRECISION {

NodeData load_dataset(const Communicator& comm, const std::string& directory, const DatasetOptions& options) {
  return comm.agree([&] {
    DatasetSource source(comm, directory, /*for_training=*/true);
    require_nodes_for_ranks(source.place_of("features"), source.num_nodes(), comm.size());
    NodeData data = load_graph(source, options);
    require_training_labels(comm, data, source.place_of("train_mask"));
    return data;
  });
}

}  // namespace sar
