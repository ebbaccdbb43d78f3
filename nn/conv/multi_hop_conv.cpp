// SPDX-License-Identifier: MIT

// A hop is one scaled_sum() with factors of degrees; with edge weights it is one update_all() between two
// scalings by [n, 1]. Hops run one after the other: without a tape, they hold the rows of one hop besides
// the result.
#include <sar/graph/message/degree_factors.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/edge_weight_norm.hpp>
#include <sar/nn/conv/multi_hop_conv.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

Variable with_factor(Variable rows, const Variable& column) {
  return column.requires_grad() ? mul(std::move(rows), column) : scale_rows(std::move(rows), column.value());
}

/// The graph of each hop, and what all hops have in common.
struct Hops {
  std::vector<const Graph*> graphs;
  NodeDegree degree;                  ///< of the sources, without edge weights
  Variable edge_weight = {};          ///< of the whole graph
  Variable of_src = {}, of_dst = {};  ///< with edge weights: factors [n, 1] of source rows and of sums
};

/// Returns k hops over the whole graph.
Hops whole_graph(const Graph& graph, int k, const Variable& edge_weight, NodeDegree degree) {
  require<ShapeError>(graph.is_block() && graph.num_global_src_nodes() == graph.num_global_dst_nodes(),
                      "several hops need a graph whose sources and destinations are the same nodes, or a "
                      "message flow graph for each hop; this one goes from ",
                      graph.num_global_src_nodes(), " to ", graph.num_global_dst_nodes(), " nodes");
  Hops hops{std::vector(static_cast<std::size_t>(k), &graph), degree, edge_weight};
  if (!edge_weight.defined()) return hops;
  const WeightSums sums = weight_sums(graph, edge_weight);
  hops.of_src = inverse_root(sums.out);
  hops.of_dst = inverse_root(sums.in);
  return hops;
}

/// Throws ShapeError unless the features match the graph. `width` 0 accepts any width.
void check(const Graph& graph, const Variable& feat, Index width, const char* layer) {
  const std::string what = std::string(layer) + ", features";
  require_num_rows(feat, graph.num_src_nodes(), what);
  if (width > 0) require_rows(feat, graph.num_src_nodes(), width, what);
}

/// Returns hops over message flow graphs after checking their number and that the features match the first.
Hops over_blocks(std::span<const MessageFlowGraph> blocks, int k, NodeDegree degree, const Variable& feat,
                 Index width, const char* layer) {
  require<InputError>(static_cast<int>(blocks.size()) == k, blocks.size(), " message flow graphs for ", k,
                      " hops");
  if (!blocks.empty()) check(blocks.front(), feat, width, layer);
  Hops hops{{}, degree};
  for (const MessageFlowGraph& block : blocks) hops.graphs.push_back(&block);
  return hops;
}

/// Returns S x for one hop. `weight` holds the edge weights of the hops, or a copy with some edges dropped.
Variable step(const Hops& hops, const Graph& graph, Variable x, const Variable& weight) {
  constexpr DegreeFactor root = DegreeFactor::inverse_root;
  if (!hops.edge_weight.defined())
    return scaled_sum(graph, std::move(x), weight, {.src = root, .src_degree = hops.degree, .dst = root});
  return with_factor(graph.update_all(message(with_factor(std::move(x), hops.of_src), weight), fn::sum),
                     hops.of_dst);
}

/// Returns S^k x.
Variable steps(const Hops& hops, Variable x) {
  for (const Graph* graph : hops.graphs) x = step(hops, *graph, std::move(x), hops.edge_weight);
  return x;
}

Variable pagerank(const Hops& hops, double alpha, Dropout& edge_drop, const Variable& x) {
  Variable h = x;
  for (const Graph* graph : hops.graphs) {
    Variable weight = hops.edge_weight;
    if (edge_drop.is_active()) {
      if (!weight.defined()) weight = Tensor::full({graph->num_edges()}, 1);
      weight = edge_drop(std::move(weight), graph->edge_ids());
    }
    h = step(hops, *graph, std::move(h), weight) * static_cast<real>(1 - alpha) +
        dst_rows(*graph, x) * static_cast<real>(alpha);
  }
  return h;
}

/// Returns [x, S x, ..., S^k x] W^T + b, one part of W at a time.
Variable powers_times_weight(const Hops& hops, const Linear& lin, const Variable& x) {
  const Index k = std::ssize(hops.graphs), in = lin.weight().shape()[1] / (k + 1);
  const auto weight = [&](Index i) { return slice_columns(lin.weight(), i * in, (i + 1) * in); };
  if (multiplies_first(x, lin.weight().shape()[0])) {
    Variable y = linear(x, weight(k));
    for (Index hop = 0; hop < k; ++hop) {
      y = step(hops, *hops.graphs[hop], std::move(y), hops.edge_weight);
      y = add_linear(std::move(y), dst_rows(*hops.graphs[hop], x), weight(k - 1 - hop));
    }
    return lin.bias().defined() ? add(std::move(y), lin.bias()) : y;
  }
  Variable h = x, y = linear(x, weight(0), lin.bias());
  for (Index hop = 0; hop < k; ++hop) {
    h = step(hops, *hops.graphs[hop], std::move(h), hops.edge_weight);
    y = add_linear(dst_rows(*hops.graphs[hop], std::move(y)), h, weight(hop + 1));
  }
  return y;
}

