// SPDX-License-Identifier: MIT

/// NodeData as the view of one type of a GraphData: of a homogeneous graph the whole, of one with several
/// types the nodes that are trained on.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// A homogeneous graph as NodeData, after the transforms of `options`. Nodes stay where they are:
/// options.partition is not used. Takes the fields that options.fields name, or
///     features      "features" or "feat"             numbers [nodes, F...], flattened to two dimensions
///     labels        "labels" or "label"              of options.label_type (label_columns.hpp): classes are
///                                                    integers [nodes] or [nodes, 1], or whole numbers in
///                                                    floating point, NaN: unlabelled (-1); without any:
///                                                    all unlabelled
///     masks         "train_mask", "val_mask", "test_mask"   0 or 1 [nodes], or [nodes, S] of S splits, of
///                                                    which options.split counts; without: none
///     edge weights  "weight" or "edge_weight"        numbers [edges]; optional
/// Collective. Throws InputError, the same on every rank, when there are several types, no features, for
/// values that are not finite and labels below -1.
NodeData to_node_data(const Communicator& comm, GraphData graph, const DatasetOptions& options = {});

/// Collective. Features, labels and masks of this rank's nodes of one type, from the fields that
/// to_node_data names; a type without features gets features of no columns. A field that options.fields
/// names is used where it is one of this type. There are no edges. Throws InputError, the same on every
/// rank, for an unknown type and values as to_node_data.
NodeData node_data_of(const Communicator& comm, const GraphData& graph, const std::string& type,
                      const DatasetOptions& options = {});

/// Collective. The node_data_of the category: the type of nodes that is trained on. Throws InputError, the
/// same on every rank, when no type has a field that options.fields names, when another type has the masks
/// or labels, and `for_training` when no training node has a label.
NodeData category_data(const Communicator& comm, const GraphData& graph, const std::string& category,
                       const DatasetOptions& options = {}, bool for_training = true);

}}  // namespace sar
