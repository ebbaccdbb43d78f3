// SPDX-License-Identifier: MIT
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/data/splits.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// The original ids of the nodes of each part, and of each class of them.
struct Drawn {
  std::vector<Index> ids[3];
  std::map<std::int64_t, Index> of_class[3];
};

Drawn drawn(const Communicator& comm, const NodeData& data) {
  Drawn split;
  const Array<std::uint8_t>* const masks[] = {&data.train_mask, &data.val_mask, &data.test_mask};
  for (int part = 0; part < 3; ++part) {
    std::vector<Index> ids, classes;
    for (std::size_t v = 0; v < masks[part]->size(); ++v) {
      if ((*masks[part])[v] == 0) continue;
      ids.push_back(data.original_ids[v]);
      classes.push_back(data.labels[v]);
    }
    split.ids[part] = comm.all_gather(std::span<const Index>(ids));
    std::ranges::sort(split.ids[part]);
    for (const Index label : comm.all_gather(std::span<const Index>(classes))) ++split.of_class[part][label];
  }
  return split;
}

const SbmOptions graph{.nodes = 403, .degree = 3, .classes = 4, .features = 2};
constexpr Index rest = SplitPart::rest;

}  // namespace

TEST_CASE("a drawn split is the same for every number of ranks and every partition, and has exact sizes") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  const std::vector<DrawSplitOptions> rules{
      {.seed = 3},
      {.train = {.count = 20, .per_class = true}, .valid = {.count = 100}, .test = {.count = 150}, .seed = 3},
      {.train = {.count = 20, .per_class = true},
       .valid = {.count = 30, .per_class = true},
       .test = {.count = rest}},
      {.train = {.share = 0.48, .per_class = true},
       .valid = {.share = 0.32, .per_class = true},
       .test = {.count = rest}}};
  NodeData mine = make_sbm(world, graph, {.partition = PartitionMethod::random});
  NodeData all = make_sbm(self, graph);
  for (std::size_t v = 0; v < all.labels.size(); ++v)
    if (all.original_ids[v] % 10 == 0) all.labels[v] = -1;
  for (std::size_t v = 0; v < mine.labels.size(); ++v)
    if (mine.original_ids[v] % 10 == 0) mine.labels[v] = -1;
  const Index labelled = 403 - 41;
  std::map<std::int64_t, Index> sizes;
  for (const std::int64_t label : all.labels) sizes[label] += label >= 0 ? 1 : 0;
  std::vector<Drawn> splits;
  for (const DrawSplitOptions& rule : rules) {
    draw_split(world, mine, rule);
    draw_split(self, all, rule);
    const Drawn here = drawn(world, mine), alone = drawn(self, all);
    for (int part = 0; part < 3; ++part) CHECK(here.ids[part] == alone.ids[part]);
    std::vector<Index> together;
    for (const auto& ids : alone.ids) together.insert(together.end(), ids.begin(), ids.end());
    std::ranges::sort(together);
    CHECK(std::ranges::adjacent_find(together) == together.end());
    for (const Index id : together) CHECK(id % 10 != 0);
    splits.push_back(alone);
  }
  CHECK(std::ssize(splits[0].ids[0]) == 217);  // 0.6 of 362
  CHECK(std::ssize(splits[0].ids[1]) == 73);
  CHECK(std::ssize(splits[0].ids[2]) == labelled - 217 - 73);
  for (const auto& [label, size] : sizes) {
    if (label < 0) continue;
    CHECK(splits[1].of_class[0][label] == 20);
    CHECK(splits[2].of_class[1][label] == 30);
    CHECK(splits[3].of_class[0][label] == std::llround(0.48 * static_cast<double>(size)));
  }
  CHECK(std::ssize(splits[1].ids[1]) == 100);
  CHECK(std::ssize(splits[1].ids[2]) == 150);
  CHECK(std::ssize(splits[2].ids[2]) == labelled - 4 * 50);
  draw_split(self, all, {.seed = 4});
  CHECK(drawn(self, all).ids[0] != splits[0].ids[0]);
}

TEST_CASE("what cannot be drawn") {
  const Communicator world = Communicator::world();
  NodeData data = make_karate(world);
  const Array<std::uint8_t> before = data.train_mask;
  const auto error = [&](const DrawSplitOptions& options) {
    const std::string text = thrown_by_all<InputError>(world, [&] { draw_split(world, data, options); });
    CHECK(data.train_mask == before);
    return text;
  };
  CHECK(error({.train = {.count = 20, .per_class = true}}) ==
        "karate: the training nodes shall be 20/class, and class 0 has 17 nodes with a label, expected at "
        "least 20");
  CHECK(error({.train = {.count = 30}, .valid = {.count = 5}}) ==
        "karate: the validation nodes shall be 5, and there are 4 nodes with a label left, expected at least "
        "5");
  CHECK(error({.train = {.share = 0.9}}) == "the shares are 1.3 together, expected at most 1");
  CHECK(error({.train = {.share = -0.1}}) == "a share is -0.1, expected 0 to 1");
  data.label_type = LabelType::values;
  data.num_classes = 0;
  CHECK(error({.train = {.count = 2, .per_class = true}}) ==
        "karate: a part of the split shall be a number of each class, and the labels are values, expected a "
        "share or a number of all nodes");
}

TEST_CASE("parts of a split as text") {
  for (const char* text : {"0.6", "500", "20/class", "0.25/class", "rest", "0"})
    CHECK(parse_split_part(text).text() == text);
  CHECK(parse_split_part("1").count == 1);
  CHECK(parse_split_part("1.0").share == 1);
  for (const auto& [signed_text, text] :
       {std::pair{"+0.6", "0.6"}, {"+500", "500"}, {"+20/class", "20/class"}})
    CHECK(parse_split_part(signed_text).text() == text);
  for (const char* text :
       {"", "all", "+", "+-1", "++1", "-1", "1.5", "20/", "/class", "rest/class", "20 /class"})
    CHECK(thrown<InputError>([&] {
            parse_split_part(text);
          }).find(concat("'", text, "', expected a share as 0.6")) == 0);
}
