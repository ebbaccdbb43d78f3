// SPDX-License-Identifier: MIT

/// Which nodes of a mask have a label. Nodes without one (NodeData::labels is -1) are left out of losses,
/// metrics and mini-batches.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/node_data.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns the global ids of this rank's nodes that one of the masks has and that have a label:
/// seeds of mini-batches.
Array<Index> labelled_nodes(const NodeData& data, const Communicator& comm,
                            std::initializer_list<std::span<const std::uint8_t>> masks);

/// Nodes of a mask, of all ranks.
struct MaskCounts {
  Index nodes = 0;
  Index unlabelled = 0;
  Index first_unlabelled = -1;  ///< the smallest original id of them; -1: there are none
};

/// Collective. Throws ShapeError, the same on every rank, for a mask of another length than the labels.
MaskCounts count_mask(const NodeData& data, const Communicator& comm, std::span<const std::uint8_t> mask);

/// Collective. Throws InputError, the same on every rank, when no training node of any rank has a label.
/// The messages begin with `place`, by default with the name of the data.
void require_training_labels(const Communicator& comm, const NodeData& data, const std::string& place = {});

}}  // namespace sar
