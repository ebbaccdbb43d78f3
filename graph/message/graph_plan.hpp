/// GraphPlan: in which stages an operation goes over the halo rows of a graph. The three modes,
/// max_halo_bytes and pipeline_depth are turned into a HaloPlan here; only whether halo rows are kept is
/// asked again (keeps_halo_rows).
#pragma once

#include <sar/comm/halo/halo_plan.hpp>
#include <sar/graph/message/graph_options.hpp>
#include <sar/graph/topology/graph_topology.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

namespace sar { inline namespace SAR_PRECISION {

class GraphPlan {
 public:
  /// What travels. Where both do, rows arrive while gradients leave.
  struct Travels {
    bool fetch = false;  ///< source rows
    bool push = false;   ///< their gradients
  };
  /// For source rows of shape `rows`.
  GraphPlan(const GraphTopology& graph, const GraphOptions& options, const Shape& rows,
            const Travels& travels);

  HaloPlan fetch;  ///< of source rows, if they travel
  /// Of gradients, if they travel. It divides each stage of a fetch, of this pass or of the forward pass,
  /// into one stage or several.
  HaloPlan push;

  /// The edges whose sources are the rows of a halo stage.
  [[nodiscard]] Stage stage(const HaloStage& halo, const real* rows) const {
    return {*remote_, halo.begin, halo.end, rows};
  }

 private:
  const GraphShard* remote_;
};

/// Whether the halo rows of the forward pass are kept for the backward pass, or fetched again.
[[nodiscard]] inline bool keeps_halo_rows(const GraphOptions& options) {
  return options.mode != HaloMode::rematerialize;
}

}}  // namespace sar
