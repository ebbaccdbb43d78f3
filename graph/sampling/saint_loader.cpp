// SPDX-License-Identifier: MIT

// A rank draws among its own nodes, asks the owners of the sources of their in-edges which of these are in
// the batch, and builds the subgraph of the edges whose sources are. Counting does the same without building.
#include <sar/comm/communicator.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/random.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/construct/layer_graph.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/candidate_edges.hpp>
#include <sar/graph/sampling/saint_loader.hpp>
#include <sar/graph/topology/graph_topology.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

// A batch costs O(nodes of the rank) for the decisions. Edges are decided row by row: one draw tells whether
// any in-edge of the row is drawn, and only then its edges are looked at. The ends of edges and walks that
// belong to other ranks are sent there, a walk once in each step.

namespace {

constexpr Index saint_rows_per_task = Index{1} << 12;  // rows
enum Purpose : std::uint64_t { first_draws, more_draws };

/// Returns what take(row, list) appends to lists for the rows [0, n), in the order of the rows.
template <class T, class Take>
Array<T> list_of_rows(Index n, const Take& take) {
  return parallel_reduce(
      n, saint_rows_per_task, Array<T>{},
      [&](Index begin, Index end) {
        Array<T> list;
        for (Index row = begin; row < end; ++row) take(row, list);
        return list;
      },
      [](Array<T> all, const Array<T>& list) {
        all.insert(all.end(), list.begin(), list.end());
        return all;
      });
}

/// The probability that something with the probability q is among n draws with replacement.
double probability_of(double q, Index n) {
  return q >= 1 ? 1 : -std::expm1(static_cast<double>(n) * std::log1p(-q));
}

Index count_positive(const Array<Index>& numbers) {
  return std::ranges::count_if(numbers, [](Index number) { return number > 0; });
}

// A counting sort by owner. Halo rows are numbered in rotation order, and messages go in the order of ranks.

/// Values for some halo rows, sent to the owners of these rows and answered by them.
class OwnerRequests {
 public:
  /// Collective. `halo_rows`: numbers of halo rows of this rank, in any order; they may repeat. Sends 4 bytes
  /// for each to its owner.
  OwnerRequests(const GraphTopology& graph, std::span<const Index> halo_rows)
      : comm_(graph.comm), sent_(static_cast<std::size_t>(graph.comm.size()), 0) {
    const std::vector<HaloRound>& rounds = graph.rounds();
    const auto round_of = [&](Index row) -> const HaloRound& {
      return *(std::ranges::upper_bound(rounds, row, {}, &HaloRound::first) - 1);
    };
    // rounds without rows begin where the next one does, and upper_bound passes them
    for (const Index row : halo_rows) ++sent_[static_cast<std::size_t>(round_of(row).owner)];
    std::vector<Index> next = offsets_of_sizes(sent_);
    order_.resize(halo_rows.size());
    std::vector<local_index> places(halo_rows.size());
    for (std::size_t i = 0; i < halo_rows.size(); ++i) {
      const HaloRound& round = round_of(halo_rows[i]);
      const Index at = next[static_cast<std::size_t>(round.owner)]++;
      order_[static_cast<std::size_t>(at)] = static_cast<Index>(i);
      places[static_cast<std::size_t>(at)] = static_cast<local_index>(halo_rows[i] - round.first);
    }
    auto received = comm_.all_to_all_v<local_index>(places, sent_);
    rows_ = std::move(received.values);
    arriving_ = std::move(received.counts);
    auto row = rows_.begin();
    for (int q = 0; q < comm_.size(); ++q)
      for (Index i = 0; i < arriving_[static_cast<std::size_t>(q)]; ++i, ++row)
        *row = round_to(rounds, comm_.rank(), q).send_rows[*row];
  }

  /// The rows of this rank that the others named, those of rank 0 first.
  [[nodiscard]] const std::vector<local_index>& rows() const noexcept { return rows_; }

  /// Collective. Sends value i with halo row i. Returns the values that belong to rows().
  template <class T>
  [[nodiscard]] std::vector<T> send(std::span<const T> values) const {
    std::vector<T> sorted;
    sorted.reserve(order_.size());
    for (const Index i : order_) sorted.push_back(values[static_cast<std::size_t>(i)]);
    return comm_.all_to_all_v<T>(sorted, sent_, arriving_);
  }

