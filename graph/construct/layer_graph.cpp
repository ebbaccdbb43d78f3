// SPDX-License-Identifier: MIT

/// Builds the graph of one layer from the kept edges of a whole graph. Two exchanges renumber the halo:
///
/// - request_halo_rows() sends each owner the positions of the rows that this rank reads, in the order of the
///   whole graph's halo.
/// - number_sources() numbers the owner's sources: the destinations first, then all other rows that its own
///   edges or readers need.
/// - sort_halo_rows() returns these numbers to the readers, which sort their halo by them: halo rows then
///   have the order of the owner's rows.
///
/// All other steps are local and parallel over edges or rows; their work is linear in the kept edges, except
/// for sorting the edges of each destination.
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/rows/row_access.hpp>
#include <sar/graph/construct/layer_graph.hpp>
#include <sar/graph/topology/graph_topology.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index rows_per_task = Index{1} << 12;  // or edges

void check_count(Index edges) {
  require<InputError>(edges <= std::numeric_limits<local_index>::max(), "a layer has ", edges,
                      " edges on a rank, at most 2147483647 are possible: use more ranks");
}

/// Returns column[rows[i]] for each i.
template <class Column>
Column select(const Column& column, const Array<Index>& rows) {
  Column selected(rows.size());
  parallel_for_each(static_cast<Index>(rows.size()), rows_per_task,
                    [&](Index i) { selected[i] = column[rows[i]]; });
  return selected;
}

Tensor select_numbers(const Tensor& column, const Array<Index>& rows) {
  if (!column.defined()) return {};
  Tensor selected(Shape{static_cast<Index>(rows.size())});
  std::transform(rows.begin(), rows.end(), selected.data(), [&](Index row) { return column.data()[row]; });
  return selected;
}

/// An edge that a layer keeps.
struct KeptEdge {
  local_index dst;  ///< row of the layer
  local_index src;  ///< source row of the shard of the whole graph; later, of the layer's shard
  local_index row;  ///< edge row of the whole graph
};

/// The construction of one layer, step by step; make() has the order of the steps.
class Layer {
 public:
  Layer(const ShardedGraph& whole, const Array<Index>& dst_rows, const KeptEdges& kept)
      : whole_(*whole.topology),
        degrees_(whole.degrees),
        edge_norms_(whole.edge_norms),
        comm_(whole_.comm),
        dst_rows_(dst_rows) {
    check_count(std::ssize(kept.edge));
    divide(kept);
  }

  /// With `is_subgraph`, the graph of the destinations: all sources are among them, and degrees are those of
  /// the kept edges, or with `factor` those of the whole graph.
  LayerGraph make(bool is_subgraph, const FunctionRef<double(Index)>* factor = nullptr) {
    request_halo_rows();
    number_sources();
    sort_halo_rows();
    Sizes sizes = share_sizes();
    edge_rows_.resize(edges_.size());
    GraphShard local = make_shard(0, num_local_, std::ssize(src_rows_), /*every_row=*/true);
    GraphShard remote = make_shard(num_local_, std::ssize(edges_), halo_rows(), /*every_row=*/false);
    auto edge_ids = std::make_shared<std::optional<Array<Index>>>();
    if (whole_.has_edge_ids()) *edge_ids = select(whole_.edge_ids(), edge_rows_);
    HaloRounds rounds = take_rounds();
    RowCounts used_by_others;
    if (is_subgraph) used_by_others = count_uses(comm_, remote, *rounds);
    auto layer = std::make_shared<const GraphTopology>(GraphTopology{
        .comm = comm_,
        .src_book = std::move(sizes.src_book),
        .dst_book = std::move(sizes.dst_book),
        .is_layer = !is_subgraph,
        .is_scaled = factor != nullptr,
        .shared_src_ids = std::make_shared<const Array<Index>>(select(whole_.src_ids(), src_rows_)),
        .shared_dst_ids = std::make_shared<const Array<Index>>(select(whole_.dst_ids(), dst_rows_)),
        .shared_edge_ids = std::move(edge_ids),
        .edge_weight = factor != nullptr ? scaled_numbers(whole_.edge_weight, *factor)
                                         : select_numbers(whole_.edge_weight, edge_rows_),
        .num_global_edges = sizes.edges,
        .local = std::move(local),
        .remote = std::move(remote),
        .shared_rounds = std::move(rounds),
        .used_by_others = std::move(used_by_others)});
    if (is_subgraph && factor == nullptr)
      return {std::make_shared<ShardedGraph>(std::move(layer)), std::move(src_rows_), std::move(edge_rows_)};
    KnownDegrees known{.out = std::make_shared<LazyArray>(select(degrees_.out->get(), src_rows_)),
                       .src_in = std::make_shared<LazyArray>(select(degrees_.in->get(), src_rows_))};
    if (is_subgraph) known.in = known.src_in;
    auto made = std::make_shared<ShardedGraph>(std::move(layer), std::move(known));
    std::ranges::transform(edge_norms_, made->edge_norms.begin(), [&](const Tensor& norm) {
      return factor != nullptr && norm.defined() ? scaled_numbers(norm, *factor)
                                                 : select_numbers(norm, edge_rows_);
    });
    return {std::move(made), std::move(src_rows_), std::move(edge_rows_)};
  }

