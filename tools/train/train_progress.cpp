// SPDX-License-Identifier: MIT
#include "train_progress.hpp"

#include <sar/core/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace sar::tools {
nlohmann::ordered_json json_number(double x) {
  return std::isfinite(x) ? nlohmann::ordered_json(x) : nlohmann::ordered_json(nullptr);
}

SplitScores evaluated_splits(const TaskOptions& o) {
  SplitScores splits{{"train", &Scores::train}, {"val", &Scores::val}, {"test", &Scores::test}};
  if (o.type == TaskType::link) splits.erase(splits.begin());
  if (!o.potential.watch_files.empty()) splits.emplace_back("watch", &Scores::watch);
  return splits;
}

bool is_evaluated(const TrainOptions& o, int epoch) {
  return o.eval_every > 0 && (epoch % o.eval_every == 0 || epoch == o.epochs);
}

Progress::Progress(const TrainOptions& o, const Module& model)
    : o_(o),
      metrics_(metric_names(o.task)),
      splits_(evaluated_splits(o.task)),
      best_(model, {.larger_is_better = !smaller_is_better(metrics_of(o.task)[0]),
                    .keep_weights = o.keep == KeptWeights::best}) {
  result_.best.resize(metrics_.size());
  result_.last.resize(metrics_.size());
}

void Progress::add(const Epoch& epoch) {
  result_.epochs = epoch.epoch;
  result_.seconds += epoch.seconds;
  result_.peak_bytes = std::max(result_.peak_bytes, epoch.peak_bytes);
  if (epoch.scores.empty()) return;
  result_.last = epoch.scores;
  const double value = epoch.scores[0].val;
  const char* needed_by = o_.keep == KeptWeights::best ? "--keep best"
                          : o_.stop_after > 0          ? "--stop-after"
                          : o_.has_several_runs()      ? "the mean of several runs"
                                                       : nullptr;
  require<InputError>(needed_by == nullptr || !std::isnan(value), "epoch ", epoch.epoch,
                      ": the validation value of ", name_of(metrics_of(o_.task)[0]),
                      " is not defined, expected validation data with labels for ", needed_by,
                      " (of both classes, where the metric compares them)");
  if (!best_.update(epoch.epoch, value)) return;
  result_.best = epoch.scores;
  result_.best_epoch = epoch.epoch;
}

bool Progress::is_done() const {
  const int epoch = result_.epochs;
  if (epoch >= o_.epochs) return true;
  return o_.stop_after > 0 && epoch > 0 && is_evaluated(o_, epoch) &&
         best_.epochs_since(epoch) >= o_.stop_after;
}

std::map<std::string, std::string> Progress::to_checkpoint() const {
  nlohmann::json progress{
      {"epoch", result_.best_epoch}, {"seconds", result_.seconds}, {"peak_bytes", result_.peak_bytes}};
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    for (const auto& [split, score] : splits_) {
      progress[split + "_" + metrics_[i]] = json_number(result_.best[i].*score);
      progress["last_" + split + "_" + metrics_[i]] = json_number(result_.last[i].*score);
    }
  return {{"best", progress.dump()}};
}

void Progress::resume(int epoch, const std::map<std::string, std::string>& extra, const std::string& place) {
  const auto found = extra.find("best");
  const auto progress = nlohmann::json::parse(found == extra.end() ? "" : found->second, nullptr,
                                              /*allow_exceptions=*/false);
  const auto require_number = [&](bool is_right, const std::string& key) {
    require<InputError>(is_right, place, ": extra.best has no number '", key,
                        "', expected a checkpoint that train has written");
  };
  const auto count = [&](const char* key, double most) {
    const double number = number_in(progress, key);
    require_number(number >= 0 && number <= most, key);
    return number;
  };
  const auto score = [&](const std::string& key, bool optional) {
    const auto of = progress.find(key);
    require_number(of == progress.end() ? optional : of->is_null() || of->is_number(), key);
    return number_in(progress, key);
  };
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    for (const auto& [split, of] : splits_) {
      result_.best[i].*of = score(split + "_" + metrics_[i], split == "watch");
      result_.last[i].*of = score("last_" + split + "_" + metrics_[i], true);
    }
  result_.epochs = epoch;
  result_.best_epoch = static_cast<int>(count("epoch", epoch));
  result_.seconds = count("seconds", 0x1p53);
  result_.peak_bytes = static_cast<std::uint64_t>(count("peak_bytes", 0x1p53));
  best_.resume(result_.best_epoch, result_.best[0].val);
}

}  // namespace sar::tools
