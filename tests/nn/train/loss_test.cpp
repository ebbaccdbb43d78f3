// SPDX-License-Identifier: MIT
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/train/loss.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

template <class T>
std::span<const T> my_part(const std::vector<T>& whole, const PartitionBook& book, int rank) {
  return std::span<const T>(whole).subspan(static_cast<std::size_t>(book.begin(rank)),
                                           static_cast<std::size_t>(book.num_nodes(rank)));
}

}  // namespace

TEST_CASE("cross_entropy: golden vectors") {
  const Communicator world = Communicator::world();
  for (const std::string name : {"loss/cross_entropy_masked", "loss/cross_entropy_masked_large"}) {
    const Case golden(name);
    const Tensor logits = golden.tensor("in.logits");
    const auto labels = golden.indices("labels");
    const auto mask = golden.mask("mask");
    for (const PartitionBook& book : row_splits(logits.num_rows(), world.size())) {
      CAPTURE(name);
      const int rank = world.rank();
      Variable x(my_rows(logits, book, rank), true);
      Tape tape;
      const Variable loss = cross_entropy(x, my_part(labels, book, rank), my_part(mask, book, rank), world);
      CHECK(relative_error(loss.value(), golden.values("out")) < tolerance());
      CHECK(same_on_all_ranks(world, loss.value()));
      tape.backward(loss);
      CHECK(error_of_rows(x.grad(), golden.tensor("grad_in.logits"), book.begin(rank)) < tolerance());
    }
  }
}

TEST_CASE("bce_with_logits and mse: golden vectors") {
  const Communicator world = Communicator::world();
  for (const std::string name : {"loss/bce_with_logits", "loss/bce_with_logits_large"}) {
    const Case golden(name);
    for (const PartitionBook& book : row_splits(golden.tensor("in.logits").num_rows(), world.size())) {
      CAPTURE(name);
      Variable x(my_rows(golden.tensor("in.logits"), book, world.rank()), true);
      Tape tape;
      const Variable loss = bce_with_logits(x, my_rows(golden.tensor("target"), book, world.rank()), world);
      CHECK(relative_error(loss.value(), golden.values("out")) < tolerance());
      tape.backward(loss);
      CHECK(error_of_rows(x.grad(), golden.tensor("grad_in.logits"), book.begin(world.rank())) < tolerance());
    }
  }
}

TEST_CASE("mse, l1 and huber: golden vectors") {
  const Communicator world = Communicator::world();
  using Loss = std::function<Variable(const Variable&, const Variable&)>;
  const std::vector<std::tuple<std::string, std::string, Loss>> losses = {
      {"loss/mse", "in.", [&](const Variable& p, const Variable& t) { return mse(p, t, world); }},
      {"torch/l1", "", [&](const Variable& p, const Variable& t) { return l1(p, t, world); }},
      {"torch/huber", "", [&](const Variable& p, const Variable& t) { return huber(p, t, world); }},
      {"torch/huber_half", "",
       [&](const Variable& p, const Variable& t) { return huber(p, t, world, 0.5); }}};
  for (const auto& [name, in, function] : losses) {
    CAPTURE(name);
    const Case golden(name);
    const Tensor pred = golden.tensor(in + "pred"), target = golden.tensor(in + "target");
    for (const PartitionBook& book : row_splits(pred.num_rows(), world.size())) {
      Variable p(my_rows(pred, book, world.rank()), true);
      Variable t(my_rows(target, book, world.rank()), true);
      Tape tape;
      const Variable loss = function(p, t);
      CHECK(relative_error(loss.value(), golden.values("out")) < tolerance());
      CHECK(same_on_all_ranks(world, loss.value()));
      tape.backward(loss);
      const Index first = book.begin(world.rank());
      CHECK(error_of_rows(p.grad(), golden.tensor("grad_" + in + "pred"), first) < tolerance());
      CHECK(error_of_rows(t.grad(), golden.tensor("grad_" + in + "target"), first) < tolerance());
    }
  }
}

