// SPDX-License-Identifier: MIT
#include <sar/comm/rows/node_directory.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

using namespace sar;

namespace {

TEST_CASE("each rank gets a range of the keys and about as many as others, whatever the values") {
  const Communicator comm = Communicator::world();
  const Index ranks = comm.size();
  struct Case {
    std::string name;
    std::function<Index(int rank)> num_keys;
    std::function<Index(Index)> value;  // distinct, ascending
  };
  const std::vector<Case> cases{
      {"even", [](int) { return Index{3000}; }, [](Index i) { return i; }},
      {"powers", [](int) { return Index{60}; }, [](Index i) { return Index{1} << (i % 60); }},
      {"one large key", [](int) { return Index{3000}; }, [](Index i) { return i == 0 ? Index{1} << 60 : i; }},
      {"negative keys", [](int) { return Index{500}; }, [](Index i) { return -(Index{1} << 50) + i * i; }},
      {"keys of one rank", [](int rank) { return rank == 0 ? Index{4000} : 0; },
       [](Index i) { return i * i; }},
      {"few keys", [](int rank) { return Index{rank % 2}; }, [](Index i) { return i; }},
      {"no keys", [](int) { return Index{0}; }, [](Index i) { return i; }}};
  for (const Case& of : cases) {
    CAPTURE(of.name);
    struct Key {
      Index value, number;
      auto operator<=>(const Key&) const = default;
    };
    std::vector<Key> keys;
    for (Index i = 0; i < of.num_keys(comm.rank()); ++i)
      keys.push_back({of.value(i * ranks + comm.rank()), i * ranks + comm.rank()});
    std::sort(keys.begin(), keys.end());
    const auto targets = sort_targets(comm, std::ssize(keys), [&](Index i) { return keys[i]; });
    REQUIRE(targets.size() == keys.size());
    CHECK(std::is_sorted(targets.begin(), targets.end()));
    const std::vector<Key> all_keys = comm.all_gather(std::span<const Key>(keys));
    const std::vector<std::int32_t> all_targets = comm.all_gather(std::span<const std::int32_t>(targets));
    std::vector<std::pair<Key, std::int32_t>> pairs;
    for (std::size_t i = 0; i < all_keys.size(); ++i) pairs.emplace_back(all_keys[i], all_targets[i]);
    std::sort(pairs.begin(), pairs.end());
    const auto all = std::ssize(pairs);
    CHECK(std::ranges::is_sorted(pairs, {}, [](const auto& pair) { return pair.second; }));
    for (int p = 0; p < comm.size(); ++p)
      CHECK(std::ranges::count(all_targets, p) <= 2 * all / ranks + ranks);
  }
}

TEST_CASE("equal keys get the same rank") {
  const Communicator comm = Communicator::world();
  const auto targets = sort_targets(comm, 100, [](Index) { return Index{5}; });
  CHECK(comm.all_reduce(targets.front(), ReduceOp::max) == comm.all_reduce(targets.back(), ReduceOp::min));
}

}  // namespace
