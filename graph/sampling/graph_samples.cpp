// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/graph_samples.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

constexpr Index max_local = std::numeric_limits<local_index>::max();

void check_id(Index id, const std::string& place) {
  require<InputError>(0 <= id && id <= max_local, place, ": the id of a graph is ", id, ", expected 0 to ",
                      max_local);
}

void check_fields(const SampleFields& fields, Index rows, const char* of, const std::string& place) {
  const auto check = [&](const std::string& name, Index found) {
    require<InputError>(found == rows, place, ": the field ", name, " of the ", of, " has ", found,
                        " rows, expected ", rows);
  };
  for (const auto& [name, tensor] : fields.tensors) check(name, tensor.num_rows());
  for (const auto& [name, integers] : fields.integers) {
    require<InputError>(integers.columns >= 1, place, ": the field ", name, " of the ", of, " has ",
                        integers.columns, " columns, expected 1 or more");
    check(name, integers.num_rows());
  }
}

/// Copies the ranges [begin[g], begin[g + 1]) of the chosen graphs, one after another.
template <class T>
void copy_ranges(const T* from, Index row_size, const Array<Index>& begin, std::span<const Index> positions,
                 T* to) {
  for (const Index g : positions)
    to = std::copy(from + begin[g] * row_size, from + begin[g + 1] * row_size, to);
}

/// Memory for `rows` rows of the width of `from`.
Tensor like(const Tensor& from, Index rows) {
  return Tensor(from.shape().with_rows(rows));
}
IntegerRows like(const IntegerRows& from, Index rows) {
  return {from.columns, Array<Index>(static_cast<std::size_t>(rows * from.columns))};
}

/// The rows change(name, rows) of all fields.
template <class Change>
SampleFields changed(const SampleFields& fields, const Change& change) {
  SampleFields results;
  for (const auto& [name, rows] : fields.tensors) results.tensors[name] = change(name, rows);
  for (const auto& [name, rows] : fields.integers) results.integers[name] = change(name, rows);
  return results;
}

/// The rows of the chosen graphs, of which there are `rows`.
SampleFields select_fields(const SampleFields& fields, const Array<Index>& begin,
                           std::span<const Index> positions, Index rows) {
  return changed(fields, [&](const std::string&, const auto& from) {
    auto to = like(from, rows);
    copy_ranges(from.data(), from.row_size(), begin, positions, to.data());
    return to;
  });
}

}  // namespace

void GraphSamples::add(Index id, Index nodes_of_graph, std::span<const Index> from,
                       std::span<const Index> to) {
  const std::string place = concat("graph ", id);
  check_id(id, place);
  require<InputError>(0 <= nodes_of_graph && nodes_of_graph <= max_local, place, " has ", nodes_of_graph,
                      " nodes, expected 0 to ", max_local);
  require<InputError>(from.size() == to.size(), place, " has edges with ", from.size(), " sources and ",
                      to.size(), " destinations, expected as many");
  for (std::size_t k = 0; k < from.size(); ++k)
    require<InputError>(0 <= from[k] && from[k] < nodes_of_graph && 0 <= to[k] && to[k] < nodes_of_graph,
                        place, ": edge ", k, " is (", from[k], ", ", to[k], "), and there are ",
                        nodes_of_graph, " nodes, expected ends below that");
  ids.push_back(id);
  node_begin.push_back(node_begin.back() + nodes_of_graph);
  edge_begin.push_back(edge_begin.back() + std::ssize(from));
  for (const Index u : from) src.push_back(static_cast<local_index>(u));
  for (const Index v : to) dst.push_back(static_cast<local_index>(v));
}

void GraphSamples::check(const std::string& place) const {
  require<InputError>(node_begin.size() == ids.size() + 1 && edge_begin.size() == ids.size() + 1 &&
                          node_begin[0] == 0 && edge_begin[0] == 0,
                      place, ": there are ", ids.size(), " ids, ", node_begin.size(),
                      " beginnings of nodes and ", edge_begin.size(),
                      " of edges, expected one more beginning than ids, and 0 as the first");
  require<InputError>(std::ssize(src) == num_edges() && std::ssize(dst) == num_edges(), place, ": there are ",
                      src.size(), " sources and ", dst.size(), " destinations of edges, expected ",
                      num_edges());
  for (Index g = 0; g < num_graphs(); ++g) {
    check_id(ids[g], place);
    require<InputError>(
        num_nodes(g) >= 0 && num_nodes(g) <= max_local && num_edges(g) >= 0 && num_edges(g) <= max_local,
        place, ": graph ", ids[g], " has ", num_nodes(g), " nodes and ", num_edges(g),
        " edges, expected 0 to ", max_local);
    const auto nodes_here = static_cast<local_index>(num_nodes(g));
    for (Index k = edge_begin[g]; k < edge_begin[g + 1]; ++k) {
      require<InputError>(0 <= src[k] && src[k] < nodes_here && 0 <= dst[k] && dst[k] < nodes_here, place,
                          ": graph ", ids[g], " has the edge (", src[k], ", ", dst[k],
                          "), expected ends below ", nodes_here, ", its number of nodes");
      require<InputError>(k == edge_begin[g] || std::tie(dst[k - 1], src[k - 1]) <= std::tie(dst[k], src[k]),
                          place, ": the edges of graph ", ids[g],
                          " are not sorted by destination and source, expected a call of sort_edges");
    }
  }
  check_fields(nodes, num_nodes(), "nodes", place);
  check_fields(edges, num_edges(), "edges", place);
  check_fields(graphs, num_graphs(), "graphs", place);
}

