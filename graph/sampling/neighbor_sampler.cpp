// SPDX-License-Identifier: MIT

// Candidates are sorted once by destination, type and edge id, so that a drawn position names the same edge
// on any number of ranks (candidate_edges.cpp). Then each layer draws.
#include <sar/core/error.hpp>
#include <sar/core/random.hpp>
#include <sar/core/rows/row_access.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/hetero/homogeneous_form.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/candidate_edges.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <ranges>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

// Draws of nodes among their in-edges: each for itself (GraphSAGE: Hamilton, Ying, Leskovec, NeurIPS 2017),
// and LABOR.
//
// Draws in-edges. For each layer: count the edges that each row keeps, turn the counts into offsets, then
// draw in parallel over blocks of rows. The drawing loop prefetches the candidates at the drawn positions
// and replaces positions by edges 16 rows later.

namespace {

constexpr Index grain = Index{1} << 10;  // rows or edges per task

/// A sequence of random 64-bit words for one node, two per Philox block.
class Words {
 public:
  Words(const Random& random, std::uint64_t node) : random_(random), node_(node) {}

  std::uint64_t next() {
    if (used_ % 2 == 0) block_ = random_.words(node_, used_ / 2);
    const std::size_t at = 2 * (used_++ % 2);
    return block_[at] | (static_cast<std::uint64_t>(block_[at + 1]) << 32);
  }
  Index below(Index n) { return uniform_below(next(), n); }
  /// Returns a uniform value in (0, 1].
  double unit() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }

 private:
  const Random& random_;
  std::uint64_t node_;
  std::uint64_t used_ = 0;
  std::array<std::uint32_t, 4> block_{};
};

/// Draws positions among `n` candidates. Each thread has its own.
class Choice {
 public:
  /// Draws `count` distinct positions, all subsets equally likely (R. Floyd's algorithm: Bentley, Floyd, "A
  /// sample of brilliance", CACM 1987), or `count` independent ones.
  void uniform(Words words, Index n, Index count, bool replace, local_index* out) {
    if (replace) {
      for (Index i = 0; i < count; ++i) out[i] = static_cast<local_index>(words.below(n));
      return;
    }
    const auto draw = [&](const auto& is_marked, const auto& mark) {
      for (Index i = 0, last = n - count; i < count; ++i, ++last) {
        out[i] = static_cast<local_index>(words.below(last + 1));
        if (is_marked(out, i)) out[i] = static_cast<local_index>(last);
        mark(out[i]);
      }
    };
    if (n <= 64) {
      std::uint64_t marked = 0;
      draw([&](const local_index* drawn, Index i) { return ((marked >> drawn[i]) & 1) != 0; },
           [&](local_index at) { marked |= std::uint64_t{1} << at; });
    } else if (count <= 64) {  // linear search among few positions
      const auto is_among = [](const local_index* drawn, Index i) {
        return std::find(drawn, drawn + i, drawn[i]) != drawn + i;
      };
      draw(is_among, [](local_index) {});
    } else {
      marked_.assign(static_cast<std::size_t>(n), false);
      draw([&](const local_index* drawn, Index i) { return marked_[static_cast<std::size_t>(drawn[i])]; },
           [&](local_index at) { marked_[static_cast<std::size_t>(at)] = true; });
    }
  }

  /// Draws positions with probability proportional to weight[position] > 0. Without replacement, takes the
  /// positions with the smallest -log(u) / weight (Efraimidis, Spirakis, Information Processing Letters 97,
  /// 2006).
  void weighted(Words words, const real* weight, Index n, Index count, bool replace, local_index* out) {
    keys_.resize(static_cast<std::size_t>(n));
    if (replace) {
      double sum = 0;
      for (Index i = 0; i < n; ++i) keys_[static_cast<std::size_t>(i)] = sum += weight[i];
      for (Index i = 0; i < count; ++i)
        out[i] = static_cast<local_index>(
            std::lower_bound(keys_.begin(), keys_.end() - 1, words.unit() * sum) - keys_.begin());
      return;
    }
    for (Index i = 0; i < n; ++i) keys_[static_cast<std::size_t>(i)] = -std::log(words.unit()) / weight[i];
    order_.resize(static_cast<std::size_t>(n));
    std::iota(order_.begin(), order_.end(), local_index{0});
    std::nth_element(order_.begin(), order_.begin() + count, order_.end(), [&](local_index a, local_index b) {
      const double key_a = keys_[static_cast<std::size_t>(a)], key_b = keys_[static_cast<std::size_t>(b)];
      return key_a != key_b ? key_a < key_b : a < b;
    });
    std::copy_n(order_.begin(), count, out);
  }

