#include <sar/core/error.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/random.hpp>
#include <sar/core/row_blocks.hpp>
#include <sar/core/trace.hpp>
#include <sar/graph/build/layer_graph.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/neighbor_sampler.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace sar::inline SAR_PRECISION {

/// The edges that may be drawn, by destination, then edge id.
struct CandidateEdges {
  Array<Index> begin{0};
  Array<local_index> edge;  ///< edge row
  Array<real> weight;       ///< empty: all alike

  [[nodiscard]] Index degree(Index row) const { return begin[row + 1] - begin[row]; }
};

namespace {

constexpr std::uint64_t sampling_stream = std::uint64_t{1} << 40;  // and the layer; layers count from 0
constexpr Index grain = Index{1} << 10;                            // rows, or edges, of a task

/// The 64-bit words of one node, two from a Philox block.
class Words {
 public:
  Words(const Random& random, std::uint64_t node) : random_(random), node_(node) {}

  std::uint64_t next() {
    if (used_ % 2 == 0) block_ = random_.words(node_, used_ / 2);
    const std::size_t at = 2 * (used_++ % 2);
    return block_[at] | (static_cast<std::uint64_t>(block_[at + 1]) << 32);
  }
  /// Uniform in {0, ..., n - 1} up to n / 2^64.
  Index below(Index n) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<Index>((static_cast<Wide>(next()) * static_cast<Wide>(n)) >> 64);
  }
  /// Uniform in (0, 1].
  double unit() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }

 private:
  const Random& random_;
  std::uint64_t node_;
  std::uint64_t used_ = 0;
  std::array<std::uint32_t, 4> block_{};
};

/// Draws positions among `n` candidates. One for each thread's block of rows.
class Choice {
 public:
  /// `count` different positions, every set of them alike, or `count` independent ones. R. Floyd: Bentley,
  /// Floyd, "A sample of brilliance", CACM 1987.
  void uniform(Words words, Index n, Index count, bool replace, local_index* out) {
    if (replace) {
      for (Index i = 0; i < count; ++i) out[i] = static_cast<local_index>(words.below(n));
      return;
    }
    const bool marks = count > 64;  // otherwise the few that are drawn are searched
    if (marks) marked_.assign(static_cast<std::size_t>(n), false);
    for (Index i = 0, last = n - count; i < count; ++i, ++last) {
      auto drawn = static_cast<local_index>(words.below(last + 1));
      const bool again =
          marks ? marked_[static_cast<std::size_t>(drawn)] : std::find(out, out + i, drawn) != out + i;
      if (again) drawn = static_cast<local_index>(last);
      if (marks) marked_[static_cast<std::size_t>(drawn)] = true;
      out[i] = drawn;
    }
  }

  /// The same with a probability in proportion to weight[position] > 0. Without replacement: the positions
  /// with the smallest -log(u) / weight. Efraimidis, Spirakis, Information Processing Letters 97 (2006).
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
      graph.shards()->is_homogeneous(),
      "neighbours are sampled from a graph of one kind of nodes, not from a bipartite graph or a block");
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

/// Collective.
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

CandidateEdges find_candidates(const GraphShardManager& graph, const Tensor& prob, bool weighted) {
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
                [&](local_index a, local_index b) { return ids[a] < ids[b]; });
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
  return found;
}

