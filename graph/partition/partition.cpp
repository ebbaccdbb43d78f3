// SPDX-License-Identifier: MIT

// contiguous and random evaluate a formula for each node, in parallel and without communication. The other
// methods search; afterwards each empty part takes one node of the largest part, which costs a scan and an
// all_reduce for each empty part.
//
// With several node types, the parts are sent from the slices of the homogeneous form to the slices of
// each type: one all_to_all_v of 4 bytes per node for each type.
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/partition/ldg.hpp>
#include <sar/graph/partition/metis.hpp>
#include <sar/graph/partition/partition.hpp>
#include <sar/graph/partition/scotch.hpp>

#include <algorithm>
#include <array>
#include <numeric>

namespace sar { inline namespace SAR_PRECISION {
namespace {

void check(const Communicator& comm, Index num_nodes, const EdgeList& edges,
           const AssignmentOptions& options) {
  const bool with_mask = comm.all_reduce(options.train_mask.empty() ? 0 : 1, ReduceOp::max) == 1;
  comm.agree([&] {
    require<InputError>(num_nodes >= 0 && options.parts >= 1, "cannot divide ", num_nodes, " nodes into ",
                        options.parts, " parts");
    require<InputError>(options.passes >= 1, "ldg: ", options.passes, " passes, expected at least 1");
    const Index slice = PartitionBook::even(num_nodes, comm.size()).num_nodes(comm.rank());
    require<InputError>(!with_mask || static_cast<Index>(options.train_mask.size()) == slice,
                        "the train mask of rank ", comm.rank(), " has ", options.train_mask.size(),
                        " entries, expected one for each of the ", slice, " nodes of its slice");
    const auto& first = options.first_of_type;
    require<InputError>(
        first.empty() || (first.front() == 0 && first.back() == num_nodes && std::ranges::is_sorted(first)),
        "the types of the nodes begin at ", first.empty() ? 0 : first.front(), " and end at ",
        first.empty() ? 0 : first.back(), ", expected increasing numbers from 0 to ", num_nodes);
    const auto is_node = [&](Index v) { return 0 <= v && v < num_nodes; };
    for (std::size_t e = 0; e < edges.src.size(); ++e)
      require<InputError>(is_node(edges.src[e]) && is_node(edges.dst[e]), "an edge joins nodes ",
                          edges.src[e], " and ", edges.dst[e], ", expected ", index_range(num_nodes));
  });
}

/// Moves one node to each empty part, from the largest part, as long as that has two nodes.
void fill_empty_parts(const Communicator& comm, int parts, std::span<std::int32_t> part_of) {
  std::vector<Index> sizes(parts, 0);
  for (const std::int32_t part : part_of) ++sizes[part];
  comm.all_reduce(std::span<Index>(sizes));
  for (std::size_t empty = 0; empty < sizes.size(); ++empty) {
    if (sizes[empty] > 0) continue;
    const auto giver = std::max_element(sizes.begin(), sizes.end());
    if (*giver < 2) return;
    const auto node =
        std::find(part_of.begin(), part_of.end(), static_cast<std::int32_t>(giver - sizes.begin()));
    const int rank = comm.all_reduce(node != part_of.end() ? comm.rank() : comm.size(), ReduceOp::min);
    if (rank == comm.rank()) *node = static_cast<std::int32_t>(empty);
    --*giver;
    ++sizes[empty];
  }
}

}  // namespace

Array<std::int32_t> assign_nodes(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                 PartitionMethod wanted, const AssignmentOptions& given) {
  return comm.agree([&] {
    CollectiveCall call("assign_nodes");
    call.equal("number of nodes", num_nodes)
        .equal("method", to_string(wanted))
        .equal("number of parts", given.parts)
        .equal("seed", given.seed)
        .equal("balance_edges", given.balance_edges)
        .equal("passes", given.passes);
    for (const Index first : given.first_of_type) call.equal("first node of a type", first);
    const CallScope compared(comm, call);
    check(comm, num_nodes, edges, given);
    const std::array<Index, 2> one_type{0, num_nodes};
    AssignmentOptions options = given;
    if (options.first_of_type.empty()) options.first_of_type = one_type;
    const PartitionMethod method = chosen_method(wanted, comm.all_reduce(std::ssize(edges.src)));
    const PartitionBook slices = PartitionBook::even(num_nodes, comm.size());
    const Index begin = slices.begin(comm.rank());
    const Index num_mine = slices.num_nodes(comm.rank());
    Array<std::int32_t> part_of;

    const std::span<const Index> types = options.first_of_type;
    const auto by_formula = [&](const auto& partition_of) {
      part_of.resize(num_mine);
      for (std::size_t t = 0; t + 1 < types.size(); ++t) {
        const NodePartition partition = partition_of(types[t + 1] - types[t]);
        const Index here = std::clamp(types[t], begin, begin + num_mine);
        const Index end = std::clamp(types[t + 1], begin, begin + num_mine);
        parallel_for(end - here, 1 << 14, [&](Index first, Index last) {
          for (Index v = here + first; v < here + last; ++v)
            part_of[v - begin] = partition.book().owner(partition.to_partitioned(v - types[t]));
        });
      }
    };
    const auto by_search = [&](const auto& search) {
      const bool built = (method != PartitionMethod::metis || has_metis()) &&
                         (method != PartitionMethod::scotch || has_scotch());
      if (num_nodes <= options.parts && built) {
        part_of.resize(num_mine);
        std::iota(part_of.begin(), part_of.end(), static_cast<std::int32_t>(begin));
      } else {
        part_of = search(comm, num_nodes, edges, options);
        fill_empty_parts(comm, options.parts, part_of);
      }
    };
    if (method == PartitionMethod::contiguous)
      by_formula([&](Index nodes) { return NodePartition::contiguous(nodes, options.parts); });
    else if (method == PartitionMethod::random)
      by_formula([&](Index nodes) { return NodePartition::random(nodes, options.parts, options.seed); });
    else
      by_search(method == PartitionMethod::metis ? metis_assignment
                : method == PartitionMethod::ldg ? ldg_assignment
                                                 : scotch_assignment);
    return part_of;
  });
}

NodePartition partition_nodes(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                              PartitionMethod method, std::uint64_t seed) {
  return comm.agree([&] {
    comm.require_equal(CollectiveCall("partition_nodes")
                           .equal("number of nodes", num_nodes)
                           .equal("method", to_string(method))
                           .equal("seed", seed));
    if (method == PartitionMethod::contiguous) return NodePartition::contiguous(num_nodes, comm.size());
    if (method == PartitionMethod::random) return NodePartition::random(num_nodes, comm.size(), seed);
    const Array<std::int32_t> mine =
        assign_nodes(comm, num_nodes, edges, method, {.parts = comm.size(), .seed = seed});
    return NodePartition::from_assignment(comm, mine, comm.size());
  });
}

std::vector<NodePartition> partition_of_types(const Communicator& comm, std::span<const Index> first_of_type,
                                              Array<std::int32_t> part_of, int parts) {
  std::vector<NodePartition> partitions;
  if (first_of_type.size() == 2) {
    partitions.push_back(NodePartition::from_assignment(comm, part_of, parts));
    return partitions;
  }
  const PartitionBook slices = PartitionBook::even(first_of_type.back(), comm.size());
  const Index begin = slices.begin(comm.rank()), end = slices.end(comm.rank());
  for (std::size_t t = 0; t + 1 < first_of_type.size(); ++t) {
    // this rank's nodes of the type, to those who have them in their slices of the type
    const PartitionBook of_type = PartitionBook::even(first_of_type[t + 1] - first_of_type[t], comm.size());
    const Index first = std::clamp(first_of_type[t], begin, end),
                last = std::clamp(first_of_type[t + 1], begin, end);
    std::vector<Index> counts;
    for (int q = 0; q < comm.size(); ++q)
      counts.push_back(std::max<Index>(0, std::min(last, first_of_type[t] + of_type.end(q)) -
                                              std::max(first, first_of_type[t] + of_type.begin(q))));
    const auto mine = comm.all_to_all_v(
        std::span<const std::int32_t>(part_of).subspan(first - begin, last - first), counts);
    partitions.push_back(NodePartition::from_assignment(comm, mine.values, parts));
  }
  return partitions;
}

}}  // namespace sar
