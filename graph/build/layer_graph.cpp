#include <sar/core/error.hpp>
#include <sar/core/index_set.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/row_blocks.hpp>
#include <sar/graph/build/layer_graph.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr Index grain = Index{1} << 12;  // rows or edges that one task takes

void check_count(Index edges) {
  require<InputError>(edges <= std::numeric_limits<local_index>::max(), "a layer has ", edges,
                      " edges on a rank, at most 2147483647 are possible: use more ranks");
}

/// column[rows[i]] for each i
template <class Column>
Column select(const Column& column, const Array<Index>& rows) {
  Column selected(rows.size());
  parallel_for(static_cast<Index>(rows.size()), grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) selected[i] = column[rows[i]];
  });
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

class Layer {
 public:
  Layer(const ShardedGraph& whole, const Array<Index>& dst_rows, const KeptEdges& kept)
      : whole_(whole), comm_(whole.comm), dst_rows_(dst_rows) {
    check_count(std::ssize(kept.edge));
    divide_by_round(kept);
  }

  LayerGraph make() {
    request_halo_rows();
    number_sources();
    number_halo_rows();
    const Sizes sizes = share_sizes();
    auto layer = std::make_shared<ShardedGraph>(comm_, sizes.src_book, sizes.dst_book);
    layer->num_global_edges = sizes.edges;
    layer->max_round_rows = sizes.round_rows;
    layer->src_ids = select(whole_.src_ids, src_rows_);
    layer->dst_ids = select(whole_.dst_ids, dst_rows_);
    make_shards(*layer);
    if (whole_.has_edge_ids()) layer->set_edge_ids(select(whole_.edge_ids(), edge_rows_));
    layer->edge_weight = select_numbers(whole_.edge_weight, edge_rows_);
    layer->src_in_degrees = select(whole_.in_degrees, src_rows_);
    layer->out_degrees = select(whole_.out_degrees, src_rows_);
    layer->count_in_degrees();
    return {std::move(layer), std::move(src_rows_), std::move(edge_rows_)};
  }

 private:
  struct Sizes {
    PartitionBook src_book, dst_book;
    Index edges, round_rows;
  };

  [[nodiscard]] int num_rounds() const { return comm_.size(); }
  [[nodiscard]] const GraphShard& shard(int round) const {
    return round == 0 ? whole_.local : whole_.remote[round - 1];
  }

  /// Sorts the edges by round, then destination, then source in the whole graph, then id: edges_,
  /// round_begin_. Edge rows are in this order for each destination.
  void divide_by_round(const KeptEdges& kept) {
    const auto num_dst = static_cast<Index>(dst_rows_.size());
    const Index blocks = (num_dst + grain - 1) / grain;
    const int rounds = num_rounds();
    std::vector<Index> count(static_cast<std::size_t>(blocks * rounds), 0);  // [rounds, blocks]
    const auto visit_block = [&](Index first, Index last, const auto& visit) {
      for (Index i = first; i < last; ++i) {
        int round = 0;
        for (Index k = kept.begin[i]; k < kept.begin[i + 1]; ++k) {
          const local_index row = kept.edge[k];
          while (row >= shard(round).first_edge + shard(round).num_edges()) ++round;
          visit(round, i, row);
        }
      }
    };
    const auto place = [&](int round, Index first) {
      return static_cast<std::size_t>(round * blocks + first / grain);
    };
    parallel_for(num_dst, grain, [&](Index first, Index last) {
      visit_block(first, last, [&](int round, Index, local_index) { ++count[place(round, first)]; });
    });
    std::exclusive_scan(count.begin(), count.end(), count.begin(), Index{0});
    for (int round = 0; round < rounds; ++round)
      round_begin_.push_back(blocks == 0 ? 0 : count[place(round, 0)]);
    round_begin_.push_back(static_cast<Index>(kept.edge.size()));
    edges_.resize(kept.edge.size());
    parallel_for(num_dst, grain, [&](Index first, Index last) {
      visit_block(first, last, [&](int round, Index i, local_index row) {
        const GraphShard& from = shard(round);
        edges_[count[place(round, first)]++] = {
            static_cast<local_index>(i), from.src[row - static_cast<local_index>(from.first_edge)], row};
      });
    });
  }

  /// visit(edge) for the edges of a round, in parallel.
  template <class Visit>
  void for_edges(int round, const Visit& visit) {
    const Index begin = round_begin_[round];
    parallel_for(round_begin_[round + 1] - begin, grain, [&](Index first, Index last) {
      for (Index k = begin + first; k < begin + last; ++k) visit(edges_[k]);
    });
  }

