// SPDX-License-Identifier: MIT

// A constructor numbers the candidate nodes by their original ids: a sample sort, and 16 bytes per node to
// the rank that stores its entry of the table.
//
// Drawing repeats three steps for the pairs that are left, on all ranks together: draw numbers, replace
// them by global ids from the table (8 bytes there and 8 back per distinct number), and ask the EdgeSet
// (17 bytes per pair). In a sparse graph, few pairs are drawn again.
#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/comm/rows/replace_ids.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/comm/rows/unique_ids.hpp>
#include <sar/core/error.hpp>
#include <sar/core/random/random.hpp>
#include <sar/core/random/random_stream.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/pairs/negative_sampler.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr std::uint64_t max_draws = 100;

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

NegativeSampler::NegativeSampler(const GraphShardManager& graph, const NegativeOptions& options)
    : comm_(graph.comm()), options_(options) {
  comm_.agree([&] {
    require<InputError>(options.k >= 1, "NegativeSampler: k is ", options.k, ", expected 1 or more");
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
  Array<Index> slots(edge_ids.size() * k);
  std::iota(slots.begin(), slots.end(), Index{0});
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

std::vector<RelationEnds> relation_ends(const HeteroGraph& graph) {
  const auto size = [&](const std::string& type) { return graph.num_nodes(type); };
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

}}  // namespace sar