 private:
  std::vector<bool> marked_;
  std::vector<double> keys_;
  std::vector<local_index> order_;
};

using Run = CandidateEdges::Run;

/// Draws the in-edges of one layer.
class LayerSampler {
 public:
  LayerSampler(const CandidateEdges& in, const Array<Index>& ids, const LayerDraws& draws,
               const ExcludedEdges& excluded)
      : in_(in), ids_(ids), fan_outs_(draws.fan_outs), replace_(draws.replace), excluded_(excluded) {
    for (std::size_t type = 0; type < fan_outs_.size(); ++type) random_.push_back(draws.random(type));
  }

  KeptEdges sample(const Array<Index>& dst_rows) const {
    const auto n = static_cast<Index>(dst_rows.size());
    KeptEdges kept;
    kept.begin.resize(dst_rows.size() + 1);
    kept.begin[0] = 0;
    parallel_for(n, grain, [&](Index first, Index last) {
      for (Index i = first; i < last; ++i) kept.begin[i + 1] = count(dst_rows[i]);
    });
    std::partial_sum(kept.begin.begin(), kept.begin.end(), kept.begin.begin());
    kept.edge.resize(static_cast<std::size_t>(kept.begin[n]));
    const auto work_before = [&](Index i) { return kept.begin[i] + i; };
    for_blocks_of_work(n, n + kept.begin[n], grain, work_before, [&](Index first, Index last) {
      Task task;
      const auto edges = [&](Index i) {
        return std::span(kept.edge.data() + kept.begin[i], kept.edge.data() + kept.begin[i + 1]);
      };
      for (Index i = first; i < last + ahead; ++i) {
        if (i < last) draw_positions(task, dst_rows[i], edges(i));
        if (i - ahead >= first) replace_by_edges(dst_rows[i - ahead], edges(i - ahead));
      }
    });
    return kept;
  }

 private:
  static constexpr Index ahead = 16;  // rows between the prefetch of candidates and their use

  struct Task {
    Choice choice;
    std::vector<real> weights;  // scratch for rows with excluded edges
  };

  [[nodiscard]] Index count(Index row) const {
    Index all = 0;
    in_.for_runs(row, [&](const Run& run) { all += count(run); });
    return all;
  }
  [[nodiscard]] Index count(const Run& run) const {
    const Index candidates = run.last - run.first - std::ssize(excluded_.of(run));
    const Index fan_out = fan_outs_[run.type];
    if (fan_out < 0 || candidates == 0) return candidates;
    return replace_ ? fan_out : std::min(fan_out, candidates);
  }

  /// Draws positions among all candidates of the row and prefetches them.
  void draw_positions(Task& task, Index row, std::span<local_index> out) const {
    if (out.empty()) return;
    const Index begin = in_.begin[row];
    in_.for_runs(row, [&](const Run& run) {
      const bool only = run.first == begin && run.last == in_.begin[row + 1];
      const auto of_run = out.first(only ? out.size() : static_cast<std::size_t>(count(run)));
      out = out.subspan(of_run.size());
      draw_positions(task, row, run, of_run);
      if (!only)
        for (local_index& position : of_run) position += static_cast<local_index>(run.first - begin);
      for (const local_index position : of_run) __builtin_prefetch(in_.edge.data() + begin + position);
    });
  }

