// A rank divides its in-edges by the owner of their source (counting sort), numbers the halo rows of each
// owner without gaps (DistinctIds), and sorts the local and the remote edges by destination, source and
// id, in parallel: O(E log E) time, and 24 bytes per edge besides the list.
//
// Then it sends each owner the rows that it reads (4 bytes per halo row), tells it with which halo number
// they begin, and how often it uses each (8 bytes per halo row).
#include <sar/core/error.hpp>
#include <sar/core/memory/distinct_ids.hpp>
#include <sar/core/memory/index_set.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/topology/graph_topology.hpp>

#include <oneapi/tbb/parallel_sort.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The edges from this rank's own nodes, then the others.
struct DividedEdges {
  Array<LocalEdge> edges;
  Index num_local = 0;
  std::vector<Array<local_index>> wanted;  ///< rows of each owner that the others read
  Index halo_rows = 0;
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

/// Numbers the halo rows that edges [begin, end) of a round read, and the edges' sources so, from `first`.
/// Returns the owner's row behind each. `halo`: the rows that other graphs read, too; null where there are
/// none. Time and memory follow the rows read, not the rows of the owner.
Array<local_index> number_round(LocalEdge* begin, LocalEdge* end, Index num_owner_rows, Index first,
                                const Array<local_index>* halo) {
  if (begin == end) return halo != nullptr ? *halo : Array<local_index>{};
  DistinctIds rows(num_owner_rows);
  if (halo != nullptr)
    for (const local_index row : *halo) rows.insert(row);
  else
    for (const LocalEdge* edge = begin; edge != end; ++edge) rows.insert(edge->src);
  rows.make_numbers();
  require<InputError>(first + rows.size() < std::numeric_limits<local_index>::max(),
                      "a rank reads 2^31 rows of others or more: use more ranks");
  const Array<Index> members = rows.members();
  for (LocalEdge* edge = begin; edge != end; ++edge)
    edge->src = static_cast<local_index>(first + rows.number(edge->src));
  return Array<local_index>(members.begin(), members.end());
}

void sort_edges(LocalEdge* begin, LocalEdge* end) {
  const auto before = [](const LocalEdge& a, const LocalEdge& b) {
    return std::tie(a.dst, a.src, a.id) < std::tie(b.dst, b.src, b.id);
  };
#if defined(SAR_THREAD_SANITIZER)  // cannot be told in which order oneTBB's tasks run
  std::sort(begin, end, before);
#else
  // by itself, as the loops of parallel_for()
  tbb::task_group_context context(tbb::task_group_context::isolated);
  tbb::task_group group(context);
  tbb::this_task_arena::isolate([&] { group.run_and_wait([&] { tbb::parallel_sort(begin, end, before); }); });
#endif
}

/// Sorted by destination, source (halo rows in rotation order) and id.
DividedEdges divide_edges(const GraphTopology& graph, const EdgeList& list, const SharedHalo* halo) {
  const Communicator& comm = graph.comm;
  const PartitionBook& src_book = graph.src_book;
  DividedEdges divided;
  std::vector<Index> round_begin(comm.size() + 1, 0);
  for (const Index u : list.src) ++round_begin[graph.round_of_owner(src_book.owner(u)) + 1];
  std::partial_sum(round_begin.begin(), round_begin.end(), round_begin.begin());

  divided.edges.resize(list.size());
  std::vector<Index> next = round_begin;
  const Index first_dst = graph.dst_book.begin(comm.rank());
  for (std::size_t k = 0; k < list.src.size(); ++k) {
    const int owner = src_book.owner(list.src[k]);
    divided.edges[next[graph.round_of_owner(owner)]++] = {
        static_cast<local_index>(list.dst[k] - first_dst),
        static_cast<local_index>(list.src[k] - src_book.begin(owner)), list.id[k],
        list.weight.empty() ? real{1} : list.weight[k]};
  }
  LocalEdge* const edges = divided.edges.data();
  divided.num_local = round_begin[1];
  divided.wanted.resize(comm.size());
  for (int r = 1; r < comm.size(); ++r) {
    const int owner = graph.owner_in_round(r);
    divided.wanted[owner] =
        number_round(edges + round_begin[r], edges + round_begin[r + 1], src_book.num_nodes(owner),
                     divided.halo_rows, halo != nullptr ? &halo->rows[owner] : nullptr);
    divided.halo_rows += std::ssize(divided.wanted[owner]);
  }
  sort_edges(edges, edges + divided.num_local);
  sort_edges(edges + divided.num_local, edges + divided.edges.size());
  return divided;
}

/// The rounds in which a rank reads `wanted` rows of each owner: it tells the owners. Collective.
std::shared_ptr<const std::vector<HaloRound>> make_rounds(const Communicator& comm,
                                                          const std::vector<Array<local_index>>& wanted) {
  const int size = comm.size();
  Array<local_index> request;
  std::vector<Index> counts;
  for (const auto& rows : wanted) {
    request.insert(request.end(), rows.begin(), rows.end());
    counts.push_back(static_cast<Index>(rows.size()));
  }
  const auto requested =
      comm.all_to_all_v<local_index>(std::span<const local_index>(request.data(), request.size()), counts);
  const std::vector<Index> begin = offsets_of_sizes(requested.counts);
  std::vector<HaloRound> rounds;
  for (int r = 1; r < size; ++r) {
    HaloRound round;
    round.reader = (comm.rank() + r) % size;
    round.owner = (comm.rank() - r + size) % size;
    round.recv_rows = counts[round.owner];
    round.send_rows.assign(requested.values.begin() + begin[round.reader],
                           requested.values.begin() + begin[round.reader + 1]);
    rounds.push_back(std::move(round));
  }
  number_halo_rows(comm, rounds);
  return std::make_shared<const std::vector<HaloRound>>(std::move(rounds));
}

SharedIds ids_or_range(SharedIds ids, const PartitionBook& book, int rank, const char* what) {
  const Index n = book.num_nodes(rank);
  if (ids != nullptr && !ids->empty()) {
    require<InputError>(std::ssize(*ids) == n, ids->size(), " original ids for ", n, " ", what, " nodes");
    return ids;
  }
  Array<Index> range(static_cast<std::size_t>(n));
  std::iota(range.begin(), range.end(), book.begin(rank));
  return std::make_shared<const Array<Index>>(std::move(range));
}

}  // namespace