  /// Renumbers the sources of remote edges without gaps, and tells each owner which of the rows that this
  /// rank reads in the whole graph it reads in the layer: halo_rows_, requested_.
  void request_halo_rows() {
    halo_rows_.assign(static_cast<std::size_t>(num_rounds()), 0);
    std::vector<Array<local_index>> used(static_cast<std::size_t>(comm_.size()));
    for (int round = 1; round < num_rounds(); ++round) {
      if (round_begin_[round] == round_begin_[round + 1]) continue;
      IndexSet rows(shard(round).num_src_rows);
      for (Index k = round_begin_[round]; k < round_begin_[round + 1]; ++k) rows.insert(edges_[k].src);
      Array<local_index>& asked = used[static_cast<std::size_t>(whole_.owner_in_round(round))];
      rows.for_each([&](Index row) { asked.push_back(static_cast<local_index>(row)); });
      halo_rows_[static_cast<std::size_t>(round)] = static_cast<Index>(asked.size());
      rows.make_numbers();
      for_edges(round, [&](KeptEdge& edge) { edge.src = static_cast<local_index>(rows.number(edge.src)); });
    }
    Array<local_index> request;
    std::vector<Index> counts;
    for (const Array<local_index>& asked : used) {
      request.insert(request.end(), asked.begin(), asked.end());
      counts.push_back(static_cast<Index>(asked.size()));
    }
    requested_ = comm_.all_to_all_v<local_index>({request.data(), request.size()}, counts);
    asked_ = std::move(counts);
  }

  /// Numbers this rank's sources: the destinations first, then what they and the readers need, ascending.
  /// Local edges and requests have these numbers afterwards.
  void number_sources() {
    Array<local_index> number(static_cast<std::size_t>(whole_.local.num_src_rows));  // where in the layer
    IndexSet used(whole_.local.num_src_rows);
    for (Index k = 0; k < round_begin_[1]; ++k) used.insert(edges_[k].src);
    auto row = requested_.values.begin();
    for (int q = 0; q < comm_.size(); ++q) {
      const Index count = requested_.counts[static_cast<std::size_t>(q)];
      if (count == 0) continue;
      const auto& read = whole_.rounds[whole_.round_of_reader(q) - 1].send_rows;
      for (Index i = 0; i < count; ++i, ++row) used.insert(*row = read[*row]);
    }
    for (std::size_t i = 0; i < dst_rows_.size(); ++i) {
      const Index dst = dst_rows_[static_cast<Index>(i)];
      number[dst] = static_cast<local_index>(i);
      used.erase(dst);
    }
    src_rows_.reserve(dst_rows_.size() + static_cast<std::size_t>(used.size()));
    src_rows_ = dst_rows_;
    used.for_each([&](Index u) {
      number[u] = static_cast<local_index>(src_rows_.size());
      src_rows_.push_back(u);
    });
    for_edges(0, [&](KeptEdge& edge) { edge.src = number[edge.src]; });
    for (local_index& asked : requested_.values) asked = number[asked];
  }

  /// The owners answer with their numbers, by which a halo is sorted.
  void number_halo_rows() {
    const auto answers = comm_.all_to_all_v<local_index>(requested_.values, requested_.counts);
    auto requests = requested_.values.begin();
    for (const Index count : requested_.counts) {
      std::sort(requests, requests + count);
      requests += count;
    }
    std::vector<Index> begin(asked_.size() + 1, 0);
    std::partial_sum(asked_.begin(), asked_.end(), begin.begin() + 1);
    Array<local_index> order, place;
    for (int round = 1; round < num_rounds(); ++round) {
      const auto at = static_cast<std::size_t>(whole_.owner_in_round(round));
      const local_index* const numbers = answers.values.data() + begin[at];
      order.resize(static_cast<std::size_t>(asked_[at]));
      place.resize(order.size());
      std::iota(order.begin(), order.end(), local_index{0});
      std::sort(order.begin(), order.end(),
                [&](local_index a, local_index b) { return numbers[a] < numbers[b]; });
      for (std::size_t i = 0; i < order.size(); ++i)
        place[order[static_cast<Index>(i)]] = static_cast<local_index>(i);
      for_edges(round, [&](KeptEdge& edge) { edge.src = place[edge.src]; });
    }
  }

  /// What a rank knows of all others. Collective.
  [[nodiscard]] Sizes share_sizes() const {
    const Index round_rows = *std::max_element(halo_rows_.begin(), halo_rows_.end());
    const std::array<Index, 4> mine{static_cast<Index>(src_rows_.size()),
                                    static_cast<Index>(dst_rows_.size()), static_cast<Index>(edges_.size()),
                                    round_rows};
    std::vector<Index> src_offsets{0}, dst_offsets{0};
    Index edges = 0, most = 0;
    for (const std::array<Index, 4>& sizes : comm_.all_gather(mine)) {
      src_offsets.push_back(src_offsets.back() + sizes[0]);
      dst_offsets.push_back(dst_offsets.back() + sizes[1]);
      edges += sizes[2];
      most = std::max(most, sizes[3]);
    }
    return {PartitionBook(std::move(src_offsets)), PartitionBook(std::move(dst_offsets)), edges, most};
  }

