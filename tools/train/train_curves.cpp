// SPDX-License-Identifier: MIT
#include "train_curves.hpp"

#include "curves/curves_svg.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

namespace sar::tools {
Curves::Curves(const TrainOptions& o, int first_epoch)
    : file_(o.curves), metrics_(metric_names(o.task)), splits_(evaluated_splits(o.task)) {
  if (!o.tensorboard.empty() && o.epochs >= first_epoch) events_.emplace(o.tensorboard, first_epoch);
}

void Curves::add_earlier(const nlohmann::ordered_json& line) {
  if (!file_.empty()) epochs_.push_back(line);
}

void Curves::add(const nlohmann::ordered_json& line) {
  add_earlier(line);
  if (!events_) return;
  Scalars scalars;
  for (const char* name : {"loss", "lr", "seconds", "seeds_per_second"})
    scalars.emplace_back(name, number_in(line, name));
  for (const std::string& metric : metrics_)
    for (const auto& [split, score] : splits_)
      scalars.emplace_back(metric + "/" + split, number_in(line, split + "_" + metric));
  try {
    events_->add(line["epoch"].get<int>(), scalars);
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
  const auto add_curve = [&](CurvePanel& panel, const std::string& name, const std::string& key,
                             const std::vector<nlohmann::ordered_json>& epochs) {
    Curve& curve = panel.curves.emplace_back(Curve{.name = name});
    for (const nlohmann::ordered_json& line : epochs)
      curve.points.emplace_back(line["epoch"].get<int>(), number_in(line, key));
  };
  add_curve(picture.panels.emplace_back(CurvePanel{.title = "loss"}), "training", "loss", epochs_);
  std::vector<nlohmann::ordered_json> evaluated;
  std::ranges::copy_if(epochs_, std::back_inserter(evaluated), [&](const nlohmann::ordered_json& line) {
    return std::ranges::any_of(metrics_, [&](const std::string& metric) {
      return std::ranges::any_of(splits_, [&](const auto& split) {
        return std::isfinite(number_in(line, split.first + "_" + metric));
      });
    });
  });
  for (const std::string& metric : metrics_) {
    CurvePanel& panel = picture.panels.emplace_back(CurvePanel{.title = word_of(metric)});
    for (const auto& [split, score] : splits_) add_curve(panel, split, split + "_" + metric, evaluated);
  }
  write_text(file_, to_svg(picture));
}

void prepare_curves(const TrainOptions& o) {
  if (!o.curves.empty()) check_writable(o.curves);
  if (o.tensorboard.empty()) return;
  make_directories(o.tensorboard);
  check_writable(o.tensorboard + "/events");
}

}  // namespace sar::tools
