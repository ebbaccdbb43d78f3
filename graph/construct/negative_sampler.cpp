#include <sar/comm/rows/replace_ids.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/comm/rows/unique_ids.hpp>
#include <sar/core/error.hpp>
#include <sar/core/random/random.hpp>
#include <sar/graph/construct/negative_sampler.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr std::uint64_t negative_stream = 0x6e656761;  // random stream reserved for negative samples
constexpr std::uint64_t max_draws = 100;

/// Replaces the values of `slots` in `all`, which are ranks of nodes in the order of original ids, by global
/// ids.
template <class Nodes>
void translate(const Communicator& comm, const Nodes& nodes, const Array<Index>& slots, Array<Index>& all) {
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

NegativeSampler::Nodes NegativeSampler::make_nodes(const Communicator& comm, const PartitionBook& book,
                                                   const Array<Index>& ids, const char* what) {
  Nodes nodes{PartitionBook::even(book.num_nodes(), comm.size()), {}, false};
  Array<Index> global(ids.size());
  std::iota(global.begin(), global.end(), book.begin(comm.rank()));
  nodes.same = comm.all_reduce(ids == global ? 1 : 0, ReduceOp::min) == 1;
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
                            .equal("need of exclude_edges", options.exclude_edges != nullptr));
    const GraphTopology& shards = graph.topology();
    dst_ = make_nodes(comm_, shards.dst_book, graph.dst_ids(), "destination");
    if (!shards.is_homogeneous()) src_ = make_nodes(comm_, shards.src_book, graph.src_ids(), "source");
  });
}

Array<Index> NegativeSampler::excluded(const NodePairList& pairs, const Array<Index>& slots) const {
  const bool loops = options_.exclude_self_loops && !src_;
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
  const Random random({options_.seed, negative_stream, epoch});
  const auto k = static_cast<std::uint64_t>(options_.k);
  Array<Index> slots(edge_ids.size() * k);
  std::iota(slots.begin(), slots.end(), Index{0});
  Proposal proposal{.pairs = {Array<Index>(slots.size()), Array<Index>(slots.size())}};
  for (std::uint64_t draw = 0; comm_.all_reduce(std::ssize(slots), ReduceOp::max) > 0; ++draw) {
    require<InputError>(slots.empty() || draw < max_draws, "NegativeSampler: ", max_draws,
                        " pairs drawn for edge ",
                        slots.empty() ? 0 : edge_ids[static_cast<std::size_t>(slots[0]) / k],
                        " are all edges or self loops, which are excluded");
    proposal.new_src.clear();
    proposal.new_dst.clear();
    for (const Index slot : slots)
      propose(random, slot, draw * k + static_cast<std::uint64_t>(slot) % k, proposal);
    translate(comm_, *dst_, proposal.new_dst, proposal.pairs.dst);
    translate(comm_, sources(), proposal.new_src, proposal.pairs.src);
    slots = excluded(proposal.pairs, slots);
  }
  return std::move(proposal.pairs);
}

NodePairList NegativeSampler::per_source(std::span<const Index> src, std::span<const Index> edge_ids,
                                         std::uint64_t epoch) const {
  return comm_.agree([&] {
    require<ShapeError>(src.size() == edge_ids.size(), "NegativeSampler: ", edge_ids.size(),
                        " ids of edges for ", src.size(), " sources");
    return draw("per_source", edge_ids, epoch,
                [&](const Random& random, Index slot, std::uint64_t number, Proposal& to) {
                  const auto edge = static_cast<std::size_t>(slot / options_.k);
                  to.pairs.src[slot] = src[edge];
                  to.pairs.dst[slot] = drawn(random, edge_ids[edge], 2 * number, 0, dst_->slices.num_nodes());
                  to.new_dst.push_back(slot);
                });
  });
}

NodePairList NegativeSampler::global_uniform(std::span<const Index> edge_ids, std::uint64_t epoch) const {
  return comm_.agree([&] {
    return draw("global_uniform", edge_ids, epoch,
                [&](const Random& random, Index slot, std::uint64_t number, Proposal& to) {
                  const Index id = edge_ids[static_cast<std::size_t>(slot / options_.k)];
                  to.pairs.dst[slot] = drawn(random, id, 2 * number, 0, dst_->slices.num_nodes());
                  to.pairs.src[slot] = drawn(random, id, 2 * number + 1, 0, sources().slices.num_nodes());
                  to.new_dst.push_back(slot);
                  to.new_src.push_back(slot);
                });
  });
}

void NegativeSampler::require_ends(std::span<const RelationEnds> ends) const {
  for (const RelationEnds& of : ends)
    for (const auto& [begin, end, nodes] :
         {std::tuple(of.src_begin, of.src_end, sources().slices.num_nodes()),
          std::tuple(of.dst_begin, of.dst_end, dst_->slices.num_nodes())})
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
                    to.new_dst.push_back(slot);
                  } else {
                    to.pairs.src[slot] = drawn(random, edge_ids[edge], 2 * number, of.src_begin, of.src_end);
                    to.new_src.push_back(slot);
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
