#include <sar/graph/message/degree_factors.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/conv/edge_weight_norm.hpp>
#include <sar/nn/conv/multi_hop_conv.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the factors of a hop without edge weights: 1 / sqrt(degree) at both ends. `of_sources` selects
/// which degree of the sources.
SumFactors inverse_roots(NodeDegree of_sources) {
  return {.src = DegreeFactor::inverse_root, .src_degree = of_sources, .dst = DegreeFactor::inverse_root};
}

/// Factors [n, 1] of the source rows and of the sums, for a hop with edge weights.
struct Factors {
  Variable src, dst;
};

Variable with_factor(Variable rows, const Variable& column) {
  return column.requires_grad() ? mul(std::move(rows), column) : scale_rows(std::move(rows), column.value());
}

/// Hops over the whole graph.
class WholeGraph {
 public:
  WholeGraph(const GraphShardManager& graph, const Variable& edge_weight, NodeDegree degree)
      : graph_(graph), edge_weight_(edge_weight), degree_(degree) {
    require<ShapeError>(graph.is_block() && graph.num_global_src_nodes() == graph.num_global_dst_nodes(),
                        "several hops need a graph whose sources and destinations are the same nodes, or a "
                        "message flow graph for each hop; this one goes from ",
                        graph.num_global_src_nodes(), " to ", graph.num_global_dst_nodes(), " nodes");
    if (edge_weight.defined()) {
      const WeightSums sums = weight_sums(graph, edge_weight);
      factors_ = {inverse_root(sums.out), inverse_root(sums.in)};
    }
  }
  [[nodiscard]] const GraphShardManager& graph(int) const { return graph_; }
  [[nodiscard]] const Variable& edge_weight() const { return edge_weight_; }
  [[nodiscard]] NodeDegree degree() const { return degree_; }
  /// With edge weights only.
  [[nodiscard]] const Factors& factors() const { return factors_; }

 private:
  const GraphShardManager& graph_;
  const Variable& edge_weight_;
  NodeDegree degree_;
  Factors factors_;
};

/// Hops over message flow graphs, one per hop.
class Blocks {
 public:
  Blocks(std::span<const MessageFlowGraph> hops, int k, NodeDegree degree) : hops_(hops), degree_(degree) {
    require<InputError>(static_cast<int>(hops.size()) == k, hops.size(), " message flow graphs for ", k,
                        " hops");
  }
  [[nodiscard]] const GraphShardManager& graph(int hop) const { return hops_[hop]; }
  [[nodiscard]] Variable edge_weight() const { return {}; }
  [[nodiscard]] NodeDegree degree() const { return degree_; }
  [[nodiscard]] Factors factors() const { return {}; }

 private:
  std::span<const MessageFlowGraph> hops_;
  NodeDegree degree_;
};

/// Returns S x. `weight` holds the edge weights of the hops, or a copy with some edges dropped.
template <class Hops>
Variable step(const Hops& hops, int hop, Variable x, const Variable& weight) {
  const GraphShardManager& graph = hops.graph(hop);
  if (!hops.edge_weight().defined())
    return scaled_sum(graph, std::move(x), weight, inverse_roots(hops.degree()));
  const Factors factors = hops.factors();
  return with_factor(graph.update_all(message(with_factor(std::move(x), factors.src), weight), fn::sum),
                     factors.dst);
}
template <class Hops>
Variable step(const Hops& hops, int hop, Variable x) {
  return step(hops, hop, std::move(x), hops.edge_weight());
}

template <class Hops>
Variable steps(const Hops& hops, int k, Variable x) {
  for (int hop = 0; hop < k; ++hop) x = step(hops, hop, std::move(x));
  return x;
}

template <class Hops>
Variable pagerank(const Hops& hops, int k, double alpha, Dropout& edge_drop, const Variable& x) {
  Variable h = x;
  for (int hop = 0; hop < k; ++hop) {
    const GraphShardManager& graph = hops.graph(hop);
    Variable weight = hops.edge_weight();
    if (edge_drop.is_active()) {
      if (!weight.defined()) weight = Tensor::full({graph.num_edges()}, 1);
      weight = edge_drop(std::move(weight), graph.edge_ids());
    }
    h = step(hops, hop, std::move(h), weight) * static_cast<real>(1 - alpha) +
        first_rows(x, graph.num_dst_nodes()) * static_cast<real>(alpha);
  }
  return h;
}

/// Throws ShapeError unless the features match the graph. `width` 0 accepts any width.
void check(const GraphShardManager& graph, const Variable& feat, Index width, const char* layer) {
  const std::string what = std::string(layer) + ", features";
  require_num_rows(feat, graph.num_src_nodes(), what);
  if (width > 0) require_rows(feat, graph.num_src_nodes(), width, what);
}

/// Calls `body`, inside agree if there are hops. Without hops the layer does not communicate.
template <class Body>
Variable agree_over(std::span<const MessageFlowGraph> hops, const Body& body) {
  return hops.empty() ? body() : hops.front().comm().agree(body);
}

/// Returns the hops after checking their number and that the features match the first one.
Blocks checked(std::span<const MessageFlowGraph> hops, int k, NodeDegree degree, const Variable& feat,
               Index width, const char* layer) {
  const Blocks blocks(hops, k, degree);
  if (!hops.empty()) check(hops.front(), feat, width, layer);
  return blocks;
}

}  // namespace

