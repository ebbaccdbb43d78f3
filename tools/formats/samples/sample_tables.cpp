// SPDX-License-Identifier: MIT
#include "sample_tables.hpp"

#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

namespace sar::formats {
namespace {

/// Consecutive graphs for each rank, with about as many nodes as the others have.
PartitionBook balanced_graphs(const std::vector<Index>& node_begin, int ranks) {
  const Index graphs = std::ssize(node_begin) - 1, nodes = node_begin.back();
  std::vector<Index> offsets{0};
  for (int p = 1; p < ranks; ++p) {
    const Index wanted = nodes / ranks * p + nodes % ranks * p / ranks;
    const auto at = std::ranges::lower_bound(node_begin, wanted) - node_begin.begin();
    offsets.push_back(std::clamp<Index>(at, offsets.back(), graphs));
  }
  offsets.push_back(graphs);
  return PartitionBook(std::move(offsets));
}

}  // namespace

SampleSizes::SampleSizes(const Communicator& comm, const std::vector<Index>& nodes_of_graphs,
                         Index first_number, const std::string& place) {
  require<InputError>(!nodes_of_graphs.empty(), place, ": there is no graph, expected at least one");
  require<InputError>(std::ssize(nodes_of_graphs) < std::numeric_limits<local_index>::max(), place,
                      ": there are ", nodes_of_graphs.size(), " graphs, expected fewer than 2^31");
  for (std::size_t g = 0; g < nodes_of_graphs.size(); ++g) {
    require<InputError>(nodes_of_graphs[g] < std::numeric_limits<local_index>::max(), place, ": graph ",
                        static_cast<Index>(g) + first_number, " has ", nodes_of_graphs[g],
                        " nodes, expected fewer than 2^31");
    node_begin.push_back(node_begin.back() + nodes_of_graphs[g]);
  }
  require<InputError>(node_begin.back() > 0, place, ": there are no nodes, expected at least one");
  graphs = balanced_graphs(node_begin, comm.size());
  std::vector<Index> offsets;
  for (int p = 0; p < comm.size(); ++p) offsets.push_back(node_begin[graphs.begin(p)]);
  offsets.push_back(node_begin.back());
  nodes = PartitionBook(std::move(offsets));
}

std::string SampleSizes::note_of_empty(Index first_number) const {
  const auto first = std::ranges::adjacent_find(node_begin);
  if (first == node_begin.end()) return "";
  Index empty = 0;
  for (Index g = 0; g < num_graphs(); ++g) empty += node_begin[g] == node_begin[g + 1] ? 1 : 0;
  return concat(empty, empty == 1 ? " graph has" : " graphs have", " no nodes, the first is graph ",
                first - node_begin.begin() + first_number, ": the readout is 0");
}

Index SampleSizes::graph_of(Index node) const {
  return std::ranges::upper_bound(node_begin, node) - node_begin.begin() - 1;
}

GraphSamples make_samples(const Communicator& comm, const SampleSizes& sizes,
                          std::span<const SampleEdge> edges, Array<Index>& edge_rows) {
  std::vector<SampleEdge> arrived;
  route_chunks(
      comm, std::ssize(edges), sizeof(SampleEdge),
      [&](Index i) { return sizes.graphs.owner(edges[i].graph); },
      [&](const RowRoute& route, Index first, Index last) {
        const Array<SampleEdge> some = route.forward(edges.subspan(first, last - first));
        arrived.insert(arrived.end(), some.begin(), some.end());
      });
  std::ranges::sort(arrived, [](const SampleEdge& a, const SampleEdge& b) {
    return std::tie(a.graph, a.row) < std::tie(b.graph, b.row);
  });
  GraphSamples samples;
  auto next = arrived.begin();
  for (Index g = sizes.graphs.begin(comm.rank()); g < sizes.graphs.end(comm.rank()); ++g) {
    samples.ids.push_back(g);
    samples.node_begin.push_back(samples.num_nodes() + sizes.node_begin[g + 1] - sizes.node_begin[g]);
    for (; next != arrived.end() && next->graph == g; ++next) {
      samples.src.push_back(next->src);
      samples.dst.push_back(next->dst);
      edge_rows.push_back(next->row);
    }
    samples.edge_begin.push_back(std::ssize(samples.src));
  }
  return samples;
}

Array<Index> rows_of_rank(const Communicator& comm, const PartitionBook& book) {
  return consecutive(book.begin(comm.rank()), book.num_nodes(comm.rank()));
}

void add_field(SampleFields& to, const std::string& name, const DataArray& rows, const Array<Index>& numbers,
               const std::string& path) {
  const Index columns = rows.row_size();
  if (is_floating_point(rows.type)) {
    const Tensor values = rows.to_tensor().reshape({rows.num_rows, columns});
    for (Index i = 0; i < values.size(); ++i)
      require<InputError>(std::isfinite(values.data()[i]), path, ": row ", numbers[i / columns], ", column ",
                          i % columns, " is missing, expected finite numbers");
    to.tensors[name] = values;
    return;
  }
  IntegerRows integers{columns, Array<Index>(static_cast<std::size_t>(rows.num_rows * columns))};
  if (!rows.bytes.empty()) std::memcpy(integers.values.data(), rows.bytes.data(), rows.bytes.size());
  for (Index i = 0; i < std::ssize(integers.values); ++i)
    require<InputError>(integers.values[i] >= 0, path, ": row ", numbers[i / columns], ", column ",
                        i % columns, " is ", integers.values[i],
                        " or missing, expected categories from 0 on");
  to.integers[name] = std::move(integers);
}

}  // namespace sar::formats
