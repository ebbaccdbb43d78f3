#include "graph/kernels/two_shards.hpp"

#include <doctest/doctest.h>

#include <sar/graph/kernels/attention.hpp>

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
    operands.dst = dst.data();
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
    p.operands.grad_out = grad.data();
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
