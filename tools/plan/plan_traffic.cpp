// SPDX-License-Identifier: MIT
#include "plan_traffic.hpp"

#include <sar/models.hpp>

#include <algorithm>
#include <cstdint>

namespace sar::tools {

ModelSize model_size(const TrainOptions& o, const Widths& widths) {
  const ModelDescription m = o.model.with_widths(widths.features, widths.classes).checked("the model");
  return {.kind = m.type,
          .layers = m.layers,
          .hidden = m.hidden,
          .heads = m.heads,
          .features = widths.features,
          .classes = widths.classes * (m.type == "gat" && !has_head(m) ? layer_sizes(m).back().heads : 1),
          .stored = widths.stored,
          .batch_norm = m.norm == "batch",
          .drops_input = *m.input_dropout > 0,
          .pre_linear = m.pre_linear,
          .has_head = has_head(m)};
}

StageRows stages_of(const TrainOptions& o, const Place& at, double row_bytes, bool fetch_and_push) {
  const auto budget = static_cast<double>(o.graph_options.max_halo_bytes);
  return stage_rows(at.nodes_of_largest, at.part.halo_nodes, row_bytes, budget, fetch_and_push);
}

Pass pass_of(const TrainOptions& o, const ModelSize& model, const Place& at, bool with_backward) {
  const PartShape& part = at.part;
  Pass pass;
  if (at.ranks == 1) return pass;
  const bool keeps = o.graph_options.mode != HaloMode::rematerialize;
  for (int i = 0; i < model.layers; ++i) {
    const LayerTraffic layer = traffic(model, i);
    if (layer.width == 0) continue;
    const int fetches = with_backward && !keeps ? layer.fetches : 1;
    const int times = fetches + (with_backward ? layer.pushes : 0);
    const double row_bytes = static_cast<double>(layer.width) * sizeof(real);
    const double number =
        o.graph_options.mode == HaloMode::one_shot ? 1 : stages_of(o, at, row_bytes, false).number;
    pass.bytes += part.halo_nodes * static_cast<double>(wire_bytes(o, layer.width)) * times;
    pass.added_to += number * listed_rows(part.nodes, part.cut_edges / number) * row_bytes * times;
    pass.unpacked += part.halo_nodes * row_bytes * times;
    pass.messages += std::max<double>(at.ranks - 1, number) * times;
    pass.stages = std::max(pass.stages, number);
  }
  return pass;
}

double memory_bytes(const ModelSize& model, const PartShape& part, const Pass& pass, bool with_backward) {
  double bytes = 2 * (3 * pass.unpacked + pass.added_to);
  for (int i = 0; i < model.layers; ++i) {
    const LayerTraffic layer = traffic(model, i);
    const int gathers = layer.width == 0 ? 0 : with_backward ? layer.fetches + layer.pushes : 1;
    const auto numbers = static_cast<double>(model.width(i) + 2 * layer.width + 2 * model.width(i + 1));
    bytes +=
        part.in_edges * gathers * (static_cast<double>(layer.width) * sizeof(real) + sizeof(std::int32_t));
    bytes += part.nodes * (with_backward ? 3 : 1) * numbers * sizeof(real);
  }
  return bytes;
}

}  // namespace sar::tools
