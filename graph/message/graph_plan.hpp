/// GraphPlan: in which stages an operation goes over the shards of a graph. This is the graph's part of a
/// HaloPlan: which shard has the edges of a stage. The three modes, max_halo_bytes and pipeline_depth are
/// turned into a plan here; only whether halo rows are kept is asked again (keeps_halo_rows).
#pragma once

#include <sar/comm/rows/halo_plan.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/message/sharded_graph.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <vector>

namespace sar::inline SAR_PRECISION {

class GraphPlan {
 public:
  /// What travels. Where both do, rows arrive while gradients leave.
  struct Travels {
    bool fetch = false;  ///< source rows
    bool push = false;   ///< their gradients
  };
  /// For source rows of shape `rows`.
  GraphPlan(const ShardedGraph& graph, const GraphOptions& options, const Shape& rows,
            const Travels& travels);

  std::vector<const GraphShard*> shards;  ///< with the sources of other ranks; for passes without rows
  HaloPlan fetch;                         ///< of source rows, if they travel
  /// Of gradients, if they travel. It divides each stage of a fetch, of this pass or of the forward pass,
  /// into one stage or several.
  HaloPlan push;

  /// The edges whose sources are the rows of a halo stage.
  [[nodiscard]] Stage stage(const HaloStage& halo, const real* rows) const {
    const Place& place = places_[halo.round];
    return {*place.shard, place.first + halo.begin, place.first + halo.end, rows};
  }

 private:
  /// Where the rows of a round are among the sources of a shard.
  struct Place {
    const GraphShard* shard;
    Index first;
  };
  std::vector<Place> places_;  // of each round
};

/// Whether the halo rows of the forward pass are kept for the backward pass, or fetched again.
[[nodiscard]] inline bool keeps_halo_rows(const GraphOptions& options) {
  return options.mode != HaloMode::rematerialize;
}

}  // namespace sar