/// Returns S^k x W^T + b.
Variable power_times_weight(const Hops& hops, const Linear& fc, const Variable& x) {
  if (!multiplies_first(x, fc.weight().shape()[0])) return fc(steps(hops, x));
  Variable y = steps(hops, linear(x, fc.weight()));
  return fc.bias().defined() ? add(std::move(y), fc.bias()) : y;
}

/// Calls `body`, inside agree if there are hops. Without hops the layer does not communicate.
template <class Body>
Variable agree_over(std::span<const MessageFlowGraph> hops, const Body& body) {
  const Transaction transaction;
  return hops.empty() ? body() : hops.front().comm().agree(body);
}

}  // namespace

APPNPConv::APPNPConv(int k, double alpha, Generator& gen, double edge_drop, bool cached)
    : k_(k), alpha_(alpha), edge_drop_(edge_drop, gen), cache_(cached, "APPNPConv") {
  require<InputError>(k >= 0 && alpha >= 0 && alpha <= 1, "APPNPConv with ", k, " hops and alpha ", alpha);
  require<InputError>(!cached || edge_drop == 0, "APPNPConv with cached and edge_drop ", edge_drop,
                      ", which changes the result in every call, expected 0");
  register_module("edge_drop", edge_drop_);
}

Variable APPNPConv::operator()(const Graph& graph, const Variable& feat, const Variable& edge_weight) {
  return graph.comm().agree([&] {
    check(graph, feat, 0, "APPNPConv");
    return cache_(graph, {&feat, &edge_weight}, [&] {
      return pagerank(whole_graph(graph, k_, edge_weight, NodeDegree::out), alpha_, edge_drop_, feat);
    });
  });
}

Variable APPNPConv::operator()(std::span<const MessageFlowGraph> hops, const Variable& feat) {
  return agree_over(hops, [&] {
    return pagerank(over_blocks(hops, k_, NodeDegree::out, feat, 0, "APPNPConv"), alpha_, edge_drop_, feat);
  });
}

TAGConv::TAGConv(Index in_feats, Index out_feats, Generator& gen, const TAGConvOptions& options)
    : k_(options.k),
      in_feats_(in_feats),
      lin_((std::max(options.k, 0) + 1) * in_feats, out_feats, gen, options.bias),
      cache_(options.cached, "TAGConv") {
  require<InputError>(options.k >= 0, "TAGConv with ", options.k, " hops");
  start_weight(lin_, init::xavier_normal(lin_.weight().shape(), init::relu_gain, gen.next_stream()));
  register_module("lin", lin_);
}

Variable TAGConv::operator()(const Graph& graph, const Variable& feat, const Variable& edge_weight) const {
  return graph.comm().agree([&] {
    check(graph, feat, in_feats_, "TAGConv");
    const auto hops = [&] { return whole_graph(graph, k_, edge_weight, NodeDegree::source_in); };
    if (!cache_.enabled()) return powers_times_weight(hops(), lin_, feat);
    return lin_(cache_(graph, {&feat, &edge_weight}, [&] {
      const Hops all = hops();
      std::vector<Variable> powers{feat};  // S^i x
      for (int hop = 0; hop < k_; ++hop) powers.push_back(step(all, graph, powers.back(), edge_weight));
      return concat_columns(powers);
    }));
  });
}

Variable TAGConv::operator()(std::span<const MessageFlowGraph> hops, const Variable& feat) const {
  return agree_over(hops, [&] {
    return powers_times_weight(over_blocks(hops, k_, NodeDegree::source_in, feat, in_feats_, "TAGConv"), lin_,
                               feat);
  });
}

SGConv::SGConv(Index in_feats, Index out_feats, Generator& gen, const SGConvOptions& options)
    : options_(options), fc_(in_feats, out_feats, gen, options.bias), cache_(options.cached, "SGConv") {
  require<InputError>(options.k >= 0, "SGConv with ", options.k, " hops");
  start_weight(fc_, init::xavier_uniform(fc_.weight().shape(), 1, gen.next_stream()));
  if (options.bias) Variable(fc_.bias()).value().fill(0);
  register_module("fc", fc_);
}

Variable SGConv::operator()(const Graph& graph, const Variable& feat, const Variable& edge_weight) {
  return graph.comm().agree([&] {
    check(graph, feat, fc_.weight().shape()[1], "SGConv");
    const auto hops = [&] { return whole_graph(graph, options_.k, edge_weight, NodeDegree::source_in); };
    if (!options_.cached) return power_times_weight(hops(), fc_, feat);
    return fc_(cache_(graph, {&feat, &edge_weight}, [&] { return steps(hops(), feat); }));
  });
}

Variable SGConv::operator()(std::span<const MessageFlowGraph> hops, const Variable& feat) const {
  return agree_over(hops, [&] {
    const Index width = fc_.weight().shape()[1];
    return power_times_weight(over_blocks(hops, options_.k, NodeDegree::source_in, feat, width, "SGConv"),
                              fc_, feat);
  });
}

}}  // namespace sar