  /// Collective. `values`: one for each of rows(). Returns those of the halo rows, in their order.
  template <class T>
  [[nodiscard]] std::vector<T> answer(std::span<const T> values) const {
    const std::vector<T> sorted = comm_.all_to_all_v<T>(values, arriving_, sent_);
    std::vector<T> answers(order_.size());
    for (std::size_t k = 0; k < order_.size(); ++k) answers[static_cast<std::size_t>(order_[k])] = sorted[k];
    return answers;
  }

 private:
  Communicator comm_;
  std::vector<Index> order_;  // positions among the halo rows, by owner
  std::vector<Index> sent_, arriving_;
  std::vector<local_index> rows_;
};

}  // namespace

// SaintDraws: the nodes of a GraphSAINT subgraph, drawn by their owners.

/// All decisions are functions of the step and of the original id of a node or the id of an edge:
///
///     node   node v is drawn where r_v < 1 - (1 - q_v)^n,   q_v = max(1, out-degree of v) / sum over all nodes
///     edge   edge u -> v is drawn where r_uv < 1 - (1 - q_uv)^n,   q_uv = (1 / d_u + 1 / d_v) / sum over all
///            edges, with the out-degree d_u and the in-degree d_v; its ends are in the batch
///     walk   node v is a root where r_v < 1 - (1 - 1 / N)^n; from each root, a walk goes to random in-neighbors
///
/// n = SaintOptions::draws: the probabilities are those of n draws with replacement. All sums are of
/// integers, so they have the same bits on every number of ranks: the edges' sum is the number of nodes with
/// out-edges and of those with in-edges.
class SaintDraws {
 public:
  /// Collective. Options are the same on every rank.
  SaintDraws(const Graph& graph, const SaintOptions& options) : graph_(graph), options_(options) {
    const GraphTopology& topology = graph_.topology();
    const Communicator& comm = topology.comm;
    const Array<Index>& out = graph_.out_degrees();
    if (options.method == SaintMethod::node) {
      Array<Index> weights(out.begin(), out.end());
      for (Index& weight : weights) weight = std::max<Index>(weight, 1);
      Index sum = 0;
      for (const Index weight : weights) sum += weight;
      const auto all = static_cast<double>(comm.all_reduce(sum));
      const Array<Index> with_halo = topology.with_halo({weights.data(), weights.size()});
      of_node_.resize(with_halo.size());
      std::ranges::transform(with_halo, of_node_.begin(), [&](Index weight) {
        return probability_of(static_cast<double>(weight) / all, options.draws);
      });
      return;
    }
    candidates_ = find_candidates(graph_, {}, /*weighted=*/false, nullptr);
    root_probability_ =
        probability_of(1 / static_cast<double>(std::max<Index>(graph_.num_global_nodes(), 1)), options.draws);
    if (options.method == SaintMethod::walk) return;
    const Index ends = comm.all_reduce(count_positive(out) + count_positive(graph_.in_degrees()));
    edge_sum_ = static_cast<double>(std::max<Index>(ends, 1));
    out_degrees_ = topology.with_halo({out.data(), out.size()});
    of_row_.resize(static_cast<std::size_t>(graph_.num_dst_nodes()));
    parallel_for_each(graph_.num_dst_nodes(), saint_rows_per_task, [&](Index row) {
      double none = 1;
      for (Index k = candidates_.begin[row]; k < candidates_.begin[row + 1]; ++k)
        none *= 1 - edge_probability(row, k);
      of_row_[row] = 1 - none;
    });
  }

  /// Collective. Returns for each node of this rank whether the subgraph of `step` has it.
  [[nodiscard]] std::vector<std::uint8_t> draw(std::uint64_t step) const {
    std::vector<std::uint8_t> is_in(static_cast<std::size_t>(graph_.num_dst_nodes()), 0);
    const Random first = random(step, first_draws), more = random(step, more_draws);
    if (options_.method == SaintMethod::node)
      draw_nodes(first, is_in);
    else if (options_.method == SaintMethod::edge)
      draw_edges(first, more, is_in);
    else
      walk(first, more, is_in);
    return is_in;
  }