  /// Draws positions among the candidates of the run.
  void draw_positions(Task& task, Index row, const Run& run, std::span<local_index> out) const {
    if (out.empty()) return;
    const real* weight = in_.weight.empty() ? nullptr : in_.weight.data() + run.first;
    const Index candidates = run.last - run.first;
    const std::span<const Index> excluded = excluded_.of(run);
    if (excluded.empty()) return draw(task.choice, row, run.type, weight, candidates, out);
    if (weight != nullptr) {
      task.weights.clear();
      const real* from = weight;
      for (const Index at : excluded) {
        task.weights.insert(task.weights.end(), from, weight + (at - run.first));
        from = weight + (at - run.first) + 1;
      }
      task.weights.insert(task.weights.end(), from, weight + candidates);
    }
    draw(task.choice, row, run.type, weight != nullptr ? task.weights.data() : nullptr,
         candidates - std::ssize(excluded), out);
    const std::ranges::iota_view<Index, Index> numbers(0, std::ssize(excluded));
    for (local_index& position : out) {  // among those left: adds how many excluded ones are before it
      const auto is_before = [&](Index i) { return excluded[i] - i <= run.first + position; };
      position +=
          static_cast<local_index>(std::ranges::partition_point(numbers, is_before) - numbers.begin());
    }
  }

  void draw(Choice& choice, Index row, std::size_t type, const real* weight, Index candidates,
            std::span<local_index> out) const {
    const auto count = static_cast<Index>(out.size());
    if (count == candidates && (!replace_ || fan_outs_[type] < 0))
      return std::iota(out.begin(), out.end(), local_index{0});
    const Words words(random_[type], static_cast<std::uint64_t>(ids_[row]));
    if (weight == nullptr)
      choice.uniform(words, candidates, count, replace_, out.data());
    else
      choice.weighted(words, weight, candidates, count, replace_, out.data());
  }

  void replace_by_edges(Index row, std::span<local_index> positions) const {
    const local_index* edge = in_.edge.data() + in_.begin[row];
    for (local_index& position : positions) position = edge[position];
  }

  const CandidateEdges& in_;
  const Array<Index>& ids_;
  std::span<const Index> fan_outs_;
  bool replace_;
  std::vector<Random> random_;  // one per type
  const ExcludedEdges& excluded_;
};

/// Local. Returns at most fan-out many in-edges of each of the rows, for each type of edge. `ids`: original
/// ids of all rows of this rank, which key the draws.
KeptEdges draw_neighbors(const CandidateEdges& in, const Array<Index>& ids, const LayerDraws& draws,
                         const ExcludedEdges& excluded, const Array<Index>& dst_rows) {
  return LayerSampler(in, ids, draws, excluded).sample(dst_rows);
}

