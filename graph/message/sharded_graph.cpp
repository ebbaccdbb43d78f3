#include <sar/core/error.hpp>
#include <sar/core/trace.hpp>
#include <sar/graph/message/sharded_graph.hpp>

#include <oneapi/tbb/parallel_sort.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace sar::inline SAR_PRECISION {
namespace {

struct SortedEdges {
  Array<LocalEdge> edges;          ///< by (round, dst, src, id)
  std::vector<Index> round_begin;  ///< [P + 1]
};

void check_edges(const Communicator& comm, const PartitionBook& src_book, const PartitionBook& dst_book,
                 const EdgeList& edges, bool weighted) {
  const auto length = edges.src.size();
  require<InputError>(edges.dst.size() == length && edges.id.size() == length, "an edge list has ", length,
                      " sources, ", edges.dst.size(), " destinations and ", edges.id.size(), " ids");
  require<InputError>(edges.weight.size() == (weighted ? length : 0), "an edge list has ", length,
                      " edges and ", edges.weight.size(), " weights");
  const Index first = dst_book.begin(comm.rank());
  const Index last = dst_book.end(comm.rank());
  for (std::size_t k = 0; k < length; ++k) {
    require<InputError>(0 <= edges.src[k] && edges.src[k] < src_book.num_nodes(), "edge ", edges.id[k],
                        " comes from node ", edges.src[k], ", but there are ", src_book.num_nodes(),
                        " source nodes");
    require<InputError>(first <= edges.dst[k] && edges.dst[k] < last, "edge ", edges.id[k], " goes to node ",
                        edges.dst[k], ", but rank ", comm.rank(), " owns nodes ", first, " to ", last,
                        " (the end not included)");
  }
}

SortedEdges sort_edges(const ShardedGraph& graph, const EdgeList& list) {
  const Communicator& comm = graph.comm;
  const PartitionBook& src_book = graph.src_book;
  SortedEdges sorted;
  sorted.round_begin.assign(comm.size() + 1, 0);
  for (const Index u : list.src) ++sorted.round_begin[graph.round_of_owner(src_book.owner(u)) + 1];
  std::partial_sum(sorted.round_begin.begin(), sorted.round_begin.end(), sorted.round_begin.begin());

  sorted.edges.resize(list.size());
  std::vector<Index> next = sorted.round_begin;
  const Index first_dst = graph.dst_book.begin(comm.rank());
  for (std::size_t k = 0; k < list.src.size(); ++k) {
    const int owner = src_book.owner(list.src[k]);
    sorted.edges[next[graph.round_of_owner(owner)]++] = {
        static_cast<local_index>(list.dst[k] - first_dst),
        static_cast<local_index>(list.src[k] - src_book.begin(owner)), list.id[k],
        list.weight.empty() ? real{1} : list.weight[k]};
  }
  for (int r = 0; r < comm.size(); ++r) {
    const auto begin = sorted.edges.begin() + sorted.round_begin[r];
    const auto end = sorted.edges.begin() + sorted.round_begin[r + 1];
    const auto before = [](const LocalEdge& a, const LocalEdge& b) {
      return std::tie(a.dst, a.src, a.id) < std::tie(b.dst, b.src, b.id);
    };
#if defined(SAR_THREAD_SANITIZER)  // cannot be told in which order oneTBB's tasks run
    std::sort(begin, end, before);
#else
    // by itself, as the loops of parallel_for()
    tbb::task_group_context context(tbb::task_group_context::isolated);
    tbb::task_group group(context);
    tbb::this_task_arena::isolate(
        [&] { group.run_and_wait([&] { tbb::parallel_sort(begin, end, before); }); });
#endif
  }
  return sorted;
}

Array<Index> ids_or_range(Array<Index> ids, const PartitionBook& book, int rank, const char* what) {
  const Index n = book.num_nodes(rank);
  require<InputError>(ids.empty() || static_cast<Index>(ids.size()) == n, ids.size(), " original ids for ", n,
                      " ", what, " nodes");
  if (ids.empty()) {
    ids.resize(n);
    std::iota(ids.begin(), ids.end(), book.begin(rank));
  }
  return ids;
}

}  // namespace

