// SPDX-License-Identifier: MIT

/// The sizes that a model takes from a graph: the width of its features, how many of them are stored, and the
/// number of classes.
#pragma once

#include <sar/core/threads/parallel.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/graph_source.hpp>

#include <span>

namespace sar::tools {

struct Widths {
  Index features = 0, classes = 0;  ///< 0: the graph does not say
  double stored = 0;  ///< features of a node that are stored, if they are sparse rows; 0: they are dense
};

/// Returns the largest of numbers of classes; infinity if a label is no whole number. NaN is no label.
double largest_class(std::span<const double> labels);
/// Returns how many classes there are if largest_class() is one; 1 for values, which have one column.
Index num_classes(double largest, Index num_nodes);

/// Collective. The width of the field features (or feat), whether it becomes sparse by the options, and the
/// largest number in labels (or label) + 1. Widths that are given stay. Reads `fields` and `sparse_features`
/// of the options. Throws InputError if `fields` names one that does not exist.
Widths complete_widths(Widths given, GraphSource& source, const DatasetOptions& options);

/// Collective. Returns how many features of a node are stored if training makes the field sparse rows: the
/// mean over the sampled nodes (is_sampled); 0 if it stays dense. `read` gets the nodes to read, in
/// increasing order.
double stored_features(const Communicator& comm, SparseFeatures sparse, const DataField& field,
                       Index num_nodes, FunctionRef<DataArray(std::span<const Index>)> read);

}  // namespace sar::tools
