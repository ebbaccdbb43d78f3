// SPDX-License-Identifier: MIT
#include "train_curves.hpp"

#include "curves/curves_svg.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

namespace sar::tools {

Curves::Curves(const TrainOptions& o, int first_epoch)
    : file_(o.curves), metrics_(metric_names(o.task)), splits_(evaluated_splits(o.task)) {
  if (!o.tensorboard.empty() && o.epochs >= first_epoch) events_.emplace(o.tensorboard, first_epoch);
}

void Curves::take_line(const nlohmann::json& line) {
  const auto number = [&](const std::string& key) {
    const auto found = line.find(key);
    return found != line.end() && found->is_number() ? found->get<double>()
                                                     : std::numeric_limits<double>::quiet_NaN();
  };
  Point point{.epoch = line["epoch"].get<int>(), .loss = number("loss")};
  bool is_evaluated = false;
  for (const std::string& metric : metrics_) {
    Scores& scores = point.scores.emplace_back();
    for (const auto& [split, score] : splits_) {
      scores.*score = number(split + "_" + metric);
      is_evaluated = is_evaluated || std::isfinite(scores.*score);
    }
  }
  if (!is_evaluated) point.scores.clear();
  points_.push_back(std::move(point));
}

void Curves::add(const Epoch& epoch) {
  points_.push_back({epoch.epoch, epoch.loss, epoch.scores});
  if (!events_) return;
  Scalars scalars{{"loss", epoch.loss}, {"lr", epoch.lr}, {"seconds", epoch.seconds}};
  if (epoch.seeds > 0) scalars.emplace_back("seeds_per_second", epoch.seeds_per_second);
  for (std::size_t i = 0; i < epoch.scores.size(); ++i)
    for (const auto& [split, score] : splits_)
      scalars.emplace_back(metrics_[i] + "/" + split, epoch.scores[i].*score);
  try {
    events_->add(epoch.epoch, scalars);
  } catch (const InputError&) {
    events_.reset();
    throw;
  }
}

void Curves::draw(const std::string& title, const RunResult& result) const {
  if (file_.empty()) return;
  CurvePicture picture{.title = title, .x_name = "epoch"};
  if (result.best_epoch > 0) {
    picture.mark = result.best_epoch;
    picture.mark_name = "best epoch";
  }
  Curve loss{.name = "training"};
  for (const Point& point : points_) loss.points.emplace_back(point.epoch, point.loss);
  picture.panels.push_back({.title = "loss", .curves = {std::move(loss)}});
  for (std::size_t i = 0; i < metrics_.size(); ++i) {
    CurvePanel& panel = picture.panels.emplace_back(
        CurvePanel{.title = metrics_[i] == "acc" ? std::string("accuracy") : metrics_[i]});
    for (const auto& [split, score] : splits_) {
      Curve& curve = panel.curves.emplace_back(Curve{.name = split});
      for (const Point& point : points_)
        if (!point.scores.empty()) curve.points.emplace_back(point.epoch, point.scores[i].*score);
    }
  }
  write_text(file_, to_svg(picture));
}

void prepare_curves(const TrainOptions& o) {
  if (!o.curves.empty()) check_writable(o.curves);
  if (o.tensorboard.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(o.tensorboard, error);
  require<InputError>(!error, o.tensorboard, ": cannot make the directory (", error.message(), ")");
  check_writable(o.tensorboard + "/events");
}

}  // namespace sar::tools
