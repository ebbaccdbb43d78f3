/// Linear Deterministic Greedy by all workers at once.
///
/// A node v goes to the part p with the largest
///     (neighbours of v in p) * (1 - l_p),     l_p = max of load / capacity over what v adds to,
/// among the parts where it fits (Stanton and Kliot, KDD 2012), to the least loaded one if it has no
/// neighbour there. The nodes are streamed several times, each time with the parts of the time before
/// (restreaming: Nishimura and Ugander, KDD 2013), until hardly any moves.
///
/// Loads are not emptied between passes as in that paper; a node is taken out of its part and put back. Each
/// rank streams its slice in the order of the ids; 128 times a pass the ranks tell each other what changed.
/// In between, a rank counts everything it moves once for each rank, as if all did what it does: so the
/// capacities, 1.05 of the average, hold whatever the number of ranks, except where a single node is larger
/// than the room that is left.
///
/// Why this one: on sbm graphs, emptied loads often cut more, as parts fill up to the capacity and keep what
/// happens to be in them; so did Fennel's additive penalty (Tsourakakis et al., WSDM 2014; tried with one
/// weight, and with parts exchanged only between batches), which on Cora is as good or a little better. A
/// random order of the nodes cuts scattered ids no better, and loses the order that many datasets have.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/partition/assignment.hpp>
#include <sar/graph/shard/edge_list.hpp>

#include <cstdint>

namespace sar {

/// The part of each node of this rank's slice, as assign_nodes; parts may be empty. The same for every number
/// of threads (it uses one); depends on the number of ranks. Memory: NeighborLists and 4 bytes for each of
/// its values. Collective. Throws InputError for 2^32 nodes or more.
Array<std::int32_t> ldg_assignment(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                   const AssignmentOptions& options);

}  // namespace sar