  void make_shards(ShardedGraph& layer) {
    edge_rows_.resize(edges_.size());
    std::vector<Index> begin(requested_.counts.size() + 1, 0);
    std::partial_sum(requested_.counts.begin(), requested_.counts.end(), begin.begin() + 1);
    for (int round = 0; round < num_rounds(); ++round) {
      GraphShard part = make_shard(round);
      if (round == 0) {
        layer.local = std::move(part);
        continue;
      }
      layer.remote.push_back(std::move(part));
      HaloRound rows;
      rows.owner = whole_.owner_in_round(round);
      rows.reader = whole_.reader_in_round(round);
      rows.recv_rows = halo_rows_[static_cast<std::size_t>(round)];
      rows.send_rows.assign(requested_.values.begin() + begin[static_cast<std::size_t>(rows.reader)],
                            requested_.values.begin() + begin[static_cast<std::size_t>(rows.reader) + 1]);
      layer.rounds.push_back(std::move(rows));
    }
  }

  /// Sources have other numbers than in the whole graph.
  void sort_sources(const GraphShard& part) {
    const auto less = [](const KeptEdge& a, const KeptEdge& b) {
      return a.src != b.src ? a.src < b.src : a.row < b.row;
    };
    const auto edges = edges_.begin() + part.first_edge;
    for_blocks_of_work(
        part.num_rows(), part.num_rows() + part.row_begin[part.num_rows()], grain,
        [&](Index i) { return part.row_begin[i] + i; },
        [&](Index first, Index last) {
          for (Index i = first; i < last; ++i)
            std::sort(edges + part.row_begin[i], edges + part.row_begin[i + 1], less);
        });
  }

  GraphShard make_shard(int round) {
    const Index begin = round_begin_[round], edges = round_begin_[round + 1] - begin;
    GraphShard part;
    part.num_dst = static_cast<Index>(dst_rows_.size());
    part.num_src_rows =
        round == 0 ? static_cast<Index>(src_rows_.size()) : halo_rows_[static_cast<std::size_t>(round)];
    part.first_edge = begin;
    list_rows(
        part, edges, [&](Index k) { return edges_[begin + k].dst; }, /*compress=*/round > 0);
    sort_sources(part);
    part.src.resize(static_cast<std::size_t>(edges));
    parallel_for(edges, grain, [&](Index first, Index last) {
      for (Index k = first; k < last; ++k) {
        part.src[k] = edges_[begin + k].src;
        edge_rows_[begin + k] = edges_[begin + k].row;
      }
    });
    return part;
  }

  const ShardedGraph& whole_;
  const Communicator& comm_;
  const Array<Index>& dst_rows_;
  Array<KeptEdge> edges_;
  std::vector<Index> round_begin_;                 // [rounds + 1]
  std::vector<Index> halo_rows_;                   // [rounds]
  std::vector<Index> asked_;                       // rows of each owner that this rank reads
  Communicator::Received<local_index> requested_;  // and those of this rank that the others read
  Array<Index> src_rows_, edge_rows_;
};

/// visit(i, k) for the edges k of the shard that go to rows[i].
template <class Visit>
void for_edges_to(const Array<Index>& rows, const GraphShard& shard, const Visit& visit) {
  if (shard.num_edges() == 0) return;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto row = rows[static_cast<Index>(i)];
    if (!shard.dst_rows.empty()) {
      const auto found = std::lower_bound(shard.dst_rows.begin(), shard.dst_rows.end(), row);
      if (found == shard.dst_rows.end() || *found != row) continue;
      row = found - shard.dst_rows.begin();
    }
    for (Index k = shard.row_begin[row]; k < shard.row_begin[row + 1]; ++k) visit(static_cast<Index>(i), k);
  }
}

}  // namespace

Array<Index> rows_of_seeds(const ShardedGraph& graph, std::span<const Index> seeds) {
  return graph.comm.agree([&] {
    require<InputError>(
        graph.is_homogeneous(),
        "message flow graphs are made from a graph of one kind of nodes, not from a bipartite "
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
  return whole.comm.agree([&] { return Layer(whole, dst_rows, kept).make(); });
}

KeptEdges all_in_edges(const ShardedGraph& whole, const Array<Index>& dst_rows) {
  KeptEdges kept;
  kept.begin.assign(dst_rows.size() + 1, 0);
  for (std::size_t i = 0; i < dst_rows.size(); ++i)
    kept.begin[static_cast<Index>(i) + 1] =
        kept.begin[static_cast<Index>(i)] + whole.in_degrees[dst_rows[static_cast<Index>(i)]];
  check_count(kept.begin.back());
  kept.edge.resize(static_cast<std::size_t>(kept.begin.back()));
  Array<Index> next(kept.begin.begin(), kept.begin.end() - 1);
  const auto take = [&](const GraphShard& shard) {
    for_edges_to(dst_rows, shard,
                 [&](Index i, Index k) { kept.edge[next[i]++] = static_cast<local_index>(shard.edge(k)); });
  };
  take(whole.local);
  for (const GraphShard& shard : whole.remote) take(shard);
  return kept;
}

}  // namespace sar
