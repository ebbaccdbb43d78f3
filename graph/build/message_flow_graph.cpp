#include <sar/core/error.hpp>
#include <sar/core/trace.hpp>
#include <sar/graph/build/message_flow_graph.hpp>
#include <sar/graph/message/sharded_graph.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

template <class T>
std::span<const T> as_span(const Array<T>& values) {
  return {values.data(), values.size()};
}

/// column[rows[i]] for each i
Array<Index> select(const Array<Index>& column, const Array<Index>& rows) {
  Array<Index> selected(rows.size());
  std::transform(rows.begin(), rows.end(), selected.begin(), [&](Index row) { return column[row]; });
  return selected;
}

Tensor select(const Tensor& column, const Array<Index>& rows) {
  if (!column.defined()) return {};
  Tensor selected(Shape{static_cast<Index>(rows.size())});
  std::transform(rows.begin(), rows.end(), selected.data(), [&](Index row) { return column.data()[row]; });
  return selected;
}

/// visit(i, k) for the edges k of the shard that go to rows[i].
template <class Visit>
void for_edges_to(const Array<Index>& rows, const GraphShard& shard, const Visit& visit) {
  if (shard.num_edges() == 0) return;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto row = rows[i];
    if (!shard.dst_rows.empty()) {
      const auto found = std::lower_bound(shard.dst_rows.begin(), shard.dst_rows.end(), row);
      if (found == shard.dst_rows.end() || *found != row) continue;
      row = found - shard.dst_rows.begin();
    }
    for (Index k = shard.row_begin[row]; k < shard.row_begin[row + 1]; ++k) visit(static_cast<Index>(i), k);
  }
}

/// Makes the graph of one layer from its destinations.
class Layer {
 public:
  Layer(const ShardedGraph& whole, const Array<Index>& dst_rows)
      : whole_(whole), comm_(whole.comm), dst_rows_(dst_rows) {}

  /// The layer's graph; src_rows() and edge_rows() are known afterwards. Collective.
  std::shared_ptr<ShardedGraph> make() {
    find_halo_sources();
    const auto requested = comm_.all_to_all_v<local_index>(as_span(used_), counts_);
    const Array<local_index> numbers = number_sources(requested);
    const auto replies = comm_.all_to_all_v<local_index>(as_span(numbers), requested.counts);
    const PartitionBook src_book = book(src_rows_.size()), dst_book = book(dst_rows_.size());
    EdgeList edges = renumbered_edges(src_book, dst_book, replies.values);
    auto layer =
        std::make_shared<ShardedGraph>(comm_, src_book, dst_book, std::move(edges), true,
                                       select(whole_.src_ids, src_rows_), select(whole_.dst_ids, dst_rows_));
    edge_rows_ = std::exchange(layer->edge_ids, {});
    layer->edge_ids = select(whole_.edge_ids, edge_rows_);
    layer->edge_weight = select(whole_.edge_weight, edge_rows_);
    layer->src_in_degrees = select(whole_.in_degrees, src_rows_);
    layer->out_degrees = select(whole_.out_degrees, src_rows_);
    return layer;
  }
  Array<Index>& src_rows() { return src_rows_; }
  Array<Index>& edge_rows() { return edge_rows_; }

 private:
  [[nodiscard]] const GraphShard& shard_from(int owner) const {
    const int round = (comm_.rank() - owner + comm_.size()) % comm_.size();
    return round == 0 ? whole_.local : whole_.remote[round - 1];
  }
  /// The rows of this rank that `reader` reads in the whole graph.
  [[nodiscard]] const Array<local_index>& rows_read_by(int reader) const {
    return whole_.rounds[(reader - comm_.rank() + comm_.size()) % comm_.size() - 1].send_rows;
  }

  /// Finds the source rows of the remote shards that the destinations need, ascending: used_, position_.
  void find_halo_sources() {
    counts_.assign(comm_.size(), 0);
    position_.resize(comm_.size());
    for (int q = 0; q < comm_.size(); ++q) {
      if (q == comm_.rank()) continue;
      const GraphShard& shard = shard_from(q);
      Array<local_index>& position = position_[q];
      position.assign(shard.num_src_rows, -1);
      for_edges_to(dst_rows_, shard, [&](Index, Index k) { position[shard.src[k]] = 0; });
      const std::size_t before = used_.size();
      for (Index u = 0; u < shard.num_src_rows; ++u) {
        if (position[u] < 0) continue;
        position[u] = static_cast<local_index>(used_.size() - before);
        used_.push_back(static_cast<local_index>(u));
      }
      counts_[q] = static_cast<Index>(used_.size() - before);
    }
  }

  /// Numbers this rank's sources: the destinations first, then what they and the readers need. Returns the
  /// numbers in the layer of the rows that the readers asked for.
  Array<local_index> number_sources(const Communicator::Received<local_index>& requested) {
    constexpr local_index unused = -1, used = -2;
    number_.assign(whole_.local.num_src_rows, unused);
    src_rows_ = dst_rows_;
    for (std::size_t i = 0; i < dst_rows_.size(); ++i) number_[dst_rows_[i]] = static_cast<local_index>(i);
    const auto use = [&](Index row) {
      if (number_[row] == unused) number_[row] = used;
    };
    for_edges_to(dst_rows_, whole_.local, [&](Index, Index k) { use(whole_.local.src[k]); });
    // A request is a position among the rows that its sender reads in the whole graph.
    Array<local_index> rows(requested.values.begin(), requested.values.end());
    auto row = rows.begin();
    for (int q = 0; q < comm_.size(); ++q)
      for (Index i = 0; i < requested.counts[q]; ++i, ++row) use(*row = rows_read_by(q)[*row]);
    for (Index u = 0; u < whole_.local.num_src_rows; ++u) {
      if (number_[u] != used) continue;
      number_[u] = static_cast<local_index>(src_rows_.size());
      src_rows_.push_back(u);
    }
    for (local_index& r : rows) r = number_[r];
    return rows;
  }

