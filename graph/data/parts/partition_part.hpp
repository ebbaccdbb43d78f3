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
std::string edge_file(const std::string& directory, int part, const EdgeTypeDescription& type,
                      const std::string& array);
std::string edge_data_file(const std::string& directory, int part, const EdgeTypeDescription& type,
                           const std::string& field);

/// Writes the arrays of one part into a directory that is being made. `graph` holds the part, with its edges
/// in any order. Needs 24 bytes an edge of the largest edge type besides the graph. Local. Throws ShapeError
/// for fields of other lengths.
PartSummary write_part(const std::string& directory, int part, const GraphData& graph);

/// The parts [first, last), one after the other, as one, and each as it was written: edges grouped by the
/// part of their source, sorted by destination, source, id. Books are those of the directory. Checks type,
/// length and range of every array. Only load_partition checks that ids are unique. Local.
GraphData read_parts(const std::string& directory, const PartitionDescription& description, int first,
                     int last);

}}  // namespace sar