TEST_CASE("l1 and huber: finite differences") {
  const Communicator self = Communicator::self();
  const Variable target(random_values({5, 3}, 1), true);
  Tensor away = target.value().clone();  // the differences are neither 0 nor delta
  for (Index i = 0; i < away.size(); ++i)
    away.data()[i] += (i % 2 == 0 ? 1 : -1) * (i % 3 == 0 ? real(0.3) : real(1.5));
  const Variable prediction(away, true);
  CHECK_NOTHROW(gradcheck([&](const auto& in) { return l1(in[0], in[1], self); }, {prediction, target}));
  CHECK_NOTHROW(
      gradcheck([&](const auto& in) { return huber(in[0], in[1], self, 0.8); }, {prediction, target}));
}

TEST_CASE("losses of logits +-1000 are exact, and gradients add up") {
  const Communicator world = Communicator::world();
  const double ranks = world.size();
  Variable x(Tensor::from({2, 3}, {1000, -1000, 0, -1000, 1000, 1000}), true);
  const std::vector<std::int64_t> labels{1, 2};
  const std::vector<std::uint8_t> mask{1, 1};
  for (int repeat = 1; repeat <= 2; ++repeat) {
    Tape tape;
    const Variable loss = cross_entropy(x, labels, mask, world);
    CHECK(loss.value().item() == doctest::Approx((2000 + std::log(2.0)) / 2));
    tape.backward(loss);
    CHECK(x.grad().data()[0] == doctest::Approx(repeat * 0.5 / ranks));
    CHECK(x.grad().data()[1] == doctest::Approx(repeat * -0.5 / ranks));
    CHECK(x.grad().data()[4] == doctest::Approx(repeat * 0.25 / ranks));
  }
  const Variable bce = bce_with_logits(Tensor::from({2}, {1000, -1000}), Tensor::from({2}, {0, 0}), world);
  CHECK(bce.value().item() == doctest::Approx(500));
}

TEST_CASE("what is wrong on one rank is an error on all") {
  const Communicator world = Communicator::world();
  const Tensor logits = Tensor::zeros({3, 2});
  const bool last = world.rank() == world.size() - 1;
  const std::vector<std::uint8_t> mask{1, 0, 1}, none{0, 0, 0};
  const std::vector<std::int64_t> good{0, -1, 1};
  std::vector<std::int64_t> bad = good;
  if (last) bad[2] = 2;
  CHECK(test::thrown_by_all<InputError>(world, [&] { (void)cross_entropy(logits, bad, mask, world); }) ==
        "label 2 of row 2, which is in the mask, is not one of the 2 classes, and not -1 (unlabelled)");
  CHECK_THROWS_AS(accuracy(logits, bad, mask, world), InputError);
  if (last) bad = {0, -1, -2};
  CHECK_THROWS_AS(cross_entropy(logits, bad, mask, world), InputError);
  CHECK_THROWS_AS(cross_entropy(logits, good, none, world), InputError);
  CHECK_THROWS_AS(cross_entropy(last ? Tensor::zeros({4, 2}) : logits, good, mask, world), ShapeError);
  CHECK_THROWS_AS(accuracy(last ? Tensor::zeros({4, 2}) : logits, good, mask, world), ShapeError);
  CHECK_THROWS_AS(mse(logits, last ? Tensor::zeros({3, 1}) : logits, world), ShapeError);
  CHECK(test::thrown_by_all<InputError>(world, [&] { (void)huber(logits, logits, world, last ? 0 : 1); }) ==
        "huber: delta is 0, expected a positive number");
  CHECK(test::thrown_by_all<InputError>(world, [&] {
          (void)l1(Tensor::zeros({0, 2}), Tensor::zeros({0, 2}), world);
        }) == "l1 of no elements");
  CHECK_THROWS_AS(bce_with_logits(Tensor::zeros({0, 2}), Tensor::zeros({0, 2}), world), InputError);
  CHECK(cross_entropy(logits, good, mask, world).value().item() == doctest::Approx(std::log(2.0)));
}