GraphSamples GraphSamples::select(std::span<const Index> positions) const {
  GraphSamples chosen;
  Array<Index> rows(ids.size() + 1);
  for (Index g = 0; g < std::ssize(rows); ++g) rows[g] = g;
  for (const Index g : positions) {
    require<InputError>(0 <= g && g < num_graphs(), "there is no graph at position ", g, ", expected ",
                        index_range(num_graphs()));
    chosen.ids.push_back(ids[g]);
    chosen.node_begin.push_back(chosen.node_begin.back() + num_nodes(g));
    chosen.edge_begin.push_back(chosen.edge_begin.back() + num_edges(g));
  }
  chosen.src.resize(static_cast<std::size_t>(chosen.num_edges()));
  chosen.dst.resize(chosen.src.size());
  copy_ranges(src.data(), 1, edge_begin, positions, chosen.src.data());
  copy_ranges(dst.data(), 1, edge_begin, positions, chosen.dst.data());
  chosen.nodes = select_fields(nodes, node_begin, positions, chosen.num_nodes());
  chosen.edges = select_fields(edges, edge_begin, positions, chosen.num_edges());
  chosen.graphs = select_fields(graphs, rows, positions, chosen.num_graphs());
  return chosen;
}

std::string describe_fields(const GraphSamples& samples) {
  std::string text;
  const auto add = [&](const char* of, const SampleFields& fields) {
    for (const auto& [name, tensor] : fields.tensors)
      text += concat(of, " ", name, " ", tensor.defined() ? tensor.shape().with_rows(0) : Shape(), "; ");
    for (const auto& [name, integers] : fields.integers)
      text += concat(of, " ", name, " ", integers.columns, " integers; ");
  };
  add("nodes", samples.nodes);
  add("edges", samples.edges);
  add("graphs", samples.graphs);
  return text;
}

// Each function makes a list of the edges in their new order, as rows of the old edges or -1 for a new edge,
// and then the columns and fields in this order.

namespace {

/// An edge of the new graph: its ends, and the old edge whose fields it has; -1: fields of zeros.
struct NewEdge {
  local_index src, dst;
  Index old;
};

/// The rows of `from` with these numbers, zeros for -1.
template <class Rows>
Rows rows_of(const Rows& from, const Array<Index>& rows) {
  Rows to = like(from, std::ssize(rows));
  for (Index i = 0; i < std::ssize(rows); ++i) {
    if (rows[i] < 0)
      std::fill_n(to.row(i), to.row_size(), 0);
    else
      std::copy_n(from.row(rows[i]), from.row_size(), to.row(i));
  }
  return to;
}

/// Gives each graph the edges that `edges_of(g, edges)` lists, in sorted order.
template <class EdgesOf>
void replace_edges(GraphSamples& samples, const EdgesOf& edges_of) {
  Array<local_index> src, dst;
  Array<Index> begin{0}, old;
  std::vector<NewEdge> edges;
  for (Index g = 0; g < samples.num_graphs(); ++g) {
    edges.clear();
    edges_of(g, edges);
    const auto nodes = static_cast<local_index>(samples.num_nodes(g));
    for (const NewEdge& edge : edges)
      require<InputError>(0 <= edge.src && edge.src < nodes && 0 <= edge.dst && edge.dst < nodes, "graph ",
                          samples.ids[g], " has the edge (", edge.src, ", ", edge.dst,
                          "), expected ends below ", nodes, ", its number of nodes");
    std::ranges::stable_sort(edges, [](const NewEdge& a, const NewEdge& b) {
      return std::tie(a.dst, a.src) < std::tie(b.dst, b.src);
    });
    for (const NewEdge& edge : edges) {
      src.push_back(edge.src);
      dst.push_back(edge.dst);
      old.push_back(edge.old);
    }
    begin.push_back(std::ssize(src));
  }
  SampleFields fields = changed(samples.edges, [&](const std::string& name, const auto& rows) {
    require<InputError>(rows.num_rows() == samples.num_edges(), "the field ", name, " of the edges has ",
                        rows.num_rows(), " rows, expected ", samples.num_edges());
    return rows_of(rows, old);
  });
  samples.src = std::move(src);
  samples.dst = std::move(dst);
  samples.edge_begin = std::move(begin);
  samples.edges = std::move(fields);
}

void list_edges(const GraphSamples& samples, Index g, std::vector<NewEdge>& edges) {
  for (Index k = samples.edge_begin[g]; k < samples.edge_begin[g + 1]; ++k)
    edges.push_back({samples.src[k], samples.dst[k], k});
}

}  // namespace

