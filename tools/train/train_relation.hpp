// SPDX-License-Identifier: MIT

/// Link prediction of one edge type of a typed graph.
#pragma once

#include "options/train_options.hpp"
#include "train_edges.hpp"

#include <sar/data.hpp>

namespace sar::tools {

/// Collective. Makes the task of o.relation as make_edge_task() does, and removes its validation and test
/// edges from `graph`, so that they carry no messages: from the edge type itself, and from each type whose
/// edges all are edges of it, in the same or the reverse direction, or which o.reverse_relations name. Other
/// types between the same node types stay as they are; a note says how many held-out pairs they join. If the
/// dataset lists pairs, all edges stay. Edge data of the type are read and deleted. Prints, on rank 0,
/// which types have the edges. Throws InputError, the same on every rank, for an unknown type, a reverse type
/// that joins other node types, and as make_edge_task().
EdgeTask make_relation_task(const Communicator& comm, const TrainOptions& o, GraphData& graph);

}  // namespace sar::tools