TEST_CASE("a rank without masked rows still sends a gradient of zeros: those behind it may be collective") {
  const Communicator world = Communicator::world();
  const bool first = world.rank() == 0;
  Variable x(Tensor::zeros({2, 3}), true);
  const std::vector<std::int64_t> labels{1, 2};
  const std::vector<std::uint8_t> mask(2, first ? 1 : 0);
  Tape tape;
  tape.backward(cross_entropy(x, labels, mask, world));
  REQUIRE(x.grad().defined());
  CHECK(x.grad().data()[1] == doctest::Approx(first ? -1.0 / 3 : 0));
}

TEST_CASE("cross_entropy with class weights and label smoothing: torch's values") {
  const Communicator world = Communicator::world();
  for (const std::string name : {"cross_entropy_weights", "cross_entropy_smoothing", "cross_entropy_both"}) {
    const Case golden("metrics/" + name);
    const Tensor logits = golden.tensor("logits");
    const auto labels = golden.indices("labels");
    const auto mask = golden.mask("mask");
    const std::vector<double> weights = golden.values("weights");
    const CrossEntropyOptions options{.class_weights = weights,
                                      .label_smoothing = golden.values("smoothing")[0]};
    for (const PartitionBook& book : row_splits(logits.num_rows(), world.size())) {
      CAPTURE(name);
      const int rank = world.rank();
      Variable x(my_rows(logits, book, rank), true);
      Tape tape;
      const Variable loss =
          cross_entropy(x, my_part(labels, book, rank), my_part(mask, book, rank), world, options);
      CHECK(relative_error(loss.value(), golden.values("out")) < tolerance());
      tape.backward(loss);
      CHECK(error_of_rows(x.grad(), golden.tensor("grad_logits"), book.begin(rank)) < tolerance());
    }
  }
}

TEST_CASE("weighted cross entropy without a class: its logit is -inf") {
  const Communicator self = Communicator::self();
  Variable x(Tensor::from({1, 3}, {1, 2, -std::numeric_limits<real>::infinity()}), true);
  const std::vector<double> weights{1, 1, 1};
  const std::vector<std::int64_t> labels{0};
  const std::vector<std::uint8_t> mask{1};
  Tape tape;
  const Variable loss = cross_entropy(x, labels, mask, self, CrossEntropyOptions{.class_weights = weights});
  CHECK(loss.value().data()[0] == doctest::Approx(1.3132617));
  tape.backward(loss);
  CHECK(x.grad().data()[0] == doctest::Approx(-0.7310586));
  CHECK(x.grad().data()[2] == 0);
}

TEST_CASE("weighted cross entropy and masked losses: finite differences") {
  const Communicator self = Communicator::self();
  const std::vector<std::int64_t> labels{0, 2, -1, 1, 2};
  const std::vector<std::uint8_t> mask{1, 1, 1, 0, 1};
  const std::vector<double> weights{0.5, 0, 2};
  const Variable x(random_values({5, 3}, 2), true);
  CHECK_NOTHROW(gradcheck(
      [&](const auto& in) {
        return cross_entropy(in[0], labels, mask, self,
                             CrossEntropyOptions{.class_weights = weights, .label_smoothing = 0.3});
      },
      {x}));
  Tensor target = Tensor::from({5, 3}, {0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0, 1});
  target.row(1)[1] = target.row(4)[0] = std::numeric_limits<real>::quiet_NaN();
  CHECK_NOTHROW(gradcheck([&](const auto& in) { return bce_with_logits(in[0], target, mask, self); }, {x}));
  CHECK_NOTHROW(gradcheck([&](const auto& in) { return mse(in[0], target, mask, self); }, {x}));
  CHECK_NOTHROW(gradcheck([&](const auto& in) { return l1(in[0], target, mask, self); }, {x}));
  CHECK_NOTHROW(
      gradcheck([&](const auto& in) { return huber(in[0], target, mask, self, std::nullopt, 0.4); }, {x}));
}

