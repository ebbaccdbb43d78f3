// SPDX-License-Identifier: MIT
#include "partition_report.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <nlohmann/json.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

namespace sar::tools {
namespace {

long long integer(Index x) {
  return x;
}

double megabytes(double bytes) {
  return bytes / 1e6;
}

bool has_types(const PartitionReport& report) {
  return report.node_types.size() > 1 || report.edge_types.size() > 1;
}

/// Prints a line for each part. No prediction knows the models of several types, which are printed instead.
void print_parts(const PartitionReport& report, const ModelSize& model) {
  constexpr std::size_t most_lines = 64;
  const std::size_t parts = report.parts.size();
  const bool typed = has_types(report);
  const Index row_bytes = halo_row_bytes(model);
  std::printf("%6s %12s %14s %12s %12s %14s", "part", "nodes", "in-edges", "cut", "training", "halo nodes");
  if (!typed) std::printf(" %14s %12s", "halo bytes", "predicted MB");
  std::printf("\n");
  for (std::size_t p = 0; p < std::min(parts, most_lines); ++p) {
    const PartSize& part = report.parts[p];
    std::printf("%6zu %12lld %14lld %12lld %12lld %14lld", p, integer(part.nodes), integer(part.in_edges),
                integer(part.cut_edges), integer(part.training_nodes), integer(part.halo_nodes));
    if (!typed)
      std::printf(" %14lld %12.1f", integer(part.halo_nodes * row_bytes),
                  megabytes(predicted_bytes(model, part, static_cast<int>(parts))));
    std::printf("\n");
  }
  if (parts > most_lines) std::printf("   ... %zu more\n", parts - most_lines);
  if (!typed) return;
  for (const TypeReport& type : report.node_types)
    std::printf("%s: %lld nodes, largest / mean %.3f; %lld training nodes, %.3f; %lld halo nodes\n",
                printable(type.type).c_str(), integer(type.total().nodes), type.balance(&PartSize::nodes),
                integer(type.total().training_nodes), type.balance(&PartSize::training_nodes),
                integer(type.total().halo_nodes));
  for (const TypeReport& type : report.edge_types)
    std::printf("%s: %lld edges, largest / mean %.3f; %lld cut\n", printable(type.type).c_str(),
                integer(type.total().in_edges), type.balance(&PartSize::in_edges),
                integer(type.total().cut_edges));
}

nlohmann::ordered_json balances(const PartitionReport& report) {
  return {{"nodes", report.balance(&PartSize::nodes)},
          {"in_edges", report.balance(&PartSize::in_edges)},
          {"training_nodes", report.balance(&PartSize::training_nodes)},
          {"halo_nodes", report.balance(&PartSize::halo_nodes)}};
}

nlohmann::ordered_json node_types(const PartitionReport& report) {
  auto list = nlohmann::ordered_json::array();
  for (const TypeReport& type : report.node_types)
    list.push_back({{"name", type.type},
                    {"num_nodes", type.total().nodes},
                    {"training_nodes", type.total().training_nodes},
                    {"halo_nodes", type.total().halo_nodes},
                    {"balance", type.balance(&PartSize::nodes)},
                    {"training_balance", type.balance(&PartSize::training_nodes)}});
  return list;
}

nlohmann::ordered_json edge_types(const PartitionReport& report) {
  auto list = nlohmann::ordered_json::array();
  for (const TypeReport& type : report.edge_types)
    list.push_back({{"name", type.type},
                    {"num_edges", type.total().in_edges},
                    {"cut_edges", type.total().cut_edges},
                    {"balance", type.balance(&PartSize::in_edges)}});
  return list;
}

nlohmann::ordered_json parts(const PartitionReport& report, const ModelSize& model) {
  auto list = nlohmann::ordered_json::array();
  for (const PartSize& part : report.parts)
    list.push_back(
        {{"nodes", part.nodes},
         {"in_edges", part.in_edges},
         {"cut_edges", part.cut_edges},
         {"training_nodes", part.training_nodes},
         {"halo_nodes", part.halo_nodes},
         {"predicted_peak_bytes", predicted_bytes(model, part, static_cast<int>(report.parts.size()))}});
  return list;
}

}  // namespace

Measured measured(const Communicator& comm, double seconds) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {comm.all_reduce(seconds, ReduceOp::max),
          comm.all_reduce(static_cast<std::uint64_t>(usage.ru_maxrss) * 1024, ReduceOp::max)};
}

void print_report(const PartitionReport& report, const ModelSize& model, const Measured& measured) {
  print_parts(report, model);
  std::printf("largest / mean: nodes %.3f, in-edges %.3f, training nodes %.3f, halo nodes %.3f\n",
              report.balance(&PartSize::nodes), report.balance(&PartSize::in_edges),
              report.balance(&PartSize::training_nodes), report.balance(&PartSize::halo_nodes));
  std::printf("edge cut: %lld of %lld edges, %.2f %%, by %s\n", integer(report.total().cut_edges),
              integer(report.num_edges), 100 * report.cut_share(), to_string(report.method));
  if (!has_types(report))
    std::printf(
        "predicted for a %lld-layer %s of width %lld, %lld %sfeatures, %lld classes: at most %.1f MB per "
        "rank, "
        "%.1f MB sent per epoch\n",
        integer(model.layers), model.kind.c_str(), integer(model.hidden), integer(model.features),
        model.stored > 0 ? "sparse " : "", integer(model.classes), megabytes(predicted_bytes(model, report)),
        megabytes(predicted_bytes_sent(model, report)));
  std::printf("%.1f s, %.2f million edges a second, at most %.0f MB resident per rank\n", measured.seconds,
              static_cast<double>(report.num_edges) / measured.seconds / 1e6,
              megabytes(static_cast<double>(measured.max_rss_bytes)));
  std::fflush(stdout);
}

void write_report(const std::string& file, const PartitionReport& report,
                  const PartitionGraphOptions& options, const ModelSize& model, const Measured& measured) {
  nlohmann::ordered_json json{{"method", to_string(report.method)},
                              {"order", to_string(options.order)},
                              {"num_nodes", report.num_nodes},
                              {"num_edges", report.num_edges},
                              {"cut_edges", report.total().cut_edges},
                              {"cut_share", report.cut_share()},
                              {"halo_nodes", report.total().halo_nodes},
                              {"halo_row_bytes", halo_row_bytes(model)},
                              {"balance", balances(report)},
                              {"model",
                               {{"kind", model.kind},
                                {"layers", model.layers},
                                {"hidden", model.hidden},
                                {"features", model.features},
                                {"classes", model.classes}}},
                              {"predicted_peak_bytes", predicted_bytes(model, report)},
                              {"predicted_bytes_sent", predicted_bytes_sent(model, report)},
                              {"seconds", measured.seconds},
                              {"max_rss_bytes", measured.max_rss_bytes},
                              {"parts", parts(report, model)}};
  if (has_types(report)) {  // no prediction knows the models of these
    for (const char* key : {"halo_row_bytes", "model", "predicted_peak_bytes", "predicted_bytes_sent"})
      json.erase(key);
    for (auto& part : json["parts"]) part.erase("predicted_peak_bytes");
    json["node_types"] = node_types(report);
    json["edge_types"] = edge_types(report);
  }
  write_text(file, json.dump(2) + "\n");
}

}  // namespace sar::tools
