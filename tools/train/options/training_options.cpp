// SPDX-License-Identifier: MIT

// The rows of the group Training: task, losses, optimizer, schedule and runs.
#include "option_table.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace sar::tools {
namespace {

constexpr double most_rate = 1e6, most_norm = 1e30;

/// "balanced", or a weight for each class: "1,2.5,0.5".
void read_class_weights(const std::string& text, TaskOptions& o) {
  o.balanced_classes = text == "balanced";
  o.class_weights.clear();
  if (!o.balanced_classes)
    o.class_weights = read_numbers<double>(
        "--class-weights", text, [](double weight) { return weight >= 0 && std::isfinite(weight); },
        "balanced, or a number of 0 or more for each class, such as 1,2.5,0.5");
}

/// "all", or "0,3,4".
void read_splits(const std::string& text, TrainOptions& o) {
  const char* expected = "all, or different numbers from 0 on, such as 0,3,4";
  o.all_splits = text == "all";
  o.splits.clear();
  if (o.all_splits) return;
  o.splits = read_numbers<Index>(
      "--splits", text, [](Index split) { return split >= 0; }, expected);
  for (const Index split : o.splits)
    if (std::ranges::count(o.splits, split) > 1) refuse_value("--splits", text, expected);
}

std::string describe_class_weights(const TaskOptions& o) {
  return o.balanced_classes ? "balanced" : list_text(o.class_weights);
}

/// The metrics that were named, where they differ from the default.
std::string describe_metrics(const TaskOptions& o) {
  if (o.type == TaskType::link) return metric_names(o)[0];
  const std::vector<Metric> metrics = metrics_of(o);
  if (metrics == std::vector<Metric>{default_metric(o.labels)} || o.metrics.empty()) return "";
  return joined(metrics, [](Metric metric) { return name_of(metric); });
}

void add_task_options(OptionTable& t, TaskOptions& o) {
  t.choice("--task", o.type, task_types, "what is predicted").common();
  t.choice("--loss", o.label_loss, label_losses, "node, graph: loss; auto: by the labels")
      .for_tasks(labelled_tasks);
  t.parsed("--class-weights", read_class_weights, o, "balanced|LIST",
           "node, graph: weights of the classes in the loss; balanced: all classes count the same")
      .for_tasks(labelled_tasks)
      .as_text([&o] { return describe_class_weights(o); });
  t.number("--label-smoothing", o.label_smoothing, "node, graph: share of the loss that all classes get", 0,
           1)
      .for_tasks(labelled_tasks);
  t.parsed(
       "--metric", [&o](const std::string& text) { o.metrics = read_metrics(text); }, "NAME,...",
       "metrics; the first selects the best epoch: accuracy, roc-auc, f1-macro, rmse, r2, ...")
      .common()
      .as_text([&o] { return describe_metrics(o); });
}

void add_schedule_options(OptionTable& t, TrainOptions& o) {
  ScheduleOptions& s = o.schedule;
  const auto is_one_of = [&s](std::vector<ScheduleType> types) {
    return [&s, types] { return std::ranges::count(types, s.type) > 0; };
  };
  using enum ScheduleType;
  const Choices<ScheduleType> schedules{
      {"none", none}, {"step", step}, {"cosine", cosine}, {"plateau", plateau}};
  t.choice("--schedule", s.type, schedules, "schedule of the learning rate").as_text([&o, schedules] {
    return name_in(schedules, o.schedule.type) +
           (o.schedule.type == cosine ? concat(" of ", o.epochs, " epochs") : "");
  });
  t.number("--warm-up", s.warm_up, "epochs until the full learning rate, from a tenth of it; 0: none");
  t.number("--step-size", s.step_size, "step: epochs between reductions", 1)
      .read_with("--schedule step", is_one_of({step}));
  t.number("--patience", s.patience, "plateau: epochs without progress before a reduction")
      .read_with("--schedule plateau", is_one_of({plateau}));
  t.number("--lr-factor", s.factor, "step, plateau: factor of a reduction", 0, 1)
      .read_with("--schedule step or plateau", is_one_of({step, plateau}));
  t.number("--min-lr", s.min_lr, "cosine, plateau: smallest learning rate", 0, most_norm)
      .read_with("--schedule cosine or plateau", is_one_of({cosine, plateau}));
}

void add_run_options(OptionTable& t, TrainOptions& o) {
  t.group("Training", all_tasks, false);
  t.number("--eval-every", o.eval_every, "epochs between evaluations; 0: no evaluation");
  t.number("--stop-after", o.stop_after,
           "ends a run after this many epochs without a better validation value; 0: never");
  t.number("--runs", o.runs, "runs with the seeds --seed, --seed + 1, ...; mean and standard deviation", 1,
           1 << 20)
      .excludes({"--describe"})
      .common();
  t.parsed("--splits", read_splits, o, "all|LIST",
           "runs on several splits of the dataset: all, or their numbers")
      .for_tasks(network_tasks)
      .excludes({"--split", "--split-nodes", "--split-graphs", "--describe"});
  t.number("--seed", o.seed, "seed of parameters, dropout, samples, generated graph and partition");
}

}  // namespace

