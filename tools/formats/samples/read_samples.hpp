// SPDX-License-Identifier: MIT

/// Datasets of many small graphs: the folders of the TU collection and of OGB's graph property prediction.
///
/// Room tools/formats/samples: Readers of datasets of graph samples.
#pragma once

#include "formats/source_options.hpp"
#include "sample_tables.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/dataset_options.hpp>

#include <string>

namespace sar::formats {

/// Collective. Reads a folder, or a zip archive with one:
///
/// - TU: NAME_A.txt (edges i, j; nodes count from 1), NAME_graph_indicator.txt (the graph of each node, which
///   must ascend; graphs may have no nodes), NAME_graph_labels.txt or NAME_graph_attributes.txt (preferred,
///   unless `labels` is classes), and if they are there NAME_node_attributes.txt, NAME_node_labels.txt,
///   NAME_edge_attributes.txt and NAME_edge_labels.txt. Labels of nodes and edges become one-hot columns
///   behind the attributes, and labels of graphs the classes 0, 1, ... in the order of their numbers.
/// - OGB: raw/num-node-list.csv.gz, raw/num-edge-list.csv.gz, raw/edge.csv.gz (nodes count from 0 in each
///   graph), raw/graph-label.csv.gz (NaN or empty: missing), and if they are there raw/node-feat.csv.gz,
///   raw/edge-feat.csv.gz (tables of integers stay integers) and split/<scheme>/{train,valid,test}.csv.gz.
///
/// Throws InputError, the same on every rank: for a path that is neither; files that are missing or do not
/// agree in their numbers of rows; an edge between two graphs or whose end is no node;
/// numbers that are missing or not finite.
SampleDataset read_samples(const Communicator& comm, const std::string& path, const SourceOptions& options,
                           LabelType labels);

/// Local. Whether a folder or zip archive has the files of a TU dataset.
bool is_tu_dataset(const std::string& path);

}  // namespace sar::formats
