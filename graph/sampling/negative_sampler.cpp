// SPDX-License-Identifier: MIT

// The sources of a rank's in-edges lie destination after destination, those of a destination in order: a
// counting sort and a sort of each row. A question goes to the owner of its destination, who answers with a
// binary search among its D sources: O(log D) reads of 8 bytes in one row.
#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/comm/rows/node_directory.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/negative_sampler.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

EdgeSet::EdgeSet(const Communicator& comm, const PartitionBook& dst_book, const EdgeList& edges)
    : comm_(comm) {
  comm_.agree([&] {
    require<InputError>(dst_book.num_parts() == comm_.size(), "EdgeSet: a partition book of ",
                        dst_book.num_parts(), " ranks, expected ", comm_.size(), ", as the communicator has");
    require<ShapeError>(edges.dst.size() == edges.src.size(), "EdgeSet: ", edges.dst.size(),
                        " destinations for ", edges.src.size(), " sources");
    dst_book_ = dst_book;
    const Index begin = dst_book.begin(comm_.rank()), end = dst_book.end(comm_.rank());
    for (const Index node : edges.dst)
      require<InputError>(node >= begin && node < end, "EdgeSet: an edge to node ", node,
                          ", expected a node of this rank, ", begin, " to ", end - 1);
    sources_ =
        grouped(consecutive(0, edges.size()), end - begin, [&](Index e) { return edges.dst[e] - begin; });
    for (Index& item : sources_.items) item = edges.src[item];
    parallel_for(end - begin, 1 << 10, [&](Index from, Index to) {
      for (Index v = from; v < to; ++v)
        std::sort(sources_.items.data() + sources_.begin[v], sources_.items.data() + sources_.begin[v + 1]);
    });
  });
}

Array<std::uint8_t> EdgeSet::contains(std::span<const Index> src, std::span<const Index> dst) const {
  return comm_.agree([&] {
    require<ShapeError>(src.size() == dst.size(), "EdgeSet: ", dst.size(), " destinations for ", src.size(),
                        " sources");
    for (const Index node : dst)
      require<InputError>(node >= 0 && node < dst_book_->num_nodes(), "EdgeSet: destination ", node,
                          ", expected a node from 0 to ", dst_book_->num_nodes() - 1);
    Array<std::uint8_t> found(dst.size());
    const auto owner = [&](Index i) { return dst_book_->owner(dst[static_cast<std::size_t>(i)]); };
    const auto ask = [&](const RowRoute& route, Index first, Index last) {
      using Edge = std::array<Index, 2>;
      Array<Edge> wanted;
      for (auto i = static_cast<std::size_t>(first); std::cmp_less(i, last); ++i)
        wanted.push_back({src[i], dst[i]});
      const Array<Edge> asked = route.forward(std::span<const Edge>(wanted));
      Array<std::uint8_t> answers(asked.size());
      const Index first_node = dst_book_->begin(comm_.rank());
      parallel_for(std::ssize(asked), 1 << 12, [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) {
          const std::span<const Index> row = sources_.of(asked[i][1] - first_node);
          answers[i] = std::binary_search(row.begin(), row.end(), asked[i][0]) ? 1 : 0;
        }
      });
      std::ranges::copy(route.back(std::span<const std::uint8_t>(answers)), found.begin() + first);
    };
    route_chunks(comm_, std::ssize(dst), 2 * sizeof(Index), owner, ask);
    return found;
  });
}

// A constructor numbers the candidate nodes by their original ids: a sample sort, and 16 bytes per node to
// the rank that stores its entry of the table.
//
// Drawing repeats three steps for the pairs that are left, on all ranks together: draw numbers, replace
// them by global ids from the table (8 bytes there and 8 back per distinct number), and ask the EdgeSet
// (17 bytes per pair). In a sparse graph, few pairs are drawn again.

namespace {

constexpr std::uint64_t max_draws = 10'000;

/// Replaces the values of `slots` in `all`, which are numbers of `nodes`, by global ids.
void translate(const Communicator& comm, const auto& nodes, const Array<Index>& slots, Array<Index>& all) {
  if (nodes.same) return;
  Array<Index> ids;
  for (const Index slot : slots) ids.push_back(all[slot]);
  replace_ids(comm, nodes.slices, nodes.table, ids);
  for (Index i = 0; i < std::ssize(slots); ++i) all[slots[i]] = ids[i];
}

/// Returns draw number `i` of an edge, uniform in [begin, end).
Index drawn(const Random& random, Index edge, std::uint64_t i, Index begin, Index end) {
  return begin + static_cast<Index>(random.uniform(static_cast<std::uint64_t>(edge), i) *
                                    static_cast<double>(end - begin));
}

}  // namespace