TEST_CASE("masked losses are those of the labelled elements alone, whichever ranks have them") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  constexpr Index n = 6000;  // more than a block of rows
  const Tensor all = random_values({n, 3}, 5);
  Tensor wanted = random_values({n, 3}, 6);
  std::vector<std::uint8_t> mask(n);
  std::vector<real> x, t;
  for (Index i = 0; i < n; ++i) {
    mask[static_cast<std::size_t>(i)] = i % 3 != 0;
    for (Index c = 0; c < 3; ++c) {
      if ((i + c) % 5 == 0) wanted.row(i)[c] = std::numeric_limits<real>::quiet_NaN();
      if (mask[static_cast<std::size_t>(i)] == 0 || std::isnan(wanted.row(i)[c])) continue;
      x.push_back(all.row(i)[c]);
      t.push_back(wanted.row(i)[c]);
    }
  }
  Tensor chosen({std::ssize(x)}), targets({std::ssize(t)});
  chosen.copy_from(std::span<const real>(x));
  targets.copy_from(std::span<const real>(t));
  const auto gradient = [](const Tensor& at, const auto& loss) {
    const Variable v(at, true);
    Tape tape;
    tape.backward(loss(v));
    return v.grad();
  };
  const Tensor got = gradient(all, [&](const Variable& v) { return mse(v, wanted, mask, self); });
  const Tensor of_chosen = gradient(chosen, [&](const Variable& v) { return mse(v, targets, self); });
  const real* next = of_chosen.data();
  bool equal = true;
  for (Index i = 0; i < n; ++i)
    for (Index c = 0; c < 3; ++c) {
      const bool counts = mask[static_cast<std::size_t>(i)] != 0 && !std::isnan(wanted.row(i)[c]);
      equal = equal && got.row(i)[c] == (counts ? *next++ : real{0});
    }
  CHECK(equal);
  for (const PartitionBook& book : row_splits(n, world.size())) {
    const Tensor mine = my_rows(all, book, world.rank()), of = my_rows(wanted, book, world.rank());
    const auto rows = my_part(mask, book, world.rank());
    CHECK(mse(mine, of, rows, world).value().item() ==
          doctest::Approx(mse(chosen, targets, self).value().item()));
    CHECK(l1(mine, of, rows, world).value().item() ==
          doctest::Approx(l1(chosen, targets, self).value().item()));
    CHECK(huber(mine, of, rows, world, std::nullopt, 0.4).value().item() ==
          doctest::Approx(huber(chosen, targets, self, 0.4).value().item()));
    CHECK(bce_with_logits(mine, of, rows, world).value().item() ==
          doctest::Approx(bce_with_logits(chosen, targets, self).value().item()));
    CHECK(test::thrown_by_all<InputError>(world, [&] {
            (void)mse(mine, of, std::vector<std::uint8_t>(rows.size(), 0), world);
          }) == "mse over an empty mask: no element of any rank has a target");
  }
}

