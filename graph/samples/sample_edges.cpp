// SPDX-License-Identifier: MIT

// Each function makes a list of the edges in their new order, as rows of the old edges or -1 for a new edge,
// and then the columns and fields in this order.
#include <sar/core/error.hpp>
#include <sar/graph/samples/sample_edges.hpp>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// An edge of the new graph: its ends, and the old edge whose fields it has; -1: fields of zeros.
struct NewEdge {
  local_index src, dst;
  Index old;
};

Tensor rows_of(const Tensor& from, const Array<Index>& rows) {
  Tensor to(from.shape().with_rows(std::ssize(rows)));
  for (Index i = 0; i < std::ssize(rows); ++i) {
    if (rows[i] < 0)
      std::fill_n(to.row(i), to.row_size(), real{0});
    else
      std::copy_n(from.row(rows[i]), from.row_size(), to.row(i));
  }
  return to;
}

IntegerRows rows_of(const IntegerRows& from, const Array<Index>& rows) {
  IntegerRows to{from.columns, Array<Index>(rows.size() * static_cast<std::size_t>(from.columns))};
  for (Index i = 0; i < std::ssize(rows); ++i) {
    Index* const row = to.values.data() + i * to.columns;
    if (rows[i] < 0)
      std::fill_n(row, to.columns, Index{0});
    else
      std::copy_n(from.row(rows[i]), from.columns, row);
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
  SampleFields fields;
  for (const auto& [name, tensor] : samples.edges.tensors) {
    require<InputError>(tensor.num_rows() == samples.num_edges(), "the field ", name, " of the edges has ",
                        tensor.num_rows(), " rows, expected ", samples.num_edges());
    fields.tensors[name] = rows_of(tensor, old);
  }
  for (const auto& [name, integers] : samples.edges.integers) {
    require<InputError>(integers.num_rows() == samples.num_edges(), "the field ", name, " of the edges has ",
                        integers.num_rows(), " rows, expected ", samples.num_edges());
    fields.integers[name] = rows_of(integers, old);
  }
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

}}  // namespace sar
