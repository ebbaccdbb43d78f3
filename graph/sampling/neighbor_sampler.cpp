/// Draws in-edges. Candidates are sorted once by destination, type and edge id, so that a drawn position
/// names the same edge on any number of ranks. For each layer: count the edges that each row keeps, turn the
/// counts into offsets, then draw in parallel over blocks of rows. The drawing loop prefetches the candidates
/// at the drawn positions and replaces positions by edges 16 rows later.
#include <sar/core/error.hpp>
#include <sar/core/random/random.hpp>
#include <sar/core/random/random_stream.hpp>
#include <sar/core/rows/row_blocks.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/construct/layer_graph.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// The edges that may be drawn, sorted by destination, type and edge id.
struct CandidateEdges {
  Array<Index> begin{0};
  Array<local_index> edge;    ///< edge row
  Array<real> weight;         ///< empty: all edges are equally likely
  Array<std::uint16_t> type;  ///< empty: all edges have one type

  [[nodiscard]] Index degree(Index row) const { return begin[row + 1] - begin[row]; }
};

namespace {

constexpr int bits_of_layer = 20;
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
  /// Returns a uniform value in {0, ..., n - 1}, up to a bias of n / 2^64.
  Index below(Index n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<Index>((static_cast<Wide>(next()) * static_cast<Wide>(n)) >> 64);
  }
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

CollectiveCall check(const GraphShardManager& graph, const std::vector<Index>& fan_outs,
                     const NeighborSamplerOptions& options) {
  require<InputError>(
      graph.topology().is_homogeneous(),
      "neighbors are sampled from a graph of one node type, not from a bipartite graph or a block");
  require<InputError>(!fan_outs.empty(), "there are no fan-outs, expected one for each layer");
  constexpr Index most = std::numeric_limits<local_index>::max();
  CollectiveCall call("NeighborSampler");
  call.equal("replace", options.replace).equal("seed", options.seed);
  for (const Index fan_out : fan_outs) {
    require<InputError>(-1 <= fan_out && fan_out <= most, "a fan-out is ", fan_out,
                        ", expected 0 or more and less than 2^31, or -1 for all in-edges");
    call.equal("fan-out", fan_out);
  }
  return call;
}

/// Checks `prob` and returns whether it is given. Collective.
bool check_probabilities(const GraphShardManager& graph, const Tensor& prob) {
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

/// Lists the candidates. `types`: null if all edges have one type.
CandidateEdges find_candidates(const GraphShardManager& graph, const Tensor& prob, bool weighted,
                               const Array<std::uint16_t>* types) {
  CandidateEdges found;
  Array<Index> rows(static_cast<std::size_t>(graph.num_dst_nodes()));
  std::iota(rows.begin(), rows.end(), Index{0});
  KeptEdges all = all_in_edges(*graph.shards(), rows);
  const Array<Index>& ids = graph.edge_ids();
  const auto work_before = [&](Index i) { return all.begin[i] + i; };
  const auto n = static_cast<Index>(rows.size());
  for_blocks_of_work(n, n + all.begin[n], 16 * grain, work_before, [&](Index first, Index last) {
    for (Index i = first; i < last; ++i)
      std::sort(all.edge.begin() + all.begin[i], all.edge.begin() + all.begin[i + 1],
                [&](local_index a, local_index b) {
                  if (types != nullptr && (*types)[a] != (*types)[b]) return (*types)[a] < (*types)[b];
                  return ids[a] < ids[b];
                });
  });
  if (weighted) {
    Index kept = 0;
    for (Index i = 0; i < n; ++i) {
      const Index begin = all.begin[i];
      all.begin[i] = kept;
      for (Index k = begin; k < all.begin[i + 1]; ++k)
        if (prob.data()[all.edge[k]] > 0) all.edge[kept++] = all.edge[k];
    }
    all.begin[n] = kept;
    all.edge.resize(static_cast<std::size_t>(kept));
    all.edge.shrink_to_fit();
    found.weight.resize(static_cast<std::size_t>(kept));
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

/// Edges that no layer uses, and the rows that have such edges.
class ExcludedEdges {
 public:
  /// Throws InputError unless the edges are ascending local edge rows.
  ExcludedEdges(const GraphTopology& graph, std::span<const Index> edges) : edges_(edges) {
    for (std::size_t i = 0; i < edges.size(); ++i) {
      require<InputError>(0 <= edges[i] && edges[i] < graph.num_edges(), "excluded edge ", edges[i],
                          " is no edge of this rank, expected ", index_range(graph.num_edges()));
      require<InputError>(i == 0 || edges[i - 1] < edges[i], "excluded edge ", edges[i], " comes after ",
                          i == 0 ? 0 : edges[i - 1], ", expected ascending edges, each once");
      rows_.push_back(destination(graph, edges[i]));
    }
    std::sort(rows_.begin(), rows_.end());
  }
  [[nodiscard]] bool has_row(Index row) const { return std::binary_search(rows_.begin(), rows_.end(), row); }
  [[nodiscard]] bool has_edge(Index edge) const {
    return std::binary_search(edges_.begin(), edges_.end(), edge);
  }

 private:
  static Index destination(const GraphTopology& graph, Index edge) {
    const GraphShard& shard = edge < graph.local.num_edges() ? graph.local : graph.remote;
    const auto row =
        std::upper_bound(shard.row_begin.begin(), shard.row_begin.end(), edge - shard.first_edge);
    return shard.dst_row(row - shard.row_begin.begin() - 1);
  }
  std::span<const Index> edges_;
  std::vector<Index> rows_;
};

/// Draws the in-edges of one layer.
class LayerSampler {
 public:
  /// `fan_outs`: one per type. `key`: the random key; each type uses its own stream.
  LayerSampler(const CandidateEdges& in, const Array<Index>& ids, std::span<const Index> fan_outs,
               bool replace, const RandomKey& key, const ExcludedEdges& excluded)
      : in_(in), ids_(ids), fan_outs_(fan_outs), replace_(replace), excluded_(excluded) {
    for (std::uint64_t type = 0; type < fan_outs.size(); ++type)
      random_.emplace_back(RandomKey{key.seed, key.stream + (type << bits_of_layer), key.step});
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
    std::vector<local_index> positions;  // scratch for rows with excluded edges
    std::vector<real> weights;
  };

  /// The candidates of one row and one type.
  struct Run {
    Index first, last;  // positions among all candidates
    std::size_t type;
  };

  /// Calls visit(run) for the types of the row's candidates, in order.
  template <class Visit>
  void for_runs(Index row, const Visit& visit) const {
    const Index end = in_.begin[row + 1];
    for (Index first = in_.begin[row]; first < end;) {
      Run run{first, end, 0};
      if (!in_.type.empty()) {
        const auto types = in_.type.begin();
        run.type = types[first];
        run.last = std::upper_bound(types + first, types + end, types[first]) - types;
      }
      visit(run);
      first = run.last;
    }
  }

  [[nodiscard]] Index count(Index row) const {
    Index all = 0;
    for_runs(row, [&](const Run& run) { all += count(row, run); });
    return all;
  }
  [[nodiscard]] Index count(Index row, const Run& run) const {
    Index candidates = run.last - run.first;
    if (excluded_.has_row(row))
      candidates -= std::count_if(in_.edge.begin() + run.first, in_.edge.begin() + run.last,
                                  [&](local_index e) { return excluded_.has_edge(e); });
    const Index fan_out = fan_outs_[run.type];
    if (fan_out < 0 || candidates == 0) return candidates;
    return replace_ ? fan_out : std::min(fan_out, candidates);
  }

  /// Draws positions among all candidates of the row and prefetches them.
  void draw_positions(Task& task, Index row, std::span<local_index> out) const {
    if (out.empty()) return;
    const Index begin = in_.begin[row];
    for_runs(row, [&](const Run& run) {
      const bool only = run.first == begin && run.last == in_.begin[row + 1];
      const auto of_run = out.first(only ? out.size() : static_cast<std::size_t>(count(row, run)));
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
    const local_index* edge = in_.edge.data() + run.first;
    const real* weight = in_.weight.empty() ? nullptr : in_.weight.data() + run.first;
    const Index candidates = run.last - run.first;
    if (!excluded_.has_row(row)) return draw(task.choice, row, run.type, weight, candidates, out);
    task.positions.clear();
    task.weights.clear();
    for (Index k = 0; k < candidates; ++k) {
      if (excluded_.has_edge(edge[k])) continue;
      task.positions.push_back(static_cast<local_index>(k));
      if (weight != nullptr) task.weights.push_back(weight[k]);
    }
    draw(task.choice, row, run.type, weight != nullptr ? task.weights.data() : nullptr,
         std::ssize(task.positions), out);
    for (local_index& position : out) position = task.positions[static_cast<std::size_t>(position)];
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

}  // namespace

NeighborSampler::NeighborSampler(const GraphShardManager& graph, std::vector<Index> fan_outs,
                                 const NeighborSamplerOptions& options)
    : graph_(graph),
      fan_outs_(std::move(fan_outs)),
      num_layers_(fan_outs_.size()),
      replace_(options.replace),
      seed_(options.seed) {
  graph_.comm().agree([&] { prepare(nullptr, options); });
}

NeighborSampler::NeighborSampler(const GraphShardManager& graph, std::vector<std::vector<Index>> fan_outs,
                                 const EdgeTypes& etypes, const NeighborSamplerOptions& options)
    : graph_(graph), num_layers_(fan_outs.size()), replace_(options.replace), seed_(options.seed) {
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
  candidates_ = std::make_shared<CandidateEdges>(
      find_candidates(graph_, options.prob, weighted, etypes != nullptr ? &types.numbers() : nullptr));
}

std::vector<MessageFlowGraph> NeighborSampler::sample_blocks(std::span<const Index> seeds,
                                                             std::uint64_t epoch,
                                                             std::span<const Index> excluded) const {
  const TraceScope scope("sample_blocks", TraceKind::compute);
  const GraphTopology& whole = graph_.topology();
  return whole.comm.agree([&] {
    const ExcludedEdges excluded_edges(whole, excluded);
    whole.comm.require_equal(CollectiveCall("sample_blocks").equal("epoch", epoch));
    return make_layers(
        graph_, seeds, static_cast<Index>(num_layers_), [&](Index layer, const Array<Index>& dst_rows) {
          const auto l = static_cast<std::size_t>(layer);
          const std::size_t types = fan_outs_.size() / num_layers_;
          const RandomKey key{.seed = seed_, .stream = RandomStream::neighbors + l, .step = epoch};
          return LayerSampler(*candidates_, whole.dst_ids(), std::span(fan_outs_).subspan(l * types, types),
                              replace_, key, excluded_edges)
              .sample(dst_rows);
        });
  });
}

}}  // namespace sar