/// `selected`: for each node of the rank, whether it is one; empty: all are.
NegativeSampler::Nodes NegativeSampler::make_nodes(const Communicator& comm, const PartitionBook& book,
                                                   const Array<Index>& all_ids,
                                                   std::span<const std::uint8_t> selected, const char* what) {
  Array<Index> ids, global;
  for (Index v = 0; v < std::ssize(all_ids); ++v) {
    if (!selected.empty() && selected[static_cast<std::size_t>(v)] == 0) continue;
    ids.push_back(all_ids[v]);
    global.push_back(book.begin(comm.rank()) + v);
  }
  Nodes nodes{PartitionBook::even(comm.all_reduce(std::ssize(ids)), comm.size()), {}, false};
  const bool all = nodes.size() == book.num_nodes();
  nodes.same = all && comm.all_reduce(ids == global ? 1 : 0, ReduceOp::min) == 1;
  if (nodes.same) return nodes;
  const std::string place = concat("NegativeSampler, original ids of the ", what, "s");
  comm.agree([&] {
    for (const Index id : ids) require<InputError>(id >= 0, place, ": id ", id, ", expected 0 or more");
  });
  require_unique_ids(comm, ids, place);
  const Array<Index> numbers = numbers_of_ids(comm, ids);
  const Index begin = nodes.slices.begin(comm.rank());
  nodes.table.resize(static_cast<std::size_t>(nodes.slices.num_nodes(comm.rank())));
  const auto owner = [&](Index i) { return nodes.slices.owner(numbers[i]); };
  const auto enter = [&](const RowRoute& route, Index first, Index last) {
    const auto count = static_cast<std::size_t>(last - first);
    const Array<Index> entries = route.forward(std::span<const Index>(numbers.data() + first, count));
    const Array<Index> ids_there = route.forward(std::span<const Index>(global.data() + first, count));
    for (Index i = 0; i < std::ssize(entries); ++i) nodes.table[entries[i] - begin] = ids_there[i];
  };
  route_chunks(comm, std::ssize(numbers), sizeof(Index), owner, enter);
  return nodes;
}

NegativeSampler::NegativeSampler(const Graph& graph, const NegativeOptions& options)
    : comm_(graph.comm()), options_(options) {
  comm_.agree([&] {
    constexpr Index most = std::numeric_limits<local_index>::max();
    require<InputError>(options.k >= 1 && options.k <= most, "NegativeSampler: k is ", options.k,
                        ", expected 1 or more", options.k > most ? ", and less than 2^31" : "");
    comm_.require_equal(CollectiveCall("NegativeSampler")
                            .equal("k", options.k)
                            .equal("seed", static_cast<std::int64_t>(options.seed))
                            .equal("exclude_self_loops", options.exclude_self_loops)
                            .equal("need of exclude_edges", options.exclude_edges != nullptr)
                            .equal("need of candidates", options.candidates != nullptr));
    const GraphTopology& shards = graph.topology();
    is_homogeneous_ = shards.is_homogeneous();
    if (options.candidates != nullptr)
      return make_ways(*options.candidates, shards.dst_book, graph.dst_ids());
    const auto make = [&](const PartitionBook& book, const Array<Index>& ids, const char* what) {
      return std::make_shared<const Nodes>(make_nodes(comm_, book, ids, {}, what));
    };
    const auto dst = make(shards.dst_book, graph.dst_ids(), "destination");
    ways_ = {{is_homogeneous_ ? dst : make(shards.src_book, graph.src_ids(), "source"), dst}};
  });
}

void NegativeSampler::make_ways(const PairCandidates& candidates, const PartitionBook& book,
                                const Array<Index>& ids) {
  require<InputError>(is_homogeneous_,
                      "NegativeSampler: candidates of pairs, and a graph whose sources are other ",
                      "nodes than its destinations");
  double edges = 0;
  for (const CandidateNodes& way : candidates.ways) {
    require<InputError>(way.src.size() == ids.size() && way.dst.size() == ids.size(),
                        "NegativeSampler: candidates among ", way.src.size(), " nodes of rank ", comm_.rank(),
                        ", expected ", ids.size());
    const auto make = [&](std::span<const std::uint8_t> selected, const char* what) {
      return std::make_shared<const Nodes>(make_nodes(comm_, book, ids, selected, what));
    };
    ways_.push_back({make(way.src, "source"), make(way.dst, "destination")});
    edges += static_cast<double>(way.num_edges);
  }
  first_share_ = static_cast<double>(candidates.ways[0].num_edges) / std::max(edges, 1.0);
  if (ways_.size() == 1) return;
  book_ = book;
  way_of_source_ = candidates.ways[1].src;
}

