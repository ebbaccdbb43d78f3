// SPDX-License-Identifier: MIT

/// Normalization by the statistics of all rows that were seen, on any number of ranks.
#include "graph/data/dataset_files.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/comm/reproducible_scope.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/modules/norms.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index rows = 40, width = 4;

/// Columns of different sizes: around 0, with a large mean, constant, tiny.
Tensor fields(std::uint64_t key) {
  Tensor x = random_values({rows, width}, key);
  for (Index i = 0; i < rows; ++i) {
    x.row(i)[1] = 100000 + 20 * x.row(i)[1];
    x.row(i)[2] = real(0.1);
    x.row(i)[3] *= real(1e-6);
  }
  return x;
}

/// The statistics of several batches, in double precision.
void expect(const std::vector<Tensor>& batches, std::vector<double>& mean, std::vector<double>& deviation) {
  mean.assign(width, 0);
  deviation.assign(width, 0);
  const double n = static_cast<double>(rows) * static_cast<double>(batches.size());
  for (Index j = 0; j < width; ++j) {
    for (const Tensor& x : batches)
      for (Index i = 0; i < rows; ++i) mean[j] += x.row(i)[j] / n;
    for (const Tensor& x : batches)
      for (Index i = 0; i < rows; ++i) deviation[j] += (x.row(i)[j] - mean[j]) * (x.row(i)[j] - mean[j]) / n;
    deviation[j] = j == 2 ? 1 : std::sqrt(deviation[j]);
  }
}

}  // namespace

TEST_CASE("updates on any number of ranks are as if all rows had come at once") {
  const Communicator world = Communicator::world();
  const std::vector<Tensor> batches{fields(1), fields(2), fields(3)};
  std::vector<double> mean, deviation;
  expect(batches, mean, deviation);
  for (const PartitionBook& book : row_splits(rows, world.size())) {
    Normalizer normalizer(width, world);
    for (const Tensor& x : batches) normalizer.update(my_rows(x, book, world.rank()));
    CHECK(normalizer.count() == 3 * rows);
    CHECK(same_on_all_ranks(world, normalizer.mean()));
    CHECK(same_on_all_ranks(world, normalizer.std()));
    for (Index j = 0; j < width; ++j) {
      CAPTURE(j);
      CHECK(normalizer.std().data()[j] == doctest::Approx(deviation[j]).epsilon(tolerance() / 10));
      CHECK(std::abs(normalizer.mean().data()[j] - mean[j]) <
            tolerance() / 10 * (std::abs(mean[j]) + deviation[j]));
    }
    const Tensor mine = my_rows(batches[1], book, world.rank());
    const Tensor y = normalizer(mine).value();
    for (Index i = 0; i < y.num_rows(); ++i)
      for (Index j = 0; j < width; ++j)
        CHECK(std::abs(y.row(i)[j] - (mine.row(i)[j] - mean[j]) / deviation[j]) < 10 * tolerance());
    const Tensor back = normalizer.inverse(y).value();
    for (Index i = 0; i < y.num_rows(); ++i) {
      for (const Index j : {0, 1, 3})
        CHECK(std::abs(back.row(i)[j] - mine.row(i)[j]) <
              tolerance() * deviation[j] + 1e-7 * std::abs(mean[j]));
      CHECK(std::abs(y.row(i)[2]) < 1e-6);  // constant
    }
  }
}

TEST_CASE("in a ReproducibleScope, the bits do not depend on the number of ranks") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  constexpr Index many = 1000;
  const auto buffers = [&](const Communicator& comm, const PartitionBook& book) {
    const ReproducibleScope scope(comm);
    Normalizer normalizer(width, comm);
    for (const std::uint64_t key : {1, 2, 3})
      normalizer.update(my_rows(random_values(Shape{many, width}, key), book, comm.rank()));
    return normalizer.named_buffers();
  };
  const auto expected = buffers(self, PartitionBook::even(many, 1));
  for (const PartitionBook& book : row_splits(many, world.size())) {
    const auto found = buffers(world, book);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(found[i].tensor, expected[i].tensor));
  }
}

TEST_CASE("before an update, and of no rows, normalization is the identity; gradients") {
  const Communicator world = Communicator::world();
  Normalizer normalizer(width, world);
  normalizer.update(Tensor::zeros({0, width}));
  const Tensor x = random_values({5, width}, 1);
  CHECK(relative_error(normalizer(x).value(), x) == 0);
  CHECK(relative_error(normalizer.inverse(x).value(), x) == 0);
  Normalizer local(width, Communicator::self());
  local.update(random_values({30, width}, 2));
  CHECK_NOTHROW(gradcheck([&](const auto& in) { return local(in[0]); }, {Variable(x, true)}));
  CHECK_NOTHROW(gradcheck([&](const auto& in) { return local.inverse(in[0]); }, {Variable(x, true)}));
}

TEST_CASE("columns whose squares do not fit the tensors' numbers") {
  const Communicator world = Communicator::world();
  const Tensor x = Tensor::from({2, 2}, {real(1e20), real(1e-27), real(3e20), real(3e-27)});
  for (const bool reproducible : {false, true}) {
    const ReproducibleScope scope(world, reproducible);
    Normalizer normalizer(2, world);
    for (int update = 0; update < 2; ++update) {
      normalizer.update(x);
      CHECK(normalizer.std().data()[0] == doctest::Approx(1e20));
      CHECK(normalizer.std().data()[1] / 1e-27 == doctest::Approx(1));
      const Tensor y = normalizer(x).value();
      for (Index j = 0; j < 2; ++j) {
        CHECK(y.row(0)[j] == doctest::Approx(-1));
        CHECK(y.row(1)[j] == doctest::Approx(1));
      }
    }
  }
}

TEST_CASE("a normalizer is saved with the weights and goes on from there, bit for bit") {
  const Communicator world = Communicator::world();
  const TemporaryDirectory directory(world);
  const std::string path = directory.path() + "/normalizer.safetensors";
  Normalizer normalizer(width, world), loaded(width, world);
  normalizer.update(fields(1));
  save_weights(world, path, normalizer);
  load_weights(world, path, loaded);
  normalizer.update(fields(2));
  loaded.update(fields(2));
  CHECK(loaded.count() == normalizer.count());
  for (std::size_t k = 0; k < 4; ++k)
    CHECK(same_bits(loaded.named_buffers()[k].tensor, normalizer.named_buffers()[k].tensor));
}

TEST_CASE("what is wrong on one rank is an error on all, and changes nothing") {
  const Communicator world = Communicator::world();
  const bool last = world.rank() == world.size() - 1;
  Normalizer normalizer(2, world);
  normalizer.update(Tensor::from({2, 2}, {1, 2, 3, 4}));
  const Tensor mean = normalizer.mean().clone();
  Tensor x = Tensor::full({3, 2}, 5);
  if (last) x.row(1)[1] = std::numeric_limits<real>::infinity();
  CHECK(thrown_by_all<InputError>(world, [&] { normalizer.update(x); }) ==
        "Normalizer: column 1 has a value that is not finite");
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          normalizer.update(Tensor::zeros({3, last ? 3 : 2}));
        }) == "Normalizer of 2 features got a tensor of shape [3, 3]");
  CHECK(same_bits(normalizer.mean(), mean));
  CHECK(normalizer.count() == static_cast<std::uint64_t>(2 * world.size()));
  CHECK_THROWS_AS((void)normalizer(Tensor::zeros({2})), ShapeError);
  CHECK_THROWS_AS((void)normalizer.inverse(Tensor::zeros({2, 1})), ShapeError);
  CHECK_THROWS_AS(Normalizer(0, world), InputError);
}
