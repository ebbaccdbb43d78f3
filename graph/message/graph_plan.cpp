#include <sar/graph/message/graph_plan.hpp>

#include <algorithm>

namespace sar::inline SAR_PRECISION {
namespace {

/// A push has so many stages for one of a fetch, so that gradients leave while the next ones are computed
/// without holding whole stages twice.
constexpr Index pushes_per_fetch = 4;

struct StageRows {
  Index fetch;
  Index push;  ///< divides fetch
};

StageRows stage_rows(const ShardedGraph& graph, const GraphOptions& options, const Shape& shape,
                     bool fetch_and_push) {
  // From three workers on, a round comes in two stages: one is used while the other one arrives, and both
  // together hold one round's rows. Between two workers, the only round arrives during the local shard, and
  // is one stage. Where rows arrive and their gradients leave together, stages are half as large.
  Index rows = std::max<Index>(graph.max_round_rows, 1);
  if (graph.rounds.size() > 1) rows = (rows + 1) / 2;
  if (fetch_and_push) rows = (rows + 1) / 2;
  if (options.max_halo_bytes > 0) {
    const Index row_bytes = std::max<Index>(shape.row_size(), 1) * static_cast<Index>(sizeof(real));
    rows = std::min(rows, std::max<Index>(options.max_halo_bytes / row_bytes, 1));
    if (rows < pushes_per_fetch) return {rows, rows};
    return {rows / pushes_per_fetch * pushes_per_fetch, rows / pushes_per_fetch};
  }
  const Index push = (rows + pushes_per_fetch - 1) / pushes_per_fetch;
  return {push * pushes_per_fetch, push};
}

}  // namespace

GraphPlan::GraphPlan(const ShardedGraph& graph, const GraphOptions& options, const Shape& rows,
                     const Travels& travels) {
  const StageRows sizes = stage_rows(graph, options, rows, travels.fetch && travels.push);
  const auto pushes = static_cast<int>(sizes.fetch / sizes.push);
  if (travels.push) push = plan_single_rounds(graph.rounds, sizes.push, pushes * options.pipeline_depth);
  if (options.mode == HaloMode::one_shot) {
    if (travels.fetch) fetch = plan_merged_rounds(graph.rounds, graph.rounds.size());
    const GraphShard& merged = graph.merged();
    shards.push_back(&merged);
    Index first = 0;
    for (const HaloRound& round : graph.rounds) {
      places_.push_back({&merged, first});
      first += round.recv_rows;
    }
  } else {
    if (travels.fetch) fetch = plan_single_rounds(graph.rounds, sizes.fetch, options.pipeline_depth);
    for (const GraphShard& shard : graph.remote) {
      shards.push_back(&shard);
      places_.push_back({&shard, 0});
    }
  }
}

}  // namespace sar
