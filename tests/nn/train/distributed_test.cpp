// SPDX-License-Identifier: MIT
#include "support/rows.hpp"

#include <sar/core/error.hpp>
#include <sar/core/memory/transaction.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/norms.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <doctest/doctest.h>

using namespace sar;
using namespace sar::test;

namespace {

struct Pair : Module {
  Variable a, b, constant;
  explicit Pair(Index size)
      : a(Tensor::zeros({size}), true), b(Tensor::zeros({size}), true), constant(Tensor::zeros({2})) {
    register_parameter("a", a);
    register_parameter("constant", constant);
    register_parameter("b", b);
  }
};

}  // namespace

TEST_CASE("gather_grads sums; a rank without a gradient counts as zeros; none anywhere stays none") {
  const Communicator world = Communicator::world();
  const real ranks = static_cast<real>(world.size());
  const bool last = world.rank() == world.size() - 1;
  Pair pair(3);
  if (last) pair.a.gradient()->add(Tensor::from({3}, {1, 2, 3}));
  gather_grads(world, pair);
  REQUIRE(pair.a.grad().defined());
  CHECK(pair.a.grad().data()[2] == 3);
  CHECK_FALSE(pair.b.grad().defined());

  pair.zero_grad();
  const Tensor shared = Tensor::from({3}, {1, 2, static_cast<real>(world.rank())});
  pair.a.gradient()->add(shared);  // one memory behind two gradients, as after add(a, b)
  pair.b.gradient()->add(shared);
  gather_grads(world, pair);
  for (const Variable& parameter : {pair.a, pair.b}) {
    CHECK(parameter.grad().data()[0] == ranks);
    CHECK(parameter.grad().data()[1] == 2 * ranks);
    CHECK(parameter.grad().data()[2] == ranks * (ranks - 1) / 2);
  }
  CHECK(shared.data()[0] == 1);

  pair.zero_grad();
  pair.a.gradient()->add(Tensor::full({3}, 6));
  gather_grads(world, pair, true);
  CHECK(pair.a.grad().data()[0] == doctest::Approx(6));
}

TEST_CASE("gradients that are not cleared accumulate as on one rank, after clipping, too") {
  const Communicator world = Communicator::world();
  const real ranks = static_cast<real>(world.size());
  Pair pair(3);
  for (int pass = 1; pass <= 3; ++pass) {
    pair.a.gradient()->add(Tensor::full({3}, 2));
    if (pass == 2) pair.b.gradient()->add(Tensor::full({3}, 1));
    gather_grads(world, pair);
    CHECK(pair.a.grad().data()[0] == 2 * ranks * static_cast<real>(pass));
    CHECK(pair.b.grad().defined() == (pass > 1));
  }
  gather_grads(world, pair);  // nothing was added
  CHECK(pair.a.grad().data()[1] == 6 * ranks);
  CHECK(pair.b.grad().data()[1] == ranks);
  clip_grad_value(pair, 1);
  pair.a.gradient()->add(Tensor::full({3}, 2));
  CHECK(pair.a.grad().data()[1] == 3);
  gather_grads(world, pair);
  CHECK(pair.a.grad().data()[1] == 1 + 2 * ranks);
  pair.zero_grad();
  CHECK_FALSE(pair.a.grad().defined());

  pair.a.gradient()->add_shared(Tensor::full({3}, 1));
  try {
    const Transaction call;
    pair.a.gradient()->add(Tensor::full({3}, 2));
    pair.a.gradient()->add_shared(pair.a.gradient()->take_own());
    throw InputError("the call fails");
  } catch (const InputError&) {
    CHECK(pair.a.grad().data()[2] == 1);
  }
}

TEST_CASE("gather_grads gives every rank the same bits") {
  const Communicator world = Communicator::world();
  Pair pair(1000);
  pair.a.gradient()->add(random_values(Shape{1000}, static_cast<std::uint64_t>(world.rank())));
  gather_grads(world, pair);
  CHECK(same_on_all_ranks(world, pair.a.grad()));
}

TEST_CASE(
    "sync_params: parameters, buffers and counters of rank 0; different modules are an error on all ranks") {
  const Communicator world = Communicator::world();
  const auto rank = static_cast<std::uint64_t>(world.rank());
  DistributedBN1D norm(4, world);
  norm.set_parameter("bias", random_values(Shape{4}, rank));
  norm.set_buffer("running_mean", random_values(Shape{4}, 10 + rank));
  *norm.named_counters()[0].value = 7 + rank;
  sync_params(world, norm);
  CHECK(same_bits(norm.named_parameters()[1].parameter.value(), random_values(Shape{4}, 0)));
  CHECK(same_bits(norm.named_buffers()[0].tensor, random_values(Shape{4}, 10)));
  CHECK(*norm.named_counters()[0].value == 7);

  if (world.size() == 1) return;
  Pair pair(world.rank() == 0 ? 3 : 4);
  CHECK_THROWS_AS(sync_params(world, pair), InputError);
}