 private:
  struct Sizes {
    PartitionBook src_book, dst_book;
    Index edges;
  };

  /// Returns factor(edge) times the number of each edge of the layer, or times 1.
  [[nodiscard]] Tensor scaled_numbers(const Tensor& column, FunctionRef<double(Index)> factor) const {
    Tensor scaled(Shape{std::ssize(edge_rows_)});
    std::ranges::transform(edge_rows_, scaled.data(), [&](Index edge) {
      return static_cast<real>(factor(edge) *
                               (column.defined() ? static_cast<double>(column.data()[edge]) : 1));
    });
    return scaled;
  }

  /// Sorts the edges, local ones first, then by destination. Sets edges_ and num_local_.
  void divide(const KeptEdges& kept) {
    const auto num_dst = static_cast<Index>(dst_rows_.size());
    const auto first_remote = static_cast<local_index>(whole_.remote.first_edge);
    Array<Index> local_begin(num_dst + 1, 0);
    parallel_for_each(num_dst, rows_per_task, [&](Index i) {
      local_begin[i + 1] =
          std::count_if(kept.edge.begin() + kept.begin[i], kept.edge.begin() + kept.begin[i + 1],
                        [&](local_index row) { return row < first_remote; });
    });
    std::partial_sum(local_begin.begin(), local_begin.end(), local_begin.begin());
    num_local_ = local_begin[num_dst];
    edges_.resize(kept.edge.size());
    parallel_for_each(num_dst, rows_per_task, [&](Index i) {
      Index local = local_begin[i];
      Index remote = num_local_ + kept.begin[i] - local;
      const auto dst = static_cast<local_index>(i);
      for (Index k = kept.begin[i]; k < kept.begin[i + 1]; ++k) {
        const local_index row = kept.edge[k];
        if (row < first_remote)
          edges_[local++] = {dst, whole_.local.src[row], row};
        else
          edges_[remote++] = {dst, whole_.remote.src[row - first_remote], row};
      }
    });
  }

  /// Calls visit(edge) for the edges [begin, end), in parallel.
  template <class Visit>
  void for_edges(Index begin, Index end, const Visit& visit) {
    parallel_for_each(end - begin, rows_per_task, [&](Index k) { visit(edges_[begin + k]); });
  }

