// SPDX-License-Identifier: MIT
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/metrics.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr real nan_value = std::numeric_limits<real>::quiet_NaN();

/// The rows of a case that this rank has.
struct MyRows {
  MyRows(const Case& golden, const char* scores_name, const char* targets_name, const PartitionBook& book,
         int rank)
      : scores(my_rows(golden.tensor(scores_name), book, rank)) {
    if (golden.has("labels")) {
      const auto all = golden.indices("labels");
      labels.assign(all.begin() + book.begin(rank), all.begin() + book.end(rank));
    } else {
      targets = my_rows(golden.tensor(targets_name), book, rank);
    }
    const auto all = golden.mask("mask");
    mask.assign(all.begin() + book.begin(rank), all.begin() + book.end(rank));
  }
  Tensor scores, targets;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> mask;
};

void check_value(const Case& golden, const char* name, double value) {
  CAPTURE(name);
  CHECK(value == doctest::Approx(golden.values(name)[0]).epsilon(tolerance() / 10));
}

}  // namespace

TEST_CASE("metrics of classes: scikit-learn's values, whichever ranks have the rows") {
  const Communicator world = Communicator::world();
  for (const std::string name : {"binary", "binary_ties", "four", "four_ties", "absent"}) {
    CAPTURE(name);
    const Case golden("metrics/" + name);
    for (const PartitionBook& book : row_splits(golden.tensor("logits").num_rows(), world.size())) {
      const MyRows rows(golden, "logits", "", book, world.rank());
      check_value(golden, "roc_auc", roc_auc(rows.scores, rows.labels, rows.mask, world));
      check_value(golden, "average_precision", average_precision(rows.scores, rows.labels, rows.mask, world));
      const double micro = f1_score(rows.scores, rows.labels, rows.mask, F1::micro, world);
      check_value(golden, "f1_micro", micro);
      CHECK(micro == doctest::Approx(accuracy(rows.scores, rows.labels, rows.mask, world)));
      check_value(golden, "f1_macro", f1_score(rows.scores, rows.labels, rows.mask, F1::macro, world));
      if (golden.has("f1"))
        check_value(golden, "f1", f1_score(rows.scores, rows.labels, rows.mask, F1::binary, world));
    }
  }
}

TEST_CASE("metrics of several labels a row: OGB's values, with and without missing labels") {
  const Communicator world = Communicator::world();
  for (const std::string name : {"several", "several_missing"}) {
    CAPTURE(name);
    const Case golden("metrics/" + name);
    for (const PartitionBook& book : row_splits(golden.tensor("scores").num_rows(), world.size())) {
      const MyRows rows(golden, "scores", "targets", book, world.rank());
      check_value(golden, "roc_auc", roc_auc(rows.scores, rows.targets, rows.mask, world));
      check_value(golden, "average_precision",
                  average_precision(rows.scores, rows.targets, rows.mask, world));
      check_value(golden, "f1_micro", f1_score(rows.scores, rows.targets, rows.mask, F1::micro, world));
      check_value(golden, "f1_macro", f1_score(rows.scores, rows.targets, rows.mask, F1::macro, world));
    }
  }
}

TEST_CASE("metrics of values: scikit-learn's") {
  const Communicator world = Communicator::world();
  for (const std::string name : {"values", "values_missing"}) {
    CAPTURE(name);
    const Case golden("metrics/" + name);
    for (const PartitionBook& book : row_splits(golden.tensor("targets").num_rows(), world.size())) {
      const MyRows rows(golden, "predictions", "targets", book, world.rank());
      check_value(golden, "mae", mean_absolute_error(rows.scores, rows.targets, rows.mask, world));
      check_value(golden, "mse", mean_squared_error(rows.scores, rows.targets, rows.mask, world));
      check_value(golden, "rmse", root_mean_squared_error(rows.scores, rows.targets, rows.mask, world));
      check_value(golden, "r2", r2_score(rows.scores, rows.targets, rows.mask, world));
    }
  }
}

TEST_CASE("metrics of many rows are those of their plain formulas") {
  constexpr Index n = 5000;  // more than a block of rows
  const Communicator self = Communicator::self();
  const Tensor x = random_values({n, 3}, 5), t = random_values({n, 3}, 6);
  std::vector<std::int64_t> labels(n);
  std::vector<std::uint8_t> mask(n);
  double error = 0;
  for (Index i = 0; i < n; ++i) {
    labels[static_cast<std::size_t>(i)] = i % 4 - 1;
    mask[static_cast<std::size_t>(i)] = i % 5 != 0;
    for (Index c = 0; c < 3 && i % 5 != 0; ++c)
      error += std::abs(static_cast<double>(x.row(i)[c]) - static_cast<double>(t.row(i)[c]));
  }
  CHECK(f1_score(x, labels, mask, F1::micro, self) == doctest::Approx(accuracy(x, labels, mask, self)));
  CHECK(mean_absolute_error(x, t, mask, self) == doctest::Approx(error / (3.0 * n * 4 / 5)));
}

