// SPDX-License-Identifier: MIT

// A block of rows draws into a list of its own, and the lists are joined in their order: each number is drawn
// once for each in-edge of a row, O(in-edges) time.
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/sampling/labor_draws.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index rows_of_block = Index{1} << 8;

using Run = CandidateEdges::Run;

class LaborSampler {
 public:
  LaborSampler(const CandidateEdges& in, const GraphTopology& graph, const LayerDraws& draws,
               const ExcludedEdges& excluded)
      : in_(in), graph_(graph), fan_outs_(draws.fan_outs), excluded_(excluded) {
    for (std::size_t type = 0; type < fan_outs_.size(); ++type) random_.push_back(draws.random(type));
  }

  [[nodiscard]] KeptEdges sample(const Array<Index>& dst_rows) const {
    const auto n = std::ssize(dst_rows);
    const Index blocks = (n + rows_of_block - 1) / rows_of_block;
    std::vector<std::vector<local_index>> kept_of(static_cast<std::size_t>(blocks));
    KeptEdges kept;
    kept.begin.assign(dst_rows.size() + 1, 0);
    parallel_for_each(blocks, 1, [&](Index block) {
      std::vector<local_index>& edges = kept_of[static_cast<std::size_t>(block)];
      const Index end = std::min(n, (block + 1) * rows_of_block);
      for (Index i = block * rows_of_block; i < end; ++i) {
        const std::size_t before = edges.size();
        in_.for_runs(dst_rows[i], [&](const Run& run) { draw(dst_rows[i], run, edges); });
        kept.begin[i + 1] = static_cast<Index>(edges.size() - before);
      }
    });
    std::partial_sum(kept.begin.begin(), kept.begin.end(), kept.begin.begin());
    kept.edge.resize(static_cast<std::size_t>(kept.begin[n]));
    parallel_for_each(blocks, 1, [&](Index block) {
      const std::vector<local_index>& edges = kept_of[static_cast<std::size_t>(block)];
      std::copy(edges.begin(), edges.end(), kept.edge.begin() + kept.begin[block * rows_of_block]);
    });
    return kept;
  }

 private:
  /// Appends the kept edges of a row and a type.
  void draw(Index row, const Run& run, std::vector<local_index>& kept) const {
    const bool excludes = excluded_.has_row(row);
    const auto is_out = [&](local_index edge) { return excludes && excluded_.has_edge(edge); };
    const local_index* const edge = in_.edge.data();
    Index degree = run.last - run.first;
    if (excludes) degree -= std::count_if(edge + run.first, edge + run.last, is_out);
    const Index fan_out = fan_outs_[run.type];
    if (fan_out == 0 || degree == 0) return;
    const bool all = fan_out < 0 || degree <= fan_out;
    const double share = static_cast<double>(fan_out) / static_cast<double>(degree);
    const std::size_t before = kept.size();
    double least = 2;
    local_index of_least = 0;
    for (Index k = run.first; k < run.last; ++k) {
      if (is_out(edge[k])) continue;
      if (all) {
        kept.push_back(edge[k]);
        continue;
      }
      const double number = number_of(run.type, k);
      if (number < share) kept.push_back(edge[k]);
      if (number < least) {
        least = number;
        of_least = edge[k];
      }
    }
    if (kept.size() == before) kept.push_back(of_least);
  }

  /// r_t of the source of candidate k, in [0, 1).
  [[nodiscard]] double number_of(std::size_t type, Index k) const {
    const Index edge = in_.edge[k], first_remote = graph_.remote.first_edge;
    const Index id = edge < first_remote ? graph_.src_ids()[graph_.local.src[edge]]
                                         : in_.halo_ids[graph_.remote.src[edge - first_remote]];
    const auto place = static_cast<std::uint64_t>(in_.place.empty() ? 0 : in_.place[k]);
    return random_[type].uniform(static_cast<std::uint64_t>(id), place);
  }

  const CandidateEdges& in_;
  const GraphTopology& graph_;
  std::span<const Index> fan_outs_;
  const ExcludedEdges& excluded_;
  std::vector<Random> random_;  // one for each type
};

}  // namespace

KeptEdges draw_layer_neighbors(const CandidateEdges& in, const GraphTopology& graph, const LayerDraws& draws,
                               const ExcludedEdges& excluded, const Array<Index>& dst_rows) {
  return LaborSampler(in, graph, draws, excluded).sample(dst_rows);
}

}}  // namespace sar
