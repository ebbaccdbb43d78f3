#include "plan_options.hpp"

#include "options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <limits>

namespace sar::tools {
namespace {

struct Unit {
  const char* name;
  double value;
};

/// A number with one of the units behind it, as "100gbit"; `expected` ends the message otherwise.
template <std::size_t n>
double with_unit(const std::string& option, const std::string& text, const Unit (&units)[n],
                 const char* expected) {
  const auto digits = std::min(text.find_first_not_of("0123456789.eE+-"), text.size());
  std::string unit = text.substr(digits);
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto number = to_number<double>(text.substr(0, digits));
  const auto* found =
      std::find_if(std::begin(units), std::end(units), [&](const Unit& u) { return unit == u.name; });
  if (!number || !(*number > 0) || *number > 1e15 || found == std::end(units))
    throw CLI::ValidationError(option, "'" + text + "', expected " + expected);
  return *number * found->value;
}

void add_machine_options(CLI::App& app, Machine& m) {
  app.add_option("--ranks", m.ranks, "workers of the training")
      ->required()
      ->transform(number_from(1, 1 << 20));
  const auto read_link = [&m](const std::string& text) {
    static const Unit units[] = {{"kbit", 125}, {"mbit", 125e3}, {"gbit", 125e6}, {"tbit", 125e9},
                                 {"kb", 1e3},   {"mb", 1e6},     {"gb", 1e9}};
    m.link_bytes =
        with_unit("--link", text, units, "a rate with its unit: 100gbit, 500mbit, 12.5GB (a second)");
  };
  app.add_option_function<std::string>("--link", read_link, "of a worker, in each direction: 100gbit, 12.5GB")
      ->option_text("RATE");
  app.add_option("--latency", m.latency, "seconds that a message takes besides its bytes")
      ->transform(number_from(0.0, 1.0));
  app.add_option("--cores", m.cores, "of a worker; less than 1 where workers share one")
      ->transform(number_from(1e-3, 1e6));
  app.add_option("--efficiency", m.efficiency,
                 "of each core, where a worker has more than the --threads that the rates are measured with")
      ->transform(number_from(0.01, 1.0));
  const auto read_memory = [&m](const std::string& text) {
    static const Unit units[] = {{"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}};
    m.memory = with_unit("--memory", text, units, "a size with its unit: 64GB, 500MB");
  };
  app.add_option_function<std::string>("--memory", read_memory,
                                       "that a worker has: says how many workers are needed at least")
      ->option_text("SIZE");
}

void add_shape_options(CLI::App& app, PlanOptions& o) {
  app.add_option("--edges", o.edges, "sbm: number of edges, instead of --degree; 0: that")
      ->transform(number_from<Index>(0));
  app.add_option(
         "--halo-fraction", o.halo_fraction,
         "halo nodes for each node of a part; without it, those of the parts are counted, or where there are "
         "none those of random parts are estimated")
      ->transform(number_from(0.0, 1e9))
      ->default_str("");
  app.add_option("--scale-to-nodes", o.scale_nodes,
                 "plan for a graph of the same shape with so many nodes; 0: not")
      ->transform(number_from<Index>(0));
  app.add_option("--scale-to-edges", o.scale_edges,
                 "and so many edges; 0: as many for each node as the graph has")
      ->transform(number_from<Index>(0));
}

/// What a plan does not know. Throws CLI::ValidationError.
void check(const PlanOptions& o) {
  const TrainOptions& t = o.train;
  const auto refuse = [](bool wrong, const std::string& what) {
    if (wrong) throw CLI::ValidationError(what);
  };
  refuse(t.model.type != "sage" && t.model.type != "gcn" && t.model.type != "gat",
         "--model: '" + t.model.type + "', expected sage, gcn or gat, whose traffic is known");
  refuse(!t.sample.fan_outs.empty(), "--sample: a plan is for steps on the whole graph");
  refuse(t.mfg, "--mfg: a plan is for steps on the whole graph");
  refuse(t.task.type != TaskType::node, "--task: '" + name_of(t.task.type) + "', expected node");
  refuse(
      o.machine.ranks > 1 && o.machine.link_bytes == 0,
      "--link: is missing, expected the rate of a worker's network for --ranks " + concat(o.machine.ranks));
  refuse(o.edges > 0 && !t.dataset.empty(),
         "--edges: is for a built-in graph, expected --scale-to-edges for a dataset");
  refuse(o.scale_edges > 0 && o.scale_nodes == 0, "--scale-to-edges: expected --scale-to-nodes, too");
}

}  // namespace

void add_options(CLI::App& app, PlanOptions& o) {
  add_options(app, o.train);
  app.add_option("graph", o.train.dataset, "the same as --dataset")
      ->check(not_empty())
      ->option_text("PATH")
      ->excludes("--dataset")
      ->excludes("--partition-data")
      ->excludes("--graph");
  add_machine_options(app, o.machine);
  add_shape_options(app, o);
  app.add_option("--rates", o.rates_file,
                 "rates of the machine: read if the file is there, otherwise measured and written there")
      ->check(not_empty())
      ->option_text("FILE");
  app.add_option("--json", o.json_file, "what is printed, as JSON")->check(not_empty())->option_text("FILE");
  app.footer(
      "The options of train that change neither memory nor time are accepted, so that the command line of a "
      "training can be planned as it is.");
  app.parse_complete_callback([&o] { check(o); });
}

}  // namespace sar::tools
