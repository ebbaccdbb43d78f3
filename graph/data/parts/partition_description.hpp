/// What partition.json, the description of a partition directory, says (docs/file_formats.md).
#pragma once

#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

struct NodeTypeDescription {
  std::string name;
  PartitionBook book;
  std::vector<DataField> data;
  bool operator==(const NodeTypeDescription&) const = default;
};

struct EdgeTypeDescription {
  std::string src_type, name, dst_type;
  std::vector<Index> edges_per_part;
  std::vector<DataField> data;
  Index first_added_id = std::numeric_limits<Index>::max();  ///< as EdgeTypeData's

  [[nodiscard]] Index num_edges() const noexcept;
  bool operator==(const EdgeTypeDescription&) const = default;
};

/// What partition.json says.
struct PartitionDescription {
  std::string name;
  int num_parts = 0;
  std::vector<NodeTypeDescription> node_types;
  std::vector<EdgeTypeDescription> edge_types;
  /// Of the ids and edges of each part, so that parts of another partitioning are noticed. Empty: not known.
  std::vector<std::uint64_t> checksums;
  std::map<std::string, std::string> info;  ///< how it was made: "method", "edge_cut", ...
  bool operator==(const PartitionDescription&) const = default;
};

/// Local. Throws InputError; `path` begins the messages.
PartitionDescription parse_partition_description(const std::string& json, const std::string& path);
PartitionDescription read_partition_description(const std::string& directory);
std::string format_partition_description(const PartitionDescription& description);

/// Types, books and fields of a graph; edges_per_part and checksums stay empty. Local.
PartitionDescription describe_partition(const GraphData& graph);

}}  // namespace sar