  /// 1 - (1 - q)^n of each source row and each halo row, for the method node; otherwise empty.
  [[nodiscard]] const Array<double>& node_probabilities() const noexcept { return of_node_; }

 private:
  [[nodiscard]] Random random(std::uint64_t step, std::uint64_t purpose) const {
    return Random({.seed = options_.seed, .stream = RandomStream::saint + purpose, .step = step});
  }

  void draw_nodes(const Random& random, std::vector<std::uint8_t>& is_in) const {
    const Array<Index>& ids = graph_.dst_ids();
    parallel_for_each(std::ssize(is_in), saint_rows_per_task, [&](Index v) {
      is_in[static_cast<std::size_t>(v)] =
          random.uniform(static_cast<std::uint64_t>(ids[v])) < of_node_[v] ? 1 : 0;
    });
  }

  // The draw u of a row chooses its first drawn edge: the first k with u < 1 - (1 - p_1) ... (1 - p_k). The
  // edges after it have draws of their own.
  void draw_edges(const Random& of_rows, const Random& of_edges, std::vector<std::uint8_t>& is_in) const {
    const GraphTopology& topology = graph_.topology();
    const Array<Index>&row_ids = graph_.dst_ids(), &edge_ids = graph_.edge_ids();
    const auto draw = [&](Index row, Array<Index>& ends) {
      const double u = of_rows.uniform(static_cast<std::uint64_t>(row_ids[row]));
      if (u >= of_row_[row]) return;
      ends.push_back(row);
      double none = 1;
      bool has_first = false;
      for (Index k = candidates_.begin[row]; k < candidates_.begin[row + 1]; ++k) {
        const double p = edge_probability(row, k);
        bool is_drawn = false;
        if (has_first) {
          is_drawn = of_edges.uniform(static_cast<std::uint64_t>(edge_ids[candidates_.edge[k]])) < p;
        } else {
          none *= 1 - p;
          is_drawn = has_first = u < 1 - none;
        }
        if (is_drawn) ends.push_back(source_of(topology, candidates_.edge[k]));
      }
    };
    std::vector<Index> remote;
    for (const Index end : list_of_rows<Index>(std::ssize(is_in), draw)) {
      if (end < topology.local.num_src_rows)
        is_in[static_cast<std::size_t>(end)] = 1;
      else
        remote.push_back(end - topology.local.num_src_rows);
    }
    const OwnerRequests of_owners(topology, remote);
    for (const local_index row : of_owners.rows()) is_in[static_cast<std::size_t>(row)] = 1;
  }

  void walk(const Random& roots, const Random& steps, std::vector<std::uint8_t>& is_in) const {
    struct Walker {
      Index row;
      std::uint64_t root;  // original id
    };
    const GraphTopology& topology = graph_.topology();
    const Array<Index>& ids = graph_.dst_ids();
    auto walkers = list_of_rows<Walker>(std::ssize(is_in), [&](Index v, Array<Walker>& list) {
      if (const auto id = static_cast<std::uint64_t>(ids[v]); roots.uniform(id) < root_probability_)
        list.push_back({v, id});
    });
    for (const Walker& walker : walkers) is_in[static_cast<std::size_t>(walker.row)] = 1;
    for (Index step = 0; step < options_.walk_length; ++step) {
      Array<Walker> next;
      std::vector<Index> remote;
      std::vector<std::uint64_t> remote_roots;
      for (const auto& [row, root] : walkers) {
        const Index first = candidates_.begin[row], degree = candidates_.begin[row + 1] - first;
        if (degree == 0) continue;
        const Index edge =
            candidates_
                .edge[first + uniform_below(steps.bits(root, static_cast<std::uint64_t>(step)), degree)];
        const Index source = source_of(topology, edge);
        if (source < topology.local.num_src_rows) {
          next.push_back({source, root});
        } else {
          remote.push_back(source - topology.local.num_src_rows);
          remote_roots.push_back(root);
        }
      }
      const OwnerRequests leaving(topology, remote);
      const std::vector<std::uint64_t> arrived = leaving.send<std::uint64_t>(remote_roots);
      for (std::size_t i = 0; i < arrived.size(); ++i) next.push_back({leaving.rows()[i], arrived[i]});
      walkers = std::move(next);
      for (const Walker& walker : walkers) is_in[static_cast<std::size_t>(walker.row)] = 1;
    }
  }