APPNPConv::APPNPConv(int k, double alpha, Generator& gen, double edge_drop, bool cached)
    : k_(k), alpha_(alpha), edge_drop_(edge_drop, gen), cache_(cached, "APPNPConv") {
  require<InputError>(k >= 0 && alpha >= 0 && alpha <= 1, "APPNPConv with ", k, " hops and alpha ", alpha);
  require<InputError>(!cached || edge_drop == 0, "APPNPConv with cached and edge_drop ", edge_drop,
                      ", which changes the result in every call, expected 0");
  register_module("edge_drop", edge_drop_);
}

Variable APPNPConv::operator()(const GraphShardManager& graph, const Variable& feat,
                               const Variable& edge_weight) {
  return graph.comm().agree([&] {
    check(graph, feat, 0, "APPNPConv");
    return cache_(graph, {&feat, &edge_weight}, [&] {
      return pagerank(WholeGraph(graph, edge_weight, NodeDegree::out), k_, alpha_, edge_drop_, feat);
    });
  });
}

Variable APPNPConv::operator()(std::span<const MessageFlowGraph> hops, const Variable& feat) {
  return agree_over(hops, [&] {
    return pagerank(checked(hops, k_, NodeDegree::out, feat, 0, "APPNPConv"), k_, alpha_, edge_drop_, feat);
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

template <class Hops>
Variable TAGConv::apply(const Hops& hops, const Variable& x) const {
  const auto weight = [&](int i) { return slice_columns(lin_.weight(), i * in_feats_, (i + 1) * in_feats_); };
  if (multiplies_first(x, lin_.weight().shape()[0])) {
    Variable y = linear(x, weight(k_));
    for (int hop = 0; hop < k_; ++hop) {
      y = step(hops, hop, std::move(y));
      const Index rows = y.num_rows();
      y = add_linear(std::move(y), first_rows(x, rows), weight(k_ - 1 - hop));
    }
    return lin_.bias().defined() ? add(std::move(y), lin_.bias()) : y;
  }
  Variable h = x, y = linear(x, weight(0), lin_.bias());
  for (int hop = 0; hop < k_; ++hop) {
    h = step(hops, hop, std::move(h));
    if (y.num_rows() != h.num_rows()) y = first_rows(y, h.num_rows());
    y = add_linear(std::move(y), h, weight(hop + 1));
  }
  return y;
}

Variable TAGConv::operator()(const GraphShardManager& graph, const Variable& feat,
                             const Variable& edge_weight) const {
  return graph.comm().agree([&] {
    check(graph, feat, in_feats_, "TAGConv");
    if (!cache_.enabled()) return apply(WholeGraph(graph, edge_weight, NodeDegree::source_in), feat);
    return lin_(cache_(graph, {&feat, &edge_weight}, [&] {
      const WholeGraph hops(graph, edge_weight, NodeDegree::source_in);
      std::vector<Variable> powers{feat};  // S^i x
      for (int hop = 0; hop < k_; ++hop) powers.push_back(step(hops, hop, powers.back()));
      return concat_columns(powers);
    }));
  });
}

Variable TAGConv::operator()(std::span<const MessageFlowGraph> hops, const Variable& feat) const {
  return agree_over(hops, [&] {
    return apply(checked(hops, k_, NodeDegree::source_in, feat, in_feats_, "TAGConv"), feat);
  });
}

SGConv::SGConv(Index in_feats, Index out_feats, Generator& gen, const SGConvOptions& options)
    : options_(options), fc_(in_feats, out_feats, gen, options.bias), cache_(options.cached, "SGConv") {
  require<InputError>(options.k >= 0, "SGConv with ", options.k, " hops");
  start_weight(fc_, init::xavier_uniform(fc_.weight().shape(), 1, gen.next_stream()));
  if (options.bias) Variable(fc_.bias()).value().fill(0);
  register_module("fc", fc_);
}

template <class Hops>
Variable SGConv::apply(const Hops& hops, const Variable& x) const {
  if (!multiplies_first(x, fc_.weight().shape()[0])) return fc_(steps(hops, options_.k, x));
  Variable y = steps(hops, options_.k, linear(x, fc_.weight()));
  return fc_.bias().defined() ? add(std::move(y), fc_.bias()) : y;
}

Variable SGConv::operator()(const GraphShardManager& graph, const Variable& feat,
                            const Variable& edge_weight) {
  return graph.comm().agree([&] {
    check(graph, feat, fc_.weight().shape()[1], "SGConv");
    if (!options_.cached) return apply(WholeGraph(graph, edge_weight, NodeDegree::source_in), feat);
    return fc_(cache_(graph, {&feat, &edge_weight}, [&] {
      return steps(WholeGraph(graph, edge_weight, NodeDegree::source_in), options_.k, feat);
    }));
  });
}

Variable SGConv::operator()(std::span<const MessageFlowGraph> hops, const Variable& feat) const {
  return agree_over(hops, [&] {
    return apply(checked(hops, options_.k, NodeDegree::source_in, feat, fc_.weight().shape()[1], "SGConv"),
                 feat);
  });
}

}}  // namespace sar
