// SPDX-License-Identifier: MIT

// A batch costs O(nodes of the rank) for the decisions. Edges are decided row by row: one draw tells whether
// any in-edge of the row is drawn, and only then its edges are looked at. The ends of edges and walks that
// belong to other ranks are sent there, a walk once in each step.
#include <sar/core/error.hpp>
#include <sar/core/random/random.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/sampling/saint_draws.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index saint_rows_per_task = Index{1} << 12;  // rows
enum Purpose : std::uint64_t { first_draws, more_draws };

/// The probability that something with the probability q is among n draws with replacement.
double probability_of(double q, Index n) {
  return q >= 1 ? 1 : -std::expm1(static_cast<double>(n) * std::log1p(-q));
}

/// A uniform number in {0, ..., n - 1}, up to a bias of n / 2^64.
Index uniform_below(std::uint64_t bits, Index n) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<Index>((static_cast<Wide>(bits) * static_cast<Wide>(n)) >> 64);
}

Index count_positive(const Array<Index>& numbers) {
  return std::ranges::count_if(numbers, [](Index number) { return number > 0; });
}

}  // namespace

SaintDraws::SaintDraws(const Graph& graph, const SaintOptions& options) : graph_(graph), options_(options) {
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

Random SaintDraws::random(std::uint64_t step, std::uint64_t purpose) const {
  return Random({.seed = options_.seed, .stream = RandomStream::saint + purpose, .step = step});
}

double SaintDraws::edge_probability(Index row, Index candidate) const {
  const Index source = source_of(graph_.topology(), candidates_.edge[candidate]);
  const auto in = static_cast<double>(candidates_.begin[row + 1] - candidates_.begin[row]);
  return probability_of((1 / static_cast<double>(out_degrees_[source]) + 1 / in) / edge_sum_, options_.draws);
}

std::vector<std::uint8_t> SaintDraws::draw(std::uint64_t step) const {
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

void SaintDraws::draw_nodes(const Random& random, std::vector<std::uint8_t>& is_in) const {
  const Array<Index>& ids = graph_.dst_ids();
  parallel_for_each(std::ssize(is_in), saint_rows_per_task, [&](Index v) {
    is_in[static_cast<std::size_t>(v)] =
        random.uniform(static_cast<std::uint64_t>(ids[v])) < of_node_[v] ? 1 : 0;
  });
}

// The draw u of a row chooses its first drawn edge: the first k with u < 1 - (1 - p_1) ... (1 - p_k). The
// edges after it have draws of their own.
void SaintDraws::draw_edges(const Random& of_rows, const Random& of_edges,
                            std::vector<std::uint8_t>& is_in) const {
  const GraphTopology& topology = graph_.topology();
  const Array<Index>&row_ids = graph_.dst_ids(), &edge_ids = graph_.edge_ids();
  std::vector<Index> remote;
  for (Index row = 0; row < std::ssize(is_in); ++row) {
    const double u = of_rows.uniform(static_cast<std::uint64_t>(row_ids[row]));
    if (u >= of_row_[row]) continue;
    is_in[static_cast<std::size_t>(row)] = 1;
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
      if (!is_drawn) continue;
      const Index source = source_of(topology, candidates_.edge[k]);
      if (source < topology.local.num_src_rows)
        is_in[static_cast<std::size_t>(source)] = 1;
      else
        remote.push_back(source - topology.local.num_src_rows);
    }
  }
  const OwnerRequests ends(topology, remote);
  for (const local_index row : ends.rows()) is_in[static_cast<std::size_t>(row)] = 1;
}

void SaintDraws::walk(const Random& roots, const Random& steps, std::vector<std::uint8_t>& is_in) const {
  struct Walker {
    Index row;
    std::uint64_t root;  // original id
  };
  const GraphTopology& topology = graph_.topology();
  const Array<Index>& ids = graph_.dst_ids();
  std::vector<Walker> walkers;
  for (Index v = 0; v < std::ssize(is_in); ++v)
    if (const auto id = static_cast<std::uint64_t>(ids[v]); roots.uniform(id) < root_probability_)
      walkers.push_back({v, id});
  for (const Walker& walker : walkers) is_in[static_cast<std::size_t>(walker.row)] = 1;
  for (Index step = 0; step < options_.walk_length; ++step) {
    std::vector<Walker> next;
    std::vector<Index> remote;
    std::vector<std::uint64_t> remote_roots;
    for (const auto& [row, root] : walkers) {
      const Index first = candidates_.begin[row], degree = candidates_.begin[row + 1] - first;
      if (degree == 0) continue;
      const Index edge =
          candidates_.edge[first + uniform_below(steps.bits(root, static_cast<std::uint64_t>(step)), degree)];
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

// A counting sort by owner. Halo rows are numbered in rotation order, and messages go in the order of ranks.

OwnerRequests::OwnerRequests(const GraphTopology& graph, std::span<const Index> halo_rows)
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

}}  // namespace sar
