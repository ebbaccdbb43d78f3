// SPDX-License-Identifier: MIT
#include "plan_options.hpp"

#include "formats/text.hpp"
#include "options.hpp"
#include "train/options/add_options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>

namespace sar::tools {
namespace {

/// The units of a number, in lower case, and what each is.
using Units = std::map<std::string, double>;

/// Adds an option that is a number with a unit, such as "100gbit"; `expected` ends the error message.
void add_with_unit(CLI::App& app, const std::string& option, double& value, const Units& units,
                   const std::string& form, const std::string& help, const std::string& expected) {
  const auto read = [option, &value, units, expected](const std::string& text) {
    const auto digits = std::min(text.find_first_not_of("0123456789.eE+-"), text.size());
    const auto number = to_signed_number<double>(text.substr(0, digits));
    const auto found = units.find(formats::lower_case(text.substr(digits)));
    if (!number || !(*number > 0) || *number > 1e15 || found == units.end())
      refuse_value(option, text, expected);
    value = *number * found->second;
  };
  app.add_option_function<std::string>(option, read, help)->option_text(form);
}

void add_machine_options(CLI::App& app, Machine& m) {
  begin_group(app, "Machine");
  add_number(app, "--ranks", m.ranks, "number of ranks of the training", 1, 1 << 20)->required();
  add_with_unit(app, "--link", m.link_bytes,
                {{"kbit", 125},
                 {"mbit", 125e3},
                 {"gbit", 125e6},
                 {"tbit", 125e9},
                 {"kb", 1e3},
                 {"mb", 1e6},
                 {"gb", 1e9}},
                "RATE", "network of a rank, per second and direction: 100gbit, 12.5GB",
                "a rate with its unit: 100gbit, 500mbit, 12.5GB (a second)");
  add_number(app, "--latency", m.latency, "seconds per message besides its bytes", 0, 1);
  add_number(app, "--cores", m.cores, "cores of a rank; below 1 where ranks share a core", 1e-3, 1e6);
  add_number(app, "--efficiency", m.efficiency, "speedup per core beyond the --threads of the measured rates",
             0.01, 1);
  add_with_unit(app, "--memory", m.memory, {{"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}}, "SIZE",
                "memory of a rank, for the least number of ranks: 64GB", "a size with its unit: 64GB, 500MB");
  add_with_unit(app, "--memory-bandwidth", m.memory_rate, {{"gb", 1e9}, {"tb", 1e12}}, "RATE",
                "memory of a rank, bytes read and written per second: 200GB; default: measured here",
                "a rate with its unit: 200GB, 1.5TB (a second)");
}

void add_shape_options(CLI::App& app, PlanOptions& o) {
  begin_group(app, "Graph");
  add_number(app, "--edges", o.edges, "sbm: number of edges; 0: from --degree");
  add_number(app, "--halo-fraction", o.halo_fraction,
             "halo nodes per node of a part; default: counted or estimated", 0, 1e9)
      ->default_str("");
  add_number(app, "--scale-to-nodes", o.scale_nodes,
             "plans for a graph of the same shape with N nodes; 0: off");
  add_number(app, "--scale-to-edges", o.scale_edges,
             "with --scale-to-nodes: number of edges; 0: as many per node");
}

/// Throws CLI::ValidationError for options of `train` that `plan` cannot predict.
void check(const PlanOptions& o) {
  const TrainOptions& t = o.train;
  const auto refuse = [](bool wrong, const std::string& what) {
    if (wrong) throw CLI::ValidationError(what);
  };
  refuse(!t.category.empty(), "--category: a plan is for graphs without types");
  refuse(!t.sample.fan_outs.empty(), "--sample: a plan is for steps on the whole graph");
  refuse(t.sample.is_saint(), "--sampler: a plan is for steps on the whole graph");
  refuse(t.sample.clusters != 0, "--clusters: a plan is for steps on the whole graph");
  refuse(t.mfg, "--mfg: a plan is for steps on the whole graph");
  refuse(t.task.type != TaskType::node, "--task: '" + name_of(t.task.type) + "', expected node");
  refuse(t.task.label_loss != LabelLoss::automatic && t.task.label_loss != LabelLoss::cross_entropy,
         "--loss: a plan trains on classes, expected none, and --num-classes with the columns of the labels");
  refuse(o.machine.ranks > 1 && o.machine.link_bytes == 0,
         "--link: is missing, expected the rate of a rank's network for --ranks " + concat(o.machine.ranks));
  refuse(o.edges > 0 && !t.dataset.empty(),
         "--edges: is for a generated graph, expected --scale-to-edges for a dataset");
  refuse(o.scale_edges > 0 && o.scale_nodes == 0, "--scale-to-edges: expected --scale-to-nodes, too");
}

}  // namespace

void add_options(CLI::App& app, PlanOptions& o) {
  add_machine_options(app, o.machine);
  add_path(app, "--rates", o.rates_file, "FILE", "rates of this machine: read, or measured and written");
  add_shape_options(app, o);
  add_options(app, o.train);
  set_common_options(
      app, {"--ranks", "--link", "--cores", "--memory", "--rates", "--halo-fraction", "--scale-to-nodes",
            "--dataset", "--model", "--layers", "--hidden", "--threads", "--json"});
  begin_group(app, "Output");
  add_path(app, "--json", o.json_file, "FILE", "the plan as JSON");
  add_path(app, "graph", o.train.dataset, "PATH", "same as --dataset")
      ->excludes("--dataset")
      ->excludes("--graph");
  app.footer("plan also takes the options of train that change neither memory nor time.");
  app.parse_complete_callback([&o] { check(o); });
}

}  // namespace sar::tools