  /// That a source of this candidate edge is drawn. `row`: its destination.
  [[nodiscard]] double edge_probability(Index row, Index candidate) const {
    const Index source = source_of(graph_.topology(), candidates_.edge[candidate]);
    const auto in = static_cast<double>(candidates_.begin[row + 1] - candidates_.begin[row]);
    return probability_of((1 / static_cast<double>(out_degrees_[source]) + 1 / in) / edge_sum_,
                          options_.draws);
  }

  Graph graph_;
  SaintOptions options_;
  Array<double> of_node_;        // node: probabilities of source and halo rows
  CandidateEdges candidates_;    // edge, walk: in-edges by edge id
  Array<Index> out_degrees_;     // edge: of source and halo rows
  Array<double> of_row_;         // edge: probability that any in-edge of the row is drawn
  double edge_sum_ = 0;          // edge: of 1 / d_u + 1 / d_v
  double root_probability_ = 0;  // walk
};

/// The rows of this rank in a batch, and the edges between nodes of the batch.
struct SaintLoader::Nodes {
  Array<Index> rows;
  KeptEdges kept;
};

namespace {

constexpr const char* method_names[] = {"node", "edge", "walk"};

void check_options(const Graph& graph, const SaintOptions& options) {
  require<InputError>(
      graph.topology().is_homogeneous(),
      "subgraphs are drawn from a graph of one node type, not from a bipartite graph or a block");
  const auto at_least = [](Index number, Index least, const char* name) {
    constexpr Index most = std::numeric_limits<local_index>::max();
    require<InputError>(number >= least && number <= most, "SaintLoader: ", name, " is ", number,
                        ", expected ", least, " or more", number > most ? ", and less than 2^31" : "");
  };
  at_least(options.draws, 1, "draws");
  at_least(options.walk_length, 1, "walk_length");
  at_least(options.batches, 0, "batches");
  at_least(options.coverage, 1, "coverage");
  if (options.method != SaintMethod::node) (void)graph.edge_ids();
}

/// Nodes that a batch draws, without those drawn twice.
double nodes_of_batch(const SaintOptions& options) {
  const auto draws = static_cast<double>(options.draws);
  switch (options.method) {
    case SaintMethod::edge:
      return 2 * draws;
    case SaintMethod::walk:
      return draws * (static_cast<double>(options.walk_length) + 1);
    case SaintMethod::node:
      break;
  }
  return draws;
}

}  // namespace

SaintLoader::SaintLoader(const Graph& graph, const SaintOptions& options) : graph_(graph), options_(options) {
  const Communicator& comm = graph_.comm();
  comm.agree([&] {
    check_options(graph_, options_);
    comm.require_equal(CollectiveCall("SaintLoader")
                           .equal("method", method_names[static_cast<std::size_t>(options.method)])
                           .equal("draws", options.draws)
                           .equal("walk_length", options.walk_length)
                           .equal("batches", options.batches)
                           .equal("coverage", options.coverage)
                           .equal("scale_messages", options.scale_messages)
                           .equal("seed", options.seed));
    const double shares = static_cast<double>(graph_.num_global_nodes()) / nodes_of_batch(options_);
    num_batches_ =
        options.batches > 0 ? options.batches : std::max(static_cast<Index>(std::ceil(shares)), Index{1});
    draws_ = std::make_shared<const SaintDraws>(graph_, options_);
    if (options_.method != SaintMethod::node) count();
  });
}

