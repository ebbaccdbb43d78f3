// SPDX-License-Identifier: MIT

/// Partitions a graph once for many trainings: from any source of a graph, homogeneous or not, to a partition
/// directory.
#pragma once

#include <sar/comm/collective_call.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/partition/partition.hpp>
#include <sar/graph/partition/partition_method.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The size of one part.
struct PartSize {
  Index nodes = 0;
  Index in_edges = 0;        ///< of its nodes
  Index cut_edges = 0;       ///< in-edges that come from other parts
  Index training_nodes = 0;  ///< 0 without a "train_mask"
  Index halo_nodes = 0;      ///< nodes of other parts that its in-edges come from, each counted once
  Index neighbors = 0;       ///< other parts that its in-edges come from; 0 for one type of nodes or edges

  bool operator==(const PartSize&) const = default;
};

/// The sizes of the parts in one type of nodes or edges.
struct TypeReport {
  std::string type;
  std::vector<PartSize> parts;

  [[nodiscard]] PartSize total() const;
  /// The largest part / the mean, for instance balance(&PartSize::in_edges); 1 when the sum is 0.
  [[nodiscard]] double balance(Index PartSize::*what) const;
};

/// `parts` has the sizes in all types together.
struct PartitionReport : TypeReport {
  Index num_nodes = 0;
  Index num_edges = 0;                                   ///< after the transforms
  PartitionMethod method = PartitionMethod::contiguous;  ///< never automatic: the one that was chosen
  std::vector<TypeReport> node_types;  ///< nodes, training nodes and halo nodes of each type
  std::vector<TypeReport> edge_types;  ///< in-edges and cut edges of each type, by canonical name

  /// cut_edges / num_edges, 0 without edges.
  [[nodiscard]] double cut_share() const;
};

/// Local. Fills in nodes, in-edges, cut and halo of a part, which is given by itself.
void count_part(const GraphData& of_part, int part, PartitionReport& report);

/// Collective. Brings the sizes of all parts to every rank; each part has been filled in on one rank.
void share_sizes(const Communicator& comm, PartitionReport& report);

/// The order of the nodes of a part.
enum class NodeOrder {
  original,  ///< by original id
  clusters,  ///< nodes that are used together lie together (node_order.hpp)
};

[[nodiscard]] constexpr const char* to_string(NodeOrder order) noexcept {
  return order == NodeOrder::clusters ? "clusters" : "original";
}

struct PartitionGraphOptions {
  int parts = 1;
  /// The transforms of the edges, how nodes are assigned to parts, and which fields are sparse; other options
  /// are not used. A reversed edge has the data of the edge that it reverses. A self loop has "weight" and
  /// "edge_weight" 1, and all other data 0. An edge type between two types of nodes gets no self loops, and
  /// its reverse edges become another edge type: of author:writes:paper paper:rev_writes:author, with the ids
  /// and data of the edges that they reverse.
  DatasetOptions data = {};
  std::int64_t most_gathered = most_gathered_edges;  ///< automatic: metis for up to so many edges
  NodeOrder order = NodeOrder::clusters;
  /// metis, ldg, scotch: the parts get about the same number of in-edges, and of training nodes
  /// ("train_mask"). They get about the same number of nodes of each type with every method.
  bool balance_edges = true;
  bool balance_training = true;
};

inline void add_arguments(CollectiveCall& call, const PartitionGraphOptions& options) {
  call.equal("number of parts", options.parts)
      .equal(options.data)
      .equal("order", to_string(options.order))
      .equal("balance_edges", options.balance_edges)
      .equal("balance_training", options.balance_training);
}

/// How far a phase is: `done` of `total`, counted over all ranks. Each phase begins with 0 done and ends with
/// all. Called on every rank.
using PartitionProgress = FunctionRef<void(const std::string& phase, Index done, Index total)>;
inline void no_progress(const std::string& /*phase*/, Index /*done*/, Index /*total*/) {}

/// Assigns the nodes of the source's graph to parts, orders them inside the parts and writes the partition
/// directory `out_dir` (partition_directory.hpp) with the node data and edge data of the source, and the
/// names of its nodes if they have any. The numbers of ranks and of parts are independent: rank q of Q writes
/// the parts that PartitionBook::even(parts, Q) gives it.
///
/// Memory of a rank, with edges / Q and nodes / Q on each: 48 bytes an edge, 8 to 24 bytes a node, at most
/// about 32 bytes for each node that its edges come from or go to, and the edges (24 bytes each) and the data
/// of one part while it is written; with several types, 16 bytes an edge more. metis also gathers the graph
/// on rank 0. The directory depends on the source and the options, and for ldg and scotch also on Q.
///
/// The directory gets its name when it is complete; a failure leaves nothing behind. Collective; source and
/// options are the same on every rank. Throws InputError, the same on every rank, when `out_dir` exists or
/// cannot be written, for fewer parts than 1, and what the source and assign_nodes throw.
PartitionReport partition_graph(GraphSource& source, const std::string& out_dir,
                                const PartitionGraphOptions& options,
                                PartitionProgress progress = no_progress);

/// Collective. The report of partition_graph, without a directory: how large parts would be. The memory of
/// the edges and of the nodes is the same. Throws InputError as partition_graph, but for `out_dir`.
PartitionReport count_parts(GraphSource& source, const PartitionGraphOptions& options);
}}  // namespace sar
