// SPDX-License-Identifier: MIT

/// A local shard and one of another owner, for kernels without a driver, beside the plain list of all edges.
#pragma once

#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>
#include <vector>

namespace sar::test {

struct TwoShards {
  struct Edge {
    Index dst, src, number;  ///< sources of the remote shard come after the local ones
  };
  static constexpr Index num_dst = 20, num_local = 30;
  GraphShard local, remote;
  std::vector<Edge> edges;
  Array<Index> edge_ids;

  TwoShards() {
    std::mt19937 random(7);
    local = make(random, 120, false);
    remote = make(random, 90, true);
    edge_ids.resize(std::ssize(edges));
    for (Index e = 0; e < std::ssize(edges); ++e) edge_ids[e] = 1000 - e;
  }
  [[nodiscard]] Index num_src() const { return num_local + remote.num_src_rows; }
  [[nodiscard]] Index num_edges() const { return std::ssize(edges); }

  void forward(ShardKernel& kernel, const Tensor& x) const {
    kernel.begin();
    for_stages(kernel.takes_parts() ? num_dst : 0, [&](const GraphShard* shard, Index begin, Index end) {
      if (shard == &remote) return kernel.accumulate({remote, begin, end, x.row(num_local + begin)});
      Stage part{local, 0, num_local, x.data()};
      if (end - begin < num_dst) part.first_row = begin, part.end_row = end;
      kernel.accumulate(part);
    });
    kernel.finish();
  }
  /// Into grad [num_src, ...].
  void backward(ShardKernel& kernel, const Tensor& x, Tensor& grad) const {
    kernel.begin_backward();
    for_stages(kernel.takes_parts() ? num_local : 0, [&](const GraphShard* shard, Index begin, Index end) {
      if (shard == &local && !kernel.takes_parts()) end = num_local;
      const Index row = shard == &remote ? num_local + begin : begin;
      kernel.backward({*shard, begin, end, x.row(row)}, grad.row(row), false);
    });
    kernel.finish_backward();
  }

 private:
  /// visit(shard, begin, end) for the local shard, in parts of 6 of its `rows` (0: whole), and the other one
  /// in stages of 7 rows, in turn.
  template <class Visit>
  void for_stages(Index rows, const Visit& visit) const {
    Index done = rows > 0 ? std::min<Index>(6, rows) : 0;
    visit(&local, Index{0}, done > 0 ? done : num_dst);
    for (Index begin = 0; begin < remote.num_src_rows; begin += 7) {
      visit(&remote, begin, std::min(begin + 7, remote.num_src_rows));
      if (done >= rows) continue;
      visit(&local, done, std::min(done + 6, rows));
      done = std::min(done + 6, rows);
    }
    if (done < rows) visit(&local, done, rows);
  }
  /// Without gaps; returns how many there are.
  static Index number_sources(std::vector<LocalEdge>& list) {
    std::vector<local_index> number(num_local, 0);
    for (const LocalEdge& edge : list) number[static_cast<std::size_t>(edge.src)] = 1;
    local_index next = 0;
    for (local_index& n : number) n = n == 1 ? next++ : -1;
    for (LocalEdge& edge : list) edge.src = number[static_cast<std::size_t>(edge.src)];
    return next;
  }
  GraphShard make(std::mt19937& random, Index count, bool remote_shard) {
    std::vector<LocalEdge> list;
    for (Index k = 0; k < count; ++k)  // destination 3 has no edges
      list.push_back({static_cast<local_index>(random() % num_dst),
                      static_cast<local_index>(random() % num_local), k, 1});
    std::erase_if(list, [](const LocalEdge& edge) { return edge.dst == 3; });
    std::sort(list.begin(), list.end(), [](const LocalEdge& a, const LocalEdge& b) {
      return std::tie(a.dst, a.src, a.id) < std::tie(b.dst, b.src, b.id);
    });
    const Index first = std::ssize(edges);
    Index num_src_rows = num_local;
    if (remote_shard) num_src_rows = number_sources(list);
    GraphShard shard =
        build_shard(list.data(), std::ssize(list), first, num_dst, num_src_rows, !remote_shard);
    for (Index k = 0; k < shard.num_edges(); ++k)
      edges.push_back({list[k].dst, shard.src[k] + (remote_shard ? num_local : 0), first + k});
    return shard;
  }
};

/// Numbers between -1 and 1.
inline Tensor numbers(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  Tensor x(shape);
  for (real& value : x.values()) value = static_cast<real>(random() % 2001) / 1000 - 1;
  return x;
}

inline double largest_error(const Tensor& a, const Tensor& b) {
  double error = a.shape() == b.shape() ? 0 : 1e300;
  for (Index i = 0; error < 1e300 && i < a.size(); ++i)
    error = std::max(error, std::abs(static_cast<double>(a.data()[i]) - b.data()[i]));
  return error;
}

inline constexpr double small = sizeof(real) == 4 ? 1e-5 : 1e-13;

}  // namespace sar::test
