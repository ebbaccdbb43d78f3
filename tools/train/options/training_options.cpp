// SPDX-License-Identifier: MIT
#include "training_options.hpp"

#include "options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace sar::tools {
namespace {

constexpr double most_rate = 1e6, most_norm = 1e30;

void add_schedule_options(CLI::App& app, ScheduleOptions& o) {
  add_choice(app, "--schedule", o.type,
             {{"none", ScheduleType::none},
              {"step", ScheduleType::step},
              {"cosine", ScheduleType::cosine},
              {"plateau", ScheduleType::plateau}},
             "schedule of the learning rate");
  add_number(app, "--warm-up", o.warm_up, "epochs until the full learning rate, from a tenth of it; 0: none");
  add_number(app, "--step-size", o.step_size, "step: epochs between reductions", 1);
  add_number(app, "--patience", o.patience, "plateau: epochs without progress before a reduction");
  add_number(app, "--lr-factor", o.factor, "step, plateau: factor of a reduction", 0, 1);
  add_number(app, "--min-lr", o.min_lr, "cosine, plateau: smallest learning rate", 0, most_norm);
}

/// "all", or "0,3,4".
void read_splits(const std::string& text, TrainOptions& o) {
  o.all_splits = text == "all";
  o.splits.clear();
  if (o.all_splits) return;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto split = to_number<Index>(std::string_view(text).substr(begin, end - begin));
    if (!split || *split < 0 || std::ranges::count(o.splits, *split) > 0)
      throw CLI::ValidationError(
          "--splits", "'" + text + "', expected all, or different numbers from 0 on, such as 0,3,4");
    o.splits.push_back(*split);
    begin = end + 1;
  }
}

}  // namespace

void add_training_options(CLI::App& app, TrainOptions& o) {
  begin_group(app, "Training");
  add_task_options(app, o.task);
  add_number(app, "--epochs", o.epochs, "passes over the training nodes or edges; 0: --predict only");
  add_number(app, "--lr", o.lr, "learning rate", 0, most_rate);
  add_choice(app, "--optimizer", o.optimizer,
             {{"adam", OptimizerType::adam}, {"adamw", OptimizerType::adamw}, {"sgd", OptimizerType::sgd}},
             "optimizer");
  add_number(app, "--momentum", o.momentum, "sgd: momentum", 0, 1);
  add_number(app, "--weight-decay", o.weight_decay, "weight decay of all parameters", 0, most_rate);
  add_number(app, "--clip-norm", o.clip_norm, "largest norm of all gradients together; 0: any", 0, most_norm);
  add_number(app, "--ema", o.ema,
             "decay of moving averages of the weights, which are evaluated and saved; 0: none", 0, 1);
  add_schedule_options(app, o.schedule);
  add_number(app, "--eval-every", o.eval_every, "epochs between evaluations; 0: no evaluation");
  add_number(app, "--stop-after", o.stop_after,
             "ends a run after this many epochs without a better validation value; 0: never");
  add_number(app, "--runs", o.runs,
             "runs with the seeds --seed, --seed + 1, ...; mean and standard deviation", 1, 1 << 20);
  app.add_option_function<std::string>(
         "--splits", [&o](const std::string& text) { read_splits(text, o); },
         "runs on several splits of the dataset: all, or their numbers")
      ->option_text("all|LIST")
      ->excludes("--split", "--split-nodes", "--split-graphs");
  add_seed_option(app, o.seed, "seed of parameters, dropout, samples, generated graph and partition");
  add_choice(app, "--matmul-precision", o.matmul_precision,
             {{"highest", MatmulPrecision::highest},
              {"high", MatmulPrecision::high},
              {"medium", MatmulPrecision::medium}},
             "precision of matrix products");
  add_choice(app, "--precision", o.mixed_precision, {{"full", false}, {"mixed", true}},
             "mixed: activations and their gradients in bfloat16");
  app.add_flag("--bfloat16-features", o.bfloat16_features, "stores dense node features in bfloat16");
}

}  // namespace sar::tools