std::size_t NegativeSampler::draw_way(std::uint64_t epoch, Index edge, std::uint64_t number) const {
  if (ways_.size() == 1) return 0;
  const Random random({options_.seed, RandomStream::ways_of_pairs + 0, epoch});
  return random.uniform(static_cast<std::uint64_t>(edge), number) < first_share_ ? 0 : 1;
}

Array<Index> NegativeSampler::excluded(const NodePairList& pairs, const Array<Index>& slots) const {
  const bool loops = options_.exclude_self_loops && is_homogeneous_;
  Array<std::uint8_t> known(slots.size());
  std::ranges::fill(known, std::uint8_t{0});
  if (options_.exclude_edges != nullptr) {
    Array<Index> src, dst;
    for (const Index slot : slots) {
      src.push_back(pairs.src[slot]);
      dst.push_back(pairs.dst[slot]);
    }
    known = options_.exclude_edges->contains(src, dst);
  }
  Array<Index> again;
  for (Index i = 0; i < std::ssize(slots); ++i)
    if (known[i] != 0 || (loops && pairs.src[slots[i]] == pairs.dst[slots[i]])) again.push_back(slots[i]);
  return again;
}

NodePairList NegativeSampler::draw(const char* call, std::span<const Index> edge_ids, std::uint64_t epoch,
                                   Propose propose) const {
  comm_.require_equal(CollectiveCall(call).equal("epoch", static_cast<std::int64_t>(epoch)));
  const Random random({options_.seed, RandomStream::negatives + 0, epoch});
  const auto k = static_cast<std::uint64_t>(options_.k);
  Array<Index> slots = consecutive(0, std::ssize(edge_ids) * options_.k);
  Proposal proposal{.pairs = {Array<Index>(slots.size()), Array<Index>(slots.size())}};
  proposal.new_src.resize(ways_.size());
  proposal.new_dst.resize(ways_.size());
  for (std::uint64_t draw = 0; comm_.all_reduce(std::ssize(slots), ReduceOp::max) > 0; ++draw) {
    require<InputError>(slots.empty() || draw < max_draws, "NegativeSampler: ", max_draws,
                        " pairs drawn for edge ",
                        slots.empty() ? 0 : edge_ids[static_cast<std::size_t>(slots[0]) / k],
                        " are all edges or self loops, which are excluded",
                        options_.candidates == nullptr ? "" : ", between sources and destinations of edges");
    for (std::vector<Array<Index>>* of_ways : {&proposal.new_src, &proposal.new_dst})
      for (Array<Index>& list : *of_ways) list.clear();
    for (const Index slot : slots)
      propose(random, slot, draw * k + static_cast<std::uint64_t>(slot) % k, proposal);
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      translate(comm_, *ways_[way].dst, proposal.new_dst[way], proposal.pairs.dst);
      translate(comm_, *ways_[way].src, proposal.new_src[way], proposal.pairs.src);
    }
    slots = excluded(proposal.pairs, slots);
  }
  return std::move(proposal.pairs);
}

NodePairList NegativeSampler::per_source(std::span<const Index> src, std::span<const Index> edge_ids,
                                         std::uint64_t epoch) const {
  return comm_.agree([&] {
    require<ShapeError>(src.size() == edge_ids.size(), "NegativeSampler: ", edge_ids.size(),
                        " ids of edges for ", src.size(), " sources");
    Array<std::uint8_t> way_of_edge(src.size(), std::uint8_t{0});
    if (ways_.size() == 2)
      way_of_edge = fetch_values(comm_, *book_, std::span<const std::uint8_t>(way_of_source_), src);
    return draw("per_source", edge_ids, epoch,
                [&](const Random& random, Index slot, std::uint64_t number, Proposal& to) {
                  const auto edge = static_cast<std::size_t>(slot / options_.k);
                  to.pairs.src[slot] = src[edge];
                  const std::size_t way = way_of_edge[edge];
                  to.pairs.dst[slot] = drawn(random, edge_ids[edge], 2 * number, 0, ways_[way].dst->size());
                  to.new_dst[way].push_back(slot);
                });
  });
}

