// SPDX-License-Identifier: MIT

/// One part of a partition directory: its arrays on disk.
///
/// Errors are InputError naming the file.
#pragma once

#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/parts/partition_description.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// What the description says of a part that has been written.
struct PartSummary {
  std::vector<Index> num_edges;  ///< by edge type
  std::uint64_t checksum = 0;
};

/// Where the arrays of a part lie in a partition directory. Names are escaped as far as files need it.
std::string node_file(const std::string& directory, int part, const std::string& type,
                      const std::string& array);
std::string node_data_file(const std::string& directory, int part, const std::string& type,
                           const std::string& field);
/// The folder of a sparse field (sparse_part.hpp).
std::string sparse_folder(const std::string& directory, int part, const std::string& type,
                          const std::string& field);
std::string edge_file(const std::string& directory, int part, const EdgeTypeData& type,
                      const std::string& array);

/// Local. Writes the arrays of one part into a directory that is being made. `graph` holds the part, with
/// its edges in any order. Needs 24 bytes an edge of the largest edge type besides the graph. Throws
/// ShapeError for fields of other lengths.
PartSummary write_part(const std::string& directory, int part, const GraphData& graph);

/// Local. Reads the parts [first, last) and concatenates them. Within a part, edges are grouped by the part
/// of their source and sorted by destination, source and id. Partition books are those of the directory.
/// Checks type, length and range of every array, but not that ids are unique (load_partition does).
GraphData read_parts(const std::string& directory, const PartitionDescription& description, int first,
                     int last);

}}  // namespace sar
