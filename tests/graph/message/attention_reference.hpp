// SPDX-License-Identifier: MIT

/// Attention by the definition: loops over the edges of the whole graph in double precision, with the
/// gradients of every operand written out.
#pragma once

#include "graph/test_graphs.hpp"

#include <sar/core/random.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sar::test {

enum class Score { gat, gatv2, dot, cosine };

struct AttentionProblem {
  using Values = std::vector<double>;

  const WholeGraph& graph;
  Score kind;
  Index heads, dim, value_dim;
  Values x = {};      ///< source rows [num_src, heads, dim]
  Values value = {};  ///< [num_src, heads, value_dim]; empty: x
  Values attn = {};   ///< [heads, dim]: gat, gatv2
  Values dst = {};    ///< [num_dst, heads]: gat; otherwise [num_dst, heads, dim]
  double slope = 0.2;
  double scale = 1;    ///< of dot; beta of cosine
  Values weight = {};  ///< per edge; empty: 1
  double dropout = 0;
  RandomKey key = {};
  Values grad_out = {};

  Values out = {}, grad_x = {}, grad_value = {}, grad_attn = {}, grad_dst = {}, grad_weight = {};
  double grad_scale = 0;

  void run() {
    const auto edges = graph.src.size();
    out.assign(n(graph.num_dst * heads * value_dim), 0);
    grad_x.assign(x.size(), 0);
    grad_value.assign(value.size(), 0);
    grad_attn.assign(attn.size(), 0);
    grad_dst.assign(dst.size(), 0);
    grad_weight.assign(edges, 0);
    grad_scale = 0;
    for (Index h = 0; h < heads; ++h) {
      Values s(edges), z(n(graph.num_dst), 0), most(n(graph.num_dst), -1e300), mean(n(graph.num_dst), 0);
      Values dalpha(edges), mask(edges, 1);
      for (std::size_t e = 0; e < edges; ++e) {
        s[e] = score(e, h, nullptr);
        most[n(graph.dst[e])] = std::max(most[n(graph.dst[e])], s[e]);
      }
      for (std::size_t e = 0; e < edges; ++e)
        z[n(graph.dst[e])] += s[e] = std::exp(s[e] - most[n(graph.dst[e])]);
      const Values& rows = value.empty() ? x : value;
      Values& grad_rows = value.empty() ? grad_x : grad_value;
      for (std::size_t e = 0; e < edges; ++e) {
        s[e] /= z[n(graph.dst[e])];
        if (dropout > 0) {
          const auto words = Random(key).words(e, static_cast<std::uint64_t>(h / 4));
          mask[e] = words[n(h % 4)] < std::round(dropout * 0x1p32) ? 0 : 1 / (1 - dropout);
        }
        const double w = weight.empty() ? 1 : weight[e];
        double inner = 0;
        for (Index j = 0; j < value_dim; ++j) {
          const auto at_v = n((graph.dst[e] * heads + h) * value_dim + j);
          const auto at_u = n((graph.src[e] * heads + h) * value_dim + j);
          out[at_v] += mask[e] * w * s[e] * rows[at_u];
          grad_rows[at_u] += mask[e] * w * s[e] * grad_out[at_v];
          inner += grad_out[at_v] * rows[at_u];
        }
        grad_weight[e] += mask[e] * s[e] * inner;
        dalpha[e] = mask[e] * w * inner;
        mean[n(graph.dst[e])] += s[e] * dalpha[e];
      }
      for (std::size_t e = 0; e < edges; ++e) {
        const double ds = s[e] * (dalpha[e] - mean[n(graph.dst[e])]);
        (void)score(e, h, &ds);
      }
    }
  }

 private:
  static std::size_t n(Index i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] double leaky(double t) const { return t > 0 ? t : slope * t; }
  [[nodiscard]] double leaky_slope(double t) const { return t > 0 ? 1 : slope; }

  /// The score of an edge; with `ds`, also adds its gradient's share to those of the operands.
  double score(std::size_t e, Index h, const double* ds) {
    const Index u = graph.src[e];
    const Index v = graph.dst[e];
    const std::size_t at_u = n((u * heads + h) * dim);
    const std::size_t at_v = n((v * heads + h) * dim);
    const std::size_t at_a = n(h * dim);
    double sum = 0, xx = 0, yy = 0;
    if (kind == Score::gat) {
      sum = dst[n(v * heads + h)];
      for (std::size_t j = 0; j < n(dim); ++j) sum += attn[at_a + j] * x[at_u + j];
      if (ds != nullptr) {
        const double dt = *ds * leaky_slope(sum);
        grad_dst[n(v * heads + h)] += dt;
        for (std::size_t j = 0; j < n(dim); ++j) {
          grad_attn[at_a + j] += dt * x[at_u + j];
          grad_x[at_u + j] += dt * attn[at_a + j];
        }
      }
      return leaky(sum);
    }
    if (kind == Score::gatv2) {
      for (std::size_t j = 0; j < n(dim); ++j) {
        const double t = x[at_u + j] + dst[at_v + j];
        sum += attn[at_a + j] * leaky(t);
        if (ds == nullptr) continue;
        const double dt = *ds * attn[at_a + j] * leaky_slope(t);
        grad_attn[at_a + j] += *ds * leaky(t);
        grad_x[at_u + j] += dt;
        grad_dst[at_v + j] += dt;
      }
      return sum;
    }
    for (std::size_t j = 0; j < n(dim); ++j) {
      sum += x[at_u + j] * dst[at_v + j];
      xx += x[at_u + j] * x[at_u + j];
      yy += dst[at_v + j] * dst[at_v + j];
    }
    if (kind == Score::dot) {
      for (std::size_t j = 0; ds != nullptr && j < n(dim); ++j) {
        grad_x[at_u + j] += *ds * scale * dst[at_v + j];
        grad_dst[at_v + j] += *ds * scale * x[at_u + j];
      }
      return scale * sum;
    }
    const double norms = std::max(std::sqrt(xx), 1e-12) * std::max(std::sqrt(yy), 1e-12);
    if (ds != nullptr) {
      grad_scale += *ds * sum / norms;
      for (std::size_t j = 0; j < n(dim); ++j) {
        grad_x[at_u + j] += *ds * scale / norms * (dst[at_v + j] - (xx > 0 ? sum / xx * x[at_u + j] : 0));
        grad_dst[at_v + j] += *ds * scale / norms * (x[at_u + j] - (yy > 0 ? sum / yy * dst[at_v + j] : 0));
      }
    }
    return scale * sum / norms;
  }
};

}  // namespace sar::test
