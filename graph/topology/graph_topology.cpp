// SPDX-License-Identifier: MIT
#include <sar/comm/halo/halo_exchange.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
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

Array<Index> GraphTopology::with_halo(std::span<const Index> of_sources) const {
  const Array<Index> halo = fetch_halo(comm, of_sources, rounds());
  Array<Index> values;
  values.reserve(of_sources.size() + halo.size());
  values.insert(values.end(), of_sources.begin(), of_sources.end());
  values.insert(values.end(), halo.begin(), halo.end());
  return values;
}

const Array<Index>& GraphTopology::edge_ids() const {
  require<InputError>(has_edge_ids(),
                      "this operation reads the ids of the graph's edges, which drop_edge_ids() has dropped");
  return **shared_edge_ids;
}

std::size_t GraphTopology::bytes() const noexcept {
  std::size_t bytes = local.bytes() + remote.bytes() + used_by_others.bytes();
  for (const HaloRound& round : rounds()) bytes += round.send_rows.capacity() * sizeof(local_index);
  bytes += shared_src_ids->capacity() * sizeof(Index);
  if (shared_dst_ids != shared_src_ids) bytes += shared_dst_ids->capacity() * sizeof(Index);
  if (has_edge_ids()) bytes += edge_ids().capacity() * sizeof(Index);
  return bytes;
}