void add_training_options(OptionTable& t, TrainOptions& o) {
  t.group("Training", all_tasks, true);
  add_task_options(t, o.task);
  t.number("--epochs", o.epochs, "passes over the training data; 0: --predict only").common().unrecorded();
  t.number("--lr", o.lr, "learning rate; painn: 0.005", 0, most_rate)
      .common()
      .unrecorded()
      .default_for(TaskType::potential, [&o] { o.lr = o.model.type == "mace" ? 0.01 : 5e-3; });
  t.parsed(
       "--lr-factors",
       [&o](const std::string& text) {
         o.lr_factors = read_named_numbers(
             "--lr-factors", text, [](double x) { return x >= 0 && std::isfinite(x); },
             "different names of parameters or modules with numbers of 0 or more, such as "
             "embedding=0.1,convs.0=0.5");
       },
       "NAME=X,...", "factors of the learning rate of parameters or modules: embedding=0.1,convs=0.5")
      .as_text([&o] { return list_text(o.lr_factors); });
  t.parsed(
       "--freeze",
       [&o](const std::string& text) {
         o.frozen = read_names("--freeze", text, "names of parameters or modules, such as embedding,convs.0");
       },
       "NAME,...", "parameters or modules that stay as they are: embedding,convs.0")
      .as_text([&o] { return joined(o.frozen); });
  using enum OptimizerType;
  t.choice("--optimizer", o.optimizer, {{"adam", adam}, {"adamw", adamw}, {"sgd", sgd}}, "optimizer");
  t.number("--momentum", o.momentum, "sgd: momentum", 0, 1).read_with("--optimizer sgd", [&o] {
    return o.optimizer == sgd;
  });
  t.number("--weight-decay", o.weight_decay, "weight decay of all parameters", 0, most_rate);
  t.number("--clip-norm", o.clip_norm, "largest norm of all gradients together; 0: any; potential: 10", 0,
           most_norm)
      .default_for(TaskType::potential, [&o] { o.clip_norm = 10; });
  t.number("--ema", o.ema, "decay of moving averages of the weights, which are evaluated and saved; 0: none",
           0, 1);
  add_schedule_options(t, o);
  add_run_options(t, o);
  t.group("Training", all_tasks, true);
  t.choice("--matmul-precision", o.matmul_precision,
           named({MatmulPrecision::highest, MatmulPrecision::high, MatmulPrecision::medium}),
           "precision of matrix products");
  t.choice("--precision", o.mixed_precision, {{"full", false}, {"mixed", true}},
           "mixed: activations and their gradients in bfloat16")
      .for_tasks(network_tasks);
  t.flag("--bfloat16-features", o.bfloat16_features, "stores dense node features in bfloat16")
      .for_tasks(network_tasks);
}

}  // namespace sar::tools
