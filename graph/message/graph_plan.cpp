#include <sar/graph/message/graph_plan.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// A stage has 1 / stages_of_owned_rows of the rows of the largest rank, but at least least_bytes. A forward
/// pass reads and writes the results of a stage's destinations once per stage, so smaller stages would save
/// little memory and cost much time.
constexpr Index stages_of_owned_rows = 4;
constexpr Index least_bytes = Index{1} << 20;
/// Number of push stages per fetch stage. Half of them may be in flight: gradients are sent while the next
/// ones are computed, without two whole stages in memory.
constexpr Index pushes_per_fetch = 8;
constexpr Index most_depth = 1 << 20;

struct StageRows {
  Index fetch;
  Index push;  ///< divides fetch
};

/// The same on every rank.
StageRows stage_rows(const GraphTopology& graph, const GraphOptions& options, const Shape& shape,
                     bool fetch_and_push) {
  const Index row_bytes = std::max<Index>(shape.row_size(), 1) * static_cast<Index>(sizeof(real));
  Index most_owned = 0;
  for (int q = 0; q < graph.comm.size(); ++q) most_owned = std::max(most_owned, graph.src_book.num_nodes(q));
  Index rows = most_owned / stages_of_owned_rows;
  if (fetch_and_push) rows /= 2;
  rows = std::max({rows, least_bytes / row_bytes, Index{1}});
  if (options.max_halo_bytes > 0)
    rows = std::min(rows, std::max<Index>(options.max_halo_bytes / row_bytes, 1));
  if (rows < pushes_per_fetch) return {rows, rows};
  return {rows / pushes_per_fetch * pushes_per_fetch, rows / pushes_per_fetch};
}

}  // namespace

GraphPlan::GraphPlan(const GraphTopology& graph, const GraphOptions& options, const Shape& rows,
                     const Travels& travels)
    : remote_(&graph.remote) {
  const StageRows sizes = stage_rows(graph, options, rows, travels.fetch && travels.push);
  const Index pushes = std::max<Index>(sizes.fetch / sizes.push / 2, 1) * options.pipeline_depth;
  if (travels.push)
    push = plan_halo(graph.rounds(), sizes.push, static_cast<int>(std::min(pushes, most_depth)));
  if (travels.fetch)
    fetch = plan_halo(graph.rounds(), options.mode == HaloMode::one_shot ? 0 : sizes.fetch,
                      options.pipeline_depth);
}

}}  // namespace sar