  /// Who owns how many nodes of the layer. Collective.
  [[nodiscard]] PartitionBook book(std::size_t my_nodes) const {
    std::vector<Index> offsets{0};
    for (const Index count : comm_.all_gather(static_cast<Index>(my_nodes)))
      offsets.push_back(offsets.back() + count);
    return PartitionBook(std::move(offsets));
  }

  /// The edges between the layer's nodes. Their ids are this rank's edge rows, which sort as edge ids do.
  [[nodiscard]] EdgeList renumbered_edges(const PartitionBook& src_book, const PartitionBook& dst_book,
                                          const std::vector<local_index>& replies) const {
    Index num_edges = 0;
    const auto for_edges = [&](const auto& visit) {
      auto numbers = replies.begin();
      for (int q = 0; q < comm_.size(); ++q) {
        const GraphShard& shard = shard_from(q);
        for_edges_to(dst_rows_, shard, [&](Index i, Index k) {
          const Index u = shard.src[k];
          visit(src_book.begin(q) + (q == comm_.rank() ? number_[u] : numbers[position_[q][u]]),
                dst_book.begin(comm_.rank()) + i, shard.edge(k));
        });
        numbers += counts_[q];
      }
    };
    for_edges([&](Index, Index, Index) { ++num_edges; });
    EdgeList edges;
    for (Array<Index>* column : {&edges.src, &edges.dst, &edges.id}) column->reserve(num_edges);
    for_edges([&](Index src, Index dst, Index row) {
      edges.src.push_back(src);
      edges.dst.push_back(dst);
      edges.id.push_back(row);
    });
    return edges;
  }

  const ShardedGraph& whole_;
  const Communicator& comm_;
  const Array<Index>& dst_rows_;
  Array<Index> src_rows_, edge_rows_;
  Array<local_index> used_;                   // what each owner is asked for, one owner after the other
  std::vector<Index> counts_;                 // how much of that each owner is asked for
  std::vector<Array<local_index>> position_;  // by owner: where a source row is in its part of used_, or -1
  Array<local_index> number_;                 // the number of each row of this rank as a source, or -1
};

/// The seeds as rows of this rank. Collective.
Array<Index> rows_of_seeds(const ShardedGraph& graph, std::span<const Index> seeds, int num_layers) {
  Array<Index> rows(seeds.begin(), seeds.end());
  graph.comm.agree([&] {  // before numbers of layers are compared
    require<InputError>(
        graph.is_homogeneous(),
        "message flow graphs are made from a graph of one kind of nodes, not from a bipartite "
        "graph or a block");
    require<InputError>(num_layers >= 1, "message flow graphs of ", num_layers,
                        " layers, expected at least 1");
    const int rank = graph.comm.rank();
    const Index first = graph.dst_book.begin(rank), last = graph.dst_book.end(rank);
    std::vector<bool> seen(last - first);
    for (Index& seed : rows) {
      require<InputError>(0 <= seed && seed < graph.dst_book.num_nodes(), "seed ", seed,
                          " is no node, expected ", index_range(graph.dst_book.num_nodes()));
      require<InputError>(first <= seed && seed < last, "seed ", seed, " of rank ", rank,
                          " is a node of rank ", graph.dst_book.owner(seed));
      require<InputError>(!seen[seed - first], "seed ", seed, " is given twice");
      seen[seed - first] = true;
      seed -= first;
    }
  });
  std::array<int, 2> layers{num_layers, -num_layers};
  graph.comm.all_reduce(std::span<int>(layers), ReduceOp::max);
  require<InputError>(layers[0] == -layers[1],
                      "message flow graphs of a different number of layers on different "
                      "ranks: ",
                      -layers[1], " to ", layers[0]);
  return rows;
}

}  // namespace

std::vector<MessageFlowGraph> construct_mfgs(const GraphShardManager& graph, std::span<const Index> seeds,
                                             int num_layers) {
  const TraceScope scope("construct_mfgs", TraceKind::compute);
  return graph.comm().agree([&] {
    const ShardedGraph& whole = *graph.shards();
    Array<Index> dst_rows = rows_of_seeds(whole, seeds, num_layers);
    std::vector<MessageFlowGraph> mfgs;
    for (int l = 0; l < num_layers; ++l) {  // the last layer first
      Layer layer(whole, dst_rows);
      GraphShardManager part(layer.make(), graph.options());
      Array<Index> src_rows = std::move(layer.src_rows());
      Array<Index> next = src_rows;
      mfgs.push_back(
          {std::move(part), std::move(src_rows), std::move(dst_rows), std::move(layer.edge_rows())});
      dst_rows = std::move(next);
    }
    std::reverse(mfgs.begin(), mfgs.end());
    return mfgs;
  });
}

}  // namespace sar
