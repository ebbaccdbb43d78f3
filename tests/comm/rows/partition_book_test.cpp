// SPDX-License-Identifier: MIT
#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>

#include <support/thrown.hpp>

#include <doctest/doctest.h>

#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

TEST_CASE("every node has one owner, also among parts without nodes") {
  const std::vector<Index> sizes{0, 3, 0, 0, 2, 0};
  const PartitionBook book = PartitionBook({0, 0, 3, 3, 3, 5, 5});
  CHECK(book.num_parts() == 6);
  CHECK(book.num_nodes() == 5);
  for (int p = 0; p < book.num_parts(); ++p) {
    CHECK(book.num_nodes(p) == sizes[static_cast<std::size_t>(p)]);
    for (Index v = book.begin(p); v < book.end(p); ++v) CHECK(book.owner(v) == p);
  }
  CHECK(PartitionBook().num_parts() == 0);
}

TEST_CASE("even parts differ by one at most, and consecutive parts become one") {
  for (const Index n : {Index{0}, Index{1}, Index{7}, Index{100}})
    for (const int parts : {1, 2, 3, 8}) {
      const PartitionBook book = PartitionBook::even(n, parts);
      CHECK(book.num_nodes() == n);
      for (int p = 0; p < parts; ++p) {
        CHECK(book.num_nodes(p) >= n / parts);
        CHECK(book.num_nodes(p) <= (n + parts - 1) / parts);
      }
    }
  CHECK(PartitionBook({0, 1, 3, 6}).joined(PartitionBook({0, 2, 2, 3})) == PartitionBook({0, 3, 3, 6}));
}

TEST_CASE("sizes become offsets, also those of members") {
  CHECK(offsets_of_sizes(std::vector<Index>{}) == std::vector<Index>{0});
  CHECK(offsets_of_sizes(std::vector<Index>{2, 0, 3}) == std::vector<Index>{0, 2, 2, 5});
  using Named = std::pair<char, Index>;
  CHECK(offsets_of_sizes(std::vector<Named>{{'a', 4}, {'b', 1}}, &Named::second) ==
        std::vector<Index>{0, 4, 5});
}

TEST_CASE("offsets that are no ranges are refused") {
  CHECK(thrown<InputError>([] { PartitionBook({1, 2}); }) == "a partition book's offsets must start at 0");
  CHECK(thrown<InputError>([] { PartitionBook(std::vector<Index>()); }) ==
        "a partition book's offsets must start at 0");
  CHECK(thrown<InputError>([] {
          PartitionBook({0, 2, 1});
        }) == "a partition book's offsets must not decrease");
  CHECK(thrown<InputError>([] { PartitionBook::even(-1, 2); }) == "cannot divide -1 nodes into 2 parts");
}

}  // namespace
