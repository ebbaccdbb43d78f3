// SPDX-License-Identifier: MIT

/// Small whole graphs with everything that goes wrong (isolated nodes, self loops, parallel edges, hubs),
/// partitions with empty ranks, and the pieces of whole tensors that belong to a rank.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/message/graph.hpp>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sar::test {

struct WholeGraph {
  std::string name;
  Index num_src = 0;
  Index num_dst = 0;
  bool square = true;  ///< sources and destinations are the same nodes
  std::vector<Index> src, dst;
};

struct Books {
  PartitionBook src, dst;
};

/// `edges` edges with a hub, parallel edges, and (square) self loops; the last tenth of the nodes is
/// isolated.
inline WholeGraph random_graph(const std::string& name, Index num_src, Index num_dst, Index edges,
                               std::uint64_t seed, bool square = true) {
  const Random random({.seed = seed, .stream = 77});
  WholeGraph g{name, num_src, num_dst, square, {}, {}};
  const auto draw = [&](Index k, std::uint64_t i, Index n) {
    return static_cast<Index>(random.uniform(static_cast<std::uint64_t>(k), i) *
                              static_cast<double>(n - n / 10));
  };
  for (Index k = 0; k < edges; ++k) {
    g.src.push_back(k % 11 == 3 ? 1 % num_src : draw(k, 0, num_src));
    g.dst.push_back(k % 7 == 2 ? 0 : draw(k, 1, num_dst));
    if (square && k % 13 == 5) g.src.back() = g.dst.back();
    if (k % 17 == 6) {
      g.src.push_back(g.src.back());
      g.dst.push_back(g.dst.back());
    }
  }
  return g;
}

inline std::vector<WholeGraph> test_graphs() {
  return {random_graph("random", 60, 60, 400, 1),           random_graph("sparse", 90, 90, 40, 2),
          random_graph("bipartite", 50, 23, 150, 3, false), {"no edges", 12, 12, true, {}, {}},
          {"one node", 1, 1, true, {0, 0}, {0, 0}},         random_graph("dense", 17, 17, 900, 4)};
}

inline std::vector<WholeGraph> square_graphs() {
  std::vector<WholeGraph> graphs = test_graphs();
  std::erase_if(graphs, [](const WholeGraph& g) { return !g.square; });
  return graphs;
}

/// Even, all on the last rank, and uneven with an empty first rank.
inline std::vector<Books> test_books(const WholeGraph& g, int parts) {
  const auto all_on_last = [&](Index n) {
    std::vector<Index> offsets(static_cast<std::size_t>(parts) + 1, 0);
    offsets.back() = n;
    return PartitionBook(offsets);
  };
  const auto uneven = [&](Index n) {
    std::vector<Index> offsets{0};
    for (int p = 0; p < parts; ++p)
      offsets.push_back(n * p * p / ((parts - 1) * (parts - 1) + (parts == 1 ? 1 : 0)));
    offsets.back() = n;
    return PartitionBook(offsets);
  };
  std::vector<Books> books{{PartitionBook::even(g.num_src, parts), PartitionBook::even(g.num_dst, parts)}};
  if (parts > 1) {
    books.push_back({all_on_last(g.num_src), all_on_last(g.num_dst)});
    books.push_back({uneven(g.num_src), uneven(g.num_dst)});
  }
  if (!g.square && parts > 1)
    books.push_back({all_on_last(g.num_src), PartitionBook::even(g.num_dst, parts)});
  return books;
}

/// The in-edges of this rank's nodes, in no helpful order.
inline EdgeList edges_of_rank(const Communicator& comm, const WholeGraph& g, const PartitionBook& dst_book) {
  EdgeList edges;
  for (std::size_t k = g.src.size(); k-- > 0;) {
    if (dst_book.owner(g.dst[k]) != comm.rank()) continue;
    edges.src.push_back(g.src[k]);
    edges.dst.push_back(g.dst[k]);
    edges.id.push_back(static_cast<Index>(k));
  }
  return edges;
}

