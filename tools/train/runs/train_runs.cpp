// SPDX-License-Identifier: MIT
#include "train/runs/train_run.hpp"

#include "train/train_log.hpp"

#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

namespace sar::tools {
namespace {

/// A score of each run: "val acc", "test acc".
struct RunColumn {
  std::string name;
  std::vector<double> values;
  double mean = 0, deviation = 0;  ///< of the sample (n - 1); NaN for one run
};

RunColumn column_of(const std::string& name, const std::vector<RunResult>& results,
                    const std::function<double(const RunResult&)>& value) {
  RunColumn column{.name = name, .values = {}};
  for (const RunResult& result : results) column.values.push_back(value(result));
  const auto n = static_cast<double>(results.size());
  for (const double each : column.values) column.mean += each / n;
  double squares = 0;
  for (const double each : column.values) squares += std::pow(each - column.mean, 2);
  column.deviation = std::sqrt(squares / (n - 1));
  return column;
}

/// The validation score that selects the epoch, and all test scores of that epoch and of the last one.
std::vector<RunColumn> columns_of(const TrainOptions& o, const std::vector<RunResult>& results) {
  const std::vector<std::string> metrics = metric_names(o.task);
  std::vector<RunColumn> columns{
      column_of("val_" + metrics[0], results, [](const RunResult& run) { return run.best[0].val; })};
  for (std::size_t i = 0; i < metrics.size(); ++i)
    columns.push_back(
        column_of("test_" + metrics[i], results, [i](const RunResult& run) { return run.best[i].test; }));
  for (std::size_t i = 0; i < metrics.size(); ++i)
    columns.push_back(column_of("last_test_" + metrics[i], results,
                                [i](const RunResult& run) { return run.last[i].test; }));
  return columns;
}

void print_row(const std::string& head, const std::vector<RunColumn>& columns,
               const std::function<double(const RunColumn&)>& value) {
  std::printf("%s", head.c_str());
  for (const RunColumn& column : columns)
    std::printf("  %*.4f", static_cast<int>(std::max<std::size_t>(column.name.size(), 8)), value(column));
  std::printf("\n");
}

void print_table(const std::vector<TrainOptions>& runs, const std::vector<RunResult>& results,
                 const std::vector<RunColumn>& columns) {
  std::printf("%4s  %6s  %5s  %6s  %10s", "run", "seed", "split", "epochs", "best epoch");
  for (const RunColumn& column : columns) std::printf("  %8s", column.name.c_str());
  std::printf("\n");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::array<char, 96> head{};
    std::snprintf(head.data(), head.size(), "%4zu  %6llu  %5td  %6d  %10d", i + 1,
                  static_cast<unsigned long long>(runs[i].seed), runs[i].run.split, results[i].epochs,
                  results[i].best_epoch);
    print_row(head.data(), columns, [i](const RunColumn& column) { return column.values[i]; });
  }
  const std::string blank(39 - 4, ' ');
  print_row("mean" + blank, columns, [](const RunColumn& column) { return column.mean; });
  print_row("std " + blank, columns, [](const RunColumn& column) { return column.deviation; });
  std::printf(
      "mean and sample standard deviation (n - 1) of %zu runs; val and test at the best validation %s\n",
      runs.size(), columns[0].name.substr(4).c_str());
  std::fflush(stdout);
}

nlohmann::ordered_json to_json(const std::vector<TrainOptions>& runs, const std::vector<RunResult>& results,
                               const std::vector<RunColumn>& columns) {
  nlohmann::ordered_json line{{"runs", runs.size()}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    line["seeds"].push_back(runs[i].seed);
    line["splits"].push_back(runs[i].run.split);
    line["epochs_of_runs"].push_back(results[i].epochs);
    line["best_epochs"].push_back(results[i].best_epoch);
  }
  for (const RunColumn& column : columns) {
    nlohmann::ordered_json values;
    for (const double value : column.values) values.push_back(json_number(value));
    line[column.name] = {
        {"mean", json_number(column.mean)}, {"std", json_number(column.deviation)}, {"values", values}};
  }
  return line;
}

}  // namespace

std::vector<Index> splits_of_runs(const TrainOptions& o, Index count, const std::string& dataset) {
  if (!o.splits.empty()) {
    for (const Index split : o.splits)
      require<InputError>(split < count, dataset, ": there is no split ", split,
                          " for --splits, expected 0 to ", count - 1);
    return o.splits;
  }
  if (!o.all_splits) return {o.run.split};
  const Array<Index> all = consecutive(0, count);
  return {all.begin(), all.end()};
}

std::vector<TrainOptions> options_of_runs(const TrainOptions& o, const std::vector<Index>& splits) {
  std::vector<TrainOptions> runs;
  const int count = o.runs * static_cast<int>(splits.size());
  for (const Index split : splits)
    for (int i = 0; i < o.runs; ++i) {
      TrainOptions& run = runs.emplace_back(o);
      run.seed += static_cast<std::uint64_t>(i);
      if (run.draw_split && !run.split_seed) run.draw_split->seed = run.seed;
      run.run = {.number = static_cast<int>(runs.size()) - 1,
                 .count = count,
                 .split = split,
                 .of_splits = splits.size() > 1};
      if (count == 1) continue;
      const std::string name = name_of_run(run);
      for (std::string* directory :
           {&run.checkpoint, &run.predict, &run.tensorboard, &run.task.potential.learner})
        if (!directory->empty()) *directory = (std::filesystem::path(*directory) / name).string();
      for (std::string* of_run : {&run.save_weights, &run.curves}) {
        if (of_run->empty()) continue;
        const std::filesystem::path file(*of_run);
        const std::string with_run = concat(file.stem().string(), ".", name, file.extension().string());
        *of_run = (file.parent_path() / with_run).string();
      }
    }
  return runs;
}

void report_runs(const Communicator& comm, const std::vector<TrainOptions>& runs,
                 const std::vector<RunResult>& results) {
  const std::vector<RunColumn> columns = columns_of(runs[0], results);
  if (comm.rank() == 0) print_table(runs, results, columns);
  write_last_line(comm, runs[0].log_file, to_json(runs, results, columns));
}

}  // namespace sar::tools
