// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <sar/comm/halo/mailbox.hpp>

#include <vector>

using namespace sar;

namespace {

Packets packets_of(const std::vector<HaloRange>& ranges, Index stage_rows, Index row_size,
                   Index values_of_a_packet) {
  return {ranges, stage_rows, row_size, *stored_format(NumberType::reals), values_of_a_packet * sizeof(real)};
}

}  // namespace

TEST_CASE("packets hold whole rows of one round and one stage") {
  const Packets packets = packets_of({{0, 4}, {4, 0}, {4, 4}}, 3, 5, 12);
  REQUIRE(packets.size() == 5);
  CHECK(packets.num_stages() == 3);
  CHECK(packets[1].begin == 10);
  CHECK(packets[1].end == 15);
  CHECK(packets[1].offset == 10);
  CHECK(packets[2].stage == 1);  // the last row of the first round
  CHECK(packets[2].round == 0);
  CHECK(packets[2].begin == 15);
  CHECK(packets[2].offset == 0);
  CHECK(packets[3].stage == 1);  // behind it two of the third
  CHECK(packets[3].round == 2);
  CHECK(packets[3].begin == 0);
  CHECK(packets[3].offset == 5);
  CHECK(packets[4].stage == 2);
  CHECK(packets[4].begin == 10);
  CHECK(packets[4].end == 20);
  CHECK(packets[4].offset == 0);
  CHECK(packets.largest() == 10);
  CHECK(packets.complete_stages(0) == 0);
  CHECK(packets.complete_stages(1) == 0);
  CHECK(packets.complete_stages(2) == 1);
  CHECK(packets.complete_stages(3) == 1);
  CHECK(packets.complete_stages(5) == 3);
}

TEST_CASE("the rows of a round may begin in the middle of a later stage of their reader") {
  const Packets packets = packets_of({{10, 1}, {3, 2}}, 4, 1, 100);
  REQUIRE(packets.size() == 3);
  CHECK(packets[0].round == 1);
  CHECK(packets[0].stage == 0);
  CHECK(packets[0].offset == 3);
  CHECK(packets[1].stage == 1);
  CHECK(packets[1].begin == 1);
  CHECK(packets[2].round == 0);
  CHECK(packets[2].stage == 2);
  CHECK(packets[2].offset == 2);
}

TEST_CASE("rows that are longer than a packet are divided; rows of no values need none") {
  CHECK(packets_of({{0, 1}}, 1, 5, 2).size() == 3);
  CHECK(packets_of({{0, 1}}, 1, 0, 2).complete_stages(0) == 1);
}

TEST_CASE("a packet has whole groups of its format: rows of int8 stay whole") {
  const auto int8 = make_int8_format(5, {});
  const auto sizes = [&](std::size_t max_bytes) {
    const HaloRange rows{0, 3};
    const Packets packets({&rows, 1}, 3, 5, *int8, max_bytes);
    std::vector<Index> values;
    for (std::size_t i = 0; i < packets.size(); ++i) values.push_back(packets[i].size());
    return values;
  };
  CHECK(sizes(1000) == std::vector<Index>{15});
  CHECK(sizes(26) == std::vector<Index>{10, 5});
  CHECK(sizes(8) == std::vector<Index>{5, 5, 5});
}
