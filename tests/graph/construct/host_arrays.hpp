// SPDX-License-Identifier: MIT

/// A whole graph as a solver holds it: nodes with any ids on any ranks, in any order, edges on any ranks.
#pragma once

#include "graph/test_graphs.hpp"

#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/construct/host_graph.hpp>
#include <sar/graph/data/graph_data.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sar::test {

inline std::int64_t host_id(Index node) {
  if (node == 0) return std::numeric_limits<std::int64_t>::min();
  return node % 3 == 0 ? -7 * node : 1'000'000'007 * node + 5;
}

enum class Ownership { scattered, one_rank, halves };

/// Numbers of 0 .. n - 1 in some order.
inline std::vector<Index> shuffled(Index n, std::uint64_t seed) {
  const Random random({.seed = seed, .stream = 31});
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](Index a, Index b) {
    return random.bits(static_cast<std::uint64_t>(a)) < random.bits(static_cast<std::uint64_t>(b));
  });
  return order;
}

struct HostArrays {
  std::vector<Index> my_nodes;         ///< numbers in the whole graph
  std::vector<std::int64_t> node_ids;  ///< host_id() of these
  std::vector<Index> my_edges;         ///< numbers in the whole graph
  std::vector<std::int64_t> src, dst;  ///< host_id() of their ends
  std::vector<std::int64_t> edge_ids;

  [[nodiscard]] GlobalEdges edges(Tensor weight = {}) const {
    return {src, dst, edge_ids, std::move(weight)};
  }
  /// Rows of whole values, of the nodes or of the edges of this rank.
  [[nodiscard]] static Tensor rows_of(const std::vector<Index>& which, const Tensor& whole) {
    Tensor rows(whole.shape().with_rows(static_cast<Index>(which.size())));
    for (std::size_t i = 0; i < which.size(); ++i)
      std::copy_n(whole.row(which[i]), whole.row_size(), rows.row(static_cast<Index>(i)));
    return rows;
  }
  [[nodiscard]] Tensor node_rows(const Tensor& whole) const { return rows_of(my_nodes, whole); }
  [[nodiscard]] Tensor edge_rows(const Tensor& whole) const { return rows_of(my_edges, whole); }
};

/// `halves`: the ranks of even number have no nodes (rank 0 among them), and half of the ranks no edges.
inline HostArrays host_arrays(const Communicator& comm, const WholeGraph& g, Ownership how,
                              std::uint64_t seed = 0) {
  const Random random({.seed = seed, .stream = 32});
  const int size = comm.size();
  const auto rank_of = [&](Index i, std::uint64_t what) {
    const auto draw = static_cast<int>(random.bits(static_cast<std::uint64_t>(i), what) >> 33);
    if (how == Ownership::one_rank) return size - 1;
    if (how == Ownership::halves && size > 1) return draw % (size / 2) * 2 + 1;
    return draw % size;
  };
  HostArrays host;
  for (const Index v : shuffled(g.num_src, seed + 1)) {
    if (rank_of(v, 0) != comm.rank()) continue;
    host.my_nodes.push_back(v);
    host.node_ids.push_back(host_id(v));
  }
  for (const Index k : shuffled(static_cast<Index>(g.src.size()), seed + 2)) {
    if (rank_of(k, 1) != comm.rank()) continue;
    host.my_edges.push_back(k);
    host.src.push_back(host_id(g.src[static_cast<std::size_t>(k)]));
    host.dst.push_back(host_id(g.dst[static_cast<std::size_t>(k)]));
    host.edge_ids.push_back(k);
  }
  return host;
}

/// The same in a numbering of this rank's own: its nodes, then its ghosts.
struct LocalArrays {
  std::vector<std::int64_t> global_ids;
  std::vector<std::int32_t> src, dst;
};

inline LocalArrays local_arrays(const HostArrays& host) {
  LocalArrays local{host.node_ids, {}, {}};
  std::unordered_map<std::int64_t, std::int32_t> number;
  for (const std::int64_t id : host.node_ids) number.emplace(id, static_cast<std::int32_t>(number.size()));
  for (const auto& [from, to] : {std::pair(&host.src, &local.src), std::pair(&host.dst, &local.dst)})
    for (const std::int64_t id : *from) {
      const auto [found, is_new] = number.emplace(id, static_cast<std::int32_t>(number.size()));
      if (is_new) local.global_ids.push_back(id);
      to->push_back(found->second);
    }
  return local;
}

/// The same graph on this rank alone, nodes and edges as in the whole graph.
inline Graph whole_graph(const WholeGraph& g, const GraphOptions& options = {}) {
  NodeData data;
  data.book = PartitionBook({0, g.num_src});
  for (Index v = 0; v < g.num_src; ++v) data.original_ids.push_back(host_id(v));
  for (std::size_t k = 0; k < g.src.size(); ++k) {
    data.edges.src.push_back(g.src[k]);
    data.edges.dst.push_back(g.dst[k]);
    data.edges.id.push_back(static_cast<Index>(k));
  }
  return construct_full_graph(Communicator::self(), data, options);
}

}  // namespace sar::test
