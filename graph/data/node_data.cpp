#include <sar/graph/data/node_data.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

GraphShardManager construct_full_graph(const Communicator& comm, NodeData& data,
                                       const GraphOptions& options) {
  return comm.agree([&] {
    return GraphShardManager(comm, data.book, data.book, std::exchange(data.edges, {}), true, options,
                             data.original_ids, data.original_ids);
  });
}

}}  // namespace sar
