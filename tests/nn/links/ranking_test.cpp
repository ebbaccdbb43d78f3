// SPDX-License-Identifier: MIT
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/models/ranking.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

TEST_CASE("metrics: golden values, whichever ranks have the scores") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  for (const std::string name : {"metrics", "metrics_ties", "metrics_all_ties"}) {
    CAPTURE(name);
    const Case golden("link/" + name);
    const Tensor pos = golden.tensor("pos"), neg = golden.tensor("neg");
    const std::vector<Index> ks = golden.indices("hits_k");
    for (const PartitionBook& book : row_splits(pos.num_rows(), world.size())) {
      const Tensor p = my_rows(pos, book, world.rank()), q = my_rows(neg, book, world.rank());
      CHECK(roc_auc(p, q, world) == doctest::Approx(golden.values("auc")[0]).epsilon(1e-14));
      CHECK(roc_auc(p, q, world) == roc_auc(pos, neg, self));
      CHECK(mean_reciprocal_rank(p, q, world) == doctest::Approx(golden.values("mrr")[0]).epsilon(1e-14));
      CHECK(mean_reciprocal_rank(p, q, world) == mean_reciprocal_rank(pos, neg, self));
      for (std::size_t i = 0; i < ks.size(); ++i)
        CHECK(hits_at_k(p, q, ks[i], world) == doctest::Approx(golden.values("hits")[i]).epsilon(1e-14));
      CHECK(hits_at_k(p, q, neg.size() + 1, world) == 1);
    }
  }
}

TEST_CASE("metrics by hand") {
  const Communicator world = Communicator::world();
  const bool first = world.rank() == 0;
  // positives on rank 0, negatives on the last: 3 and 1 against 2, 1, 0 and -infinity
  const Tensor pos = first ? Tensor::from({2}, {3, 1}) : Tensor::zeros({0});
  const real lowest = -std::numeric_limits<real>::infinity();
  const Tensor neg =
      world.rank() == world.size() - 1 ? Tensor::from({4}, {2, 1, 0, lowest}) : Tensor::zeros({0});
  CHECK(roc_auc(pos, neg, world) == (4 + 2.5) / 8);
  CHECK(hits_at_k(pos, neg, 1, world) == 0.5);
  CHECK(hits_at_k(pos, neg, 2, world) == 0.5);
  CHECK(hits_at_k(pos, neg, 3, world) == 1);
  // ranks 1 and 2.5: one negative is better, one is equal
  const Tensor own = first ? Tensor::from({2, 3}, {2, 1, 0, 2, 1, 0}) : Tensor::zeros({0, 3});
  CHECK(mean_reciprocal_rank(pos, own, world) == doctest::Approx((1 + 1 / 2.5) / 2));
  CHECK(roc_auc(Tensor::from({1}, {real(-0.0)}), Tensor::from({1}, {0}), world) == 0.5);
}

TEST_CASE("AUC of one rank's large part, of scores in any order, is exact") {
  const Communicator world = Communicator::world();
  const Index mine = world.rank() == 0 ? 3000 : 10 * world.rank();
  const Tensor pos = random_values(Shape{mine}, 1 + static_cast<std::uint64_t>(world.rank()));
  const Tensor neg = random_values(Shape{2 * mine}, 100 + static_cast<std::uint64_t>(world.rank()));
  const auto all_pos = world.all_gather(pos.values()), all_neg = world.all_gather(neg.values());
  std::int64_t won = 0;
  for (const real p : all_pos)
    for (const real q : all_neg) won += p > q ? 2 : p == q ? 1 : 0;
  CHECK(roc_auc(pos, neg, world) == static_cast<double>(won) / (2.0 * static_cast<double>(all_pos.size()) *
                                                                static_cast<double>(all_neg.size())));
}

TEST_CASE("metrics say what is wrong, on all ranks") {
  const Communicator world = Communicator::world();
  const bool last = world.rank() == world.size() - 1;
  const Tensor some = Tensor::from({2}, {1, 2}), none = Tensor::zeros({0});
  const auto text = [&](const std::function<void()>& action) {
    return thrown_by_all<InputError>(world, action);
  };
  CHECK(text([&] { (void)roc_auc(none, some, world); }) == "roc_auc: no rank has the score of a positive");
  CHECK(text([&] { (void)roc_auc(some, none, world); }) == "roc_auc: no rank has the score of a negative");
  CHECK(text([&] { (void)hits_at_k(none, some, 1, world); }) ==
        "hits_at_k: no rank has the score of a positive");
  CHECK(text([&] { (void)mean_reciprocal_rank(none, none, world); }) ==
        "mean_reciprocal_rank: no rank has the score of a positive");
  const Tensor nan = Tensor::from({2}, {1, last ? std::numeric_limits<real>::quiet_NaN() : 0});
  CHECK(text([&] { (void)roc_auc(some, nan, world); }) == "roc_auc: score 1 of the negatives is NaN");
  CHECK(text([&] { (void)hits_at_k(some, some, last ? 0 : 1, world); }) ==
        "hits_at_k: K is 0, expected 1 or more");
  if (world.size() > 1)
    CHECK(text([&] { (void)hits_at_k(some, some, last ? 2 : 1, world); }) ==
          concat("hits_at_k is called with a different K on different ranks: 1 on rank 0, 2 on rank ",
                 world.size() - 1));
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)mean_reciprocal_rank(some, last ? Tensor::zeros({3}) : Tensor::zeros({2, 1}), world);
        }) == "mean_reciprocal_rank: negatives have shape [3], expected [2, k] for 2 positives");
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)mean_reciprocal_rank(some, last ? Tensor::zeros({1, 4}) : Tensor::zeros({2, 2}), world);
        }) == "mean_reciprocal_rank: negatives have shape [1, 4], expected [2, k] for 2 positives");
}
