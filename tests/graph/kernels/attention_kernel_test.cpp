// SPDX-License-Identifier: MIT
#include "graph/kernels/two_shards.hpp"
#include "support/effort.hpp"

#include <doctest/doctest.h>

#include <sar/core/threads/parallel.hpp>
#include <sar/graph/kernels/gat_attention.hpp>
#include <sar/graph/kernels/pair_attention.hpp>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index heads = 2, dim = 5;

enum class Score { gat, gatv2, dot };

struct Problem {
  TwoShards g;
  Score score;
  Tensor x = numbers({g.num_src(), heads, dim}, 1), attn = numbers({heads, dim}, 2), dst;
  AttentionOperands operands{
      .heads = heads, .dim = dim, .key_dim = dim, .attn = attn.data(), .slope = real(0.2)};
  AttentionResult result;

  explicit Problem(Score with) : score(with) {
    dst = numbers(score == Score::gat ? Shape{g.num_dst, heads} : Shape{g.num_dst, heads, dim}, 3);
    operands.dst = dst;
    operands.edge_ids = g.edge_ids.data();
    operands.result = &result;
  }
  [[nodiscard]] double leaky(double s) const { return s > 0 ? s : 0.2 * s; }
  [[nodiscard]] double score_of(Index v, Index u, Index h) const {
    double s = 0;
    for (Index j = h * dim; j < (h + 1) * dim; ++j) {
      const double a = attn.data()[j], at_u = x.row(u)[j];
      if (score == Score::gat) s += a * at_u;
      if (score == Score::gatv2) s += a * leaky(at_u + dst.row(v)[j]);
      if (score == Score::dot) s += at_u * dst.row(v)[j];
    }
    return score == Score::gat ? leaky(s + dst.row(v)[h]) : s;
  }
  [[nodiscard]] std::unique_ptr<ShardKernel> kernel() const {
    return score == Score::gat     ? make_gat_kernel(operands)
           : score == Score::gatv2 ? make_gatv2_kernel(operands)
                                   : make_dot_kernel(operands);
  }
  Tensor forward() {
    result = {.out = Tensor({g.num_dst, heads, dim}),
              .max = Tensor({g.num_dst, heads}),
              .log_sum = Tensor({g.num_dst, heads})};
    g.forward(*kernel(), x);
    return result.out;
  }
  /// By definition, in double precision.
  [[nodiscard]] std::vector<double> expected() const {
    std::vector<double> out(g.num_dst * heads * dim, 0), sum(g.num_dst * heads, 0);
    for (const auto& [v, u, e] : g.edges)
      for (Index h = 0; h < heads; ++h) {
        const double weight = std::exp(score_of(v, u, h));
        sum[v * heads + h] += weight;
        for (Index j = 0; j < dim; ++j) out[(v * heads + h) * dim + j] += weight * x.row(u)[h * dim + j];
      }
    for (Index i = 0; i < std::ssize(out); ++i)
      if (sum[i / dim] > 0) out[i] /= sum[i / dim];
    return out;
  }
  [[nodiscard]] double loss(const Tensor& grad) const {
    const auto out = expected();
    double sum = 0;
    for (Index i = 0; i < grad.size(); ++i) sum += out[i] * grad.data()[i];
    return sum;
  }
};

}  // namespace

TEST_CASE("a softmax over two shards, and the gradients of sources and destinations") {
  for (const Score score : {Score::gat, Score::gatv2, Score::dot}) {
    CAPTURE(static_cast<int>(score));
    Problem p(score);
    const Tensor out = p.forward(), grad = numbers(out.shape(), 4);
    const auto want = p.expected();
    double error = 0;
    for (Index i = 0; i < out.size(); ++i) error = std::max(error, std::abs(want[i] - out.data()[i]));
    CHECK(error < small);

    Tensor dx = Tensor::full(p.x.shape(), 99), ddst = Tensor::zeros(p.dst.shape());
    p.operands.grad_out = grad;
    p.operands.grad_dst = ddst.data();
    p.g.backward(*p.kernel(), p.x, dx);
    CHECK(!p.result.out.defined());  // given up when it is not needed any more
    const real step_size = real(1) / 4096;
    const auto difference = [&](real& value) {
      const real old = std::exchange(value, value + step_size);
      const double above = p.loss(grad), step = value - old;
      value = old - step_size;
      const double below = p.loss(grad);
      value = old;
      return (above - below) / (2 * step);
    };
    for (Index i = 0; i < p.x.size(); i += 37)
      CHECK(dx.data()[i] == doctest::Approx(difference(p.x.data()[i])).epsilon(0.01).scale(0.1));
    for (Index i = 0; i < p.dst.size(); i += 7)
      CHECK(ddst.data()[i] == doctest::Approx(difference(p.dst.data()[i])).epsilon(0.01).scale(0.1));
  }
}

namespace {

/// One destination, to which `edges` edges come from `sources` sources, each with as many as the others; and
/// its softmax by definition, in double precision.
struct Hub {
  static constexpr Index sources = 40, width = 6, of_head = width / heads;
  GraphShard shard;
  Score score;
  Tensor x = numbers({sources, width}, 1), attn = numbers({width}, 2), dst, grad = numbers({1, width}, 4);
  double each;

  Hub(Score with, Index edges) : score(with), each(static_cast<double>(edges) / sources) {
    shard.num_src_rows = sources;
    shard.num_dst = 1;
    shard.row_begin = {0, static_cast<local_index>(edges)};
    shard.src.resize(edges);
    for (Index k = 0; k < edges; ++k) shard.src[k] = static_cast<local_index>(k * sources / edges);
    dst = numbers({1, score == Score::gat ? heads : width}, 3);
  }

