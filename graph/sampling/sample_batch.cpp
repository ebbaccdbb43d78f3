// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/sample_batch.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// The edges of all samples of this rank, whose first node has the global id `first`. They are in the order
/// in which the graph has them.
EdgeList edges_of(const GraphSamples& samples, Index first) {
  EdgeList edges;
  const auto count = static_cast<std::size_t>(samples.num_edges());
  edges.src.resize(count);
  edges.dst.resize(count);
  edges.id.resize(count);
  for (Index g = 0; g < samples.num_graphs(); ++g) {
    const Index offset = first + samples.node_begin[g], begin = samples.edge_begin[g];
    for (Index k = begin; k < samples.edge_begin[g + 1]; ++k) {
      edges.src[k] = offset + samples.src[k];
      edges.dst[k] = offset + samples.dst[k];
      edges.id[k] = id_in_samples(samples.ids[g], k - begin);
    }
  }
  return edges;
}

}  // namespace

SampleBatch::SampleBatch(const Communicator& comm, GraphSamples samples, const GraphOptions& options)
    : state_(comm.agree(
          [&] { return std::make_shared<const State>(make(comm, std::move(samples), options)); })) {}

SampleBatch::State SampleBatch::make(const Communicator& comm, GraphSamples samples,
                                     const GraphOptions& options) {
  samples.check();
  const CallScope compared(
      comm, CollectiveCall("SampleBatch").equal("list of fields", describe_fields(samples)).equal(options));
  const std::array<Index, 2> mine{samples.num_nodes(), samples.num_graphs()};
  std::vector<Index> offsets{0};
  Index graphs = 0;
  for (const std::array<Index, 2>& of_rank : comm.all_gather(mine)) {
    offsets.push_back(offsets.back() + of_rank[0]);
    graphs += of_rank[1];
  }
  require<InputError>(graphs > 0, "a batch of no graph samples, expected at least one on any rank");
  const PartitionBook book(std::move(offsets));
  Array<Index> ids(static_cast<std::size_t>(samples.num_nodes()));
  Array<Index> graph_of_nodes(ids.size());
  for (Index g = 0; g < samples.num_graphs(); ++g)
    for (Index v = samples.node_begin[g]; v < samples.node_begin[g + 1]; ++v) {
      ids[v] = id_in_samples(samples.ids[g], v - samples.node_begin[g]);
      graph_of_nodes[v] = g;
    }
  EdgeList edges = edges_of(samples, book.begin(comm.rank()));
  Graph graph(comm, book, book, std::move(edges), /*is_block=*/true, options, ids, ids);
  return {.samples = std::make_shared<const GraphSamples>(std::move(samples)),
          .graph_of_nodes = std::make_shared<const Array<Index>>(std::move(graph_of_nodes)),
          .graph = std::move(graph),
          .num_global_graphs = graphs};
}

// The nodes keep their order, so that the nodes and edges of a rank's samples go to consecutive ranks: both
// routes are sorted, and what arrives is in the order of the whole batch.

namespace {

/// The nodes of each rank. `begin`: first node of each sample, and the number of all nodes.
PartitionBook spread(const std::vector<Index>& begin, int ranks) {
  const Index nodes = begin.back();
  std::vector<Index> offsets{0};
  for (int p = 1; p < ranks; ++p) {
    Index cut = nodes * p / ranks;
    const auto end = std::ranges::upper_bound(begin, cut);
    if (end != begin.end()) {
      const Index first = *std::prev(end), last = *end;
      if ((last - first) * ranks <= nodes) cut = cut - first < last - cut ? first : last;
    }
    offsets.push_back(cut);
  }
  offsets.push_back(nodes);
  return PartitionBook(std::move(offsets));
}

Tensor forward(const RowRoute& route, const Tensor& rows) {
  Tensor arrived(rows.shape().with_rows(route.num_arrived()));
  route.forward(reinterpret_cast<const std::byte*>(rows.data()),
                rows.row_size() * static_cast<Index>(sizeof(real)),
                reinterpret_cast<std::byte*>(arrived.data()));
  return arrived;
}

SampleFields forward(const RowRoute& route, const SampleFields& fields) {
  SampleFields arrived;
  for (const auto& [name, rows] : fields.tensors) arrived.tensors[name] = forward(route, rows);
  for (const auto& [name, rows] : fields.integers) {
    IntegerRows& to = arrived.integers[name];
    to.columns = rows.columns;
    to.values.resize(static_cast<std::size_t>(rows.columns * route.num_arrived()));
    route.forward(reinterpret_cast<const std::byte*>(rows.values.data()),
                  rows.columns * static_cast<Index>(sizeof(Index)),
                  reinterpret_cast<std::byte*>(to.values.data()));
  }
  return arrived;
}

/// Puts rows into the order in which a graph has the edges, whose ids are their numbers from `first` on.
void reorder(SampleFields& fields, std::span<const Index> ids, Index first) {
  for (auto& [name, rows] : fields.tensors) {
    const Tensor before = std::exchange(rows, Tensor(rows.shape()));
    for (std::size_t k = 0; k < ids.size(); ++k)
      std::copy_n(before.row(ids[k] - first), before.row_size(), rows.row(static_cast<Index>(k)));
  }
  for (auto& [name, rows] : fields.integers) {
    const IntegerRows before = rows;
    for (std::size_t k = 0; k < ids.size(); ++k)
      std::copy_n(before.row(ids[k] - first), before.columns,
                  rows.values.data() + static_cast<Index>(k) * rows.columns);
  }
}

}  // namespace

