// SPDX-License-Identifier: MIT
#include "support/rows.hpp"

#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/conv/edge_conv.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/multi_hop_conv.hpp>
#include <sar/nn/conv/sage_conv.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace sar;
using namespace sar::test;

namespace {

double largest(const Tensor& x) {
  double m = 0;
  for (const real value : x.values()) m = std::max(m, std::abs(static_cast<double>(value)));
  return m;
}

/// Uniform in +-bound: n draws have mean 0 +- 5 sigma, variance bound^2 / 3 +- 5 sigma, and come close to the
/// bound.
void check_uniform(const Tensor& x, double bound) {
  const auto n = static_cast<double>(x.size());
  double sum = 0, squares = 0;
  for (const real value : x.values()) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  CHECK(largest(x) <= bound * (1 + 1e-6));
  CHECK(largest(x) >= bound * (1 - 20 / n));
  CHECK(std::abs(sum / n) < 5 * bound / std::sqrt(3 * n));
  CHECK(std::abs(squares / n / (bound * bound) - 1.0 / 3) < 5 * std::sqrt(4.0 / 45 / n));
}

}  // namespace

TEST_CASE("a generator that skips the streams of other modules makes a layer again") {
  Generator gen(7);
  const Linear before(3, 2, gen);
  const std::uint64_t skipped = gen.num_streams();
  const Linear layer(4, 4, gen);
  Generator later(7, skipped);
  const Linear again(4, 4, later);
  CHECK(same_bits(layer.weight().value(), again.weight().value()));
  CHECK_FALSE(same_bits(layer.weight().value(), Linear(4, 4, later).weight().value()));
  CHECK(later.num_streams() == gen.num_streams() + gen.num_streams() - skipped);
}

TEST_CASE("initial values have the bounds and moments that DGL's and torch's layers give them") {
  Generator gen(7);
  const Linear linear(300, 200, gen);
  check_uniform(linear.weight().value(), 1 / std::sqrt(300.0));
  check_uniform(linear.bias().value(), 1 / std::sqrt(300.0));

  const SAGEConv sage(300, 200, gen);
  const auto parameters = sage.named_parameters();
  REQUIRE(parameters.size() == 3);
  CHECK(parameters[0].name == "fc_neigh.weight");
  CHECK(parameters[1].name == "fc_self.weight");
  CHECK(parameters[2].name == "fc_self.bias");
  check_uniform(parameters[0].parameter.value(), std::sqrt(2.0) * std::sqrt(6.0 / 500));
  check_uniform(parameters[1].parameter.value(), std::sqrt(2.0) * std::sqrt(6.0 / 500));
  check_uniform(parameters[2].parameter.value(), 1 / std::sqrt(300.0));
  CHECK_FALSE(same_bits(parameters[0].parameter.value(), parameters[1].parameter.value()));

  const GraphConv conv(300, 200, gen);
  check_uniform(conv.named_parameters()[0].parameter.value(), std::sqrt(6.0 / 500));
  CHECK(largest(conv.named_parameters()[1].parameter.value()) == 0);

  const SAGEConv gcn(300, 200, gen, {.aggregator = SAGEAggregator::gcn});
  CHECK(gcn.named_parameters()[0].name == "bias");
  CHECK(largest(gcn.named_parameters()[0].parameter.value()) == 0);
}

TEST_CASE("TAGConv and the residual of NNConv start from a normal distribution") {
  Generator gen(8);
  const auto check = [](const Tensor& x, double deviation) {
    double squares = 0;
    for (const real value : x.values()) squares += static_cast<double>(value) * static_cast<double>(value);
    CHECK(std::abs(std::sqrt(squares / static_cast<double>(x.size())) / deviation - 1) < 0.02);
    CHECK(largest(x) > 3 * deviation);  // uniform values end at 1.73
  };
  const TAGConv tag(100, 200, gen);
  CHECK(tag.named_parameters()[0].name == "lin.weight");
  check(tag.named_parameters()[0].parameter.value(), std::sqrt(2.0) * std::sqrt(2.0 / 500));
  const NNConv nn({2, 300}, 200, std::make_shared<Linear>(3, 400, gen), gen, {.residual = true});
  CHECK(nn.named_parameters().back().name == "res_fc.weight");
  check(nn.named_parameters().back().parameter.value(), std::sqrt(2.0) * std::sqrt(2.0 / 500));
}

TEST_CASE("parameters depend on the seed and the order of construction, not on ranks or threads") {
  const Communicator world = Communicator::world();
  const auto weight = [](std::uint64_t seed, int threads) {
    const ThreadLimit limit(threads);
    Generator gen(seed);
    const Linear first(64, 48, gen);
    return Linear(64, 48, gen).weight().value();
  };
  CHECK(same_on_all_ranks(world, weight(3, 1)));
  CHECK(same_bits(weight(3, 1), weight(3, 2)));
  CHECK_FALSE(same_bits(weight(3, 1), weight(4, 1)));
  Generator gen(3);
  CHECK_FALSE(same_bits(weight(3, 1), Linear(64, 48, gen).weight().value()));
}

TEST_CASE("an initial value is a known number: checkpoints and logs can be compared between machines") {
  const Random random({5, std::uint64_t{1} << 32, 0});
  Generator gen(5);
  const Linear linear(3, 2, gen);
  const double bound = 1 / std::sqrt(3.0);
  for (Index i = 0; i < 2; ++i)
    for (Index j = 0; j < 3; ++j)
      CHECK(linear.weight().value().row(i)[j] ==
            doctest::Approx(
                bound *
                (2 * random.uniform(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(j)) - 1)));
}

TEST_CASE("widths that make no layer are refused") {
  Generator gen(0);
  CHECK_THROWS_AS(Linear(0, 3, gen), InputError);
  CHECK_THROWS_AS(GraphConv(4, 3, gen, {.weight = false}), InputError);
  CHECK_THROWS_AS(SAGEConv({4, 3}, 2, gen, {.aggregator = SAGEAggregator::gcn}), InputError);
  const auto streams = gen.num_streams();
  CHECK_THROWS_AS(Dropout(1.0, gen), InputError);
  CHECK(gen.num_streams() == streams);
  CHECK_THROWS_AS(Dropout(-0.1, gen), InputError);
}
