// SPDX-License-Identifier: MIT

/// SampleDataset: what a rank has of a dataset of graph samples.
#pragma once

#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/graph/samples/graph_samples.hpp>

#include <array>
#include <string>
#include <vector>

namespace sar::formats {

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

}  // namespace sar::formats
