// SPDX-License-Identifier: MIT

// Listing the candidates takes O(E log(degree)) time once for a sampler. Draws that are keyed by the source
// also fetch the ids of the halo rows once, 8 bytes each, and sort the sources of each destination.
#include <sar/comm/halo/halo_exchange.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/rows/row_access.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/sampling/candidate_edges.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <atomic>
#include <cmath>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index candidates_per_task = Index{1} << 14;

Index destination_of(const GraphTopology& graph, Index edge) {
  const GraphShard& shard = edge < graph.local.num_edges() ? graph.local : graph.remote;
  const auto row = std::upper_bound(shard.row_begin.begin(), shard.row_begin.end(), edge - shard.first_edge);
  return shard.dst_row(row - shard.row_begin.begin() - 1);
}

}  // namespace

bool check_probabilities(const Graph& graph, const Tensor& prob) {
  const Communicator& comm = graph.comm();
  if (comm.all_reduce(prob.defined() ? 1 : 0, ReduceOp::max) == 0) return false;
  double sum = 0;
  comm.agree([&] {
    require<InputError>(prob.defined() || graph.num_edges() == 0,
                        "there are probabilities of edges on some ranks only");
    const Index given = prob.defined() ? prob.num_rows() * prob.row_size() : 0;
    require<InputError>(given == graph.num_edges(), "there are ", given, " probabilities for ",
                        graph.num_edges(), " edges of this rank");
    for (Index e = 0; e < given; ++e) {
      const auto p = static_cast<double>(prob.data()[e]);
      require<InputError>(p >= 0 && std::isfinite(p), "the probability of edge ", graph.edge_ids()[e], " is ",
                          p, ", expected 0 or more");
      sum += p;
    }
  });
  const bool any = comm.all_reduce(sum) > 0;
  require<InputError>(any || graph.num_global_edges() == 0,
                      "the probabilities of all edges are 0, expected larger ones");
  return true;
}

CandidateEdges find_candidates(const Graph& graph, const Tensor& prob, bool weighted,
                               const Array<std::uint16_t>* types) {
  CandidateEdges found;
  const Array<Index> rows = consecutive(0, graph.num_dst_nodes());
  KeptEdges all = all_in_edges(*graph.shards(), rows);
  const Array<Index>& ids = graph.edge_ids();
  const auto work_before = [&](Index i) { return all.begin[i] + i; };
  const auto n = static_cast<Index>(rows.size());
  for_blocks_of_work(n, n + all.begin[n], candidates_per_task, work_before, [&](Index first, Index last) {
    for (Index i = first; i < last; ++i)
      std::sort(all.edge.begin() + all.begin[i], all.edge.begin() + all.begin[i + 1],
                [&](local_index a, local_index b) {
                  if (types != nullptr && (*types)[a] != (*types)[b]) return (*types)[a] < (*types)[b];
                  return ids[a] < ids[b];
                });
  });
  if (weighted) {
    all.keep_if([&](local_index e) { return prob.data()[e] > 0; });
    all.edge.shrink_to_fit();
    found.weight.resize(all.edge.size());
    std::transform(all.edge.begin(), all.edge.end(), found.weight.begin(),
                   [&](local_index e) { return prob.data()[e]; });
  }
  found.begin = std::move(all.begin);
  found.edge = std::move(all.edge);
  if (types != nullptr) {
    found.type.resize(found.edge.size());
    std::transform(found.edge.begin(), found.edge.end(), found.type.begin(),
                   [&](local_index e) { return (*types)[e]; });
  }
  return found;
}

void find_sources(const Graph& graph, CandidateEdges& candidates) {
  const GraphTopology& topology = graph.topology();
  const Array<Index>& ids = topology.src_ids();
  candidates.halo_ids = fetch_halo(topology.comm, {ids.data(), ids.size()}, topology.rounds());
  candidates.place.assign(candidates.edge.size(), 0);
  std::atomic<bool> has_parallel = false;
  const auto rows = std::ssize(candidates.begin) - 1;
  for_blocks_of_work(
      rows, rows + candidates.begin[rows], candidates_per_task,
      [&](Index i) { return candidates.begin[i] + i; },
      [&](Index first, Index last) {
        std::vector<std::pair<Index, Index>> sources;  // with their positions
        for (Index row = first; row < last; ++row)
          candidates.for_runs(row, [&](const CandidateEdges::Run& run) {
            sources.clear();
            for (Index k = run.first; k < run.last; ++k)
              sources.emplace_back(source_of(topology, candidates.edge[k]), k);
            std::sort(sources.begin(), sources.end());
            for (std::size_t i = 1; i < sources.size(); ++i)
              if (sources[i].first == sources[i - 1].first) {
                candidates.place[sources[i].second] = candidates.place[sources[i - 1].second] + 1;
                has_parallel = true;
              }
          });
      });
  if (!has_parallel) candidates.place = {};
}

ExcludedEdges::ExcludedEdges(const GraphTopology& graph, const CandidateEdges& in,
                             std::span<const Index> edges) {
  const Array<Index>& ids = graph.edge_ids();
  for (std::size_t i = 0; i < edges.size(); ++i) {
    require<InputError>(0 <= edges[i] && edges[i] < graph.num_edges(), "excluded edge ", edges[i],
                        " is no edge of this rank, expected ", index_range(graph.num_edges()));
    require<InputError>(i == 0 || edges[i - 1] < edges[i], "excluded edge ", edges[i], " comes after ",
                        i == 0 ? 0 : edges[i - 1], ", expected ascending edges, each once");
    in.for_runs(destination_of(graph, edges[i]), [&](const CandidateEdges::Run& run) {
      const std::span all(in.edge.data() + run.first, in.edge.data() + run.last);
      const auto alike =
          std::ranges::equal_range(all, ids[edges[i]], {}, [&](Index edge) { return ids[edge]; });
      const auto at = std::ranges::find(alike, edges[i]);
      if (at != alike.end()) positions_.push_back(&*at - in.edge.data());
    });
  }
  std::sort(positions_.begin(), positions_.end());
}
}}  // namespace sar
