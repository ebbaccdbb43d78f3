// SPDX-License-Identifier: MIT

/// The steps from a graph whose edges are with their owners (graph_steps.hpp) to its parts, of which a rank
/// has several. `books` has the ids of the parts, by node type.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Renumbers the nodes of each part in their locality_order. The edges are sorted before and
/// after.
void order_nodes(const Communicator& comm, std::span<const PartitionBook> books, GraphData& graph);

/// Local. The nodes and in-edges of a part of this rank, without their data; of part -1 the types only. The
/// edges are sorted; the last part that the rank takes leaves no edges behind.
GraphData take_part(const Communicator& comm, std::span<const PartitionBook> books, int part, bool is_last,
                    GraphData& graph);

}}  // namespace sar