  /// Renumbers the sources of remote edges without gaps, and tells each owner which of its halo rows in the
  /// whole graph this rank reads in the layer. Sets rounds_ and requested_.
  void request_halo_rows() {
    IndexSet used(whole_.remote.num_src_rows);
    for (Index k = num_local_; k < std::ssize(edges_); ++k) used.insert(edges_[k].src);
    const Array<Index> rows = used.members();
    auto row = rows.begin();
    std::vector<std::span<const Index>> asked(static_cast<std::size_t>(comm_.size()));
    for (const HaloRound& of_whole : whole_.rounds()) {
      HaloRound round;
      round.owner = of_whole.owner;
      round.reader = of_whole.reader;
      const auto end = std::lower_bound(row, rows.end(), of_whole.first + of_whole.recv_rows);
      round.recv_rows = end - row;
      asked[static_cast<std::size_t>(round.owner)] = {rows.data() + (row - rows.begin()),
                                                      static_cast<std::size_t>(round.recv_rows)};
      row = end;
      rounds_.push_back(std::move(round));
    }
    used.make_numbers();
    for_edges(num_local_, std::ssize(edges_),
              [&](KeptEdge& edge) { edge.src = static_cast<local_index>(used.number(edge.src)); });
    Array<local_index> request;
    std::vector<Index> counts;
    for (int q = 0; q < comm_.size(); ++q) {
      const auto& from_q = asked[static_cast<std::size_t>(q)];
      const Index first = from_q.empty() ? 0 : round_from(whole_.rounds(), comm_.rank(), q).first;
      for (const Index at : from_q) request.push_back(static_cast<local_index>(at - first));
      counts.push_back(static_cast<Index>(from_q.size()));
    }
    requested_ = comm_.all_to_all_v<local_index>({request.data(), request.size()}, counts);
    number_halo_rows(comm_, rounds_);
    asked_ = std::move(counts);
  }

  /// Numbers this rank's sources: the destinations first, then the rows that local edges and readers need,
  /// ascending. Renumbers local edges and requests.
  void number_sources() {
    Array<local_index> number(static_cast<std::size_t>(whole_.local.num_src_rows));  // index in the layer
    IndexSet used(whole_.local.num_src_rows);
    for (Index k = 0; k < num_local_; ++k) used.insert(edges_[k].src);
    auto row = requested_.values.begin();
    for (int q = 0; q < comm_.size(); ++q) {
      const Index count = requested_.counts[static_cast<std::size_t>(q)];
      if (count == 0) continue;
      const auto& read = round_to(whole_.rounds(), comm_.rank(), q).send_rows;
      for (Index i = 0; i < count; ++i, ++row) used.insert(*row = read[*row]);
    }
    for (Index i = 0; i < std::ssize(dst_rows_); ++i) {
      number[dst_rows_[i]] = static_cast<local_index>(i);
      used.erase(dst_rows_[i]);
    }
    src_rows_.reserve(dst_rows_.size() + static_cast<std::size_t>(used.size()));
    src_rows_ = dst_rows_;
    used.for_each([&](Index u) {
      number[u] = static_cast<local_index>(src_rows_.size());
      src_rows_.push_back(u);
    });
    for_edges(0, num_local_, [&](KeptEdge& edge) { edge.src = number[edge.src]; });
    for (local_index& asked : requested_.values) asked = number[asked];
  }

  /// Sorts the halo by the indices that the owners return.
  void sort_halo_rows() {
    const auto answers = comm_.all_to_all_v<local_index>(requested_.values, requested_.counts, asked_);
    auto requests = requested_.values.begin();
    for (const Index count : requested_.counts) {
      std::sort(requests, requests + count);
      requests += count;
    }
    const std::vector<Index> begin = offsets_of_sizes(asked_);
    Array<local_index> order, place(static_cast<std::size_t>(halo_rows()));
    for (const HaloRound& round : rounds_) {
      const local_index* const numbers = answers.data() + begin[static_cast<std::size_t>(round.owner)];
      order.resize(static_cast<std::size_t>(round.recv_rows));
      std::iota(order.begin(), order.end(), local_index{0});
      std::sort(order.begin(), order.end(),
                [&](local_index a, local_index b) { return numbers[a] < numbers[b]; });
      for (Index i = 0; i < round.recv_rows; ++i)
        place[round.first + order[i]] = static_cast<local_index>(round.first + i);
    }
    for_edges(num_local_, std::ssize(edges_), [&](KeptEdge& edge) { edge.src = place[edge.src]; });
  }
  [[nodiscard]] Index halo_rows() const { return std::accumulate(asked_.begin(), asked_.end(), Index{0}); }