SharedHalo share_halo(const Communicator& comm, const PartitionBook& src_book,
                      std::span<const EdgeList* const> lists) {
  SharedHalo halo;
  comm.agree([&] {
    const Index begin = src_book.begin(comm.rank()), end = src_book.end(comm.rank());
    DistinctIds distinct(src_book.num_nodes());
    for (const EdgeList* edges : lists)
      for (const Index src : edges->src)
        if (src < begin || end <= src) distinct.insert(src);
    distinct.make_numbers();
    const Array<Index> ids = distinct.members();
    auto next = ids.begin();
    for (int owner = 0; owner < comm.size(); ++owner) {
      const auto last = std::lower_bound(next, ids.end(), src_book.end(owner));
      Array<local_index>& rows = halo.rows.emplace_back();
      rows.reserve(static_cast<std::size_t>(last - next));
      for (; next != last; ++next) rows.push_back(static_cast<local_index>(*next - src_book.begin(owner)));
    }
  });
  halo.rounds = make_rounds(comm, halo.rows);
  return halo;
}

GraphTopology::GraphTopology(const Communicator& communicator, const PartitionBook& sources,
                             const PartitionBook& destinations, EdgeList edges, bool prefix,
                             SharedIds ids_of_sources, SharedIds ids_of_destinations, const SharedHalo* halo)
    : GraphTopology(communicator, sources, destinations) {
  is_block = prefix;
  const TraceScope scope("construct graph", TraceKind::compute);
  comm.agree(
      [&] { build(std::move(edges), std::move(ids_of_sources), std::move(ids_of_destinations), halo); });
}

void GraphTopology::build(EdgeList edges, SharedIds ids_of_sources, SharedIds ids_of_destinations,
                          const SharedHalo* halo) {
  const bool weighted = comm.all_reduce(edges.weight.empty() ? 0 : 1, ReduceOp::max) == 1;
  check_books();
  shared_src_ids = ids_or_range(std::move(ids_of_sources), src_book, comm.rank(), "source");
  shared_dst_ids = ids_or_range(std::move(ids_of_destinations), dst_book, comm.rank(), "destination");
  check_edges(comm, src_book, dst_book, edges, weighted);
  const auto wanted = make_shards(std::move(edges), weighted, halo);
  shared_rounds = halo != nullptr ? halo->rounds : make_rounds(comm, wanted);
  num_global_edges = comm.all_reduce(num_edges());
  count_uses();
}

