#include <doctest/doctest.h>

#include <sar/comm/rows/packets.hpp>

#include <vector>

using namespace sar;

namespace {

Packets packets_of(const std::vector<HaloStage>& stages, Index row_size, Index values_of_a_packet) {
  return {stages, {4, 0, 3}, row_size, wire_format<real>(), values_of_a_packet * sizeof(real)};
}

}  // namespace

TEST_CASE("packets hold whole rows of one round and one stage") {
  const std::vector<HaloStage> stages{{.round = 0, .begin = 0, .end = 3},
                                      {.round = 0, .begin = 3, .end = 4},
                                      {.round = 2, .begin = 0, .end = 3}};
  const Packets packets = packets_of(stages, 5, 12);
  REQUIRE(packets.size() == 5);
  CHECK(packets[1].begin == 10);
  CHECK(packets[1].end == 15);
  CHECK(packets[1].offset == 10);
  CHECK(packets[2].stage == 1);
  CHECK(packets[2].offset == 0);
  CHECK(packets[3].round == 2);
  CHECK(packets.largest() == 10);
  CHECK(packets.complete_stages(0) == 0);
  CHECK(packets.complete_stages(1) == 0);
  CHECK(packets.complete_stages(2) == 1);
  CHECK(packets.complete_stages(5) == 3);
}

TEST_CASE("rows that are longer than a packet are divided; rows of no values need none") {
  const std::vector<HaloStage> stages{{.round = 2, .begin = 0, .end = 1}};
  CHECK(packets_of(stages, 5, 2).size() == 3);
  CHECK(packets_of(stages, 0, 2).complete_stages(0) == 1);
}

TEST_CASE("in a stage of several rounds, each round has packets of its own") {
  const std::vector<HaloStage> stages{{.round = 0, .num_rounds = 3, .begin = 0, .end = 7}};
  const Packets packets = packets_of(stages, 2, 100);
  REQUIRE(packets.size() == 2);
  CHECK(packets[1].round == 2);
  CHECK(packets[1].begin == 0);
  CHECK(packets[1].offset == 8);
}
