// SPDX-License-Identifier: MIT

/// What partition.json, the description of a partition directory, says (docs/file_formats.md).
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/files/data_array.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// Of partition.json, which has a number for each type of edges and part.
inline constexpr Index most_description_bytes = Index{1} << 32;

/// What partition.json says.
struct PartitionDescription {
  GraphData graph;                                      ///< no rows; the books have the ids of the parts
  int num_parts = 0;                                    ///< of every book
  std::vector<std::vector<Index>> edges_per_part = {};  ///< by edge type
  /// Of the ids and edges of each part, so that parts of another partitioning are noticed. Empty: not known.
  std::vector<std::uint64_t> checksums = {};
  std::map<std::string, std::string> info = {};  ///< how it was made: "method", "edge_cut", ...
};

/// Local. Throws InputError; `path` begins the messages.
PartitionDescription parse_partition_description(const std::string& json, const std::string& path);
PartitionDescription read_partition_description(const std::string& directory);
/// Collective. Rank 0 reads the description for all ranks.
PartitionDescription share_partition_description(const Communicator& comm, const std::string& directory);
std::string format_partition_description(const PartitionDescription& description);

/// Local. Types, books and fields of a graph; no part has edges yet.
PartitionDescription describe_partition(const GraphData& graph);
}}  // namespace sar
