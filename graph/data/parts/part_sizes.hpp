// SPDX-License-Identifier: MIT

/// How large the parts of a graph are.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/partition/partition_method.hpp>

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

}}  // namespace sar
