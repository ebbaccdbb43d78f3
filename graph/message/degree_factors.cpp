// SPDX-License-Identifier: MIT

// A factor takes one pass over the degrees, on one thread. Factors of the halo are fetched exactly, in one
// stage, one number per halo row, and kept.
#include <sar/comm/halo/halo_exchange.hpp>
#include <sar/comm/recorded_pass.hpp>
#include <sar/graph/message/degree_factors.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

namespace sar {
inline namespace SAR_PRECISION {

double value_of(DegreeFactor factor, double degree) {
  if (factor == DegreeFactor::inverse_with_self) return 1 / (degree + 1);
  if (factor == DegreeFactor::inverse_root_or_0 && degree == 0) return 0;
  const double least_one = std::max(degree, 1.0);
  return 1 / (factor == DegreeFactor::inverse ? least_one : std::sqrt(least_one));
}

std::optional<DegreeFactor> in_degree_factor(Reduce reduce) {
  switch (reduce) {
    case Reduce::mean:
      return DegreeFactor::inverse;
    case Reduce::sum:
    case Reduce::max:
    case Reduce::min:
      break;
  }
  return {};
}

namespace {

const LazyArray& degrees_of(const DegreeCache& graph, NodeDegree degree) {
  if (degree == NodeDegree::source_in) return graph.in_of_sources();
  return degree == NodeDegree::in ? *graph.in : *graph.out;
}

DegreeCache::RowFactors& factors_of(const Graph& graph, NodeDegree degree, DegreeFactor factor) {
  return graph.shards()
      ->degrees.row_factors[static_cast<std::size_t>(degree)][static_cast<std::size_t>(factor)];
}

}  // namespace

Tensor degree_factors(const Graph& graph, NodeDegree degree, DegreeFactor factor) {
  const std::lock_guard lock(graph.shards()->degrees.rows_mutex);
  Tensor& kept = factors_of(graph, degree, factor).rows;
  if (kept.defined()) return kept;
  const Array<Index> degrees = degrees_of(graph.shards()->degrees, degree).make();
  Tensor made({std::ssize(degrees)});
  std::ranges::transform(degrees, made.data(), [factor](Index d) {
    return static_cast<real>(value_of(factor, static_cast<double>(d)));
  });
  if (graph.shards()->degrees.keeps_numbers_of(std::ssize(degrees))) kept = made;
  return made;
}

Tensor halo_degree_factors(const Graph& graph, NodeDegree degree, DegreeFactor factor) {
  Tensor& kept = factors_of(graph, degree, factor).halo;
  const ShardedGraph& shards = *graph.shards();
  if (shards.holds_halo())
    return degree_factors(graph, degree, factor)
        .slice_rows(graph.topology().local.num_src_rows, shards.num_src_rows());
  if (kept.defined()) return kept;
  const RecordedPass::Pause kept_from_now_on(graph.comm());
  Tensor fetched = graph.comm().agree([&] {
    return fetch_halo(graph.comm(), degree_factors(graph, degree, factor), graph.topology().shared_rounds);
  });
  return kept = std::move(fetched);  // all ranks have it, or none
}
}  // namespace SAR_PRECISION
}  // namespace sar