ShardedGraph::ShardedGraph(const Communicator& communicator, const PartitionBook& sources,
                           const PartitionBook& destinations, EdgeList edges, bool prefix,
                           Array<Index> ids_of_sources, Array<Index> ids_of_destinations)
    : comm(communicator), src_book(sources), dst_book(destinations), is_block(prefix) {
  const TraceScope scope("construct graph", TraceKind::compute);
  comm.agree([&] { build(std::move(edges), std::move(ids_of_sources), std::move(ids_of_destinations)); });
}

void ShardedGraph::build(EdgeList edges, Array<Index> ids_of_sources, Array<Index> ids_of_destinations) {
  const bool weighted = comm.all_reduce(edges.weight.empty() ? 0 : 1, ReduceOp::max) == 1;
  check_books();
  src_ids = ids_or_range(std::move(ids_of_sources), src_book, comm.rank(), "source");
  dst_ids = ids_or_range(std::move(ids_of_destinations), dst_book, comm.rank(), "destination");
  check_edges(comm, src_book, dst_book, edges, weighted);
  ask_owners(make_shards(std::move(edges), weighted));
  count_in_degrees();
  count_out_degrees();
}

void ShardedGraph::check_books() const {
  const int p = comm.rank();
  const int size = comm.size();
  require<InputError>(src_book.num_parts() == size && dst_book.num_parts() == size, "a graph in ",
                      src_book.num_parts(), " parts of sources and ", dst_book.num_parts(),
                      " of destinations on ", size, " ranks");
  for (int q = 0; q < size; ++q)
    require<InputError>(src_book.num_nodes(q) < std::numeric_limits<local_index>::max() &&
                            dst_book.num_nodes(q) < std::numeric_limits<local_index>::max(),
                        "rank ", q, " owns 2^31 nodes or more: use more ranks");
  require<InputError>(!is_block || dst_book.num_nodes(p) <= src_book.num_nodes(p), "rank ", p, " owns ",
                      dst_book.num_nodes(p), " destinations, which cannot be the first of its ",
                      src_book.num_nodes(p), " sources");
}

std::vector<Array<local_index>> ShardedGraph::make_shards(EdgeList edges, bool weighted) {
  const int p = comm.rank();
  const int size = comm.size();
  std::vector<Array<local_index>> wanted(size);
  const SortedEdges sorted = sort_edges(*this, edges);
  edges = {};
  for (int r = 0; r < size; ++r) {
    const int owner = owner_in_round(r);
    const Index begin = sorted.round_begin[r];
    GraphShard shard = build_shard(sorted.edges.data() + begin, sorted.round_begin[r + 1] - begin, begin,
                                   dst_book.num_nodes(p), src_book.num_nodes(owner), r > 0, wanted[owner]);
    if (r == 0)
      local = std::move(shard);
    else
      remote.push_back(std::move(shard));
  }
  Array<Index> ids(sorted.edges.size());
  std::transform(sorted.edges.begin(), sorted.edges.end(), ids.begin(),
                 [](const LocalEdge& edge) { return edge.id; });
  set_edge_ids(std::move(ids));
  if (weighted) {
    edge_weight = Tensor(Shape{static_cast<Index>(sorted.edges.size())});
    std::transform(sorted.edges.begin(), sorted.edges.end(), edge_weight.data(),
                   [](const LocalEdge& edge) { return edge.weight; });
  }
  return wanted;
}

void ShardedGraph::ask_owners(const std::vector<Array<local_index>>& wanted) {
  const int size = comm.size();
  Array<local_index> request;
  std::vector<Index> counts;
  for (const auto& rows : wanted) {
    request.insert(request.end(), rows.begin(), rows.end());
    counts.push_back(static_cast<Index>(rows.size()));
  }
  const auto requested =
      comm.all_to_all_v<local_index>(std::span<const local_index>(request.data(), request.size()), counts);
  std::vector<Index> begin(size + 1, 0);
  std::partial_sum(requested.counts.begin(), requested.counts.end(), begin.begin() + 1);
  for (int r = 1; r < size; ++r) {
    HaloRound round;
    round.reader = reader_in_round(r);
    round.owner = owner_in_round(r);
    round.recv_rows = remote[r - 1].num_src_rows;
    round.send_rows.assign(requested.values.begin() + begin[round.reader],
                           requested.values.begin() + begin[round.reader + 1]);
    max_round_rows = std::max(max_round_rows, round.recv_rows);
    rounds.push_back(std::move(round));
  }
  max_round_rows = comm.all_reduce(max_round_rows, ReduceOp::max);
  num_global_edges = comm.all_reduce(num_edges());
}