/// Edges that no layer uses, and the rows that have some.
class ExcludedEdges {
 public:
  /// Throws InputError unless the edges are local edge rows and ascend.
  ExcludedEdges(const ShardedGraph& graph, std::span<const Index> edges) : edges_(edges) {
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
  static Index destination(const ShardedGraph& graph, Index edge) {
    const GraphShard* shard = &graph.local;
    for (auto next = graph.remote.begin(); edge >= shard->first_edge + shard->num_edges(); ++next)
      shard = &*next;
    const auto row =
        std::upper_bound(shard->row_begin.begin(), shard->row_begin.end(), edge - shard->first_edge);
    return shard->dst_row(row - shard->row_begin.begin() - 1);
  }
  std::span<const Index> edges_;
  std::vector<Index> rows_;
};

/// Chooses the in-edges of one layer.
class LayerSampler {
 public:
  LayerSampler(const CandidateEdges& in, const Array<Index>& ids, Index fan_out, bool replace,
               const Random& random, const ExcludedEdges& excluded)
      : in_(in), ids_(ids), fan_out_(fan_out), replace_(replace), random_(random), excluded_(excluded) {}

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
      for (Index i = first; i < last; ++i)
        choose(task, dst_rows[i], kept.edge.data() + kept.begin[i], kept.begin[i + 1] - kept.begin[i]);
    });
    return kept;
  }

 private:
  struct Task {
    Choice choice;
    std::vector<local_index> edges;  // candidates of a row with excluded edges
    std::vector<real> weights;
  };

  /// How many of the row's candidates are excluded.
  [[nodiscard]] Index num_excluded(Index row) const {
    if (!excluded_.has_row(row)) return 0;
    return std::count_if(in_.edge.begin() + in_.begin[row], in_.edge.begin() + in_.begin[row + 1],
                         [&](local_index e) { return excluded_.has_edge(e); });
  }

  [[nodiscard]] Index count(Index row) const {
    const Index candidates = in_.degree(row) - num_excluded(row);
    if (fan_out_ < 0 || candidates == 0) return candidates;
    return replace_ ? fan_out_ : std::min(fan_out_, candidates);
  }

  void choose(Task& task, Index row, local_index* out, Index count) const {
    if (count == 0) return;
    const local_index* edge = in_.edge.data() + in_.begin[row];
    const real* weight = in_.weight.empty() ? nullptr : in_.weight.data() + in_.begin[row];
    Index candidates = in_.degree(row);
    if (excluded_.has_row(row)) {
      task.edges.clear();
      task.weights.clear();
      for (Index k = 0; k < candidates; ++k) {
        if (excluded_.has_edge(edge[k])) continue;
        task.edges.push_back(edge[k]);
        if (weight != nullptr) task.weights.push_back(weight[k]);
      }
      edge = task.edges.data();
      if (weight != nullptr) weight = task.weights.data();
      candidates = static_cast<Index>(task.edges.size());
    }
    if (count == candidates && (!replace_ || fan_out_ < 0)) {
      std::copy_n(edge, count, out);
    } else {
      const Words words(random_, static_cast<std::uint64_t>(ids_[row]));
      if (weight == nullptr)
        task.choice.uniform(words, candidates, count, replace_, out);
      else
        task.choice.weighted(words, weight, candidates, count, replace_, out);
      for (Index i = 0; i < count; ++i) out[i] = edge[out[i]];
    }
    std::sort(out, out + count);
  }

  const CandidateEdges& in_;
  const Array<Index>& ids_;
  Index fan_out_;
  bool replace_;
  const Random& random_;
  const ExcludedEdges& excluded_;
};

}  // namespace

NeighborSampler::NeighborSampler(const GraphShardManager& graph, std::vector<Index> fan_outs,
                                 const NeighborSamplerOptions& options)
    : graph_(graph), fan_outs_(std::move(fan_outs)), replace_(options.replace), seed_(options.seed) {
  graph_.comm().agree([&] {
    const CollectiveCall call = check(graph_, fan_outs_, options);
    CollectiveCall("NeighborSampler")
        .equal("number of fan-outs", fan_outs_.size())
        .require_equal(graph_.comm());
    call.require_equal(graph_.comm());
    const bool weighted = check_probabilities(graph_, options.prob);
    candidates_ = std::make_shared<CandidateEdges>(find_candidates(graph_, options.prob, weighted));
  });
}

std::vector<MessageFlowGraph> NeighborSampler::sample_blocks(std::span<const Index> seeds,
                                                             std::uint64_t epoch,
                                                             std::span<const Index> excluded) const {
  const TraceScope scope("sample_blocks", TraceKind::compute);
  const ShardedGraph& whole = *graph_.shards();
  return whole.comm.agree([&] {
    const ExcludedEdges excluded_edges(whole, excluded);
    CollectiveCall("sample_blocks").equal("epoch", epoch).require_equal(whole.comm);
    return make_layers(graph_, seeds, std::ssize(fan_outs_), [&](Index layer, const Array<Index>& dst_rows) {
      const auto l = static_cast<std::size_t>(layer);
      const Random random({.seed = seed_, .stream = sampling_stream + l, .step = epoch});
      return LayerSampler(*candidates_, whole.dst_ids, fan_outs_[l], replace_, random, excluded_edges)
          .sample(dst_rows);
    });
  });
}

}  // namespace sar