SpreadBatch::SpreadBatch(const Communicator& comm, const GraphSamples& samples, const GraphOptions& options)
    : state_(comm.agree([&] { return std::make_shared<const State>(make(comm, samples, options)); })) {}

SpreadBatch::State SpreadBatch::make(const Communicator& comm, const GraphSamples& samples,
                                     const GraphOptions& options) {
  samples.check();
  const CallScope compared(
      comm, CollectiveCall("SpreadBatch").equal("list of fields", describe_fields(samples)).equal(options));
  std::vector<Index> sizes, begin{0};
  for (Index g = 0; g < samples.num_graphs(); ++g) sizes.push_back(samples.num_nodes(g));
  for (const Index size : comm.all_gather(std::span<const Index>(sizes)))
    begin.push_back(begin.back() + size);
  const Index num_graphs = std::ssize(begin) - 1;
  require<InputError>(num_graphs > 0, "a batch of no graph samples, expected at least one on any rank");
  const Index first_graph = gather_book(comm, samples.num_graphs()).begin(comm.rank());
  const Index first_node = begin[static_cast<std::size_t>(first_graph)];
  const PartitionBook book = spread(begin, comm.size());

  Array<Index> graphs, ids;
  std::vector<std::int32_t> node_targets, edge_targets;
  Array<Index> src, dst;
  for (Index g = 0; g < samples.num_graphs(); ++g) {
    for (Index v = samples.node_begin[g]; v < samples.node_begin[g + 1]; ++v) {
      graphs.push_back(first_graph + g);
      ids.push_back(id_in_samples(samples.ids[g], v - samples.node_begin[g]));
      node_targets.push_back(book.owner(first_node + v));
    }
    for (Index k = samples.edge_begin[g]; k < samples.edge_begin[g + 1]; ++k) {
      src.push_back(first_node + samples.node_begin[g] + samples.src[k]);
      dst.push_back(first_node + samples.node_begin[g] + samples.dst[k]);
      edge_targets.push_back(book.owner(dst.back()));
    }
  }
  RowRoute nodes(comm, node_targets);
  const RowRoute edges(comm, edge_targets);
  const Array<Index> local_ids = nodes.forward(std::span<const Index>(ids));
  EdgeList list;
  list.src = edges.forward(std::span<const Index>(src));
  list.dst = edges.forward(std::span<const Index>(dst));
  const Index first_edge = gather_book(comm, edges.num_arrived()).begin(comm.rank());
  for (Index k = 0; k < edges.num_arrived(); ++k) list.id.push_back(first_edge + k);
  Array<Index> graph_of_nodes = nodes.forward(std::span<const Index>(graphs));
  SampleFields of_nodes = forward(nodes, samples.nodes), of_edges = forward(edges, samples.edges);
  Graph graph(comm, book, book, std::move(list), /*is_block=*/true, options, local_ids, local_ids);
  const auto& order = graph.edge_ids();
  reorder(of_edges, std::vector<Index>(order.begin(), order.end()), first_edge);
  return {.route = std::move(nodes),
          .graph = std::move(graph),
          .nodes = std::move(of_nodes),
          .edges = std::move(of_edges),
          .graph_of_nodes = std::move(graph_of_nodes),
          .num_global_graphs = num_graphs};
}

Tensor SpreadBatch::to_samples(const Tensor& rows) const {
  return graph().comm().agree([&] {
    require<ShapeError>(rows.num_rows() == route().num_arrived(), "SpreadBatch::to_samples of ",
                        rows.num_rows(), " rows, expected one for each of ", route().num_arrived(), " nodes");
    Tensor back(rows.shape().with_rows(route().num_rows()));
    route().back(reinterpret_cast<const std::byte*>(rows.data()),
                 rows.row_size() * static_cast<Index>(sizeof(real)),
                 reinterpret_cast<std::byte*>(back.data()));
    return back;
  });
}
}}  // namespace sar
