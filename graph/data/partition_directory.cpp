// SPDX-License-Identifier: MIT
#include <sar/comm/rows/node_directory.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/graph/data/partition_directory.hpp>

namespace sar { inline namespace SAR_PRECISION {

PartitionWriter::PartitionWriter(const Communicator& comm, const std::string& directory)
    : comm_(comm), directory_(comm, directory) {}

void PartitionWriter::commit(const PartitionDescription& description) {
  comm_.agree([&] {
    sync_file_system(path());
    if (comm_.rank() == 0) write_text(path() + "/partition.json", format_partition_description(description));
    directory_.commit();
  });
}

void save_partition(const Communicator& comm, const std::string& directory, const GraphData& graph,
                    const std::map<std::string, std::string>& info) {
  comm.agree([&] {
    PartitionDescription description = describe_partition(graph);
    const std::string mine = format_partition_description(description);
    const std::string expected = comm.broadcast(mine, 0);
    require<InputError>(description.num_parts == comm.size(), graph.name, ": the graph has ",
                        description.num_parts, " parts, expected one for each of the ", comm.size(),
                        " ranks");
    require<InputError>(mine == expected, graph.name, ": rank ", comm.rank(),
                        " has other types or data than rank 0, expected the same");
    PartitionWriter writer(comm, directory);
    // The writer lives until all ranks have stopped writing, whatever happens.
    const PartSummary summary = comm.agree([&] { return write_part(writer.path(), comm.rank(), graph); });
    for (std::size_t i = 0; i < summary.num_edges.size(); ++i)
      description.edges_per_part[i] = comm.all_gather(summary.num_edges[i]);
    description.checksums = comm.all_gather(summary.checksum);
    description.info = info;
    writer.commit(description);
  });
}

GraphData load_partition(const Communicator& comm, const std::string& directory) {
  return comm.agree([&] {
    const std::string path = directory + "/partition.json";
    const PartitionDescription description = share_partition_description(comm, directory);
    require<InputError>(description.num_parts >= comm.size(), directory, ": there are ",
                        description.num_parts, " parts, expected at least one for each of the ", comm.size(),
                        " ranks");
    const PartitionBook parts = PartitionBook::even(description.num_parts, comm.size());
    GraphData graph = read_parts(directory, description, static_cast<int>(parts.begin(comm.rank())),
                                 static_cast<int>(parts.end(comm.rank())));
    for (NodeTypeData& nodes : graph.node_types) {
      nodes.book = nodes.book.joined(parts);
      require_unique_ids(comm, nodes.original_ids, concat(path, ": original ids of ", nodes.name));
    }
    for (const EdgeTypeData& edges : graph.edge_types)
      require_unique_ids(comm, edges.edges.id, concat(path, ": ids of edges ", edges.canonical_name()));
    return graph;
  });
}
}}  // namespace sar
