// SPDX-License-Identifier: MIT

/// Datasets with several splits: masks [nodes, splits], of which one split at a time is trained on.
///
///     for (Index k = 0; k < data.splits.count; ++k) {
///       choose_split(data, k);                        // sets train_mask, val_mask and test_mask
///       ...
///     }
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/data/node_data.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns how many splits the masks of these nodes have; 0: there are no masks. `names` as
/// DatasetOptions::fields.
Index num_splits(const NodeTypeData& nodes, const std::map<std::string, std::string>& names = {});
/// Local. The same of the nodes of a source of one type.
Index num_splits(const GraphSource& source, const DatasetOptions& options = {});

/// Local. Makes the masks of a split those of the data. Throws InputError for a split that there is not.
void choose_split(NodeData& data, Index split);

/// Local. Sets the masks of the data, of training, validation and test, which have rows of one number for
/// all splits or of one for each; then chooses the split. `places` begin messages. Throws InputError for
/// numbers other than 0 and 1, for different numbers of splits, and for a split that there is not.
void set_splits(NodeData& data, const std::array<DataArray, 3>& masks, Index split,
                const std::array<std::string, 3>& places);

/// Local. Returns one split of a mask: 0 or 1 for each row. Throws as set_splits.
Array<std::uint8_t> mask_of_split(const DataArray& mask, Index split, const std::string& place,
                                  std::span<const Index> ids = {});

// Which nodes of a mask have a label. Nodes without one (NodeData::labels is -1) are left out of losses,
// metrics and mini-batches.

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
