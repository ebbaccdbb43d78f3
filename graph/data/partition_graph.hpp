/// Partitioning a graph once, for many trainings: from any source of a graph to a partition directory.
#pragma once

#include <sar/core/parallel.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/partition/partition.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sar {

/// The order of the nodes inside a part.
enum class NodeOrder {
  original,  ///< of the original ids
  clusters,  ///< nodes that are used together lie together (node_order.hpp)
};

[[nodiscard]] const char* to_string(NodeOrder order) noexcept;

struct PartitionGraphOptions {
  int parts = 1;
  PartitionMethod method = PartitionMethod::contiguous;
  NodeOrder order = NodeOrder::clusters;
  std::uint64_t seed = 0;
  /// metis, ldg: the parts shall have about the same number of in-edges, of training nodes ("train_mask").
  bool balance_edges = true;
  bool balance_training = true;
  /// As in DatasetOptions, with the ids that it says. Reversed edges have the data of the edges they reverse;
  /// of self loops, "weight" and "edge_weight" are 1, other data 0.
  bool add_reverse_edges = false;
  bool add_self_loops = false;
  bool drop_duplicates = false;
};

/// What one part of a graph has.
struct PartSize {
  Index nodes = 0;
  Index in_edges = 0;        ///< of its nodes
  Index cut_edges = 0;       ///< in-edges that come from other parts
  Index training_nodes = 0;  ///< 0 without a "train_mask"
  Index halo_nodes = 0;      ///< different nodes of other parts that its in-edges come from

  bool operator==(const PartSize&) const = default;
};

struct PartitionReport {
  Index num_nodes = 0;
  Index num_edges = 0;  ///< after the transforms
  std::vector<PartSize> parts;

  [[nodiscard]] PartSize total() const;
  /// Largest part / mean, 1 when there is nothing: balance(&PartSize::in_edges).
  [[nodiscard]] double balance(Index PartSize::*what) const;
  /// cut_edges / num_edges, 0 without edges.
  [[nodiscard]] double cut_share() const;
};

/// How far a phase is: `done` of `total`, of the whole graph; first with 0 done, last with all of them.
/// Called on every rank.
using PartitionProgress = FunctionRef<void(const std::string& phase, Index done, Index total)>;

/// Assigns the nodes of the source's graph to parts, orders them inside the parts and writes the partition
/// directory `out_dir` (partition_directory.hpp), with the node data and edge data of the source and the
/// names of its nodes, if they have any. Number of ranks and number of parts are independent; rank q of Q
/// writes parts PartitionBook::even(parts, Q) says.
///
/// Memory of a rank: 24 bytes for each of its edges / Q, twice, one part's edges (24 bytes each) and data
/// on top while it is written, 8 to 24 bytes for each of nodes / Q, and nodes / 7 bytes in all; metis also
/// gathers the graph on rank 0 (assignment.hpp). The directory depends on the source and the options; not on
/// Q, unless metis or ldg assign the nodes.
///
/// The directory gets its name when it is complete; what failed leaves nothing behind. Collective; source and
/// options are the same on every rank. Throws InputError, the same on every rank, when `out_dir` exists or
/// cannot be written, for fewer parts than 1, and what the source and assign_nodes throw.
PartitionReport partition_graph(GraphSource& source, const std::string& out_dir,
                                const PartitionGraphOptions& options, PartitionProgress progress);
PartitionReport partition_graph(GraphSource& source, const std::string& out_dir,
                                const PartitionGraphOptions& options);

}  // namespace sar