NodePairList NegativeSampler::global_uniform(std::span<const Index> edge_ids, std::uint64_t epoch) const {
  return comm_.agree([&] {
    return draw("global_uniform", edge_ids, epoch,
                [&](const Random& random, Index slot, std::uint64_t number, Proposal& to) {
                  const Index id = edge_ids[static_cast<std::size_t>(slot / options_.k)];
                  const std::size_t way = draw_way(epoch, id, number);
                  to.pairs.dst[slot] = drawn(random, id, 2 * number, 0, ways_[way].dst->size());
                  to.pairs.src[slot] = drawn(random, id, 2 * number + 1, 0, ways_[way].src->size());
                  to.new_dst[way].push_back(slot);
                  to.new_src[way].push_back(slot);
                });
  });
}

void NegativeSampler::require_ends(std::span<const RelationEnds> ends) const {
  for (const RelationEnds& of : ends)
    for (const auto& [begin, end, nodes] : {std::tuple(of.src_begin, of.src_end, ways_[0].src->size()),
                                            std::tuple(of.dst_begin, of.dst_end, ways_[0].dst->size())})
      require<InputError>(0 <= begin && begin <= end && end <= nodes, "NegativeSampler: nodes ", begin,
                          " to ", end, " as the ends of a relation, there are ", nodes);
}

NodePairList NegativeSampler::replaced_end(std::span<const Index> src, std::span<const Index> dst,
                                           std::span<const Index> rels, std::span<const Index> edge_ids,
                                           std::span<const RelationEnds> ends, std::uint64_t epoch) const {
  return comm_.agree([&] {
    const std::size_t n = edge_ids.size();
    require<ShapeError>(src.size() == n && dst.size() == n && rels.size() == n, "NegativeSampler: ", n,
                        " ids of edges for ", src.size(), " sources, ", dst.size(), " destinations and ",
                        rels.size(), " relations");
    require<InputError>(
        options_.candidates == nullptr,
        "NegativeSampler::replaced_end draws from the ends of relations, expected no candidates");
    require_ends(ends);
    for (const Index rel : rels)
      require<InputError>(rel >= 0 && rel < std::ssize(ends), "NegativeSampler: relation ", rel,
                          ", expected 0 to ", std::ssize(ends) - 1);
    return draw("replaced_end", edge_ids, epoch,
                [&](const Random& random, Index slot, std::uint64_t number, Proposal& to) {
                  const auto edge = static_cast<std::size_t>(slot / options_.k);
                  const RelationEnds& of = ends[static_cast<std::size_t>(rels[edge])];
                  to.pairs.src[slot] = src[edge];
                  to.pairs.dst[slot] = dst[edge];
                  if (drawn(random, edge_ids[edge], 2 * number + 1, 0, 2) == 0) {
                    to.pairs.dst[slot] = drawn(random, edge_ids[edge], 2 * number, of.dst_begin, of.dst_end);
                    to.new_dst[0].push_back(slot);
                  } else {
                    to.pairs.src[slot] = drawn(random, edge_ids[edge], 2 * number, of.src_begin, of.src_end);
                    to.new_src[0].push_back(slot);
                  }
                });
  });
}

std::vector<RelationEnds> relation_ends(const Graph& graph) {
  const auto size = [&](const std::string& type) { return graph.num_global_nodes(type); };
  return relation_ends(graph.node_types(), graph.edge_types(), offsets_of_sizes(graph.node_types(), size));
}

std::vector<RelationEnds> relation_ends(std::span<const std::string> node_types,
                                        std::span<const EdgeType> edge_types, std::span<const Index> first) {
  std::vector<RelationEnds> ends;
  for (const EdgeType& type : edge_types) {
    const std::size_t src = find_node_type(node_types, type.source),
                      dst = find_node_type(node_types, type.destination);
    ends.push_back({first[src], first[src + 1], first[dst], first[dst + 1]});
  }
  return ends;
}

// Sources and destinations are marked at their owners: each rank sorts its proposals and sends each
// distinct node once, 16 bytes: O(E log E). The two sides of a bipartite graph are found as connected
// components (sides_of): a round fetches the labels of both ends of the edges that still join two
// components, 16 bytes there and 16 back per edge, and follows roots until nothing changes.

