#include <sar/core/error.hpp>
#include <sar/graph/build/edge_exchange.hpp>
#include <sar/graph/data/distribute.hpp>

#include <algorithm>
#include <numeric>

namespace sar::inline SAR_PRECISION {
namespace {

/// The largest edge id of all ranks, -1 without edges. A graph that lost duplicates has gaps in its ids.
Index largest_id(const Communicator& comm, const NodeData& data) {
  Index largest = -1;
  for (const Index id : data.edges.id) largest = std::max(largest, id);
  largest = comm.all_reduce(largest, ReduceOp::max);
  require<InputError>(largest < Index{1} << 61, data.name, ": an edge has id ", largest,
                      ", expected less than 2^61");
  return largest;
}

}  // namespace

void normalize_rows(Tensor& x) {
  parallel_for(x.num_rows(), 256, [&](Index first, Index last) {
    for (Index v = first; v < last; ++v) {
      real* row = x.row(v);
      const double sum = std::accumulate(row, row + x.row_size(), 0.0);
      if (sum == 0) continue;
      for (Index i = 0; i < x.row_size(); ++i) row[i] = static_cast<real>(row[i] / sum);
    }
  });
}

void require_nodes_for_ranks(const std::string& name, Index num_nodes, int ranks) {
  require<InputError>(num_nodes > 0, name, ": the graph has 0 nodes, expected at least one for each of the ",
                      ranks, " ranks");
  require<InputError>(num_nodes >= ranks, name, ": the graph has ", num_nodes,
                      " nodes, expected at least one for each of the ", ranks, " ranks");
}

void transform_edges(const Communicator& comm, const DatasetOptions& options, NodeData& data) {
  const int rank = comm.rank();
  Index next_id = 1 + largest_id(comm, data);
  const bool weighted = comm.all_reduce(data.edges.weight.empty() ? 0 : 1, ReduceOp::max) == 1;
  if (options.add_reverse_edges) {
    EdgeList reverse = data.edges;
    std::swap(reverse.src, reverse.dst);
    for (Index& id : reverse.id) id += next_id;
    exchange_edges(comm, data.book, std::move(reverse), weighted, data.edges);
    next_id *= 2;
  }
  if (options.add_self_loops)
    append_self_loops(data.book.begin(rank), data.original_ids, next_id, weighted, data.edges);
  if (options.drop_duplicates) drop_duplicates(data.book.begin(rank), data.book.end(rank), data.edges);
  data.num_edges = comm.all_reduce(data.edges.size());
}

NodeData distribute_edges(const Communicator& comm, const std::string& name, const NodePartition& partition,
                          EdgeList edges, const DatasetOptions& options) {
  NodeData data;
  data.name = name;
  data.book = partition.book();
  data.original_ids = partition.original_ids(comm.rank());
  const bool weighted = comm.all_reduce(edges.weight.empty() ? 0 : 1, ReduceOp::max) == 1;
  partition.to_partitioned(edges.src);
  partition.to_partitioned(edges.dst);
  exchange_edges(comm, data.book, std::move(edges), weighted, data.edges);
  transform_edges(comm, options, data);
  return data;
}

NodeData distribute(const Communicator& comm, const std::string& name, const NodePartition& partition,
                    EdgeList edges, const DatasetOptions& options, FunctionRef<void(NodeData&)> read_nodes) {
  NodeData data = distribute_edges(comm, name, partition, std::move(edges), options);
  read_nodes(data);
  if (options.normalize_features) normalize_rows(data.features);
  data.num_classes = comm.all_reduce(data.num_classes, ReduceOp::max);
  return data;
}

NodeData distribute(const Communicator& comm, const std::string& name, Index num_nodes, EdgeList edges,
                    const DatasetOptions& options, FunctionRef<void(NodeData&)> read_nodes) {
  const NodePartition partition =
      partition_nodes(comm, num_nodes, edges, options.partition, options.partition_seed);
  return distribute(comm, name, partition, std::move(edges), options, read_nodes);
}

}  // namespace sar
