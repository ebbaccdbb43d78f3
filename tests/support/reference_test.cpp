// SPDX-License-Identifier: MIT

/// The golden vectors are all there, and are the bytes that were packed.
#include "support/reference.hpp"

#include <sar/core/files/safetensors.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

using namespace sar;
using namespace sar::test;

TEST_CASE("every group has its cases, arrays and arguments") {
  struct Group {
    std::size_t cases, arrays, arguments;
  };
  const std::map<std::string, Group> groups = {
      {"apply_edges", {41, 322, 604}}, {"conv", {79, 1094, 1407}}, {"edge_softmax", {5, 30, 53}},
      {"loss", {5, 23, 48}},           {"model", {1, 46, 21}},     {"norm", {6, 60, 70}},
      {"optim", {5, 105, 63}},         {"train", {3, 31, 110}},    {"update_all", {153, 1196, 2562}}};
  for (const auto& [group, expected] : groups) {
    CAPTURE(group);
    CHECK(golden_cases(group).size() == expected.cases);
    const SafetensorsFile file(golden_directory() + "/" + group + ".safetensors");
    CHECK(file.entries().size() == expected.arrays);
    REQUIRE(file.metadata().contains("crc32"));
    CHECK(file.metadata().size() == expected.arguments + 1);
  }
  for (const auto& file : std::filesystem::directory_iterator(golden_directory()))
    if (file.path().extension() == ".safetensors") {
      CAPTURE(file.path().string());
      CHECK_NOTHROW(SafetensorsFile(file.path().string()).verify_checksum());
    }
}

TEST_CASE("a case has its values, and says what it has not") {
  const Case golden("edge_softmax/dst");
  CHECK(golden.arg("norm_by") == "dst");
  CHECK(golden.has("in.logits"));
  CHECK(!golden.has("in.log"));
  CHECK(golden.arrays("in.") == std::vector<std::string>{"logits"});
  CHECK(golden.indices("src").size() == golden.indices("dst").size());
  CHECK(golden.tensor("out").shape() == golden.tensor("in.logits").shape());
  CHECK(static_cast<std::size_t>(golden.tensor("out").size()) == golden.values("out").size());
  CHECK_THROWS((void)golden.values("src"));
  CHECK_THROWS((void)golden.tensor("absent"));
  CHECK_THROWS((void)golden.arg("absent"));
  const std::string before = golden_directory();
  REQUIRE(setenv("SAR_GOLDEN", "/another/set", 1) == 0);
  CHECK(golden_directory() == "/another/set");
  REQUIRE(setenv("SAR_GOLDEN", before.c_str(), 1) == 0);
  CHECK_THROWS(Case("edge_softmax/absent"));
  CHECK_THROWS(Case("absent/dst"));
}
