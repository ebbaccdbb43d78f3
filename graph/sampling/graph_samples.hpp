// SPDX-License-Identifier: MIT

/// GraphSamples: many small graphs with their data, of which each is one sample of a training: molecules,
/// parts of programs, structures of atoms.
#pragma once

#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <map>
#include <span>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Rows of integers, such as the chemical element of each atom.
struct IntegerRows {
  Index columns = 1;
  Array<Index> values;  ///< [rows * columns]

  [[nodiscard]] Index num_rows() const noexcept { return std::ssize(values) / columns; }
  [[nodiscard]] const Index* row(Index i) const noexcept { return values.data() + i * columns; }
};

/// The fields of the nodes, the edges or the graphs, by name, with one row for each.
struct SampleFields {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, IntegerRows> integers;

  [[nodiscard]] bool empty() const noexcept { return tensors.empty() && integers.empty(); }
};

/// The graphs of this rank, one after another. Each graph is whole on one rank; a rank may have none, and
/// then has its fields with 0 rows. The edges of a graph are sorted by destination, then by source
/// (sort_edges).
///
/// @code
/// GraphSamples samples;
/// samples.add(0, 3, std::vector<Index>{0, 1, 2}, std::vector<Index>{1, 2, 0});  // a triangle
/// samples.add(1, 2, std::vector<Index>{0, 1}, std::vector<Index>{1, 0});
/// samples.nodes.tensors["x"] = Tensor::full({samples.num_nodes(), 4}, 1);
/// sort_edges(samples);
/// @endcode
struct GraphSamples {
  Array<Index> ids;                           ///< [graphs] number in the dataset: keys draws, names results
  Array<Index> node_begin{0}, edge_begin{0};  ///< [graphs + 1] first node and edge of each graph
  Array<local_index> src, dst;                ///< [edges] nodes of the same graph, counted from 0
  SampleFields nodes, edges, graphs;

  [[nodiscard]] Index num_graphs() const noexcept { return std::ssize(ids); }
  [[nodiscard]] Index num_nodes() const noexcept { return node_begin.back(); }
  [[nodiscard]] Index num_edges() const noexcept { return edge_begin.back(); }
  [[nodiscard]] Index num_nodes(Index g) const noexcept { return node_begin[g + 1] - node_begin[g]; }
  [[nodiscard]] Index num_edges(Index g) const noexcept { return edge_begin[g + 1] - edge_begin[g]; }

  /// Local. Adds a graph of so many nodes with the edges (src[k], dst[k]), whose nodes count from 0. Fields
  /// are set for all graphs afterwards. Throws InputError for an id outside [0, 2^31), for lists of
  /// different lengths and for an edge whose end is no node.
  void add(Index id, Index num_nodes, std::span<const Index> src, std::span<const Index> dst);

  /// Local. Throws InputError, which begins with `place` and names the graph, unless ids are in [0, 2^31),
  /// ends of edges are nodes of their graph, edges are sorted, and fields have a row for each node, edge or
  /// graph.
  void check(const std::string& place = "graph samples") const;

  /// Local. Returns the graphs at these positions, in their order, with their fields.
  [[nodiscard]] GraphSamples select(std::span<const Index> positions) const;
};

/// Local. Returns the number of node or edge `i` of the graph with this id, which keys its random draws. It
/// depends neither on batches nor on ranks.
[[nodiscard]] constexpr Index id_in_samples(Index graph_id, Index i) noexcept {
  return (graph_id << 31) + i;
}

/// Local. Returns names and row shapes of all fields as text, to compare ranks.
[[nodiscard]] std::string describe_fields(const GraphSamples& samples);

// Changes of the edges of graph samples. All functions are local.

/// Local. Sorts the edges of each graph by destination, then by source, with their fields; equal edges keep
/// their order. Throws InputError for ends outside of their graph and for fields of the edges without a row
/// for each.
void sort_edges(GraphSamples& samples);

/// Local. Adds an edge (v, u) for each edge (u, v), with the same fields, and sorts the edges. Throws as
/// sort_edges.
void add_reverse_edges(GraphSamples& samples);

/// Local. Adds an edge (v, v) for each node v, with fields of zeros, and sorts the edges. Throws as
/// sort_edges.
void add_self_loops(GraphSamples& samples);
}}  // namespace sar