void ShardedGraph::count_in_degrees() {
  in_degrees.assign(local.num_dst, 0);
  const auto count_in = [&](const GraphShard& shard) {
    for (Index i = 0; i < shard.num_rows(); ++i)
      in_degrees[shard.dst_row(i)] += shard.row_begin[i + 1] - shard.row_begin[i];
  };
  count_in(local);
  for (const GraphShard& shard : remote) count_in(shard);
  inverse_in_degrees.resize(in_degrees.size());
  std::transform(in_degrees.begin(), in_degrees.end(), inverse_in_degrees.begin(),
                 [](Index degree) { return degree > 0 ? real{1} / static_cast<real>(degree) : real{0}; });
}

void ShardedGraph::count_out_degrees() {
  // Each reader tells the owners how often it uses their rows.
  const int size = comm.size();
  out_degrees.assign(local.num_src_rows, 0);
  for (const local_index u : local.src) ++out_degrees[u];
  Array<Index> uses;
  std::vector<Index> counts(size, 0);
  for (int q = 0; q < size; ++q) {
    if (q == comm.rank()) continue;
    const GraphShard& shard = remote[round_of_owner(q) - 1];
    const auto first = static_cast<Index>(uses.size());
    uses.resize(uses.size() + shard.num_src_rows);
    std::fill(uses.begin() + first, uses.end(), 0);
    for (const local_index u : shard.src) ++uses[first + u];
    counts[q] = shard.num_src_rows;
  }
  const auto used = comm.all_to_all_v<Index>(std::span<const Index>(uses.data(), uses.size()), counts);
  std::vector<Index> begin(size + 1, 0);
  std::partial_sum(used.counts.begin(), used.counts.end(), begin.begin() + 1);
  for (const HaloRound& round : rounds)
    for (std::size_t i = 0; i < round.send_rows.size(); ++i)
      out_degrees[round.send_rows[i]] += used.values[begin[round.reader] + i];
}

Index ShardedGraph::num_edges() const noexcept {
  const GraphShard& last = remote.empty() ? local : remote.back();
  return last.first_edge + last.num_edges();
}

const Array<Index>& ShardedGraph::edge_ids() const {
  require<InputError>(edge_ids_.has_value(),
                      "this operation reads the ids of the graph's edges, which drop_edge_ids() has dropped");
  return *edge_ids_;
}

std::size_t ShardedGraph::bytes() const noexcept {
  std::size_t bytes = local.bytes() + inverse_in_degrees.capacity() * sizeof(real);
  for (const GraphShard& shard : remote) bytes += shard.bytes();
  if (merged_ != nullptr) bytes += merged_->bytes();
  for (const HaloRound& round : rounds) bytes += round.send_rows.capacity() * sizeof(local_index);
  for (const Array<Index>* array : {&src_ids, &dst_ids, &in_degrees, &out_degrees})
    bytes += array->capacity() * sizeof(Index);
  if (edge_ids_) bytes += edge_ids_->capacity() * sizeof(Index);
  for (const auto& of_degree : row_factors)
    for (const RowFactors& factors : of_degree)
      for (const Tensor* x : {&factors.rows, &factors.halo})
        if (x->defined()) bytes += x->bytes();
  if (src_in_degrees) bytes += src_in_degrees->capacity() * sizeof(Index);
  return bytes;
}

const GraphShard& ShardedGraph::merged() const {
  std::call_once(merged_once_,
                 [this] { merged_ = std::make_unique<GraphShard>(merge_shards(remote, local.num_dst)); });
  return *merged_;
}

}  // namespace sar