TEST_CASE("row weights: sums of weighted terms of all ranks, their gradients, and what is wrong") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  const Index n = 12, classes = 4;
  const Tensor all = random_values({n, classes}, 5);
  Tensor wanted = random_values({n, classes}, 6);
  for (real& t : wanted.values()) t = std::abs(t) / 4;
  wanted.row(1)[2] = std::numeric_limits<real>::quiet_NaN();
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> mask;
  std::vector<real> weights;
  for (Index i = 0; i < n; ++i) {
    labels.push_back(i % classes);
    mask.push_back(i == 3 ? 0 : 1);
    weights.push_back(i == 2 ? real{0} : static_cast<real>(0.5 + static_cast<double>(i % 5)));
  }
  const std::vector<double> of_class{1, 2, 0.5, 3};
  // the mean over one row times the number of its terms, weighted
  const auto expected = [&](const auto& mean_of_row, const auto& count) {
    double sum = 0;
    for (Index i = 0; i < n; ++i) {
      std::vector<std::uint8_t> only(mask.size(), 0);
      only[static_cast<std::size_t>(i)] = 1;
      if (mask[static_cast<std::size_t>(i)] != 0)
        sum += static_cast<double>(weights[static_cast<std::size_t>(i)]) * count(i) *
               static_cast<double>(mean_of_row(only).value().item());
    }
    return doctest::Approx(sum).epsilon(1e-5);
  };
  const auto labelled = [&](Index i) { return static_cast<double>(classes - (i == 1 ? 1 : 0)); };
  for (const PartitionBook& book : row_splits(n, world.size())) {
    const int rank = world.rank();
    const Variable x(my_rows(all, book, rank));
    const Tensor t = my_rows(wanted, book, rank);
    const auto my_labels = my_part(labels, book, rank);
    const auto my_mask = my_part(mask, book, rank);
    const RowWeights mine = my_part(weights, book, rank);
    for (const double smoothing : {0.0, 0.2})
      for (const bool by_class : {false, true}) {
        CrossEntropyOptions options{.label_smoothing = smoothing};
        if (by_class) options.class_weights = of_class;
        const auto want = expected(
            [&](const auto& only) { return cross_entropy(Variable(all), labels, only, self, options); },
            [&](Index i) { return by_class ? of_class[static_cast<std::size_t>(i % classes)] : 1; });
        options.row_weights = mine;
        CHECK(static_cast<double>(cross_entropy(x, my_labels, my_mask, world, options).value().item()) ==
              want);
        options.row_weights = weights;
        CHECK_NOTHROW(
            gradcheck([&](const auto& in) { return cross_entropy(in[0], labels, mask, self, options); },
                      {Variable(all.clone(), true)}));
      }
    const auto check = [&](const auto& loss, bool is_smooth) {
      CHECK(static_cast<double>(loss(x, t, my_mask, world, mine).value().item()) ==
            expected([&](const auto& only) { return loss(Variable(all), wanted, only, self, std::nullopt); },
                     labelled));
      if (is_smooth)
        CHECK_NOTHROW(gradcheck([&](const auto& in) { return loss(in[0], wanted, mask, self, weights); },
                                {Variable(all.clone(), true)}));
    };
    check([](const auto&... of) { return bce_with_logits(of...); }, true);
    check([](const auto&... of) { return mse(of...); }, true);
    check([](const auto&... of) { return l1(of...); }, false);
    check([](const auto&... of) { return huber(of..., 0.4); }, false);
  }
  std::vector<real> wrong = weights;
  wrong[4] = -1;
  const auto with = [&](const RowWeights& given) {
    return [&, given] { (void)mse(Variable(all), wanted, mask, world, given); };
  };
  CHECK(thrown_by_all<InputError>(world, with(wrong)) ==
        "mse: the weight of row 4 is -1, expected a finite number of 0 or more");
  CHECK(thrown_by_all<ShapeError>(world, with(std::span<const real>(weights).first(3))) ==
        "mse: there are 3 row weights for 12 rows");
  const RowWeights on_some = world.rank() == 0 ? RowWeights() : RowWeights(weights);
  if (world.size() > 1)
    CHECK(thrown_by_all<InputError>(world, with(on_some)).find("row weights") != std::string::npos);
}

TEST_CASE("class weights: what is wrong, and balanced ones") {
  const Communicator world = Communicator::world();
  const bool last = world.rank() == world.size() - 1;
  const Tensor logits = Tensor::zeros({3, 2});
  const std::vector<std::int64_t> labels{0, 1, 1};
  const std::vector<std::uint8_t> mask{1, 1, 1};
  const auto text = [&](const std::vector<double>& weights, double smoothing) {
    return test::thrown_by_all<InputError>(world, [&] {
      (void)cross_entropy(logits, labels, mask, world,
                          CrossEntropyOptions{.class_weights = weights, .label_smoothing = smoothing});
    });
  };
  CHECK(text({1}, 0) == "cross_entropy: there are 1 class weights, expected 2, one for each class");
  CHECK(text({1, -1}, 0) ==
        "cross_entropy: the weight of class 1 is -1, expected a finite number of 0 or more");
  CHECK(text({}, 1.5) == "cross_entropy: label_smoothing is 1.5, expected a number from 0 to 1");
  CHECK(text({0, 0}, 0) ==
        "cross_entropy: no row in the mask has a label of a class whose weight is above 0");
  if (world.size() > 1)
    CHECK(text({1, last ? 2.0 : 1.0}, 0) ==
          concat("cross_entropy is called with a different class weight on different ranks: ",
                 "1 on rank 0, 2 on rank ", world.size() - 1));
  // 2 of class 0 and 1 of class 2 on the last rank only, none of class 1
  const std::vector<std::int64_t> of_last{0, 0, 2};
  const std::vector<std::uint8_t> mine(3, last ? 1 : 0);
  CHECK(balanced_class_weights(of_last, mine, 3, world) == std::vector<double>{0.75, 0, 1.5});
}