inline Graph shard(const Communicator& comm, const WholeGraph& g, const Books& books,
                   const GraphOptions& options) {
  return {comm, books.src, books.dst, edges_of_rank(comm, g, books.dst), g.square, options};
}

/// An original id that is not the global id.
inline Index original_id(Index node) {
  return 7000 - 3 * node;
}

inline real weight_of(Index edge) {
  return static_cast<real>(0.5 + 0.01 * static_cast<double>(edge % 90));
}

/// A square graph whose nodes have these original ids and, if wanted, whose edges these weights.
inline Graph renamed_shard(const Communicator& comm, const WholeGraph& g, const PartitionBook& book,
                           const GraphOptions& options = {}, bool weighted = false) {
  EdgeList edges = edges_of_rank(comm, g, book);
  if (weighted)
    for (const Index k : edges.id) edges.weight.push_back(weight_of(k));
  Array<Index> ids;
  for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v) ids.push_back(original_id(v));
  Array<Index> same = ids;
  return {comm, book, book, std::move(edges), true, options, std::move(ids), std::move(same)};
}

inline std::vector<double> random_values(Index n, std::uint64_t stream) {
  const Random random({.seed = 5, .stream = stream});
  std::vector<double> values;
  for (Index i = 0; i < n; ++i)
    values.push_back(static_cast<real>(2 * random.uniform(static_cast<std::uint64_t>(i)) - 1));
  return values;
}

/// Rows of rank p of whole values.
inline std::vector<double> slice(const std::vector<double>& whole, const PartitionBook& book, int p,
                                 Index width) {
  return {whole.begin() + book.begin(p) * width, whole.begin() + book.end(p) * width};
}

inline Tensor to_tensor(const std::vector<double>& values, const Shape& shape) {
  Tensor t(shape);
  for (std::size_t i = 0; i < values.size(); ++i) t.data()[i] = static_cast<real>(values[i]);
  return t;
}

inline Tensor local_rows(const std::vector<double>& whole, const PartitionBook& book, int p, Index width) {
  return to_tensor(slice(whole, book, p, width), Shape{book.num_nodes(p), width});
}

/// Values per global edge in the order of this rank's edges.
inline std::vector<double> edge_values(const std::vector<double>& whole, const Graph& graph) {
  std::vector<double> values;
  for (const Index id : graph.edge_ids()) values.push_back(whole[static_cast<std::size_t>(id)]);
  return values;
}

inline Tensor edge_rows(const std::vector<double>& whole, const Graph& graph) {
  return to_tensor(edge_values(whole, graph), Shape{graph.num_edges()});
}

/// How many different sources of rank `owner` the in-edges of rank `reader` have.
inline std::uint64_t sources_read(const WholeGraph& g, const Books& books, int reader, int owner) {
  std::set<Index> rows;
  for (std::size_t k = 0; k < g.src.size(); ++k)
    if (books.dst.owner(g.dst[k]) == reader && books.src.owner(g.src[k]) == owner) rows.insert(g.src[k]);
  return rows.size();
}

/// Rows of this rank that others read, and rows of others that this rank reads, each counted once a reader.
struct HaloTraffic {
  std::uint64_t sends = 0, reads = 0;
};

inline HaloTraffic halo_traffic(const WholeGraph& g, const Books& books, const Communicator& comm) {
  HaloTraffic traffic;
  for (int q = 0; q < comm.size(); ++q) {
    if (q == comm.rank()) continue;
    traffic.sends += sources_read(g, books, q, comm.rank());
    traffic.reads += sources_read(g, books, comm.rank(), q);
  }
  return traffic;
}

inline std::uint64_t comm_bytes(const Graph& graph) {
  return graph.comm().stats().bytes_sent;
}

}  // namespace sar::test
