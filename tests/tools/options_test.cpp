// SPDX-License-Identifier: MIT
#include "tools/options.hpp"
#include "tools/generate/generate_options.hpp"
#include "tools/partition/partition_options.hpp"
#include "tools/plan/plan_options.hpp"
#include "tools/train/options/add_options.hpp"
#include "tools/train/options/option_table.hpp"

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

TEST_CASE("a checkpoint of train records the options that the training reads") {
  tools::TrainOptions o;
  CLI::App app;
  const tools::OptionTable table(app, o);
  for (const tools::TaskType task : tools::all_tasks) {
    o.task.type = task;
    CAPTURE(tools::name_of(task));
    const auto record = table.record();
    CHECK(record.at("--task") == tools::name_of(task));
    CHECK(record.at("--freeze") == "none");
    CHECK(record.contains("--batch-size") == tools::has_samples(task));
    CHECK(!record.contains("--step-size"));
    CHECK(record.contains("--norm") == (task != tools::TaskType::potential));
    CHECK(record.contains("--cutoff") == (task == tools::TaskType::potential));
    CHECK(record.contains("--hits-k") == (task == tools::TaskType::link));
    CHECK(record.contains("--add-self-loops") == (task == tools::TaskType::graph));
    CHECK(!record.contains("--seed"));
  }
  o.schedule.type = tools::ScheduleType::cosine;
  const auto record = table.record();
  CHECK(record.at("--schedule") == "cosine of 100 epochs");
  CHECK(record.at("--min-lr") == "0");
}

TEST_CASE("rows of the table say why a training does not read an option") {
  tools::TrainOptions o;
  CLI::App app;
  const tools::OptionTable table(app, o);
  using tools::TaskType;
  const auto why = [&](const char* option, TaskType task) { return table.at(option).why_unread(task); };
  CHECK(why("--epochs", TaskType::potential).empty());
  CHECK(why("--dropout", TaskType::potential) == "cannot be combined with --task potential");
  CHECK(why("--partition", TaskType::graph) == "cannot be combined with --task graph");
  CHECK(why("--negatives", TaskType::node) == "needs --task link");
  CHECK(why("--split-edges", TaskType::node) == "needs --task link or edge");
  CHECK(why("--patience", TaskType::node) == "needs --schedule plateau");
  CHECK(why("--heads", TaskType::node).starts_with("needs --model gat"));
  CHECK_THROWS_AS(static_cast<void>(table.at("--none")), Error);
}

TEST_CASE("the name of a choice may have hyphens for underscores, and underscores for hyphens") {
  CHECK(tools::is_name("one-shot", "one_shot"));
  CHECK(tools::is_name("from_1", "from-1"));
  CHECK(!tools::is_name("oneshot", "one_shot"));
  CHECK(!tools::is_name("one-shots", "one_shot"));
}