TEST_CASE("a metric of a program's own sees the labelled rows of all ranks") {
  const Communicator world = Communicator::world();
  const Case classes("metrics/four"), columns("metrics/values_missing");
  for (const PartitionBook& book : row_splits(classes.tensor("logits").num_rows(), world.size())) {
    const MyRows rows(classes, "logits", "", book, world.rank());
    const auto top = [](const Tensor& logits, std::span<const std::int64_t> labels) {
      double correct = 0;
      for (Index i = 0; i < logits.num_rows(); ++i) {
        const real* z = logits.row(i);
        correct += std::max_element(z, z + logits.row_size()) - z == labels[i] ? 1 : 0;
      }
      return correct / static_cast<double>(labels.size());
    };
    CHECK(metric_of_all_rows(rows.scores, rows.labels, rows.mask, world, top) ==
          doctest::Approx(accuracy(rows.scores, rows.labels, rows.mask, world)));
    const MyRows values(columns, "predictions", "targets", book, world.rank());
    const auto first = [](const Tensor& p, const Tensor& t) {
      double sum = 0, count = 0;
      for (Index i = 0; i < t.num_rows(); ++i)
        if (!std::isnan(t.row(i)[0])) sum += std::abs(p.row(i)[0] - t.row(i)[0]), ++count;
      return sum / count;
    };
    Tensor p({values.scores.num_rows(), 1}), t({values.scores.num_rows(), 1});
    for (Index i = 0; i < p.num_rows(); ++i) {
      p.data()[i] = values.scores.row(i)[0];
      t.data()[i] = values.targets.row(i)[0];
    }
    CHECK(metric_of_all_rows(values.scores, values.targets, values.mask, world, first) ==
          doctest::Approx(mean_absolute_error(p, t, values.mask, world)).epsilon(1e-5));
  }
}

TEST_CASE("metrics of nothing are not numbers, and what does not count changes nothing") {
  const Communicator world = Communicator::world();
  const Tensor logits = Tensor::from({3, 2}, {1, 2, 2, 1, nan_value, 0});
  const std::vector<std::int64_t> labels{1, 0, -1}, one_class{1, 1, -1}, none{-1, -1, -1};
  const std::vector<std::uint8_t> all{1, 1, 1}, empty{0, 0, 0};
  CHECK(roc_auc(logits, labels, all, world) == 1);
  CHECK(average_precision(logits, labels, all, world) == 1);
  for (const auto& [of, mask] : {std::pair{one_class, all}, {none, all}, {labels, empty}}) {
    CHECK(std::isnan(roc_auc(logits, of, mask, world)));
    CHECK(std::isnan(average_precision(logits, of, mask, world)));
  }
  CHECK(std::isnan(f1_score(logits, labels, empty, F1::macro, world)));
  const Tensor values = Tensor::from({2, 1}, {5, 5}), same = Tensor::from({2, 1}, {5, 5}),
               missing = Tensor::full({2, 1}, nan_value);
  const std::vector<std::uint8_t> two{1, 1};
  CHECK(r2_score(values, same, two, world) == 1);
  CHECK(r2_score(Tensor::from({2, 1}, {4, 5}), same, two, world) == 0);
  const Tensor tenths = Tensor::full({3, 1}, real(0.1)), fifths = Tensor::full({3, 1}, real(0.2));
  CHECK(r2_score(fifths, tenths, std::vector<std::uint8_t>(3, 1), Communicator::self()) == 0);
  CHECK(std::isnan(mean_absolute_error(values, missing, two, world)));
  CHECK(std::isnan(r2_score(values, missing, two, world)));
  CHECK(std::isnan(
      metric_of_all_rows(values, missing, two, world, [](const Tensor&, const Tensor&) { return 1.0; })));
  // confident logits still have an order
  const Tensor sure = Tensor::from({2, 3}, {40, 0, -1000, 60, 0, -1000});
  CHECK(roc_auc(sure, std::vector<std::int64_t>{1, 0}, two, world) == 1);
}

TEST_CASE("metrics say what is wrong, on all ranks") {
  const Communicator world = Communicator::world();
  const bool last = world.rank() == world.size() - 1;
  const Tensor x = Tensor::from({2, 2}, {1, 2, 2, last ? nan_value : 1}),
               ok = Tensor::from({2, 2}, {0, 1, 1, 0});
  const std::vector<std::int64_t> labels{1, 0};
  const std::vector<std::uint8_t> mask{1, 1};
  const auto text = [&](const std::function<void()>& action) {
    return thrown_by_all<InputError>(world, action);
  };
  CHECK(text([&] { (void)roc_auc(x, labels, mask, world); }) ==
        "roc_auc of classes: a logit of row 1 is NaN");
  const Tensor half = Tensor::from({2, 2}, {0, 1, last ? real(0.5) : 1, 0});
  CHECK(text([&] { (void)roc_auc(ok, half, mask, world); }) ==
        "roc_auc of columns: the target of row 1, column 0 is 0.5, expected 0, 1 or NaN (unlabelled)");
  CHECK_THROWS_AS(f1_score(ok, half, mask, F1::micro, world), InputError);
  CHECK_THROWS_AS(f1_score(Tensor::zeros({2, 3}), labels, mask, F1::binary, world), InputError);
  CHECK(thrown_by_all<ShapeError>(
            world,
            [&] {
              (void)mean_absolute_error(ok, last ? Tensor::zeros({2, 1}) : ok, mask, world);
            }) ==
        "mean_absolute_error: predictions have shape [2, 2], targets [2, 1], expected the same shape "
        "[rows, columns]");
  CHECK_THROWS_AS(r2_score(ok, ok, std::vector<std::uint8_t>(last ? 1 : 2, 1), world), ShapeError);
  CHECK_THROWS_AS(average_precision(ok, std::vector<std::int64_t>{1, last ? 2 : 0}, mask, world), InputError);
}
