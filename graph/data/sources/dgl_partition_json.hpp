// SPDX-License-Identifier: MIT

/// The JSON file of a DGL partition.
#pragma once

#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/message/edge_types.hpp>

#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The contents of the partition's JSON file.
struct DglPartition {
  /// Nodes (or edges) of one type in one part: ids begin to end - 1 among those of all types, and from
  /// `first` on among those of the type.
  struct Range {
    Index begin = 0, end = 0;
    int part = 0;
    std::size_t type = 0;
    Index first = 0;
  };
  /// Nodes (or edges) of all types.
  struct Ids {
    std::vector<Range> ranges;         ///< ascending, without gaps; empty ones are left out
    std::vector<PartitionBook> books;  ///< of each type, over the parts

    [[nodiscard]] Index size() const noexcept { return ranges.empty() ? 0 : ranges.back().end; }
    /// Null when there is no such id.
    [[nodiscard]] const Range* find(Index id) const;
  };
  /// The paths of a part's files.
  struct Part {
    std::string graph, node_data, edge_data;
  };

  std::string path;
  std::string name;
  std::vector<std::string> node_types;
  /// The types of the ends are empty when the file has only the name of the edge type ("writes", not
  /// "author:writes:paper"), as before DGL 1.0.
  std::vector<EdgeType> edge_types;
  Ids nodes, edges;
  std::vector<Part> parts;
};

/// Local. Reads the JSON file. Throws InputError.
DglPartition read_dgl_partition(const std::string& json_path);

}}  // namespace sar
