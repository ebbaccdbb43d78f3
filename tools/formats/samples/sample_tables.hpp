// SPDX-License-Identifier: MIT

/// Datasets of many small graphs: the folders of the TU collection and of OGB's graph property prediction,
/// and what their readers have in common: sizes of the graphs, who owns them, and tables with a row for each
/// node, edge or graph. All functions are collective and throw InputError, the same on every rank.
///
/// Room tools/formats/samples: Readers of datasets of graph samples.
#pragma once

#include "formats/ogb/ogb_text.hpp"
#include "formats/source_options.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/sampling/graph_samples.hpp>

#include <array>
#include <span>
#include <string>
#include <vector>

namespace sar::formats {

/// The graphs of a dataset, known to all ranks: 8 bytes for each graph. A rank owns consecutive graphs with
/// about as many nodes as the others, and their nodes.
struct SampleSizes {
  std::vector<Index> node_begin{0};  ///< [graphs + 1]
  PartitionBook graphs, nodes;

  /// Local. A graph may have no nodes. `place` begins messages, in which graphs count from `first_number`.
  SampleSizes(const Communicator& comm, const std::vector<Index>& nodes_of_graphs, Index first_number,
              const std::string& place);
  [[nodiscard]] Index num_graphs() const noexcept { return std::ssize(node_begin) - 1; }
  /// What train shall say of graphs without nodes; empty if there are none.
  [[nodiscard]] std::string note_of_empty(Index first_number) const;
  /// The graph of a node.
  [[nodiscard]] Index graph_of(Index node) const;
};

/// An edge that a rank has read.
struct SampleEdge {
  Index graph;           ///< of the dataset
  Index row;             ///< in the file
  local_index src, dst;  ///< counted from 0 in the graph
};

/// Returns this rank's graphs, without fields, with the edges that all ranks have read, in the order of the
/// file. `edge_rows`: the row of each edge in the file.
GraphSamples make_samples(const Communicator& comm, const SampleSizes& sizes,
                          std::span<const SampleEdge> edges, Array<Index>& edge_rows);

/// This rank's items of a book.
Array<Index> rows_of_rank(const Communicator& comm, const PartitionBook& book);

/// Local. Adds a table to the fields of nodes or edges, as tensor [rows, columns] or as integers. `numbers`:
/// of its rows in the file. Throws InputError, which begins with `path`, for a number that is not finite and
/// an integer below 0.
void add_field(SampleFields& to, const std::string& name, const DataArray& rows, const Array<Index>& numbers,
               const std::string& path);

/// What a rank has of a dataset: the graphs book.begin(rank) .. book.end(rank). The fields "features" of
/// samples.nodes and samples.edges are a tensor, integers, or both; without any, the nodes have a tensor of
/// ones. Edges are sorted.
struct SampleDataset {
  std::string name;
  std::string format;              ///< "TU folder", "OGB folder"
  std::vector<std::string> notes;  ///< what was understood of the files; a line each
  PartitionBook book;
  GraphSamples samples;
  DataArray labels;        ///< of this rank's graphs
  std::string label_file;  ///< for messages
  bool has_split = false;
  std::array<DataArray, 3> masks;  ///< of training, validation and test, if there is a split
};

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

/// Collective. Reads a dataset; `folder` has raw/ and perhaps split/. Throws InputError as read_samples.
SampleDataset read_ogb_samples(const Communicator& comm, const std::string& folder,
                               const SourceOptions& options);

/// Collective. Reads a dataset; `folder` has NAME_A.txt and the other files. Throws InputError as
/// read_samples.
SampleDataset read_tu_samples(const Communicator& comm, const std::string& folder, const std::string& name,
                              const SourceOptions& options, LabelType labels);

}  // namespace sar::formats
