/// Linear Deterministic Greedy, on all ranks at once.
///
/// Of the parts where node v fits, it goes to the part p with the largest
///     (neighbours of v in p) * (1 - l_p),     l_p = max of load / capacity over what v adds to
/// (Stanton and Kliot, KDD 2012), and to the least loaded part if it has no neighbour in any of them. The
/// nodes are streamed several times, each time with the parts of the time before (restreaming: Nishimura and
/// Ugander, KDD 2013), until hardly any node moves.
///
/// Unlike in that paper, a pass does not begin with empty loads: a node is taken out of its part and put
/// back. Each rank streams its slice in the order of the ids, and knows of its own moves only. The ranks
/// exchange their moves 128 times a pass, or 4 times for each part if that is more, and at first after 1, 2,
/// 4 ... nodes, so that they do not begin the same part in two places. Where the ranks together overfill a
/// part, each takes back its share of the surplus, its last moves first: a node returns to its part or, in
/// the first pass, waits for the next exchange. So the capacities, 1.05 of the average, hold for any number
/// of ranks and parts, except where a single node is larger than the room left, and for the few nodes that
/// still wait after four exchanges at the end of the first pass.
///
/// Until it is told, a rank does not guess what the others do. A guess (all do as I do) would count a hub
/// once for each rank, and no part would have room for it.
///
/// Why this method: on sbm graphs, empty loads often cut more edges, because parts fill up to the capacity
/// and keep what happens to be in them. So did Fennel's additive penalty (Tsourakakis et al., WSDM 2014;
/// tried with one weight, and with parts exchanged only between batches), which is as good or a little better
/// on Cora. A random order of the nodes cuts no fewer edges where ids are scattered, and loses the order that
/// many datasets have.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/partition/neighbor_lists.hpp>
#include <sar/graph/partition/partition_method.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>
#include <span>

namespace sar::inline SAR_PRECISION {

/// The part of each node of this rank's slice, as in assign_nodes; parts may be empty. Uses one thread. The
/// result depends on the number of ranks. Memory: NeighborLists and 4 bytes for each of its values.
/// Collective. Throws InputError for 2^32 nodes or more.
Array<std::int32_t> ldg_assignment(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                   const AssignmentOptions& options);

/// The same nodes in balanced parts: those of parts above their capacities move where ldg_assignment puts
/// them, streamed at most options.passes times; the others stay where part_of says. Collective.
Array<std::int32_t> balance_by_ldg(const Communicator& comm, Index num_nodes, NeighborLists lists,
                                   const AssignmentOptions& options, std::span<const std::int32_t> part_of);

}  // namespace sar