  struct Sums {
    Tensor out = Tensor({1, width}), log_sum = Tensor({1, heads}), dx = Tensor({sources, width}), ddst;
    std::vector<double> dattn = std::vector<double>(width);
  };
  Sums run() {
    AttentionResult result{
        .out = Tensor({1, heads, of_head}), .max = Tensor({1, heads}), .log_sum = Tensor({1, heads})};
    Sums sums;
    sums.ddst = Tensor::zeros(dst.shape());
    const AttentionOperands o{.heads = heads,
                              .dim = of_head,
                              .key_dim = of_head,
                              .attn = attn.data(),
                              .dst = dst,
                              .slope = real(0.2),
                              .result = &result,
                              .grad_out = grad,
                              .grad_dst = sums.ddst.data(),
                              .grad_attn = score == Score::dot ? nullptr : sums.dattn.data()};
    const auto kernel = score == Score::gat     ? make_gat_kernel(o)
                        : score == Score::gatv2 ? make_gatv2_kernel(o)
                                                : make_dot_kernel(o);
    const Stage stage{shard, 0, sources, x.data()};
    kernel->begin();
    kernel->accumulate(stage);
    kernel->finish();
    std::copy_n(result.out.data(), width, sums.out.data());
    for (Index h = 0; h < heads; ++h)
      sums.log_sum.data()[h] = result.max.data()[h] + result.log_sum.data()[h];
    kernel->begin_backward();
    kernel->backward(stage, sums.dx.data(), false);
    kernel->finish_backward();
    return sums;
  }

  static constexpr double exact = sizeof(real) == 4 ? 4e-6 : 1e-13;  // log(sum) has the error of its last bit

  /// Compares with head h.
  void check(const Sums& sums, Index h) const {
    const Index from = h * of_head;
    std::vector<double> s(sources), alpha(sources);
    double total = 0, mean = 0;  // mean: <g, out>
    std::vector<double> out(of_head), ddst(of_head), dattn(of_head);
    for (Index u = 0; u < sources; ++u) {
      for (Index j = from; j < from + of_head; ++j) s[u] += term(u, j);
      if (score == Score::gat) s[u] = leaky(s[u] + dst.data()[h]);
      total += each * std::exp(s[u]);
    }
    CHECK(sums.log_sum.data()[h] == doctest::Approx(std::log(total)).epsilon(exact));
    for (Index u = 0; u < sources; ++u) {
      alpha[u] = std::exp(s[u]) / total;
      for (Index j = 0; j < of_head; ++j) out[j] += each * alpha[u] * x.row(u)[from + j];
    }
    for (Index j = 0; j < of_head; ++j) {
      CHECK(std::abs(sums.out.data()[from + j] - out[j]) < exact);
      mean += out[j] * grad.data()[from + j];
    }
    if (score == Score::gat) return;  // its backward pass adds in `real`
    for (Index u = 0; u < sources; ++u) {
      double dalpha = 0;
      for (Index j = from; j < from + of_head; ++j)
        dalpha += static_cast<double>(grad.data()[j]) * x.row(u)[j];
      const double ds = each * alpha[u] * (dalpha - mean);
      for (Index j = 0; j < of_head; ++j) {
        const double a = attn.data()[from + j], at_u = x.row(u)[from + j], at_v = dst.data()[from + j];
        const double z = at_u + at_v, slope = z > 0 ? 1 : 0.2;
        const double key = score == Score::dot ? at_v : a * slope;
        const double dx = each * alpha[u] * grad.data()[from + j] + ds * key;
        CHECK(std::abs(sums.dx.row(u)[from + j] - dx) < exact);
        ddst[j] += ds * (score == Score::dot ? at_u : a * slope);
        dattn[j] += ds * z * slope;
      }
    }
    for (Index j = 0; j < of_head; ++j) {
      CHECK(std::abs(sums.ddst.data()[from + j] - ddst[j]) < exact);
      if (score == Score::gatv2) CHECK(std::abs(sums.dattn[from + j] - dattn[j]) < exact);
    }
  }
  [[nodiscard]] static double leaky(double s) { return s > 0 ? s : 0.2 * s; }
  [[nodiscard]] double term(Index u, Index j) const {
    const double at_u = x.row(u)[j];
    if (score == Score::gat) return attn.data()[j] * at_u;
    const double at_v = dst.data()[j];
    return score == Score::dot ? at_u * at_v : attn.data()[j] * leaky(at_u + at_v);
  }
};

}  // namespace

TEST_CASE("20 million edges of one destination, of which the gate has a tenth") {
  for (const Score score : {Score::gat, Score::gatv2, Score::dot}) {
    CAPTURE(static_cast<int>(score));
    Hub hub(score, sanitized ? 500'000 : full_run() ? 20'000'000 : 2'000'000);
    const Hub::Sums sums = hub.run();
    for (Index h = 0; h < heads; ++h) hub.check(sums, h);
  }
}

TEST_CASE("a hub has the same bits on any number of threads") {
  for (const Score score : {Score::gat, Score::gatv2, Score::dot}) {
    CAPTURE(static_cast<int>(score));
    Hub hub(score, 200'003);
    std::vector<Hub::Sums> all;
    for (const int threads : {1, 3}) {
      const ThreadLimit limit(threads);
      all.push_back(hub.run());
    }
    CHECK(largest_error(all[0].out, all[1].out) == 0);
    CHECK(largest_error(all[0].log_sum, all[1].log_sum) == 0);
    CHECK(largest_error(all[0].dx, all[1].dx) == 0);
    CHECK(largest_error(all[0].ddst, all[1].ddst) == 0);
    CHECK(all[0].dattn == all[1].dattn);
  }
}
