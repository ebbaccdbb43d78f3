/// Partitions a graph once for many trainings: from any source of a graph to a partition directory.
#pragma once

#include <sar/core/parallel.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/partition/partition.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// The order of the nodes of a part.
enum class NodeOrder {
  original,  ///< by original id
  clusters,  ///< nodes that are used together lie together (node_order.hpp)
};

[[nodiscard]] const char* to_string(NodeOrder order) noexcept;

struct PartitionGraphOptions {
  int parts = 1;
  PartitionMethod method = PartitionMethod::contiguous;
  NodeOrder order = NodeOrder::clusters;
  std::uint64_t seed = 0;
  /// metis, ldg: the parts get about the same number of in-edges, and of training nodes ("train_mask").
  bool balance_edges = true;
  bool balance_training = true;
  /// As in DatasetOptions, with the same ids. A reversed edge has the data of the edge that it reverses. A
  /// self loop has "weight" and "edge_weight" 1, and all other data 0.
  bool add_reverse_edges = false;
  bool add_self_loops = false;
  bool drop_duplicates = false;
};

/// The size of one part.
struct PartSize {
  Index nodes = 0;
  Index in_edges = 0;        ///< of its nodes
  Index cut_edges = 0;       ///< in-edges that come from other parts
  Index training_nodes = 0;  ///< 0 without a "train_mask"
  Index halo_nodes = 0;      ///< nodes of other parts that its in-edges come from, each counted once

  bool operator==(const PartSize&) const = default;
};

struct PartitionReport {
  Index num_nodes = 0;
  Index num_edges = 0;  ///< after the transforms
  std::vector<PartSize> parts;

  [[nodiscard]] PartSize total() const;
  /// The largest part / the mean, for instance balance(&PartSize::in_edges); 1 when the sum is 0.
  [[nodiscard]] double balance(Index PartSize::*what) const;
  /// cut_edges / num_edges, 0 without edges.
  [[nodiscard]] double cut_share() const;
};

/// How far a phase is: `done` of `total`, counted over all ranks. Each phase begins with 0 done and ends with
/// all. Called on every rank.
using PartitionProgress = FunctionRef<void(const std::string& phase, Index done, Index total)>;

/// Assigns the nodes of the source's graph to parts, orders them inside the parts and writes the partition
/// directory `out_dir` (partition_directory.hpp) with the node data and edge data of the source, and the
/// names of its nodes if they have any. The numbers of ranks and of parts are independent: rank q of Q writes
/// the parts that PartitionBook::even(parts, Q) gives it.
///
/// Memory of a rank, with edges / Q and nodes / Q on each: 48 bytes an edge, 8 to 24 bytes a node, nodes / 7
/// bytes for all nodes of the graph, and the edges (24 bytes each) and the data of one part while it is
/// written. metis also gathers the graph on rank 0. The directory depends on the source and the options, and
/// for metis and ldg also on Q.
///
/// The directory gets its name when it is complete; a failure leaves nothing behind. Collective; source and
/// options are the same on every rank. Throws InputError, the same on every rank, when `out_dir` exists or
/// cannot be written, for fewer parts than 1, and what the source and assign_nodes throw.
PartitionReport partition_graph(GraphSource& source, const std::string& out_dir,
                                const PartitionGraphOptions& options, PartitionProgress progress);
PartitionReport partition_graph(GraphSource& source, const std::string& out_dir,
                                const PartitionGraphOptions& options);

}  // namespace sar
