/// A local shard and one of another owner, for kernels without a driver, beside the plain list of all edges.
#pragma once

#include <sar/core/tensor.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

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
    Array<local_index> used;
    local = make(random, 120, false, used);
    remote = make(random, 90, true, used);
    edge_ids.resize(std::ssize(edges));
    for (Index e = 0; e < std::ssize(edges); ++e) edge_ids[e] = 1000 - e;
  }
  [[nodiscard]] Index num_src() const { return num_local + remote.num_src_rows; }
  [[nodiscard]] Index num_edges() const { return std::ssize(edges); }

  /// visit(stage) for the local shard and the other one in stages of 7 rows, with rows of x [num_src, ...].
  template <class Visit>
  void for_stages(const Tensor& x, const Visit& visit) const {
    visit(Stage{local, 0, num_local, x.data()}, Index{0});
    for (Index begin = 0; begin < remote.num_src_rows; begin += 7) {
      const Index end = std::min(begin + 7, remote.num_src_rows);
      visit(Stage{remote, begin, end, x.row(num_local + begin)}, num_local + begin);
    }
  }
  void forward(ShardKernel& kernel, const Tensor& x) const {
    kernel.begin();
    for_stages(x, [&](const Stage& stage, Index) { kernel.accumulate(stage); });
    kernel.finish();
  }
  /// Into grad [num_src, ...].
  void backward(ShardKernel& kernel, const Tensor& x, Tensor& grad) const {
    kernel.begin_backward();
    for_stages(x, [&](const Stage& stage, Index row) { kernel.backward(stage, grad.row(row), false); });
    kernel.finish_backward();
  }

 private:
  GraphShard make(std::mt19937& random, Index count, bool remote_shard, Array<local_index>& used) {
    std::vector<LocalEdge> list;
    for (Index k = 0; k < count; ++k)  // destination 3 has no edges
      list.push_back({static_cast<local_index>(random() % num_dst),
                      static_cast<local_index>(random() % num_local), k, 1});
    std::erase_if(list, [](const LocalEdge& edge) { return edge.dst == 3; });
    std::sort(list.begin(), list.end(), [](const LocalEdge& a, const LocalEdge& b) {
      return std::tie(a.dst, a.src, a.id) < std::tie(b.dst, b.src, b.id);
    });
    const Index first = std::ssize(edges);
    GraphShard shard =
        build_shard(list.data(), std::ssize(list), first, num_dst, num_local, remote_shard, used);
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
