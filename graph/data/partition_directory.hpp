// SPDX-License-Identifier: MIT

/// Partition directories: a graph that has been partitioned once, one part for each rank, on disk as NumPy
/// files and a description in JSON (docs/file_formats.md).
///
/// Errors are InputError naming the file. A rank reads its own part and nothing else.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/new_directory.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/partition_description.hpp>
#include <sar/graph/data/partition_part.hpp>

#include <map>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Makes a directory that gets its name when it is complete. Without commit(), there is none afterwards.
class PartitionWriter {
 public:
  /// Collective. Throws InputError, the same on every rank, when `directory` exists or cannot be made.
  PartitionWriter(const Communicator& comm, const std::string& directory);

  /// Local. Where to write the parts.
  [[nodiscard]] const std::string& path() const noexcept { return directory_.path(); }
  /// Collective. Completes the directory after all parts are written; each rank flushes its own to the
  /// disk. The description is that of rank 0.
  void commit(const PartitionDescription& description);

 private:
  Communicator comm_;
  NewDirectory directory_;
};

/// Collective. Writes a graph with one part for each rank. Throws InputError, the same on every rank, when
/// the directory exists or cannot be written, or ranks have different data.
void save_partition(const Communicator& comm, const std::string& directory, const GraphData& graph,
                    const std::map<std::string, std::string>& info = {});

/// Collective. Rank p reads part p. When there are more parts than ranks, it reads several consecutive
/// parts as one. Needs memory for the rank's own share, and 16 bytes an edge while ids are checked. Throws
/// InputError, the same on every rank, for a file that is missing, damaged, or of another type, length or
/// partitioning, for ids that are out of range or not unique, and for fewer parts than ranks.
GraphData load_partition(const Communicator& comm, const std::string& directory);
}}  // namespace sar
