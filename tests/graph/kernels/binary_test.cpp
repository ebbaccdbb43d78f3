#include "graph/kernels/two_shards.hpp"

#include <doctest/doctest.h>

#include <sar/graph/kernels/binary.hpp>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index width = 5;
using Result = BinaryKernel::Result;

/// u * v with one of the results.
struct Product {
  TwoShards g;
  Tensor x = numbers({g.num_src(), width}, 1), y = numbers({g.num_dst, width}, 2);
  Array<local_index> argmax = Array<local_index>(g.num_dst * width);

  BinaryKernel::Operands operands(Result result) {
    return {.row = MessageRow(MessageOp::mul, x.shape(), y.shape()),
            .lhs = MessageTarget::u,
            .rhs = MessageTarget::v,
            .result = result,
            .u = {.width = width},
            .v = {.width = width, .values = y.data()},
            .e = {},
            .edge_ids = g.edge_ids.data(),
            .argmax = argmax.data()};
  }
  Tensor forward(Result result) {
    Tensor out = Tensor::full({result == Result::edges ? g.num_edges() : g.num_dst, width}, 99);
    const auto kernel = make_binary_kernel(operands(result));
    kernel->set_output(out.data(), false);
    g.forward(*kernel, x);
    return out;
  }
  /// dx, dy
  std::pair<Tensor, Tensor> backward(Result result, const Tensor& grad) {
    Tensor dx = Tensor::full(x.shape(), 99), dy = Tensor::zeros(y.shape());
    auto o = operands(result);
    o.v.grad = dy.data();
    o.wants_u = true;
    o.grad_out = grad.data();
    const auto kernel = make_binary_kernel(std::move(o));
    CHECK(kernel->needs_source_in_backward());
    g.backward(*kernel, x, dx);
    return {dx, dy};
  }
};

}  // namespace

TEST_CASE("sum of products, one product per edge, and their gradients") {
  Product p;
  for (const Result result : {Result::sum, Result::edges}) {
    const bool by_edge = result == Result::edges;
    const Tensor out = p.forward(result), grad = numbers(out.shape(), 3);
    const auto [dx, dy] = p.backward(result, grad);
    Tensor want = Tensor::zeros(out.shape()), want_dx = Tensor::zeros(dx.shape()),
           want_dy = Tensor::zeros(dy.shape());
    for (const auto& [v, u, e] : p.g.edges)
      for (Index j = 0; j < width; ++j) {
        const real g = grad.row(by_edge ? e : v)[j];
        want.row(by_edge ? e : v)[j] += p.x.row(u)[j] * p.y.row(v)[j];
        want_dx.row(u)[j] += g * p.y.row(v)[j];
        want_dy.row(v)[j] += g * p.x.row(u)[j];
      }
    CHECK(largest_error(out, want) < small);
    CHECK(largest_error(dx, want_dx) < small);
    CHECK(largest_error(dy, want_dy) < small);
  }
}

TEST_CASE(
    "largest and smallest product: the argmax is the edge with the smallest id, and takes the gradient") {
  Product p;
  for (Index j = 0; j < p.x.size(); ++j)
    p.x.data()[j] = std::round(2 * p.x.data()[j]);  // many equal products
  for (const real sign : {real{1}, real{-1}}) {
    const Result result = sign > 0 ? Result::max : Result::min;
    const Tensor out = p.forward(result), grad = numbers(out.shape(), 3);
    Tensor want = Tensor::zeros(out.shape());
    std::vector<Index> who(want.size(), -1);
    for (const auto& [v, u, e] : p.g.edges)
      for (Index j = 0; j < width; ++j) {
        const real m = p.x.row(u)[j] * p.y.row(v)[j];
        real& best = want.row(v)[j];
        Index& edge = who[v * width + j];
        if (edge >= 0 && sign * m < sign * best) continue;
        if (edge >= 0 && m == best && p.g.edge_ids[e] > p.g.edge_ids[edge]) continue;
        best = m;
        edge = e;
      }
    CHECK(largest_error(out, want) == 0);
    CHECK(std::equal(who.begin(), who.end(), p.argmax.begin(), p.argmax.end()));
    const auto [dx, dy] = p.backward(result, grad);
    Tensor want_dx = Tensor::zeros(dx.shape());
    for (const auto& [v, u, e] : p.g.edges)
      for (Index j = 0; j < width; ++j)
        if (who[v * width + j] == e) want_dx.row(u)[j] += grad.row(v)[j] * p.y.row(v)[j];
    CHECK(largest_error(dx, want_dx) < small);
  }
}
