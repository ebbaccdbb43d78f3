// SPDX-License-Identifier: MIT

/// Small graphs of all sorts for tests: with loops, equal edges, isolated nodes, without edges or nodes.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/sampling/graph_samples.hpp>

#include <memory>
#include <vector>

namespace sar::test {

constexpr Index sample_width = 3;

/// Graph `id`: with 0 to 6 nodes. Fields: x and kind of the nodes, w of the edges, y of the graphs.
inline void add_sample(GraphSamples& samples, Index id) {
  const Index nodes = (5 * id + 4) % 7;
  std::vector<Index> src, dst;
  for (Index k = 0; nodes > 0 && k < (id * 3) % 8; ++k) {
    src.push_back((2 * k + id) % nodes);
    dst.push_back((k * k + 1) % nodes);
  }
  samples.add(id, nodes, src, dst);
}

/// The graphs first, first + 1, ..., end - 1 of the collection, sorted.
inline GraphSamples make_samples(Index first, Index end) {
  GraphSamples samples;
  for (Index id = first; id < end; ++id) add_sample(samples, id);
  Tensor x({samples.num_nodes(), sample_width}), w({samples.num_edges(), Index{1}}),
      y({samples.num_graphs(), Index{2}});
  IntegerRows kind{2, Array<Index>(static_cast<std::size_t>(2 * samples.num_nodes()))};
  for (Index g = 0; g < samples.num_graphs(); ++g) {
    const Index id = samples.ids[g];
    for (Index v = samples.node_begin[g]; v < samples.node_begin[g + 1]; ++v) {
      const Index i = v - samples.node_begin[g];
      for (Index j = 0; j < sample_width; ++j)
        x.row(v)[j] = static_cast<real>((id * 31 + i * 17 + j * 7) % 23) / 8 - 1;
      kind.values[2 * v] = (id + i) % 4;
      kind.values[2 * v + 1] = i % 2;
    }
    for (Index k = samples.edge_begin[g]; k < samples.edge_begin[g + 1]; ++k)
      w.row(k)[0] = static_cast<real>((id * 13 + (k - samples.edge_begin[g]) * 5) % 11) / 4 + 1;
    y.row(g)[0] = static_cast<real>(id % 5) / 4;
    y.row(g)[1] = static_cast<real>(id % 3);
  }
  samples.nodes.tensors["x"] = x;
  samples.nodes.integers["kind"] = kind;
  samples.edges.tensors["w"] = w;
  samples.graphs.tensors["y"] = y;
  sort_edges(samples);
  return samples;
}

/// How `count` graphs are distributed: evenly, or all on the last rank.
inline std::vector<PartitionBook> sample_books(Index count, int ranks) {
  std::vector<PartitionBook> books{PartitionBook::even(count, ranks)};
  if (ranks == 1) return books;
  std::vector<Index> offsets(static_cast<std::size_t>(ranks), 0);
  offsets.push_back(count);
  books.emplace_back(std::move(offsets));
  return books;
}

}  // namespace sar::test