void GraphTopology::check_books() const {
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

std::vector<Array<local_index>> GraphTopology::make_shards(EdgeList edges, bool weighted,
                                                           const SharedHalo* halo) {
  DividedEdges divided = divide_edges(*this, edges, halo);
  edges = {};
  const Index num_dst = dst_book.num_nodes(comm.rank());
  const Index num_edges = std::ssize(divided.edges);
  local = build_shard(divided.edges.data(), divided.num_local, 0, num_dst, src_book.num_nodes(comm.rank()),
                      /*every_row=*/true);
  remote = build_shard(divided.edges.data() + divided.num_local, num_edges - divided.num_local,
                       divided.num_local, num_dst, divided.halo_rows, /*every_row=*/false);
  Array<Index> ids(divided.edges.size());
  std::ranges::transform(divided.edges, ids.begin(), &LocalEdge::id);
  set_edge_ids(std::move(ids));
  if (weighted) {
    edge_weight = Tensor(Shape{num_edges});
    std::ranges::transform(divided.edges, edge_weight.data(), &LocalEdge::weight);
  }
  return std::move(divided.wanted);
}

void GraphTopology::count_uses() {
  // Each reader tells the owners how often it uses their rows.
  const int size = comm.size();
  Array<Index> of_halo(remote.num_src_rows, 0), uses;
  for (const local_index u : remote.src) ++of_halo[u];
  std::vector<Index> sent(size, 0), arriving(size, 0);
  for (int q = 0; q < size; ++q) {
    if (q == comm.rank()) continue;
    const HaloRound& round = rounds()[round_of_owner(q) - 1];
    const auto first = of_halo.begin() + round.first;
    uses.insert(uses.end(), first, first + round.recv_rows);
    sent[q] = round.recv_rows;
    arriving[q] = std::ssize(rounds()[round_of_reader(q) - 1].send_rows);
  }
  const auto used = comm.all_to_all_v<Index>(uses, sent, arriving);
  const std::vector<Index> begin = offsets_of_sizes(arriving);
  for (const HaloRound& round : rounds())
    for (std::size_t i = 0; i < round.send_rows.size(); ++i)
      if (const Index count = used[begin[round.reader] + i]; count > 0)
        used_by_others.append(round.send_rows[i], count);
  used_by_others.shrink_to_fit();
}

Array<Index> GraphTopology::with_halo(std::span<const Index> of_sources) const {
  const int size = comm.size();
  Array<Index> sent;
  std::vector<Index> counts(size, 0), arriving(size, 0);
  for (int reader = 0; reader < size; ++reader) {
    if (reader == comm.rank()) continue;
    const HaloRound& round = rounds()[round_of_reader(reader) - 1];
    for (const local_index row : round.send_rows) sent.push_back(of_sources[row]);
    counts[reader] = std::ssize(round.send_rows);
    arriving[reader] = rounds()[round_of_owner(reader) - 1].recv_rows;
  }
  const auto received = comm.all_to_all_v<Index>(sent, counts, arriving);
  Array<Index> values(of_sources.begin(), of_sources.end());
  values.resize(of_sources.size() + static_cast<std::size_t>(remote.num_src_rows));
  auto from = received.begin();
  for (int owner = 0; owner < size; ++owner) {
    if (owner == comm.rank()) continue;
    const HaloRound& round = rounds()[round_of_owner(owner) - 1];
    std::copy_n(from, round.recv_rows, values.begin() + std::ssize(of_sources) + round.first);
    from += round.recv_rows;
  }
  return values;
}

const Array<Index>& GraphTopology::edge_ids() const {
  require<InputError>(edge_ids_.has_value(),
                      "this operation reads the ids of the graph's edges, which drop_edge_ids() has dropped");
  return *edge_ids_;
}

std::size_t GraphTopology::bytes() const noexcept {
  std::size_t bytes = local.bytes() + remote.bytes() + used_by_others.bytes();
  for (const HaloRound& round : rounds()) bytes += round.send_rows.capacity() * sizeof(local_index);
  bytes += shared_src_ids->capacity() * sizeof(Index);
  if (shared_dst_ids != shared_src_ids) bytes += shared_dst_ids->capacity() * sizeof(Index);
  if (edge_ids_) bytes += edge_ids_->capacity() * sizeof(Index);
  return bytes;
}

}}  // namespace sar
