// SPDX-License-Identifier: MIT
#include "stress/step.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/conv/dot_gat_conv.hpp>
#include <sar/nn/conv/edge_conv.hpp>
#include <sar/nn/conv/edge_weight_norm.hpp>
#include <sar/nn/conv/gat_conv.hpp>
#include <sar/nn/conv/gin_conv.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/hetero_graph_conv.hpp>
#include <sar/nn/conv/multi_hop_conv.hpp>
#include <sar/nn/conv/rel_graph_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>

#include <algorithm>
#include <cmath>

namespace sar::test {
namespace {

using Parameters = std::map<std::string, Matrix>;

/// Undefined when the layer has no such parameter.
Matrix find(const Parameters& parameters, const std::string& name) {
  const auto found = parameters.find(name);
  return found == parameters.end() ? Matrix() : found->second;
}

Matrix fully_connected(const Parameters& p, const std::string& name, const Matrix& x) {
  return linear(x, p.at(name + ".weight"), find(p, name + ".bias"));
}

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

Matrix plus_row(const Matrix& x, const Matrix& row) {
  if (!row.defined()) return x;
  return matrix(x.rows(), x.cols(), [&](Index i, Index j) { return x(i, j) + row.numbers()[at(j)]; });
}

/// c_i x_i
template <class F>
Matrix scaled_rows(const Matrix& x, const F& c) {
  return matrix(x.rows(), x.cols(), [&](Index i, Index j) { return x(i, j) * c(i); });
}

/// A weight of each edge, or none: 1.
struct Weight {
  Both rows;
  [[nodiscard]] Number of(const Edge& e) const {
    return rows.defined() ? rows.reference(e.id, 0) : Number(1);
  }
  [[nodiscard]] Variable ours() const {
    return rows.defined() ? reshape(rows.ours, {rows.ours.num_rows()}) : Variable();
  }
};

Weight draw_weight(Step& s) {
  return s.draw.chance(0.4) ? Weight{s.edge_rows(1, 0.5, 1.5)} : Weight{};
}

Matrix weighted_sum(Step& s, Reduce reduce, const Matrix& x, const Weight& w) {
  return aggregate(s.dense, reduce, x.cols(), [&](const Edge& e, Index j) {
    return w.rows.defined() ? x(e.src, j) * w.of(e) : x(e.src, j);
  });
}

InFeatures widths(const Step& s, bool pair) {
  return pair ? InFeatures(s.src.cols(), s.dst.cols()) : InFeatures(s.src.cols());
}

/// Rows at both ends after feature dropout, whose stream is the first of the layer's.
struct Ends {
  Matrix src, dst;
};
Ends dropped_ends(const Step& s, double p, RandomKey key, bool pair) {
  Ends ends{dropped(s.src.reference, p, key), {}};
  if (pair && p > 0) ++key.step;  // a call for each end
  ends.dst = dropped(s.dst.reference, p, key);
  return ends;
}

Both graph_conv(Step& s) {
  using enum GraphConvNorm;
  Generator gen(s.draw.bits());
  const GraphConvOptions options{s.draw.one_of({none, left, right, both}), s.draw.chance(0.8),
                                 s.draw.chance(0.5)};
  const Index out = options.weight ? s.draw.integer(1, 5) : s.src.cols();
  const auto conv = std::make_shared<GraphConv>(s.src.cols(), out, gen, options);
  const Parameters p = s.problem.adopt(conv);
  const Weight w = draw_weight(s);
  const auto factor = [&](double degree, GraphConvNorm one) {
    degree = std::max(degree, 1.0);
    return options.norm == one ? 1 / degree : options.norm == both ? 1 / std::sqrt(degree) : 1;
  };
  Matrix y = weighted_sum(
      s, Reduce::sum,
      scaled_rows(s.src.reference, [&](Index u) { return factor(s.dense.out_degree[at(u)], left); }), w);
  y = scaled_rows(y, [&](Index v) { return factor(s.dense.in_degree[at(v)], right); });
  if (options.weight) y = linear(y, transposed(p.at("weight")));
  return {(*conv)(s.graph, s.src.ours, w.ours()), plus_row(y, find(p, "bias"))};
}

/// The last state of an LSTM over the in-edges of each destination by increasing id.
Matrix lstm(Step& s, const Parameters& p, const Matrix& x, const Weight& w) {
  const Index n = x.cols();
  const Matrix &w_ih = p.at("lstm.weight_ih_l0"), &w_hh = p.at("lstm.weight_hh_l0");
  Matrix h(s.dense.num_dst, n), c = h;
  for (const Edge& e : s.dense.edges) {
    const Matrix before = matrix(1, n, [&](Index, Index j) { return h(e.dst, j); });
    const auto gate = [&](Index k, Index j) {
      const Index row = k * n + j;
      return sum(n,
                 [&](Index i) {
                   return w_ih(row, i) * x(e.src, i) * w.of(e) + w_hh(row, i) * before(0, i);
                 }) +
             p.at("lstm.bias_ih_l0").numbers()[at(row)] + p.at("lstm.bias_hh_l0").numbers()[at(row)];
    };
    for (Index j = 0; j < n; ++j) {
      c(e.dst, j) = sigmoid(gate(1, j)) * c(e.dst, j) + sigmoid(gate(0, j)) * tanh(gate(2, j));
      h(e.dst, j) = sigmoid(gate(3, j)) * tanh(c(e.dst, j));
    }
  }
  return h;
}

Both sage_conv(Step& s) {
  using enum SAGEAggregator;
  const std::uint64_t seed = s.draw.bits();
  Generator gen(seed), twin(seed);
  SAGEConvOptions options{s.draw.one_of({mean, gcn, pool, lstm}), s.draw.one_of({0.0, 0.3}),
                          s.draw.chance(0.5)};
  if (options.aggregator == gcn && s.src.cols() != s.dst.cols()) options.aggregator = mean;
  const bool pair = s.draw_pair();
  const auto conv = std::make_shared<SAGEConv>(widths(s, pair), s.draw.integer(1, 5), gen, options);
  const Parameters p = s.problem.adopt(conv);
  const Weight w = draw_weight(s);
  s.problem.says << "aggregator " << static_cast<int>(options.aggregator) << "; ";
  const Ends x = dropped_ends(s, options.feat_drop, twin.next_stream(), pair);

  Matrix reference;
  if (options.aggregator == gcn) {
    Matrix y = weighted_sum(s, Reduce::sum, x.src, w);
    y = scaled_rows(y + x.dst, [&](Index v) { return 1 / (s.dense.in_degree[at(v)] + 1); });
    reference = plus_row(fully_connected(p, "fc_neigh", y), find(p, "bias"));
  } else {
    const Matrix neigh =
        options.aggregator == mean ? weighted_sum(s, Reduce::mean, x.src, w)
        : options.aggregator == lstm
            ? test::lstm(s, p, x.src, w)
            : weighted_sum(s, Reduce::max, map(fully_connected(p, "fc_pool", x.src), relu), w);
    reference = fully_connected(p, "fc_self", x.dst) + fully_connected(p, "fc_neigh", neigh);
  }
  return {(*conv)(s.graph, s.features(pair), w.ours()), std::move(reference)};
}

Both gin_conv(Step& s) {
  Generator gen(s.draw.bits());
  const GINConvOptions options{s.reduce(), 0.25, s.draw.chance(0.5)};
  RowFunction f;
  if (s.draw.chance(0.5)) f = std::make_shared<Linear>(s.src.cols(), s.draw.integer(1, 4), gen);
  const bool pair = s.draw_pair();
  Step same = s;  // both ends have the same width
  same.dst = s.src.cols() == s.dst.cols() ? s.dst : projected(s.problem, s.dst, s.src.cols());
  const auto conv = std::make_shared<GINConv>(f, options);
  const Parameters p = s.problem.adopt(conv);
  const Weight w = draw_weight(s);
  const Number eps = options.learn_eps ? p.at("eps")(0, 0) : Number(options.init_eps);
  Matrix y = map(same.dst.reference, [&](Number x) { return x * (1 + eps); }) +
             weighted_sum(s, options.aggregator, s.src.reference, w);
  if (f) y = fully_connected(p, "apply_func", y);
  return {(*conv)(s.graph, same.features(pair), w.ours()), std::move(y)};
}

Both edge_conv(Step& s) {
  Generator gen(s.draw.bits());
  const Index in = s.src.cols(), out = s.draw.integer(1, 4);
  const Both dst = s.dst.cols() == in ? s.dst : projected(s.problem, s.dst, in);
  const auto conv = std::make_shared<EdgeConv>(in, out, gen);
  const Parameters p = s.problem.adopt(conv);
  const Matrix phi = fully_connected(p, "phi", dst.reference);
  const Matrix y = aggregate(s.dense, Reduce::max, out, [&](const Edge& e, Index j) {
    return sum(in,
               [&](Index k) {
                 return p.at("theta.weight")(j, k) * (dst.reference(e.dst, k) - s.src.reference(e.src, k));
               }) +
           p.at("theta.bias").numbers()[at(j)] + phi(e.dst, j);
  });
  return {(*conv)(s.graph, NodeFeatures(s.src.ours, dst.ours)), y};
}

/// <a[h], z[i, h]>
Number head_dot(const Matrix& a, const Matrix& z, Index i, Index h, Index dim) {
  return sum(dim, [&](Index d) { return a.numbers()[at(h * dim + d)] * z(i, h * dim + d); });
}

Variable joined_heads(const Variable& y) {
  return reshape(y, {y.num_rows(), y.value().row_size()});
}

struct HeadOptions {
  Index heads, dim;
  double feat_drop, attn_drop;
  bool residual, bias;
};
HeadOptions draw_heads(Step& s) {
  return {s.draw.integer(1, 3),      s.draw.integer(1, 3), s.draw.one_of({0.0, 0.3}),
          s.draw.one_of({0.0, 0.3}), s.draw.chance(0.5),   s.draw.chance(0.5)};
}

/// sum of alpha_e[h] (z_u[h] + f_e[h]), f undefined: 0
Matrix attend(Step& s, const Matrix& alpha, const Matrix& z, Index dim, const Matrix& f = {}) {
  return aggregate(s.dense, Reduce::sum, z.cols(), [&](const Edge& e, Index j) {
    return alpha(e.id, j / dim) * (f.defined() ? z(e.src, j) + f(e.id, j) : z(e.src, j));
  });
}

/// y + res_fc(x), or y + x where the layer has no res_fc.
Matrix with_residual(const Parameters& p, const Matrix& y, const Matrix& x) {
  return y + (p.count("res_fc.weight") > 0 ? fully_connected(p, "res_fc", x) : x);
}

Both gat_conv(Step& s) {
  const std::uint64_t seed = s.draw.bits();
  Generator gen(seed), twin(seed);
  const HeadOptions o = draw_heads(s);
  const bool pair = s.draw_pair();
  const real slope = real(0.25);
  const auto conv =
      std::make_shared<GATConv>(widths(s, pair), o.dim, o.heads, gen,
                                GATConvOptions{o.feat_drop, o.attn_drop, slope, o.residual,
                                               [](Variable y) { return tanh(std::move(y)); }, o.bias});
  const Parameters p = s.problem.adopt(conv);
  const Weight w = draw_weight(s);
  const Ends x = dropped_ends(s, o.feat_drop, twin.next_stream(), pair);
  const Matrix z = fully_connected(p, pair ? "fc_src" : "fc", x.src);
  const Matrix t = fully_connected(p, pair ? "fc_dst" : "fc", x.dst);
  const Matrix scores = per_edge(s.dense, o.heads, [&](const Edge& e, Index h) {
    return leaky_relu(
        head_dot(p.at("attn_l"), z, e.src, h, o.dim) + head_dot(p.at("attn_r"), t, e.dst, h, o.dim), slope);
  });
  const Matrix alpha = dropped(softmax(s.dense, scores), o.attn_drop, twin.next_stream());
  Matrix y =
      attend(s, per_edge(s.dense, o.heads, [&](const Edge& e, Index h) { return w.of(e) * alpha(e.id, h); }),
             z, o.dim);
  if (o.residual) y = with_residual(p, y, x.dst);
  y = map(plus_row(y, find(p, "bias")), [](Number v) { return tanh(v); });
  return {joined_heads((*conv)(s.graph, s.features(pair), w.ours())), std::move(y)};
}

Both gatv2_conv(Step& s) {
  const std::uint64_t seed = s.draw.bits();
  Generator gen(seed), twin(seed);
  const HeadOptions o = draw_heads(s);
  const bool pair = s.draw_pair(), shared = s.src.cols() == s.dst.cols() && s.draw.chance(0.4);
  const real slope = real(0.25);
  const auto conv = std::make_shared<GATv2Conv>(
      widths(s, pair), o.dim, o.heads, gen,
      GATv2ConvOptions{o.feat_drop, o.attn_drop, slope, o.residual, {}, o.bias, shared});
  const Parameters p = s.problem.adopt(conv);
  const Ends x = dropped_ends(s, o.feat_drop, twin.next_stream(), pair);
  const Matrix z = fully_connected(p, "fc_src", x.src),
               t = fully_connected(p, shared ? "fc_src" : "fc_dst", x.dst);
  const Matrix scores = per_edge(s.dense, o.heads, [&](const Edge& e, Index h) {
    return sum(o.dim, [&](Index d) {
      const Index j = h * o.dim + d;
      return p.at("attn").numbers()[at(j)] * leaky_relu(z(e.src, j) + t(e.dst, j), slope);
    });
  });
  Matrix y = attend(s, dropped(softmax(s.dense, scores), o.attn_drop, twin.next_stream()), z, o.dim);
  if (o.residual) y = with_residual(p, y, x.dst);
  return {joined_heads((*conv)(s.graph, s.features(pair))), std::move(y)};
}

Matrix dot_scores(Step& s, const Matrix& key, const Matrix& query, const HeadOptions& o,
                  const Matrix& f = {}) {
  return per_edge(s.dense, o.heads, [&](const Edge& e, Index h) {
    return sum(o.dim,
               [&](Index d) {
                 const Index j = h * o.dim + d;
                 return query(e.dst, j) * (f.defined() ? key(e.src, j) + f(e.id, j) : key(e.src, j));
               }) /
           std::sqrt(static_cast<double>(o.dim));
  });
}

Both dot_gat_conv(Step& s) {
  Generator gen(s.draw.bits());
  const HeadOptions o = draw_heads(s);
  const bool pair = s.draw_pair();
  const auto conv = std::make_shared<DotGatConv>(widths(s, pair), o.dim, o.heads, gen);
  const Parameters p = s.problem.adopt(conv);
  const Matrix z = fully_connected(p, pair ? "fc_src" : "fc", s.src.reference);
  const Matrix t = fully_connected(p, pair ? "fc_dst" : "fc", s.dst.reference);
  return {joined_heads((*conv)(s.graph, s.features(pair))),
          attend(s, softmax(s.dense, dot_scores(s, z, t, o)), z, o.dim)};
}

Both transformer_conv(Step& s) {
  const std::uint64_t seed = s.draw.bits();
  Generator gen(seed), twin(seed);
  const HeadOptions o = draw_heads(s);
  const bool pair = s.draw_pair(), edges = s.draw.chance(0.5), concat = s.draw.chance(0.6),
             beta = s.draw.chance(0.5);
  const Index edge_dim = edges ? s.draw.integer(1, 3) : 0;
  const auto conv = std::make_shared<TransformerConv>(
      widths(s, pair), o.dim, o.heads, gen,
      TransformerConvOptions{concat, beta, o.attn_drop, edge_dim, o.bias, o.residual});
  const Parameters p = s.problem.adopt(conv);
  const Both x = edges ? s.edge_rows(edge_dim) : Both{};
  const Matrix f = edges ? fully_connected(p, "lin_edge", x.reference) : Matrix();
  const Matrix scores = dot_scores(s, fully_connected(p, "lin_key", s.src.reference),
                                   fully_connected(p, "lin_query", s.dst.reference), o, f);
  (void)twin.next_stream();
  const Matrix alpha = dropped(softmax(s.dense, scores), o.attn_drop, twin.next_stream());
  Matrix y = attend(s, alpha, fully_connected(p, "lin_value", s.src.reference), o.dim, f);
  if (!concat)
    y = matrix(y.rows(), o.dim, [&](Index v, Index d) {
      return sum(o.heads, [&](Index h) { return y(v, h * o.dim + d); }) / static_cast<double>(o.heads);
    });
  if (o.residual) {
    const Matrix skip = fully_connected(p, "lin_skip", s.dst.reference);
    const Index width = y.cols();
    y = matrix(y.rows(), width, [&](Index v, Index j) {
      if (!beta) return y(v, j) + skip(v, j);
      const Matrix& gate = p.at("lin_beta.weight");
      const Number b = sigmoid(sum(width, [&](Index k) {
        return gate(0, k) * y(v, k) + gate(0, width + k) * skip(v, k) +
               gate(0, 2 * width + k) * (y(v, k) - skip(v, k));
      }));
      return b * skip(v, j) + (1 - b) * y(v, j);
    });
  }
  return {(*conv)(s.graph, s.features(pair), x.ours), std::move(y)};
}

Both edge_gat_conv(Step& s) {
  const std::uint64_t seed = s.draw.bits();
  Generator gen(seed), twin(seed);
  const HeadOptions o = draw_heads(s);
  const bool pair = s.draw_pair();
  const real slope = real(0.25);
  const Both x = s.edge_rows(s.draw.integer(1, 3));
  const auto conv = std::make_shared<EdgeGATConv>(
      widths(s, pair), x.cols(), o.dim, o.heads, gen,
      EdgeGATConvOptions{o.feat_drop, o.attn_drop, slope, o.residual, {}, o.bias});
  const Parameters p = s.problem.adopt(conv);
  const Ends ends = dropped_ends(s, o.feat_drop, twin.next_stream(), pair);
  const Matrix z = fully_connected(p, pair ? "fc_src" : "fc", ends.src);
  const Matrix t = fully_connected(p, pair ? "fc_dst" : "fc", ends.dst);
  const Matrix f = fully_connected(p, "fc_edge", x.reference);
  const Matrix scores = per_edge(s.dense, o.heads, [&](const Edge& e, Index h) {
    return leaky_relu(head_dot(p.at("attn_l"), z, e.src, h, o.dim) +
                          head_dot(p.at("attn_r"), t, e.dst, h, o.dim) +
                          head_dot(p.at("attn_edge"), f, e.id, h, o.dim),
                      slope);
  });
  Matrix y = attend(s, dropped(softmax(s.dense, scores), o.attn_drop, twin.next_stream()), z, o.dim, f);
  if (o.residual) y = with_residual(p, y, ends.dst);
  return {joined_heads((*conv)(s.graph, s.features(pair), x.ours)), plus_row(y, find(p, "bias"))};
}

Both agnn_conv(Step& s) {
  const auto towards_one = [&](const Both& x) {  // no direction is close to none
    const Both y = projected(s.problem, x, 3);
    return Both{tanh(y.ours) + real(1.5), map(y.reference, [](Number z) { return tanh(z) + 1.5; })};
  };
  const Both x = towards_one(s.src), y = towards_one(s.dst);
  const auto conv = std::make_shared<AGNNConv>(real(1), true);
  const Parameters p = s.problem.adopt(conv);
  const auto dot = [&](const Matrix& a, Index i, const Matrix& b, Index j) {
    return sum(3, [&](Index d) { return a(i, d) * b(j, d); });
  };
  const Matrix scores = per_edge(s.dense, 1, [&](const Edge& e, Index) {
    return p.at("beta")(0, 0) * dot(x.reference, e.src, y.reference, e.dst) /
           sqrt(dot(x.reference, e.src, x.reference, e.src) * dot(y.reference, e.dst, y.reference, e.dst));
  });
  return {(*conv)(s.graph, NodeFeatures(x.ours, y.ours)),
          attend(s, softmax(s.dense, scores), x.reference, 3)};
}

Both rel_graph_conv(Step& s) {
  const std::uint64_t seed = s.draw.bits();
  Generator gen(seed), twin(seed);
  const Regularizer regularizer = s.draw.one_of({Regularizer::none, Regularizer::basis, Regularizer::bdd});
  const bool bdd = regularizer == Regularizer::bdd, basis = regularizer == Regularizer::basis;
  const Index types = s.draw.integer(1, 4), bases = basis || bdd ? 2 : 0;
  const Both x = bdd && s.src.cols() % 2 != 0 ? projected(s.problem, s.src, 4) : s.src;
  const Index in = x.cols(), out = bdd ? 4 : s.draw.integer(1, 4);
  const double drop = s.draw.one_of({0.0, 0.3});
  const RelGraphConvOptions options{.regularizer = regularizer,
                                    .num_bases = bases,
                                    .bias = s.draw.chance(0.5),
                                    .self_loop = s.draw.chance(0.5),
                                    .dropout = drop};
  const auto conv = std::make_shared<RelGraphConv>(in, out, types, gen, options);
  const Parameters p = s.problem.adopt(conv);
  const Weight norm = s.draw.chance(0.5) ? Weight{s.edge_rows(1)} : Weight{};
  std::vector<Index> type(at(s.dense.num_ids)), mine;
  for (Index& t : type) t = s.draw.integer(0, types - 1);
  for (const Index id : s.graph.edge_ids()) mine.push_back(type[at(id)]);

  const Matrix& weights = p.at("linear_r.W");
  const auto entry = [&](Index t, Index i, Index o) -> Number {  // of the matrix of type t
    if (basis)
      return sum(bases, [&](Index b) { return p.at("linear_r.coeff")(t, b) * weights(b, i * out + o); });
    if (!bdd) return weights(t, i * out + o);
    const Index rows = in / bases, cols = out / bases, block = i / rows;
    return block == o / cols ? weights(t, (block * rows + i % rows) * cols + o % cols) : Number(0);
  };
  Matrix y = aggregate(s.dense, Reduce::sum, out, [&](const Edge& e, Index o) {
    return norm.of(e) * sum(in, [&](Index i) { return x.reference(e.src, i) * entry(type[at(e.id)], i, o); });
  });
  y = plus_row(y, find(p, "h_bias"));
  if (options.self_loop) y = y + linear(x.reference, transposed(p.at("loop_weight")));
  return {(*conv)(s.graph, x.ours, std::move(mine), norm.rows.ours), dropped(y, drop, twin.next_stream())};
}

Both nn_conv(Step& s) {
  Generator gen(s.draw.bits());
  const Index in = s.src.cols(), out = s.draw.integer(1, 3);
  const bool pair = s.draw_pair();
  const NNConvOptions options{s.reduce(), s.draw.chance(0.5), s.draw.chance(0.5)};
  const Both x = s.edge_rows(2);
  const auto conv = std::make_shared<NNConv>(widths(s, pair), out, std::make_shared<Linear>(2, in * out, gen),
                                             gen, options);
  const Parameters p = s.problem.adopt(conv);
  const Matrix f = fully_connected(p, "edge_func", x.reference);
  // extremes are taken of the products, before the sum over i
  const Matrix products = aggregate(s.dense, options.aggregator, in * out, [&](const Edge& e, Index k) {
    return s.src.reference(e.src, k / out) * f(e.id, k);
  });
  Matrix y = matrix(s.dense.num_dst, out, [&](Index v, Index o) {
    return sum(in, [&](Index i) { return products(v, i * out + o); });
  });
  if (options.residual) y = with_residual(p, y, s.dst.reference);
  return {(*conv)(s.graph, s.features(pair), x.ours), plus_row(y, find(p, "bias"))};
}

Both cf_conv(Step& s) {
  Generator gen(s.draw.bits());
  const Index hidden = s.draw.integer(1, 4);
  const Both x = s.edge_rows(2);
  const auto conv = std::make_shared<CFConv>(s.src.cols(), 2, hidden, s.draw.integer(1, 4), gen);
  const Parameters p = s.problem.adopt(conv);
  const auto step = [&](const std::string& name, const Matrix& m) {
    return map(fully_connected(p, name, m), [](Number v) { return softplus(v) - std::log(2.0); });
  };
  const Matrix f = step("project_edge.2", step("project_edge.0", x.reference));
  const Matrix h = fully_connected(p, "project_node", s.src.reference);
  const Matrix y = aggregate(s.dense, Reduce::sum, hidden,
                             [&](const Edge& e, Index j) { return h(e.src, j) * f(e.id, j); });
  return {(*conv)(s.graph, s.src.ours, x.ours), step("project_out.0", y)};
}

/// The fixed operator of the layers of several hops: weights, and factors of both ends.
struct Operator {
  Weight weight;
  std::vector<Number> src, dst;