// A rank divides its in-edges by the owner of their source (counting sort), numbers the halo rows of each
// owner without gaps (DistinctIds), and sorts the local and the remote edges by destination, source and
// id, in parallel: O(E log E) time, and 24 bytes per edge besides the list.
//
// Then it sends each owner the rows that it reads (4 bytes per halo row), tells it with which halo number
// they begin, and how often it uses each (8 bytes per halo row).

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
DividedEdges divide_edges(const Communicator& comm, const PartitionBook& src_book,
                          const PartitionBook& dst_book, const EdgeList& list, const SharedHalo* halo) {
  const auto round_of = [&](int owner) { return (comm.rank() - owner + comm.size()) % comm.size(); };
  DividedEdges divided;
  std::vector<Index> round_begin(comm.size() + 1, 0);
  for (const Index u : list.src) ++round_begin[round_of(src_book.owner(u)) + 1];
  std::partial_sum(round_begin.begin(), round_begin.end(), round_begin.begin());

  divided.edges.resize(list.size());
  std::vector<Index> next = round_begin;
  const Index first_dst = dst_book.begin(comm.rank());
  for (std::size_t k = 0; k < list.src.size(); ++k) {
    const int owner = src_book.owner(list.src[k]);
    divided.edges[next[round_of(owner)]++] = {static_cast<local_index>(list.dst[k] - first_dst),
                                              static_cast<local_index>(list.src[k] - src_book.begin(owner)),
                                              list.id[k], list.weight.empty() ? real{1} : list.weight[k]};
  }
  LocalEdge* const edges = divided.edges.data();
  divided.num_local = round_begin[1];
  divided.wanted.resize(comm.size());
  for (int r = 1; r < comm.size(); ++r) {
    const int owner = (comm.rank() - r + comm.size()) % comm.size();
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
HaloRounds make_rounds(const Communicator& comm, const std::vector<Array<local_index>>& wanted) {
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
  return std::make_shared<const Array<Index>>(consecutive(book.begin(rank), n));
}

void check_books(const Communicator& comm, const PartitionBook& src_book, const PartitionBook& dst_book,
                 bool is_block) {
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

/// A rank's edges in their shards, and what goes with them.
struct Shards {
  GraphShard local, remote;
  Array<Index> edge_ids;
  Tensor weight;
  std::vector<Array<local_index>> wanted;  ///< rows of each owner that this rank reads
};

Shards make_shards(const Communicator& comm, const PartitionBook& src_book, const PartitionBook& dst_book,
                   EdgeList list, bool weighted, const SharedHalo* halo) {
  DividedEdges divided = divide_edges(comm, src_book, dst_book, list, halo);
  list = {};
  const Array<LocalEdge>& edges = divided.edges;
  const Index num_dst = dst_book.num_nodes(comm.rank());
  Shards shards;
  shards.local = build_shard(edges.data(), divided.num_local, 0, num_dst, src_book.num_nodes(comm.rank()),
                             /*every_row=*/true);
  shards.remote = build_shard(edges.data() + divided.num_local, std::ssize(edges) - divided.num_local,
                              divided.num_local, num_dst, divided.halo_rows, /*every_row=*/false);
  shards.edge_ids.resize(edges.size());
  std::ranges::transform(edges, shards.edge_ids.begin(), &LocalEdge::id);
  if (weighted) {
    shards.weight = Tensor(Shape{std::ssize(edges)});
    std::ranges::transform(edges, shards.weight.data(), &LocalEdge::weight);
  }
  shards.wanted = std::move(divided.wanted);
  return shards;
}

}  // namespace

RowCounts count_uses(const Communicator& comm, const GraphShard& remote,
                     const std::vector<HaloRound>& rounds) {
  const int size = comm.size(), rank = comm.rank();
  Array<Index> of_halo(remote.num_src_rows, 0), uses;
  for (const local_index u : remote.src) ++of_halo[u];
  std::vector<Index> sent(size, 0), arriving(size, 0);
  for (int q = 0; q < size; ++q) {
    if (q == rank) continue;
    const HaloRound& round = round_from(rounds, rank, q);
    const auto first = of_halo.begin() + round.first;
    uses.insert(uses.end(), first, first + round.recv_rows);
    sent[q] = round.recv_rows;
    arriving[q] = std::ssize(round_to(rounds, rank, q).send_rows);
  }
  const auto used = comm.all_to_all_v<Index>(uses, sent, arriving);
  const std::vector<Index> begin = offsets_of_sizes(arriving);
  RowCounts counts;
  for (const HaloRound& round : rounds)
    for (std::size_t i = 0; i < round.send_rows.size(); ++i)
      if (const Index count = used[begin[round.reader] + i]; count > 0)
        counts.append(round.send_rows[i], count);
  counts.shrink_to_fit();
  return counts;
}

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

std::shared_ptr<const GraphTopology> make_topology(const Communicator& comm, const PartitionBook& src_book,
                                                   const PartitionBook& dst_book, EdgeList edges,
                                                   bool is_block, SharedIds src_ids, SharedIds dst_ids,
                                                   const SharedHalo* halo) {
  const TraceScope scope("construct graph", TraceKind::compute);
  return comm.agree([&] {
    const bool weighted = comm.all_reduce(edges.weight.empty() ? 0 : 1, ReduceOp::max) == 1;
    check_books(comm, src_book, dst_book, is_block);
    src_ids = ids_or_range(std::move(src_ids), src_book, comm.rank(), "source");
    dst_ids = ids_or_range(std::move(dst_ids), dst_book, comm.rank(), "destination");
    check_edges(comm, src_book, dst_book, edges, weighted);
    Shards shards = make_shards(comm, src_book, dst_book, std::move(edges), weighted, halo);
    HaloRounds rounds = halo != nullptr ? halo->rounds : make_rounds(comm, shards.wanted);
    const Index num_edges = comm.all_reduce(std::ssize(shards.edge_ids));
    RowCounts used_by_others = count_uses(comm, shards.remote, *rounds);
    return std::make_shared<const GraphTopology>(GraphTopology{
        .comm = comm,
        .src_book = src_book,
        .dst_book = dst_book,
        .is_block = is_block,
        .shared_src_ids = std::move(src_ids),
        .shared_dst_ids = std::move(dst_ids),
        .shared_edge_ids = std::make_shared<std::optional<Array<Index>>>(std::move(shards.edge_ids)),
        .edge_weight = std::move(shards.weight),
        .num_global_edges = num_edges,
        .local = std::move(shards.local),
        .remote = std::move(shards.remote),
        .shared_rounds = std::move(rounds),
        .used_by_others = std::move(used_by_others)});
  });
}
}}  // namespace sar