TEST_CASE("accuracy counts over all ranks") {
  const Communicator world = Communicator::world();
  const real nan = std::numeric_limits<real>::quiet_NaN();
  const Tensor logits = Tensor::from({5, 2}, {2, 1, 1, 2, 3, 3, 1, 0, nan, 1});
  const std::vector<std::int64_t> labels{0, 0, 0, 0, 0};
  CHECK(accuracy(logits, labels, std::vector<std::uint8_t>{1, 1, 1, 1, 1}, world) == doctest::Approx(0.6));
  CHECK(accuracy(logits, labels, std::vector<std::uint8_t>{0, 1, 1, 0, 0}, world) == doctest::Approx(0.5));
  CHECK(std::isnan(accuracy(logits, labels, std::vector<std::uint8_t>(5, 0), world)));
  // one rank holds the rows
  const bool mine = world.rank() == world.size() - 1;
  const std::vector<std::uint8_t> mask{static_cast<std::uint8_t>(mine), static_cast<std::uint8_t>(mine), 0, 0,
                                       0};
  CHECK(accuracy(logits, labels, mask, world) == doctest::Approx(0.5));
}

TEST_CASE("rows without a label are left out of the loss, its gradient and the accuracy") {
  const Communicator world = Communicator::world();
  const Tensor logits = Tensor::from({4, 2}, {2, 1, 1, 2, 3, 3, 1, 0});
  const std::vector<std::int64_t> labels{0, -1, 1, -1}, known{0, 0, 1, 0};
  const std::vector<std::uint8_t> mask{1, 1, 1, 0}, smaller{1, 0, 1, 0};
  CHECK(accuracy(logits, labels, mask, world) == accuracy(logits, known, smaller, world));
  Variable x(logits, true), y(logits, true);
  Tape tape;
  const Variable loss = cross_entropy(x, labels, mask, world),
                 expected = cross_entropy(y, known, smaller, world);
  CHECK(loss.value().item() == expected.value().item());
  tape.backward(loss);
  Tape other;
  other.backward(cross_entropy(y, known, smaller, world));
  for (Index i = 0; i < 8; ++i) CHECK(x.grad().data()[i] == y.grad().data()[i]);
  CHECK(test::thrown_by_all<InputError>(world, [&] {
          static_cast<void>(cross_entropy(logits, std::vector<std::int64_t>(4, -1), mask, world));
        }) == "cross_entropy over an empty mask: no row of any rank is labelled");
  CHECK(std::isnan(accuracy(logits, std::vector<std::int64_t>(4, -1), mask, world)));
}

TEST_CASE("1 and 2 threads give the same bits") {
  const Communicator world = Communicator::world();
  const Tensor logits = random_values({20000, 7});
  std::vector<std::int64_t> labels(20000);
  std::vector<std::uint8_t> mask(20000);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<std::int64_t>(i % 7);
    mask[i] = i % 3 != 0;
  }
  const auto run = [&](int threads) {
    const ThreadLimit limit(threads);
    Variable x(logits, true);
    Tape tape;
    const Variable loss = cross_entropy(x, labels, mask, world);
    tape.backward(loss);
    return std::pair(loss.value(), x.grad());
  };
  const auto one = run(1), two = run(2);
  CHECK(same_bits(one.first, two.first));
  CHECK(same_bits(one.second, two.second));
}
