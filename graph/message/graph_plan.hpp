// SPDX-License-Identifier: MIT

/// GraphPlan: the stages and formats in which a pass exchanges the halo rows of a graph. It converts the
/// mode, max_halo_bytes, pipeline_depth and halo_format to HaloPlans. This bounds the memory of message
/// passing. The mode also determines whether halo rows are kept (keeps_halo_rows).
#pragma once

#include <sar/comm/halo/halo_plan.hpp>
#include <sar/graph/message/graph_options.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/graph/topology/graph_topology.hpp>

namespace sar { inline namespace SAR_PRECISION {

struct GraphPlan {
  /// The exchanges of a pass. If both are set, rows are received while gradients are sent.
  struct Travels {
    bool fetch = false;      ///< source rows
    bool push = false;       ///< their gradients
    NumberType fetched_type =
        NumberType::reals;  ///< rows in bfloat16, and gradients in bfloat16 or exact sums,
    NumberType pushed_type = NumberType::reals;   ///< travel as they are stored, whatever the halo format
  };
  /// For source rows of shape `rows`. `draws`: of the operation.
  GraphPlan(const GraphTopology& graph, const GraphOptions& options, const HaloDraws& draws,
            const Shape& rows, const Travels& travels);

  HaloPlan fetch;  ///< of source rows, if they travel
  /// Of gradients, if they travel. It divides each stage of a fetch, of this pass or of the forward pass,
  /// into one stage or several.
  HaloPlan push;
};

/// Whether the halo rows of the forward pass are kept for the backward pass, or fetched again.
[[nodiscard]] inline bool keeps_halo_rows(const GraphOptions& options) {
  return options.mode != HaloMode::rematerialize;
}

}}  // namespace sar
