/// Partition directories: a graph that has been partitioned once, one part for each worker, on disk as NumPy
/// files and a description in JSON (docs/file_formats.md).
///
/// Errors are InputError naming the file. A rank reads its own part and nothing else.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/new_directory.hpp>
#include <sar/graph/io/data_array.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sar {

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

  [[nodiscard]] Index num_edges() const noexcept;
  bool operator==(const EdgeTypeDescription&) const = default;
};

/// What partition.json says.
struct PartitionDescription {
  std::string name;
  int num_parts = 0;
  std::vector<NodeTypeDescription> node_types;
  std::vector<EdgeTypeDescription> edge_types;
  /// Of the ids and edges of each part, so that parts of another partitioning are noticed; empty: not known.
  std::vector<std::uint64_t> checksums;
  std::map<std::string, std::string> info;  ///< how it was made: "method", "edge_cut", ...
  bool operator==(const PartitionDescription&) const = default;
};

/// Local. `path` begins the messages.
PartitionDescription parse_partition_description(const std::string& json, const std::string& path);
PartitionDescription read_partition_description(const std::string& directory);
std::string format_partition_description(const PartitionDescription& description);

/// Types, books and fields of a graph; edges_per_part and checksums are left to be filled. Local.
PartitionDescription describe_partition(const GraphData& graph);

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

/// Writes the arrays of one part, which `graph` holds in any order of edges, into a directory that is being
/// made. Needs 24 bytes an edge of the largest edge type besides the graph. Local. Throws ShapeError for
/// columns of other lengths.
PartSummary write_part(const std::string& directory, int part, const GraphData& graph);

/// The part as it was written: edges grouped by the part of their source, sorted by destination, source, id.
/// Every array's type, length and range are checked; that ids are unique, only by load_partition. Local.
GraphData read_part(const std::string& directory, const PartitionDescription& description, int part);

/// Makes a directory, which gets its name when it is complete; until then, and if commit() is not reached,
/// there is none.
class PartitionWriter {
 public:
  /// Collective. Throws InputError, the same on every rank, when `directory` exists or cannot be made.
  PartitionWriter(const Communicator& comm, const std::string& directory);

  /// Where to write the parts. Local.
  [[nodiscard]] const std::string& path() const noexcept { return directory_.path(); }
  /// After all parts, which each rank flushes to the disk: `description` is that of rank 0. Collective.
  void commit(const PartitionDescription& description);

 private:
  Communicator comm_;
  NewDirectory directory_;
};

/// Writes a graph with one part for each rank. Collective. Throws InputError, the same on every rank, when
/// the directory exists or cannot be written, or ranks have different data.
void save_partition(const Communicator& comm, const std::string& directory, const GraphData& graph,
                    const std::map<std::string, std::string>& info = {});

/// Rank p reads part p, or several consecutive parts when there are more parts than ranks, which become one.
/// Memory: the rank's own share, and 16 bytes an edge while ids are checked. Collective. Throws InputError,
/// the same on every rank, for a file that is missing, damaged, of another type, length or partitioning, ids
/// out of range or not unique, and fewer parts than ranks.
GraphData load_partition(const Communicator& comm, const std::string& directory);

}  // namespace sar
