// SPDX-License-Identifier: MIT
#include "sample_tables.hpp"

#include "formats/csv_table.hpp"

#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/sampling/graph_samples.hpp>

#include <numeric>

namespace sar::formats {
namespace {

/// The edges of all graphs, those of each graph one after another. Their ends count from 0 in the graph.
std::vector<SampleEdge> read_edges(const Communicator& comm, const std::string& path, Index block_bytes,
                                   const SampleSizes& sizes, const std::vector<Index>& edges_of_graphs) {
  const std::vector<Index> edge_begin = offsets_of_sizes(edges_of_graphs);
  const Index num_edges = edge_begin.back();
  const TableFormat format{
      .columns = 2,
      .smallest = 0,
      .rows = num_edges,
      .wrong_rows = concat(" edges, expected ", num_edges, ", the sum of num-edge-list.csv.gz")};
  std::vector<SampleEdge> read;
  read_table<std::int64_t>(comm, path, format, block_bytes, [&](auto& values, const BlockPlace& at) {
    comm.agree([&] {
      Index row = at.first_row;
      Index graph = std::ranges::upper_bound(edge_begin, row) - edge_begin.begin() - 1;
      for (std::size_t i = 0; i < values.size(); i += 2, ++row) {
        while (edge_begin[graph + 1] <= row) ++graph;
        const Index src = values[i], dst = values[i + 1];
        const Index nodes = sizes.node_begin[graph + 1] - sizes.node_begin[graph];
        require<InputError>(src < nodes && dst < nodes, path, ": line ", row + 1, ": edge (", src, ", ", dst,
                            ") is of graph ", graph, ", expected ends below ", nodes,
                            ", its number of nodes");
        read.push_back({graph, row, static_cast<local_index>(src), static_cast<local_index>(dst)});
      }
    });
  });
  return read;
}

}  // namespace

SampleDataset read_ogb_samples(const Communicator& comm, const std::string& folder,
                               const SourceOptions& options) {
  const Index block = options.block_bytes;
  const TableFolder raw(comm, folder + "/raw/", block);
  const std::string node_list = raw.find_file("num-node-list", true);
  const std::string edge_list = raw.find_file("num-edge-list", true);
  const TableFormat counts{.smallest = 0, .largest = Index{1} << 40};
  const std::vector<Index> nodes_of = read_list(comm, node_list, counts, block);
  const std::vector<Index> edges_of = read_list(comm, edge_list, counts, block);
  require<InputError>(edges_of.size() == nodes_of.size(), edge_list, ": there are ", edges_of.size(),
                      " lines, expected ", nodes_of.size(), ", one for each graph of num-node-list.csv.gz");
  const SampleSizes sizes(comm, nodes_of, 0, node_list);
  SampleDataset data;
  data.format = "OGB folder";
  data.name = last_part_of(folder);
  data.book = sizes.graphs;
  if (const std::string note = sizes.note_of_empty(0); !note.empty()) data.notes.push_back(note);
  Array<Index> edge_rows;
  {
    const std::vector<SampleEdge> edges =
        read_edges(comm, raw.find_file("edge", true), block, sizes, edges_of);
    data.samples = make_samples(comm, sizes, edges, edge_rows);
  }
  const Array<Index> graphs = rows_of_rank(comm, sizes.graphs), nodes = rows_of_rank(comm, sizes.nodes);
  const auto add_features = [&](SampleFields& to, const char* of, const PartitionBook& book,
                                const Array<Index>& numbers) {
    const std::string path = raw.find_file(concat(of, "-feat"), false);
    if (path.empty()) return;
    const DataArray rows =
        fetch_rows(comm, book, raw.read_rows(path, book, TableNumbers::labels, of), numbers);
    comm.agree([&] { add_field(to, "features", rows, numbers, path); });
  };
  const Index num_edges = std::accumulate(edges_of.begin(), edges_of.end(), Index{0});
  add_features(data.samples.nodes, "node", sizes.nodes, nodes);
  add_features(data.samples.edges, "edge", PartitionBook::even(num_edges, comm.size()), edge_rows);
  data.label_file = raw.find_file("graph-label", true);
  data.labels = raw.read_rows(data.label_file, sizes.graphs, TableNumbers::labels, "graph");
  if (const std::string split = find_split(comm, folder + "/split", options.split); !split.empty()) {
    FieldTable masks;
    TableFolder(comm, split + "/", block).read_masks(masks, sizes.graphs);
    const char* const names[] = {"train_mask", "val_mask", "test_mask"};
    for (std::size_t i = 0; i < data.masks.size(); ++i)
      data.masks[i] = masks.read(comm, split, names[i], graphs);
    data.has_split = true;
  }
  comm.agree([&] { sort_edges(data.samples); });
  return data;
}

}  // namespace sar::formats