void sort_edges(GraphSamples& samples) {
  replace_edges(samples, [&](Index g, std::vector<NewEdge>& edges) { list_edges(samples, g, edges); });
}

void add_reverse_edges(GraphSamples& samples) {
  replace_edges(samples, [&](Index g, std::vector<NewEdge>& edges) {
    list_edges(samples, g, edges);
    for (Index k = samples.edge_begin[g]; k < samples.edge_begin[g + 1]; ++k)
      edges.push_back({samples.dst[k], samples.src[k], k});
  });
}

void add_self_loops(GraphSamples& samples) {
  replace_edges(samples, [&](Index g, std::vector<NewEdge>& edges) {
    list_edges(samples, g, edges);
    for (local_index v = 0; v < static_cast<local_index>(samples.num_nodes(g)); ++v)
      edges.push_back({v, v, -1});
  });
}

namespace {

/// The edges of all samples of this rank, whose first node has the global id `first`. They are in the order
/// in which the graph has them.
EdgeList edges_of(const GraphSamples& samples, Index first) {
  EdgeList edges;
  const auto count = static_cast<std::size_t>(samples.num_edges());
  for (Array<Index>* column : {&edges.src, &edges.dst, &edges.id}) column->resize(count);
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
    if (end != begin.begin() && end != begin.end()) {
      const Index first = *std::prev(end), last = *end;
      if ((last - first) * ranks <= nodes) cut = cut - first < last - cut ? first : last;
    }
    offsets.push_back(cut);
  }
  offsets.push_back(nodes);
  return PartitionBook(std::move(offsets));
}

SampleFields forward(const RowRoute& route, const SampleFields& fields) {
  return changed(fields, [&](const std::string&, const auto& rows) {
    auto arrived = like(rows, route.num_arrived());
    route.forward(reinterpret_cast<const std::byte*>(rows.data()),
                  rows.row_size() * static_cast<Index>(sizeof(*rows.data())),
                  reinterpret_cast<std::byte*>(arrived.data()));
    return arrived;
  });
}

/// Puts rows into the order in which a graph has the edges, whose ids are their numbers from `first` on.
void reorder(SampleFields& fields, std::span<const Index> ids, Index first) {
  const auto reorder_rows = [&](auto& rows) {
    const auto before = std::exchange(rows, like(rows, rows.num_rows()));
    for (std::size_t k = 0; k < ids.size(); ++k)
      std::copy_n(before.row(ids[k] - first), before.row_size(), rows.row(static_cast<Index>(k)));
  };
  for (auto& [name, rows] : fields.tensors) reorder_rows(rows);
  for (auto& [name, rows] : fields.integers) reorder_rows(rows);
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
    return route().back(rows);
  });
}

namespace {

/// The ids of the samples at these positions, which must be distinct.
Array<Index> ids_of(const Communicator& comm, const GraphSamples& samples, std::span<const Index> positions,
                    const GraphOptions& options) {
  return comm.agree([&] {
    samples.check();
    comm.require_equal(
        CollectiveCall("SampleLoader").equal("list of fields", describe_fields(samples)).equal(options));
    Array<Index> ids;
    std::vector<bool> seen(samples.ids.size(), false);
    for (const Index i : positions) {
      require<InputError>(0 <= i && i < samples.num_graphs(), "there is no graph at position ", i,
                          ", expected ", index_range(samples.num_graphs()));
      require<InputError>(!seen[static_cast<std::size_t>(i)], "the graph at position ", i, " is given twice");
      seen[static_cast<std::size_t>(i)] = true;
      ids.push_back(samples.ids[i]);
    }
    return ids;
  });
}

}  // namespace

SampleLoader::SampleLoader(const Communicator& comm, std::shared_ptr<const GraphSamples> samples,
                           std::span<const Index> positions, const DataLoaderOptions& options,
                           const GraphOptions& graph_options)
    : comm_(comm),
      samples_(std::move(samples)),
      positions_(comm.agree([&] { return Array<Index>(positions.begin(), positions.end()); })),
      batches_(comm, ids_of(comm, *samples_, positions, graph_options), options),
      graph_options_(graph_options) {}

std::optional<Array<Index>> SampleLoader::positions_at_hand(const char* call) const {
  const auto chosen = batches_.at_hand(comm_, call);
  if (!chosen) return std::nullopt;
  Array<Index> positions;
  for (const Index i : *chosen) positions.push_back(positions_[i]);
  return positions;
}

std::optional<Array<Index>> SampleLoader::next_positions() {
  return comm_.agree([&] {
    auto positions = positions_at_hand("SampleLoader::next_positions");
    if (positions) batches_.advance();
    return positions;
  });
}

std::optional<SampleMiniBatch> SampleLoader::next() {
  return comm_.agree([&]() -> std::optional<SampleMiniBatch> {
    auto positions = positions_at_hand("SampleLoader::next");
    if (!positions) return std::nullopt;
    SampleBatch batch(comm_, samples_->select(*positions), graph_options_);
    SampleMiniBatch next{
        .number = batches_.number(), .positions = std::move(*positions), .batch = std::move(batch)};
    batches_.advance();
    return next;
  });
}
}}  // namespace sar