namespace {

constexpr Index none = std::numeric_limits<Index>::max();

/// A value that a rank proposes for a node of any rank.
struct Proposal {
  Index node, value;
  auto operator<=>(const Proposal&) const = default;
};

/// Returns the smallest value that any rank proposes for each node of this rank, or `none`. Collective.
Array<Index> smallest(const Communicator& comm, const PartitionBook& book, std::vector<Proposal> proposals) {
  std::ranges::sort(proposals);  // and so by owner
  const auto others = std::ranges::unique(proposals, {}, &Proposal::node);
  proposals.erase(others.begin(), others.end());
  std::vector<Index> counts(static_cast<std::size_t>(comm.size()), 0);
  for (const Proposal& each : proposals) ++counts[static_cast<std::size_t>(book.owner(each.node))];
  Array<Index> values(static_cast<std::size_t>(book.num_nodes(comm.rank())), none);
  for (const auto& [node, value] : comm.all_to_all_v(std::span<const Proposal>(proposals), counts).values) {
    Index& mine = values[node - book.begin(comm.rank())];
    mine = std::min(mine, value);
  }
  return values;
}

/// Returns for each node of this rank whether it is in the list of any rank. Collective.
Array<std::uint8_t> mark(const Communicator& comm, const PartitionBook& book, std::span<const Index> nodes) {
  std::vector<Proposal> proposals;
  for (const Index node : nodes) proposals.push_back({node, 0});
  Array<std::uint8_t> marks;
  for (const Index value : smallest(comm, book, std::move(proposals))) marks.push_back(value == 0 ? 1 : 0);
  return marks;
}

/// The candidates of the edges that `goes` selects. Collective.
CandidateNodes candidates_of(const Communicator& comm, const PartitionBook& book, std::span<const Index> src,
                             std::span<const Index> dst, const auto& goes) {
  CandidateNodes nodes;
  std::vector<Index> from, to;
  for (std::size_t e = 0; e < src.size(); ++e) {
    if (src[e] == dst[e] || !goes(e)) continue;
    from.push_back(src[e]);
    to.push_back(dst[e]);
  }
  nodes.num_edges = comm.all_reduce(std::ssize(from));
  nodes.src = mark(comm, book, from);
  nodes.dst = mark(comm, book, to);
  nodes.num_src = comm.all_reduce(std::accumulate(nodes.src.begin(), nodes.src.end(), Index{0}));
  nodes.num_dst = comm.all_reduce(std::accumulate(nodes.dst.begin(), nodes.dst.end(), Index{0}));
  return nodes;
}

bool are_disjoint(const Communicator& comm, const CandidateNodes& nodes) {
  bool both = false;
  for (std::size_t v = 0; v < nodes.src.size(); ++v) both = both || (nodes.src[v] != 0 && nodes.dst[v] != 0);
  return comm.all_reduce(both ? 1 : 0, ReduceOp::max) == 0;
}

/// The labels of nodes while the sides are searched. Each node knows a node of its connected component, its
/// root, and whether it is on the other side than the root: the label is 2 root + 1 then, otherwise 2 root.
class Labels {
 public:
  Labels(const Communicator& comm, const PartitionBook& book) : comm_(comm), book_(book) {
    for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v) mine_.push_back(2 * v);
  }

  [[nodiscard]] const Array<Index>& mine() const { return mine_; }
  /// Collective.
  [[nodiscard]] Array<Index> of(std::span<const Index> nodes) const {
    return fetch_values(comm_, book_, std::span<const Index>(mine_), nodes);
  }
  /// Gives roots the labels that are proposed for them, and then every node the root of its root, until that
  /// changes nothing. Collective.
  void join(std::vector<Proposal> proposals) {
    const Array<Index> found = smallest(comm_, book_, std::move(proposals));
    for (std::size_t v = 0; v < found.size(); ++v)
      if (found[v] != none) mine_[v] = found[v];
    bool changes = true;
    while (changes) {
      Array<Index> roots;
      for (const Index label : mine_) roots.push_back(label / 2);
      const Array<Index> of_roots = of(roots);
      bool mine_change = false;
      for (std::size_t v = 0; v < mine_.size(); ++v) {
        const Index next = of_roots[v] ^ (mine_[v] & 1);
        mine_change = mine_change || next != mine_[v];
        mine_[v] = next;
      }
      changes = comm_.all_reduce(mine_change ? 1 : 0, ReduceOp::max) == 1;
    }
  }

 private:
  const Communicator& comm_;
  const PartitionBook& book_;
  Array<Index> mine_;
};