  /// Gathers the sizes of all ranks. Collective.
  [[nodiscard]] Sizes share_sizes() const {
    const std::array<Index, 3> mine{static_cast<Index>(src_rows_.size()),
                                    static_cast<Index>(dst_rows_.size()), static_cast<Index>(edges_.size())};
    const auto all = comm_.all_gather(mine);
    const auto offsets = [&](std::size_t i) {
      return offsets_of_sizes(all, [i](const auto& sizes) { return sizes[i]; });
    };
    return {PartitionBook(offsets(0)), PartitionBook(offsets(1)), offsets(2).back()};
  }

  /// Returns rounds_, with the rows that others read.
  HaloRounds take_rounds() {
    const std::vector<Index> begin = offsets_of_sizes(requested_.counts);
    for (HaloRound& round : rounds_) {
      const auto reader = static_cast<std::size_t>(round.reader);
      round.send_rows.assign(requested_.values.begin() + begin[reader],
                             requested_.values.begin() + begin[reader + 1]);
    }
    return std::make_shared<const std::vector<HaloRound>>(std::move(rounds_));
  }

  /// Writes the edges of the rows [first, last), sorted by source and then by edge row, to part.src and
  /// edge_rows_.
  void sort_sources(GraphShard& part, Index first, Index last) {
    constexpr Index few = 32;  // up to this many edges, sorts by counting smaller keys
    const auto key = [](const KeptEdge& edge) {
      return (static_cast<std::uint64_t>(edge.src) << 32) | static_cast<std::uint64_t>(edge.row);
    };
    const auto write = [&](const KeptEdge& edge, Index place) {
      part.src[place] = edge.src;
      edge_rows_[part.first_edge + place] = edge.row;
    };
    for (Index i = first; i < last; ++i) {
      const Index begin = part.row_begin[i], count = part.row_begin[i + 1] - begin;
      KeptEdge* const edges = edges_.data() + part.first_edge + begin;
      if (count > few) {
        std::sort(edges, edges + count,
                  [&](const KeptEdge& a, const KeptEdge& b) { return key(a) < key(b); });
        for (Index k = 0; k < count; ++k) write(edges[k], begin + k);
        continue;
      }
      std::array<std::uint64_t, few> keys;
      std::transform(edges, edges + count, keys.begin(), key);
      for (Index k = 0; k < count; ++k) {
        Index before = 0;
        for (Index other = 0; other < k; ++other) before += keys[other] <= keys[k] ? 1 : 0;
        for (Index other = k + 1; other < count; ++other) before += keys[other] < keys[k] ? 1 : 0;
        write(edges[k], begin + before);
      }
    }
  }

  GraphShard make_shard(Index begin, Index end, Index num_src_rows, bool every_row) {
    const Index edges = end - begin;
    GraphShard part;
    part.num_dst = static_cast<Index>(dst_rows_.size());
    part.num_src_rows = num_src_rows;
    part.first_edge = begin;
    list_rows(
        part, edges, [&](Index k) { return edges_[begin + k].dst; }, every_row);
    part.src.resize(static_cast<std::size_t>(edges));
    for_blocks_of_work(
        part.num_rows(), part.num_rows() + edges, rows_per_task,
        [&](Index i) { return part.row_begin[i] + i; },
        [&](Index first, Index last) { sort_sources(part, first, last); });
    return part;
  }

