// SPDX-License-Identifier: MIT

// A stage has, with B bytes per row and N the most source rows of a rank,
//
//     rows = max(N / 4, 1 MiB / B, 1), at most max(max_halo_bytes / B, 1) if that is set
//
// with N / 8 if rows are fetched and gradients pushed in one pass. From 8 rows on, rows is a multiple of
// 8, and the push has 8 stages for each of these. In mode one_shot, a fetch has one stage of all rows. All
// numbers are the same on every rank.
#include <sar/graph/message/graph_plan.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// A stage has 1 / stages_of_owned_rows of the rows of the largest rank, but at least least_bytes. A forward
/// pass reads and writes the results of a stage's destinations once per stage, so smaller stages would save
/// little memory and cost much time.
constexpr Index stages_of_owned_rows = 4;
constexpr Index least_bytes = Index{1} << 20;
/// Number of push stages per fetch stage. A pass that only sends gradients has as many of them in flight,
/// each way, so that what ran between the two halves of the forward pass is differentiated while they travel;
/// beside a fetch it is half of them.
constexpr Index pushes_per_fetch = 8;
constexpr Index most_depth = 1 << 20;

struct StageRows {
  Index fetch;
  Index push;  ///< divides fetch
};

/// The same on every rank.
StageRows stage_rows(const GraphTopology& graph, const GraphOptions& options, const Shape& shape,
                     NumberType type, bool fetch_and_push) {
  const Index row_bytes = std::max<Index>(shape.row_size(), 1) * bytes_of(type);
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

/// The format of rows of a type; `draws`: what rounds them.
WireFormatPtr wire_of(NumberType type, HaloFormat format, Index row_size, const RowDraws& draws) {
  if (type == NumberType::exact_sums) return exact_sum_format();
  if (type == NumberType::bfloat16) return bfloat16_format();
  return make_wire_format(format, row_size, draws);
}

}  // namespace

GraphPlan::GraphPlan(const GraphTopology& graph, const GraphOptions& options, const HaloDraws& draws,
                     const Shape& rows, const Travels& travels) {
  const bool halves = travels.fetch ? travels.fetched_type == NumberType::bfloat16
                                    : travels.pushed_type == NumberType::bfloat16;
  const StageRows sizes = stage_rows(graph, options, rows, halves ? NumberType::bfloat16 : NumberType::reals,
                                     travels.fetch && travels.push);
  if (travels.push) {
    const Index of_fetch = sizes.fetch / sizes.push;
    const Index pushes = std::max<Index>(travels.fetch ? of_fetch / 2 : of_fetch, 1) * options.pipeline_depth;
    const RowDraws of_halo{.key = Random(draws.gradients).key(),
                           .owned_ids = {},
                           .first_halo_id = static_cast<Index>(graph.comm.rank()) << 32};
    push = plan_halo(graph.shared_rounds, sizes.push, static_cast<int>(std::min(pushes, most_depth)),
                     wire_of(travels.pushed_type, options.halo_format, rows.row_size(), of_halo));
  }
  if (travels.fetch)
    fetch = plan_halo(graph.shared_rounds, options.mode == HaloMode::one_shot ? 0 : sizes.fetch,
                      options.pipeline_depth,
                      wire_of(travels.fetched_type, options.halo_format, rows.row_size(),
                              {.key = Random(draws.rows).key(), .owned_ids = graph.src_ids()}));
}

}}  // namespace sar