/// Returns the side of each node of this rank, or nothing for a graph that is not bipartite, which has a
/// cycle of odd length. In each component, side 0 has the node of the smallest original id. Collective.
///
/// As connected components are found (Shiloach and Vishkin, 1982): in a round, each root that an edge joins
/// to smaller roots takes the smallest for its root. The number of rounds is about the logarithm of the
/// number of nodes. An edge between nodes of one side closes an odd cycle.
std::optional<Array<std::uint8_t>> sides_of(const Communicator& comm, const PartitionBook& book,
                                            const Array<Index>& original_ids, std::span<const Index> src,
                                            std::span<const Index> dst) {
  Labels labels(comm, book);
  std::vector<Index> from(src.begin(), src.end()), to(dst.begin(), dst.end());  // between two components
  for (;;) {
    const Array<Index> of_from = labels.of(from), of_to = labels.of(to);
    std::vector<Proposal> proposals;
    std::size_t left = 0;
    bool odd = false;
    for (std::size_t e = 0; e < from.size(); ++e) {
      if (from[e] == to[e]) continue;
      const auto [small, large] = std::minmax(of_from[e], of_to[e]);
      const bool same_side = ((small ^ large) & 1) == 0;  // as their roots, if these are two
      if (small / 2 == large / 2) {
        odd = odd || same_side;
        continue;
      }
      proposals.push_back({large / 2, 2 * (small / 2) + (same_side ? 1 : 0)});
      from[left] = from[e];
      to[left++] = to[e];
    }
    from.resize(left);
    to.resize(left);
    if (comm.all_reduce(odd ? 1 : 0, ReduceOp::max) == 1) return std::nullopt;
    if (comm.all_reduce(std::ssize(from)) == 0) break;
    labels.join(std::move(proposals));
  }
  std::vector<Proposal> proposals;  // for roots: the smallest original id, and its side
  Array<Index> roots;
  for (std::size_t v = 0; v < original_ids.size(); ++v) {
    const Index label = labels.mine()[v];
    roots.push_back(label / 2);
    proposals.push_back({label / 2, 2 * original_ids[v] + (label & 1)});
  }
  const Array<Index> first = smallest(comm, book, std::move(proposals));
  const Array<Index> of_roots = fetch_values(comm, book, std::span<const Index>(first), roots);
  Array<std::uint8_t> sides;
  for (std::size_t v = 0; v < roots.size(); ++v)
    sides.push_back(static_cast<std::uint8_t>((labels.mine()[v] ^ of_roots[v]) & 1));
  return sides;
}

}  // namespace

PairCandidates candidates_of_edges(const Communicator& comm, const PartitionBook& book,
                                   const Array<Index>& original_ids, std::span<const Index> src,
                                   std::span<const Index> dst) {
  return comm.agree([&] {
    require<ShapeError>(src.size() == dst.size(), "candidates_of_edges: ", src.size(), " sources for ",
                        dst.size(), " destinations");
    require<ShapeError>(std::ssize(original_ids) == book.num_nodes(comm.rank()),
                        "candidates_of_edges: ", original_ids.size(), " original ids for ",
                        book.num_nodes(comm.rank()), " nodes");
    for (const std::span<const Index> ends : {src, dst})
      for (const Index node : ends)
        require<InputError>(0 <= node && node < book.num_nodes(), "candidates_of_edges: there is no node ",
                            node, ", expected ", index_range(book.num_nodes()));
    PairCandidates found;
    found.ways.push_back(candidates_of(comm, book, src, dst, [](std::size_t) { return true; }));
    if (found.ways[0].num_edges == 0) return found;
    found.is_bipartite = are_disjoint(comm, found.ways[0]);
    if (found.is_bipartite) return found;
    const auto sides = sides_of(comm, book, original_ids, src, dst);
    if (!sides) return found;
    found.is_bipartite = true;
    const Array<std::uint8_t> from = fetch_values(comm, book, std::span<const std::uint8_t>(*sides), src);
    found.ways = {candidates_of(comm, book, src, dst, [&](std::size_t e) { return from[e] == 0; }),
                  candidates_of(comm, book, src, dst, [&](std::size_t e) { return from[e] == 1; })};
    return found;
  });
}

std::string PairCandidates::describe() const {
  std::string text = concat(ways[0].num_src, " sources and ", ways[0].num_dst, " destinations");
  if (ways.size() == 2)
    text +=
        concat(", and ", ways[1].num_src, " sources and ", ways[1].num_dst, " destinations the other way");
  return text + (is_bipartite ? ", a bipartite graph" : "");
}
}}  // namespace sar