// Draws of layer-neighbor sampling: destinations share the draws of their sources, so that a layer needs
// fewer different rows.
//
// LABOR-0 (Balin, Catalyurek, "Layer-Neighbor Sampling - Defusing Neighborhood Explosion in GNNs", NeurIPS
// 2023) with the same probability pi_t = 1 for all sources: each source t has a uniform number r_t, and a
// destination s with d in-edges and fan-out k keeps the edge from t where
//
//     r_t <= c_s pi_t,   c_s = min(1, k / d)
//
// so that k edges are expected, and edges from sources with small numbers are kept by many destinations.
// Numbers of different edges of s are independent, so all sets of the same size are equally likely. A
// destination that would keep no edge keeps the one with the smallest number. So the mean over the kept
// edges is an unbiased estimate of the mean over all, without weights.
//
// A block of rows draws into a list of its own, and the lists are joined in their order: each number is drawn
// once for each in-edge of a row, O(in-edges) time.

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
        in_.for_runs(dst_rows[i], [&](const Run& run) { draw(run, edges); });
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
  void draw(const Run& run, std::vector<local_index>& kept) const {
    const std::span<const Index> excluded = excluded_.of(run);
    auto next = excluded.begin();
    const local_index* const edge = in_.edge.data();
    const Index degree = run.last - run.first - std::ssize(excluded);
    const Index fan_out = fan_outs_[run.type];
    if (fan_out == 0 || degree == 0) return;
    const bool all = fan_out < 0 || degree <= fan_out;
    const double share = static_cast<double>(fan_out) / static_cast<double>(degree);
    const std::size_t before = kept.size();
    double least = 2;
    local_index of_least = 0;
    for (Index k = run.first; k < run.last; ++k) {
      if (next != excluded.end() && *next == k) {
        ++next;
        continue;
      }
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

/// Local. Returns the kept in-edges of the rows, for each type of edge. Candidates have what find_sources()
/// adds. Parallel edges have numbers of their own.
KeptEdges draw_layer_neighbors(const CandidateEdges& in, const GraphTopology& graph, const LayerDraws& draws,
                               const ExcludedEdges& excluded, const Array<Index>& dst_rows) {
  return LaborSampler(in, graph, draws, excluded).sample(dst_rows);
}

CollectiveCall check(const Graph& graph, const std::vector<Index>& fan_outs,
                     const NeighborSamplerOptions& options) {
  require<InputError>(
      graph.topology().is_homogeneous(),
      "neighbors are sampled from a graph of one node type, not from a bipartite graph or a block");
  require<InputError>(!fan_outs.empty(), "there are no fan-outs, expected one for each layer");
  constexpr Index most = std::numeric_limits<local_index>::max();
  CollectiveCall call("NeighborSampler");
  call.equal("method", options.method)
      .equal("replace", options.replace)
      .equal("redraw", options.redraw)
      .equal("seed", options.seed);
  require<InputError>(options.method == NeighborMethod::uniform || !options.replace,
                      "layer-neighbor sampling draws without replacement, expected replace = false");
  for (const Index fan_out : fan_outs) {
    require<InputError>(-1 <= fan_out && fan_out <= most, "a fan-out is ", fan_out,
                        ", expected 0 or more and less than 2^31, or -1 for all in-edges");
    call.equal("fan-out", fan_out);
  }
  return call;
}

}  // namespace

NeighborSampler::Sampled NeighborSampler::sampled(const Graph& graph) {
  return graph.comm().agree([&]() -> Sampled {
    if (graph.is_homogeneous()) return {graph, std::nullopt};
    return {graph.to_homogeneous().graph, graph};
  });
}

NeighborSampler::NeighborSampler(Sampled of, std::size_t num_layers, const NeighborSamplerOptions& options)
    : graph_(std::move(of.graph)),
      typed_(std::move(of.typed)),
      num_layers_(num_layers),
      method_(options.method),
      replace_(options.replace),
      redraw_(options.redraw),
      seed_(options.seed) {}

NeighborSampler::NeighborSampler(const Graph& graph, std::vector<Index> fan_outs,
                                 const NeighborSamplerOptions& options)
    : NeighborSampler(sampled(graph), fan_outs.size(), options) {
  graph_.comm().agree([&] {
    const std::size_t types = typed_ ? typed_->edge_types().size() : 1;
    for (const Index fan_out : fan_outs) fan_outs_.insert(fan_outs_.end(), types, fan_out);
    prepare(typed_ ? &typed_->to_homogeneous().etypes : nullptr, options);
  });
}

NeighborSampler::NeighborSampler(const Graph& graph, std::span<const std::map<std::string, Index>> fan_outs,
                                 const NeighborSamplerOptions& options)
    : NeighborSampler(sampled(graph), fan_outs.size(), options) {
  graph_.comm().agree([&] {
    const std::vector<EdgeType>& types = graph.edge_types();
    for (const auto& of_layer : fan_outs) {
      std::vector<std::optional<Index>> of_types(types.size());
      for (const auto& [name, fan_out] : of_layer) {
        std::optional<Index>& of_type = of_types[find_edge_type(types, name)];
        require<InputError>(!of_type, "a layer has two fan-outs for the edge type '", name, "'");
        of_type = fan_out;
      }
      for (std::size_t k = 0; k < types.size(); ++k) {
        if (!of_types[k])
          throw InputError(concat("a layer has no fan-out for the edge type '", types[k],
                                  "', expected one for each of ", joined(types)));
        fan_outs_.push_back(*of_types[k]);
      }
    }
    prepare(typed_ ? &typed_->to_homogeneous().etypes : nullptr, options);
  });
}

NeighborSampler::NeighborSampler(const Graph& graph, std::vector<std::vector<Index>> fan_outs,
                                 const EdgeTypes& etypes, const NeighborSamplerOptions& options)
    : NeighborSampler(Sampled{graph, std::nullopt}, fan_outs.size(), options) {
  graph_.comm().agree([&] {
    for (const std::vector<Index>& of_layer : fan_outs) {
      const std::size_t types = fan_outs.front().size();
      require<InputError>(!of_layer.empty() && of_layer.size() == types, "a layer has ", of_layer.size(),
                          " fan-outs, expected one for each type of edge",
                          types == 0 ? "" : concat(", ", types, " as the first layer"));
      fan_outs_.insert(fan_outs_.end(), of_layer.begin(), of_layer.end());
    }
    prepare(&etypes, options);
  });
}

void NeighborSampler::prepare(const EdgeTypes* etypes, const NeighborSamplerOptions& options) {
  const CollectiveCall call = check(graph_, fan_outs_, options);
  EdgeTypes types;
  if (etypes != nullptr)
    types = etypes->checked(graph_.num_edges(), static_cast<Index>(fan_outs_.size() / num_layers_),
                            "NeighborSampler");
  graph_.comm().require_equal(CollectiveCall("NeighborSampler")
                                  .equal("number of fan-outs", fan_outs_.size())
                                  .equal("number of layers", num_layers_)
                                  .equal("types of edges", etypes != nullptr));
  graph_.comm().require_equal(call);
  const bool weighted = check_probabilities(graph_, options.prob);
  require<InputError>(method_ == NeighborMethod::uniform || !weighted,
                      "layer-neighbor sampling draws all edges with the same probability, expected no prob");
  auto candidates = std::make_shared<CandidateEdges>(
      find_candidates(graph_, options.prob, weighted, etypes != nullptr ? &types.numbers() : nullptr));
  if (method_ == NeighborMethod::labor) find_sources(graph_, *candidates);
  candidates_ = std::move(candidates);
}

std::vector<MessageFlowGraph> NeighborSampler::sample_blocks(std::span<const Index> seeds,
                                                             std::uint64_t epoch,
                                                             std::span<const Index> excluded,
                                                             Index batch) const {
  const TraceScope scope("sample_blocks", TraceKind::compute);
  const GraphTopology& whole = graph_.topology();
  return whole.comm.agree([&] {
    require<InputError>(batch >= 0, "the batch has the number ", batch, ", expected 0 or more");
    const ExcludedEdges excluded_edges(whole, *candidates_, excluded);
    whole.comm.require_equal(CollectiveCall("sample_blocks").equal("epoch", epoch).equal("batch", batch));
    const bool labor = method_ == NeighborMethod::labor;
    const RandomStream streams = labor ? RandomStream::layer_neighbors : RandomStream::neighbors;
    const std::uint64_t step = epoch + (redraw_ ? static_cast<std::uint64_t>(batch) << 32 : 0);
    std::vector<MessageFlowGraph> blocks = make_layers(
        graph_, seeds, static_cast<Index>(num_layers_), [&](Index layer, const Array<Index>& dst_rows) {
          const auto l = static_cast<std::size_t>(layer);
          const std::size_t types = fan_outs_.size() / num_layers_;
          const LayerDraws draws{.fan_outs = std::span(fan_outs_).subspan(l * types, types),
                                 .replace = replace_,
                                 .key = {.seed = seed_, .stream = streams + l, .step = step}};
          return labor ? draw_layer_neighbors(*candidates_, whole, draws, excluded_edges, dst_rows)
                       : draw_neighbors(*candidates_, whole.dst_ids(), draws, excluded_edges, dst_rows);
        });
    if (typed_) return with_types(*typed_, blocks);
    return blocks;
  });
}

std::vector<MessageFlowGraph> NeighborSampler::sample_blocks(const NodesByType& seeds, std::uint64_t epoch,
                                                             std::span<const Index> excluded,
                                                             Index batch) const {
  return sample_blocks(nodes_of(seeds), epoch, excluded, batch);
}

std::vector<Index> NeighborSampler::nodes_of(const NodesByType& nodes) const {
  return graph_.comm().agree([&] { return (typed_ ? *typed_ : graph_).to_homogeneous().nodes_of(nodes); });
}
}}  // namespace sar
