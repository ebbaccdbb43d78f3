// SPDX-License-Identifier: MIT
#include "plan_traffic.hpp"

#include <sar/models.hpp>

#include <algorithm>
#include <cstdint>

namespace sar::tools {

StageRows stage_rows(double nodes_of_largest, double halo_nodes, double row_bytes, double max_bytes,
                     bool fetch_and_push) {
  constexpr double least_bytes = 1 << 20;
  double rows = nodes_of_largest / (fetch_and_push ? 8 : 4);
  rows = std::max({rows, least_bytes / row_bytes, 1.0});
  if (max_bytes > 0) rows = std::min(rows, std::max(max_bytes / row_bytes, 1.0));
  return {.fetch = rows, .push = rows / 8, .number = std::max(1.0, halo_nodes / rows)};
}

StageRows stages_of(const TrainOptions& o, const Place& at, double row_bytes, bool fetch_and_push) {
  const auto budget = static_cast<double>(o.graph_options.max_halo_bytes);
  return stage_rows(at.nodes_of_largest, at.part.halo_nodes, row_bytes, budget, fetch_and_push);
}

Pass pass_of(const TrainOptions& o, std::span<const EdgePass> edges, const Place& at, bool with_backward) {
  const PartShape& part = at.part;
  Pass pass;
  if (at.ranks == 1) return pass;
  for (const EdgePass& each : edges) {
    const int times = each.times(o.graph_options.mode);
    if (times == 0 || (each.is_backward && !with_backward)) continue;
    const double row_bytes = static_cast<double>(each.width) * sizeof(real);
    const double number =
        o.graph_options.mode == HaloMode::one_shot ? 1 : stages_of(o, at, row_bytes, false).number;
    pass.bytes += part.halo_nodes * static_cast<double>(wire_bytes(o, each.width)) * times;
    pass.added_to += number * listed_rows(part.nodes, part.cut_edges / number) * row_bytes * times;
    pass.unpacked += part.halo_nodes * row_bytes * times;
    pass.messages += std::max(part.neighbors, number) * times;
    pass.stages = std::max(pass.stages, number);
  }
  return pass;
}

double memory_bytes(const ModelDescription& model, std::span<const EdgePass> edges, const PartShape& part,
                    const Pass& pass, bool with_backward) {
  double bytes = 2 * (3 * pass.unpacked + pass.added_to), numbers = 0;
  for (const EdgePass& each : edges) {
    const auto width = static_cast<double>(each.width);
    if (!each.is_backward) numbers += 2 * width;
    if (!each.is_backward || with_backward)
      bytes +=
          part.in_edges * each.times(HaloMode::rematerialize) * (width * sizeof(real) + sizeof(std::int32_t));
  }
  for (const LayerSize& layer : layer_sizes(model))
    numbers += static_cast<double>(layer.in + 2 * layer.head * layer.heads);
  return bytes + part.nodes * (with_backward ? 3 : 1) * numbers * sizeof(real);
}

}  // namespace sar::tools