  const GraphTopology& whole_;
  const DegreeCache& degrees_;
  const std::array<Tensor, 3>& edge_norms_;
  const Communicator& comm_;
  const Array<Index>& dst_rows_;
  Array<KeptEdge> edges_;
  Index num_local_ = 0;
  std::vector<HaloRound> rounds_;
  std::vector<Index> asked_;                       // rows of each owner that this rank reads
  Communicator::Received<local_index> requested_;  // rows of this rank that other ranks read
  Array<Index> src_rows_, edge_rows_;
};

/// Calls visit(i, k) for the edges k of the shard into rows[i].
template <class Visit>
void for_edges_to(const Array<Index>& rows, const GraphShard& shard, const Visit& visit) {
  if (shard.num_edges() == 0) return;
  for (Index i = 0; i < std::ssize(rows); ++i) {
    auto row = rows[i];
    if (!shard.dst_rows.empty()) {
      const auto found = std::lower_bound(shard.dst_rows.begin(), shard.dst_rows.end(), row);
      if (found == shard.dst_rows.end() || *found != row) continue;
      row = found - shard.dst_rows.begin();
    }
    for (Index k = shard.row_begin[row]; k < shard.row_begin[row + 1]; ++k) visit(i, k);
  }
}

}  // namespace

Array<Index> rows_of_seeds(const GraphTopology& graph, std::span<const Index> seeds) {
  return graph.comm.agree([&] {
    require<InputError>(
        graph.is_homogeneous(),
        "message flow graphs are made from a graph of one node type, not from a bipartite "
        "graph or a block");
    Array<Index> rows(seeds.begin(), seeds.end());
    const int rank = graph.comm.rank();
    const Index first = graph.dst_book.begin(rank), last = graph.dst_book.end(rank);
    IndexSet seen(last - first);
    for (Index& seed : rows) {
      require<InputError>(0 <= seed && seed < graph.dst_book.num_nodes(), "seed ", seed,
                          " is no node, expected ", index_range(graph.dst_book.num_nodes()));
      require<InputError>(first <= seed && seed < last, "seed ", seed, " of rank ", rank,
                          " is a node of rank ", graph.dst_book.owner(seed));
      require<InputError>(!seen.contains(seed - first), "seed ", seed, " is given twice");
      seed -= first;
      seen.insert(seed);
    }
    return rows;
  });
}

LayerGraph make_layer(const ShardedGraph& whole, const Array<Index>& dst_rows, const KeptEdges& kept) {
  return whole.topology->comm.agree([&] { return Layer(whole, dst_rows, kept).make(/*is_subgraph=*/false); });
}

LayerGraph make_subgraph(const ShardedGraph& whole, const Array<Index>& rows, const KeptEdges& kept) {
  return whole.topology->comm.agree([&] { return Layer(whole, rows, kept).make(/*is_subgraph=*/true); });
}

LayerGraph make_subgraph(const ShardedGraph& whole, const Array<Index>& rows, const KeptEdges& kept,
                         FunctionRef<double(Index)> factor) {
  return whole.topology->comm.agree(
      [&] { return Layer(whole, rows, kept).make(/*is_subgraph=*/true, &factor); });
}

KeptEdges all_in_edges(const ShardedGraph& whole, const Array<Index>& dst_rows) {
  const Array<Index>& in_degrees = whole.degrees.in->get();
  KeptEdges kept;
  kept.begin.assign(dst_rows.size() + 1, 0);
  for (Index i = 0; i < std::ssize(dst_rows); ++i)
    kept.begin[i + 1] = kept.begin[i] + in_degrees[dst_rows[i]];
  check_count(kept.begin.back());
  kept.edge.resize(static_cast<std::size_t>(kept.begin.back()));
  Array<Index> next(kept.begin.begin(), kept.begin.end() - 1);
  for (const GraphShard* shard : {&whole.topology->local, &whole.topology->remote})
    for_edges_to(dst_rows, *shard,
                 [&](Index i, Index k) { kept.edge[next[i]++] = static_cast<local_index>(shard->edge(k)); });
  return kept;
}

}}  // namespace sar
