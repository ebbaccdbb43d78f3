// SPDX-License-Identifier: MIT
#include "tools/options.hpp"
#include "tools/generate/generate_options.hpp"
#include "tools/partition/partition_options.hpp"
#include "tools/plan/plan_options.hpp"
#include "tools/train/options/add_options.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>

using namespace sar;

namespace {

/// Every option has a group and a line of --help-all; those of --help exist; no line is too long.
template <class Options>
void check_help(const std::string& program) {
  CAPTURE(program);
  CLI::App app("", program);
  Options options;
  add_options(app, options);
  tools::add_help_options(app);
  const std::string all = app.help("", CLI::AppFormatMode::All), most_used = app.help();
  for (const CLI::Option* option : app.get_options()) {
    CAPTURE(option->get_name());
    CHECK(all.find("\n  " + option->get_name(false, true)) != std::string::npos);
    CHECK(option->get_group() != "Options");
    CHECK(!option->get_description().empty());
  }
  for (const std::string& text : {all, most_used}) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= 120, line);
  }
  const auto lines_of = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  CHECK(lines_of(most_used) <= 40);
  CHECK(lines_of(most_used) < lines_of(all));
}

}  // namespace

TEST_CASE("every option is in --help-all, the most used ones are in --help") {
  check_help<tools::TrainOptions>("train");
  check_help<tools::PlanOptions>("plan");
  check_help<tools::PartitionOptions>("partition");
  check_help<tools::GenerateOptions>("generate");
}

TEST_CASE("the name of a choice may have hyphens for underscores, and underscores for hyphens") {
  CHECK(tools::is_name("one-shot", "one_shot"));
  CHECK(tools::is_name("from_1", "from-1"));
  CHECK(!tools::is_name("oneshot", "one_shot"));
  CHECK(!tools::is_name("one-shots", "one_shot"));
}
