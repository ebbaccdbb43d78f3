// SPDX-License-Identifier: MIT
#include "ogb_samples.hpp"

#include "formats/csv_table.hpp"
#include "sample_tables.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/data/graph_source.hpp>
#include <sar/graph/samples/sample_edges.hpp>

#include <numeric>

namespace sar::formats {
namespace {

/// The edges of all graphs, those of each graph one after another. Their ends count from 0 in the graph.
ReadEdges read_edges(const Communicator& comm, const std::string& path, Index block_bytes,
                     const SampleSizes& sizes, const std::vector<Index>& edges_of_graphs) {
  std::vector<Index> edge_begin{0};
  for (const Index edges : edges_of_graphs) edge_begin.push_back(edge_begin.back() + edges);
  const Index num_edges = edge_begin.back();
  const TableFormat format{.columns = 2, .smallest = 0};
  std::vector<std::int64_t> values;
  ReadEdges read;
  const auto require_edges = [&](bool condition, Index edges, const char* at_least) {
    require<InputError>(condition, path, ": there are ", at_least, edges, " edges, expected ", num_edges,
                        ", the sum of num-edge-list.csv.gz");
  };
  const TextCounts counts = read_lines(
      comm, path, {}, block_bytes, [&](std::string_view text) { return parse_table(text, format, values); },
      [&](const BlockPlace& at) {
        const Index first = at.first_row, edges = at.rows_so_far;
        require_edges(edges <= num_edges, edges, "at least ");
        comm.agree([&] {
          const Index here = std::ssize(values) / 2;
          Index graph = std::ranges::upper_bound(edge_begin, first) - edge_begin.begin() - 1;
          for (Index i = 0; i < here; ++i) {
            while (edge_begin[graph + 1] <= first + i) ++graph;
            const Index src = values[2 * i], dst = values[2 * i + 1];
            const Index nodes = sizes.node_begin[graph + 1] - sizes.node_begin[graph];
            require<InputError>(src < nodes && dst < nodes, path, ": line ", first + i + 1, ": edge (", src,
                                ", ", dst, ") is of graph ", graph, ", expected ends below ", nodes,
                                ", its number of nodes");
            read.row.push_back(first + i);
            read.graph.push_back(graph);
            read.src.push_back(static_cast<local_index>(src));
            read.dst.push_back(static_cast<local_index>(dst));
          }
          values.clear();
        });
      });
  require_edges(counts.rows == num_edges, counts.rows, "");
  return read;
}

}  // namespace

SampleDataset read_ogb_samples(const Communicator& comm, const std::string& folder,
                               const SourceOptions& options) {
  const Index block = options.block_bytes;
  const OgbText raw(comm, folder + "/raw", block);
  const std::string node_list = raw.find_file("num-node-list", true);
  const std::string edge_list = raw.find_file("num-edge-list", true);
  const std::vector<Index> nodes_of = read_list(comm, node_list, block, 0);
  const std::vector<Index> edges_of = read_list(comm, edge_list, block, 0);
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
    const ReadEdges edges = read_edges(comm, raw.find_file("edge", true), block, sizes, edges_of);
    data.samples = make_samples(comm, sizes, edges, edge_rows);
  }
  const Array<Index> graphs = rows_of_rank(comm, sizes.graphs), nodes = rows_of_rank(comm, sizes.nodes);
  if (const std::string path = raw.find_file("node-feat", false); !path.empty()) {
    const DataArray rows = read_rows_of(comm, raw, path, sizes.nodes, nodes, TableNumbers::labels, "node");
    comm.agree([&] { add_field(data.samples.nodes, "features", rows, nodes, path); });
  }
  if (const std::string path = raw.find_file("edge-feat", false); !path.empty()) {
    const Index num_edges = std::accumulate(edges_of.begin(), edges_of.end(), Index{0});
    const DataArray rows = read_rows_of(comm, raw, path, PartitionBook::even(num_edges, comm.size()),
                                        edge_rows, TableNumbers::labels, "edge");
    comm.agree([&] { add_field(data.samples.edges, "features", rows, edge_rows, path); });
  }
  data.label_file = raw.find_file("graph-label", true);
  data.labels = read_rows_of(comm, raw, data.label_file, sizes.graphs, graphs, TableNumbers::labels, "graph");
  if (const std::string split = find_split(comm, folder + "/split", options.split); !split.empty()) {
    FieldTable masks;
    OgbText(comm, split, block).read_masks(masks, sizes.graphs);
    const char* const names[] = {"train_mask", "val_mask", "test_mask"};
    for (std::size_t i = 0; i < data.masks.size(); ++i)
      data.masks[i] = masks.read(comm, split, names[i], graphs);
    data.has_split = true;
  }
  comm.agree([&] { sort_edges(data.samples); });
  return data;
}

}  // namespace sar::formats