SaintLoader::Nodes SaintLoader::draw(std::uint64_t epoch, Index batch) const {
  const GraphTopology& whole = graph_.topology();
  const std::vector<std::uint8_t> is_in = draws_->draw(epoch + (static_cast<std::uint64_t>(batch) << 32));
  Nodes nodes;
  nodes.rows = list_of_rows<Index>(std::ssize(is_in), [&](Index row, Array<Index>& rows) {
    if (is_in[static_cast<std::size_t>(row)] != 0) rows.push_back(row);
  });
  nodes.kept = all_in_edges(*graph_.shards(), nodes.rows);

  const Index local = whole.local.num_src_rows;
  IndexSet read(whole.remote.num_src_rows), in_batch(whole.remote.num_src_rows);
  for (const local_index edge : nodes.kept.edge)
    if (const Index source = source_of(whole, edge); source >= local) read.insert(source - local);
  const Array<Index> asked = read.members();
  const OwnerRequests sources(whole, {asked.data(), asked.size()});
  std::vector<std::uint8_t> answers;
  for (const local_index row : sources.rows()) answers.push_back(is_in[static_cast<std::size_t>(row)]);
  answers = sources.answer<std::uint8_t>(answers);
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (answers[i] != 0) in_batch.insert(asked[i]);

  nodes.kept.keep_if([&](local_index edge) {
    const Index source = source_of(whole, edge);
    return source < local ? is_in[static_cast<std::size_t>(source)] != 0 : in_batch.contains(source - local);
  });
  return nodes;
}

void SaintLoader::count() {
  const Communicator& comm = graph_.comm();
  node_counts_.assign(static_cast<std::size_t>(graph_.num_dst_nodes()), 0);
  edge_counts_.assign(static_cast<std::size_t>(graph_.num_edges()), 0);
  const Index wanted = options_.coverage * graph_.num_global_nodes();
  Index seen = 0, without_nodes = 0;
  while (seen < wanted && without_nodes < 100) {  // a graph without edges has none to draw
    const Nodes nodes = draw(0, num_counted_++);
    for (const Index row : nodes.rows) ++node_counts_[row];
    for (const local_index edge : nodes.kept.edge) ++edge_counts_[edge];
    const Index drawn = comm.all_reduce(std::ssize(nodes.rows));
    without_nodes = drawn == 0 ? without_nodes + 1 : 0;
    seen += drawn;
  }
}

double SaintLoader::node_probability(Index row) const {
  if (options_.method == SaintMethod::node) return draws_->node_probabilities()[row];
  return static_cast<double>(std::max<local_index>(node_counts_[row], 1)) /
         static_cast<double>(std::max<Index>(num_counted_, 1));
}

double SaintLoader::edge_probability(Index edge) const {
  const GraphTopology& whole = graph_.topology();
  const GraphShard& shard = edge < whole.remote.first_edge ? whole.local : whole.remote;
  const auto next = std::ranges::upper_bound(shard.row_begin, edge - shard.first_edge);
  const Index row = shard.dst_row(next - shard.row_begin.begin() - 1);
  if (options_.method == SaintMethod::node) {
    const Index source = source_of(whole, edge);
    return source == row ? 1 : draws_->node_probabilities()[source];
  }
  return static_cast<double>(std::max<local_index>(edge_counts_[edge], 1)) /
         static_cast<double>(std::max<local_index>(node_counts_[row], 1));
}

void SaintLoader::start_epoch(std::uint64_t epoch, Index first_batch) {
  require<InputError>(0 <= first_batch && first_batch <= num_batches_, "there is no batch ", first_batch,
                      ", expected ", index_range(num_batches_ + 1));
  const Transaction transaction;
  epoch_ = epoch;
  number_ = first_batch;
}

std::optional<SaintBatch> SaintLoader::next() {
  const TraceScope scope("saint batch", TraceKind::compute);
  const Communicator& comm = graph_.comm();
  return comm.agree([&]() -> std::optional<SaintBatch> {
    comm.require_equal(
        CollectiveCall("SaintLoader::next").equal("epoch", epoch_.get()).equal("batch", number_.get()));
    if (number_ == num_batches_) return std::nullopt;
    Nodes nodes = draw(epoch_, number_);
    SaintBatch batch{
        .number = number_,
        .graph = MessageFlowGraph(options_.scale_messages
                                      ? make_subgraph(*graph_.shards(), nodes.rows, nodes.kept,
                                                      [&](Index edge) { return 1 / edge_probability(edge); })
                                      : make_subgraph(*graph_.shards(), nodes.rows, nodes.kept),
                                  nodes.rows, graph_.options()),
        .loss_weights = Tensor(Shape{std::ssize(nodes.rows)})};
    std::ranges::transform(nodes.rows, batch.loss_weights.data(),
                           [&](Index row) { return static_cast<real>(1 / node_probability(row)); });
    ++number_.change();
    return batch;
  });
}
}}  // namespace sar
