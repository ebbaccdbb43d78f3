// SPDX-License-Identifier: MIT

/// Message passing by the definition, for the stress test's reference: loops over the edges of a whole graph.
#pragma once

#include "stress/number.hpp"

#include <sar/core/random.hpp>
#include <sar/graph/message/attention.hpp>
#include <sar/graph/message/message.hpp>

#include <cmath>
#include <vector>

namespace sar::test {

struct Edge {
  Index src, dst, id;
};

/// A graph, or what message flow graphs keep of it. Nodes have their original numbers.
struct DenseGraph {
  Index num_src = 0, num_dst = 0;
  bool one_kind = true;          ///< sources and destinations are the same nodes
  std::vector<Edge> edges = {};  ///< by increasing id
  Index num_ids = 0;             ///< ids of edges are below
  std::vector<double> in_degree = {}, out_degree = {};

  void count_degrees() {
    in_degree.assign(static_cast<std::size_t>(num_dst), 0);
    out_degree.assign(static_cast<std::size_t>(num_src), 0);
    for (const Edge& e : edges) {
      ++in_degree[static_cast<std::size_t>(e.dst)];
      ++out_degree[static_cast<std::size_t>(e.src)];
    }
  }
};

/// out[v, j] = reduce over the in-edges e of v of message(e, j); 0 without in-edges. Of equal extremes the
/// edge of the smallest id counts.
template <class F>
Matrix aggregate(const DenseGraph& g, Reduce reduce, Index cols, const F& message) {
  Matrix out(g.num_dst, cols);
  std::vector<double> count(static_cast<std::size_t>(g.num_dst), 0);
  for (const Edge& e : g.edges) {
    const bool first = count[static_cast<std::size_t>(e.dst)]++ == 0;
    for (Index j = 0; j < cols; ++j) {
      const Number m = message(e, j);
      Number& sum = out(e.dst, j);
      if (first)
        sum = m;
      else if (reduce == Reduce::sum || reduce == Reduce::mean)
        sum = sum + m;
      else if (reduce == Reduce::max ? sum < m : m < sum)
        sum = m;
    }
  }
  if (reduce == Reduce::mean)
    for (Index v = 0; v < g.num_dst; ++v)
      for (Index j = 0; j < cols && count[static_cast<std::size_t>(v)] > 0; ++j)
        out(v, j) = out(v, j) / count[static_cast<std::size_t>(v)];
  return out;
}

/// A row for each edge id.
template <class F>
Matrix per_edge(const DenseGraph& g, Index cols, const F& f) {
  Matrix out(g.num_ids, cols);
  for (const Edge& e : g.edges)
    for (Index j = 0; j < cols; ++j) out(e.id, j) = f(e, j);
  return out;
}

/// Softmax of each column over the in-edges of a destination, or the out-edges of a source.
inline Matrix softmax(const DenseGraph& g, const Matrix& scores, NormBy by = NormBy::dst) {
  const auto end = [&](const Edge& e) { return by == NormBy::dst ? e.dst : e.src; };
  Matrix sums(by == NormBy::dst ? g.num_dst : g.num_src, scores.cols());
  for (const Edge& e : g.edges)
    for (Index j = 0; j < scores.cols(); ++j) sums(end(e), j) = sums(end(e), j) + exp(scores(e.id, j));
  return per_edge(g, scores.cols(),
                  [&](const Edge& e, Index j) { return exp(scores(e.id, j)) / sums(end(e), j); });
}

/// Rows whose number is their id.
inline Matrix dropped(const Matrix& x, double p, const RandomKey& key) {
  return matrix(x.rows(), x.cols(), [&](Index i, Index j) {
    const auto words = Random(key).words(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(j / 4));
    return words[static_cast<std::size_t>(j % 4)] < std::round(p * 0x1p32) ? Number(0) : x(i, j) / (1 - p);
  });
}

}  // namespace sar::test
