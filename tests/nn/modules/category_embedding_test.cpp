// SPDX-License-Identifier: MIT

/// Sums of an embedding for each column of integers: values, gradients, integers that are no categories.
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/modules/embedding.hpp>

#include <doctest/doctest.h>

using namespace sar;
using namespace sar::test;

TEST_CASE("an embedding of categories is a sum of rows") {
  Generator gen(1);
  const CategoryEmbedding embedding({3, 2}, 4, gen);
  CHECK(embedding.width() == 4);
  const Variable weight = embedding.named_parameters().at(0).parameter;
  REQUIRE(weight.shape() == Shape{5, 4});
  const IntegerRows x{2, Array<Index>{2, 0, 0, 1, 2, 1}};
  const Tensor y = embedding(x).value();
  const Index rows[][2] = {{2, 3}, {0, 4}, {2, 4}};
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 4; ++j)
      CHECK(y.row(i)[j] == weight.value().row(rows[i][0])[j] + weight.value().row(rows[i][1])[j]);
  gradcheck([&](const std::vector<Variable>&) { return embedding(x); }, {weight});
  CHECK(embedding(IntegerRows{2, {}}).shape() == Shape{0, 4});
}

TEST_CASE("integers that are no categories") {
  Generator gen(1);
  const CategoryEmbedding embedding({3, 2}, 4, gen);
  CHECK(thrown<InputError>([&] {
          (void)embedding(IntegerRows{2, Array<Index>{0, 1, 1, 2}}, "atoms");
        }) == "atoms: row 1, column 1 is 2, expected 0 to 1");
  CHECK(thrown<InputError>([&] {
          (void)embedding(IntegerRows{2, Array<Index>{-1, 1}});
        }) == "categories: row 0, column 0 is -1, expected 0 to 2");
  CHECK(thrown<ShapeError>([&] {
          (void)embedding(IntegerRows{1, Array<Index>{0}});
        }) == "categories: rows of 1 integers, expected 2");
  CHECK(thrown<InputError>([&] { const CategoryEmbedding none({}, 4, gen); }) ==
        "a CategoryEmbedding of no columns, expected at least one");
  CHECK(thrown<InputError>([&] {
          const CategoryEmbedding none({3, 0}, 4, gen);
        }) == "a CategoryEmbedding of 0 categories, expected 1 or more");
  CHECK(thrown<InputError>([&] {
          const CategoryEmbedding none({3, Index{1} << 31}, 1, gen);
        }) == "a CategoryEmbedding of more than 2147483647 categories, the last column has 2147483648");
  CHECK(thrown<InputError>([&] { const CategoryEmbedding none({3}, 0, gen); }) ==
        "a CategoryEmbedding of width 0, expected 1 or more");
}