  Operator(const Step& s, Weight w, bool by_in_degree) : weight(std::move(w)) {
    const DenseGraph& g = s.dense;
    for (const double degree : by_in_degree ? g.in_degree : g.out_degree) src.emplace_back(degree);
    for (const double degree : g.in_degree) dst.emplace_back(degree);
    if (weight.rows.defined()) {
      std::fill(src.begin(), src.end(), Number(0));
      std::fill(dst.begin(), dst.end(), Number(0));
      for (const Edge& e : g.edges) {
        src[at(e.src)] = src[at(e.src)] + weight.of(e);
        dst[at(e.dst)] = dst[at(e.dst)] + weight.of(e);
      }
    }
    for (std::vector<Number>* factors : {&src, &dst})
      for (Number& n : *factors) n = n.value() > 0 ? 1 / sqrt(n) : Number(1);
  }
  /// D^-1/2 A D^-1/2 x, where `drop` has a factor for each edge.
  [[nodiscard]] Matrix apply(Step& s, const Matrix& x, const Matrix& drop = {}) const {
    return aggregate(s.dense, Reduce::sum, x.cols(), [&](const Edge& e, Index j) {
      const Number m = dst[at(e.dst)] * weight.of(e) * src[at(e.src)] * x(e.src, j);
      return drop.defined() ? m * drop(e.id, 0) : m;
    });
  }
};

Both appnp_conv(Step& s) {
  const std::uint64_t seed = s.draw.bits();
  Generator gen(seed), twin(seed);
  const int hops = static_cast<int>(s.draw.integer(0, 3));
  const double alpha = 0.2, drop = s.draw.one_of({0.0, 0.3});
  const auto conv = std::make_shared<APPNPConv>(hops, alpha, gen, drop);
  s.problem.keep(conv);
  const Operator a(s, draw_weight(s), false);
  RandomKey key = twin.next_stream();
  Matrix h = s.src.reference;
  for (int hop = 0; hop < hops; ++hop, ++key.step) {
    const Matrix mask =
        dropped(matrix(s.dense.num_ids, 1, [](Index, Index) { return Number(1); }), drop, key);
    h = map(a.apply(s, h, mask), [&](Number x) { return x * (1 - alpha); }) +
        map(s.src.reference, [&](Number x) { return x * alpha; });
  }
  return {(*conv)(s.graph, s.src.ours, a.weight.ours()), std::move(h)};
}

Both tag_conv(Step& s) {
  Generator gen(s.draw.bits());
  const int hops = static_cast<int>(s.draw.integer(0, 3));
  const Index in = s.src.cols();
  const auto conv =
      std::make_shared<TAGConv>(in, s.draw.integer(1, 5), gen, TAGConvOptions{hops, s.draw.chance(0.5)});
  const Parameters p = s.problem.adopt(conv);
  const Operator a(s, draw_weight(s), true);
  std::vector<Matrix> powers{s.src.reference};
  for (int hop = 0; hop < hops; ++hop) powers.push_back(a.apply(s, powers.back()));
  const Matrix x = matrix(s.dense.num_dst, (hops + 1) * in,
                          [&](Index v, Index j) { return powers[at(j / in)](v, j % in); });
  return {(*conv)(s.graph, s.src.ours, a.weight.ours()), fully_connected(p, "lin", x)};
}

Both sg_conv(Step& s) {
  Generator gen(s.draw.bits());
  const int hops = static_cast<int>(s.draw.integer(0, 3));
  const auto conv = std::make_shared<SGConv>(s.src.cols(), s.draw.integer(1, 5), gen,
                                             SGConvOptions{.k = hops, .bias = s.draw.chance(0.5)});
  const Parameters p = s.problem.adopt(conv);
  const Operator a(s, draw_weight(s), true);
  Matrix x = s.src.reference;
  for (int hop = 0; hop < hops; ++hop) x = a.apply(s, x);
  return {(*conv)(s.graph, s.src.ours, a.weight.ours()), fully_connected(p, "fc", x)};
}

Both normalised_weights(Step& s) {
  const EdgeNorm norm = s.draw.one_of({EdgeNorm::right, EdgeNorm::both});
  const Weight w{s.edge_rows(1, 0.5, 1.5)};
  std::vector<Number> out(at(s.dense.num_src)), in(at(s.dense.num_dst));
  for (const Edge& e : s.dense.edges) {
    out[at(e.src)] = out[at(e.src)] + w.of(e);
    in[at(e.dst)] = in[at(e.dst)] + w.of(e);
  }
  return {s.graph.update_all(fn::u_mul_e(s.src.ours, edge_weight_norm(s.graph, w.rows.ours, norm)), fn::sum),
          aggregate(s.dense, Reduce::sum, s.src.cols(), [&](const Edge& e, Index j) {
            const Number by = norm == EdgeNorm::right ? in[at(e.dst)] : sqrt(out[at(e.src)] * in[at(e.dst)]);
            return s.src.reference(e.src, j) * w.of(e) / by;
          })};
}

/// Two layers on the same edges as if these were two relations.
Both hetero_graph_conv(Step& s) {
  Generator gen(s.draw.bits());
  const Index out = s.draw.integer(1, 4);
  const bool mean = s.draw.chance(0.5);
  const auto conv =
      std::make_shared<HeteroGraphConv>(mean ? RelationAggregate::mean : RelationAggregate::sum);
  conv->emplace_back<GraphConv>({"s", "first", "d"}, s.src.cols(), out, gen);
  conv->emplace_back<SAGEConv>({"s", "second", "d"}, std::pair(s.src.cols(), s.dst.cols()), out, gen);
  const Parameters p = s.problem.adopt(conv);
  const Variable ours =
      (*conv)({{"first", s.graph}, {"second", s.graph}}, {{"s", s.src.ours}, {"d", s.dst.ours}}).at("d");
  const auto root = [](double degree) { return 1 / std::sqrt(std::max(degree, 1.0)); };
  const Matrix hop = scaled_rows(
      weighted_sum(s, Reduce::sum,
                   scaled_rows(s.src.reference, [&](Index u) { return root(s.dense.out_degree[at(u)]); }),
                   {}),
      [&](Index v) { return root(s.dense.in_degree[at(v)]); });
  const Matrix y =
      plus_row(linear(hop, transposed(p.at("mods.first.weight"))), p.at("mods.first.bias")) +
      fully_connected(p, "mods.second.fc_self", s.dst.reference) +
      fully_connected(p, "mods.second.fc_neigh", weighted_sum(s, Reduce::mean, s.src.reference, {}));
  return {ours, mean ? map(y, [](Number x) { return x * 0.5; }) : y};
}

}  // namespace

Both apply_layer(Step& s) {
  struct Layer {
    const char* name;
    Both (*apply)(Step&);
    bool one_kind = false;  ///< sources and destinations are the same nodes
    bool whole = false;     ///< not on a message flow graph of one hop
  };
  const auto layer = s.draw.one_of<Layer>({{"GraphConv", graph_conv},
                                           {"SAGEConv", sage_conv},
                                           {"GINConv", gin_conv},
                                           {"EdgeConv", edge_conv},
                                           {"GATConv", gat_conv},
                                           {"GATv2Conv", gatv2_conv},
                                           {"DotGatConv", dot_gat_conv},
                                           {"TransformerConv", transformer_conv},
                                           {"EdgeGATConv", edge_gat_conv},
                                           {"AGNNConv", agnn_conv},
                                           {"RelGraphConv", rel_graph_conv, true},
                                           {"NNConv", nn_conv},
                                           {"CFConv", cf_conv},
                                           {"APPNPConv", appnp_conv, true, true},
                                           {"TAGConv", tag_conv, true, true},
                                           {"SGConv", sg_conv, true, true},
                                           {"edge_weight_norm", normalised_weights},
                                           {"HeteroGraphConv", hetero_graph_conv}});
  if ((layer.one_kind && !s.dense.one_kind) || (layer.whole && s.mfg)) return apply_layer(s);
  s.problem.says << layer.name << "; ";
  return layer.apply(s);
}

}  // namespace sar::test
