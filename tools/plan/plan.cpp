// SPDX-License-Identifier: MIT

/// Predicts the memory of a rank, and the traffic and time of an epoch, before a training; see --help.
///     plan parts --model sage --batch-norm --ranks 128 --link 100gbit --cores 36
///
/// Room tools/plan: The program `plan`.
#include "plan_options.hpp"
#include "plan_prediction.hpp"
#include "program.hpp"

#include <sar/core/files/file.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace sar::tools {
namespace {

struct Plan {
  PlanOptions options;
  GraphShape shape;
  Rates rates;
  Prediction prediction;
  std::vector<std::string> advice;
};

void print_line(const char* what, double value, const char* unit, const char* note = "") {
  std::printf("  %-34s %14.6g %-4s %s\n", what, value, unit, note);
}

void print_plan(const Plan& plan) {
  const auto& [o, shape, rates, p, advice] = plan;
  const PartShape part = combined(shape.parts, [](double a, double b) { return std::max(a, b); });
  std::printf("%s: %.0f nodes, %.0f edges, %d ranks of %g cores, %s\n", printable(shape.name).c_str(),
              shape.nodes, shape.edges, o.machine.ranks, o.machine.cores, printable(rates.model).c_str());
  std::printf("memory of a rank moves %.3g GB/s, %s\n", memory_rate_of(o.machine, rates) / 1e9,
              o.machine.memory_rate > 0 ? "--memory-bandwidth" : "as measured: see --memory-bandwidth");
  std::printf("rates measured with %d threads on %.0f nodes of degree %.3g\n", rates.threads, rates.nodes,
              rates.degree);
  std::printf("largest part, %s:\n", printable(shape.source).c_str());
  print_line("nodes", part.nodes, "");
  print_line("in-edges", part.in_edges, "");
  print_line("in-edges from other parts", part.cut_edges, "");
  print_line("halo nodes", part.halo_nodes, "");
  print_line("other parts they are in", part.neighbors, "");
  std::printf("memory of a rank:\n");
  print_line("rows of its nodes", p.memory.rows / 1e6, "MB");
  print_line("graph", p.memory.graph / 1e6, "MB");
  print_line("parameters, gradients, moments", p.memory.parameters / 1e6, "MB");
  print_line("halo rows in flight", p.memory.stages / 1e6, "MB");
  print_line("total", p.memory.total() / 1e6, "MB", "peak_bytes of train");
  std::printf("a training step:\n");
  print_line("received by a rank", p.received_bytes / 1e6, "MB");
  print_line("sent by all ranks", p.sent_bytes_all / 1e6, "MB");
  print_line("compute", p.compute, "s");
  print_line("of which bound by memory", p.memory_seconds, "s");
  print_line("wire", p.wire, "s");
  print_line("time", p.seconds, "s");
  print_line("time of an evaluation", p.evaluation, "s");
  if (!advice.empty()) std::printf("alternatives:\n");
  for (const std::string& line : advice) std::printf("  %s\n", line.c_str());
  std::fflush(stdout);
}

void write_plan(const std::string& file, const Plan& plan) {
  const auto& [o, shape, rates, p, advice] = plan;
  const PartShape part = combined(shape.parts, [](double a, double b) { return std::max(a, b); });
  const nlohmann::ordered_json json{{"graph", shape.name},
                                    {"num_nodes", shape.nodes},
                                    {"num_edges", shape.edges},
                                    {"model", rates.model},
                                    {"ranks", o.machine.ranks},
                                    {"cores", o.machine.cores},
                                    {"link_bytes_per_second", o.machine.link_bytes},
                                    {"memory_bytes_per_second", memory_rate_of(o.machine, rates)},
                                    {"parts", shape.source},
                                    {"largest_part",
                                     {{"nodes", part.nodes},
                                      {"in_edges", part.in_edges},
                                      {"cut_edges", part.cut_edges},
                                      {"halo_nodes", part.halo_nodes},
                                      {"neighbors", part.neighbors}}},
                                    {"peak_bytes", p.memory.total()},
                                    {"memory",
                                     {{"rows", p.memory.rows},
                                      {"graph", p.memory.graph},
                                      {"parameters", p.memory.parameters},
                                      {"stages", p.memory.stages}}},
                                    {"received_bytes", p.received_bytes},
                                    {"sent_bytes", p.sent_bytes_all},
                                    {"evaluation_received_bytes", p.evaluation_bytes},
                                    {"stages", p.stages},
                                    {"messages", p.messages},
                                    {"compute_seconds", p.compute},
                                    {"memory_seconds", p.memory_seconds},
                                    {"wire_seconds", p.wire},
                                    {"seconds", p.seconds},
                                    {"evaluation_seconds", p.evaluation},
                                    {"advice", advice}};
  write_text(file, json.dump(2) + "\n");
}

void plan(const Communicator& comm, const PlanOptions& o) {
  comm.agree([&] {
    if (comm.rank() == 0 && !o.json_file.empty()) check_writable(o.json_file);
  });
  Plan plan{.options = o, .shape = shape_of(comm, o), .rates = {}, .prediction = {}, .advice = {}};
  const GraphShape& shape = plan.shape;
  plan.rates = read_or_measure(comm, o.rates_file, o.train, shape.widths, shape.nodes / o.machine.ranks,
                               shape.edges / shape.nodes);
  comm.agree([&] {
    plan.prediction = predict(o, plan.rates, shape);
    plan.advice = advise(o, plan.rates, shape, plan.prediction);
    if (comm.rank() != 0) return;
    print_plan(plan);
    if (!o.json_file.empty()) write_plan(o.json_file, plan);
  });
}

}  // namespace
}  // namespace sar::tools

int main(int argc, char** argv) {
  return sar::tools::run<sar::tools::PlanOptions>(
      "Predicts memory, traffic and time of a training from the options of train and the machine.", "plan",
      argc, argv, sar::tools::plan);
}
