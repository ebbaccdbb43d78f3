// SPDX-License-Identifier: MIT
#include "partition_report.hpp"

#include "plan/plan_prediction.hpp"
#include "program.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <nlohmann/json.hpp>

#include <cstdio>

namespace sar::tools {
namespace {

/// Prints a line for each part, and without a prediction, which is for one type, those of each type.
void print_parts(const PartitionReport& report, const PredictedTraining* predicted) {
  constexpr std::size_t most_lines = 64;
  const std::size_t parts = report.parts.size();
  std::printf("%6s %12s %14s %12s %12s %14s", "part", "nodes", "in-edges", "cut", "training", "halo nodes");
  if (predicted != nullptr) std::printf(" %14s %12s", "halo bytes", "predicted MB");
  std::printf("\n");
  for (std::size_t p = 0; p < std::min(parts, most_lines); ++p) {
    const PartSize& part = report.parts[p];
    std::printf("%6zu %12td %14td %12td %12td %14td", p, part.nodes, part.in_edges, part.cut_edges,
                part.training_nodes, part.halo_nodes);
    if (predicted != nullptr)
      std::printf(" %14td %12.1f", part.halo_nodes * predicted->halo_row_bytes,
                  megabytes(predicted->bytes[p]));
    std::printf("\n");
  }
  if (parts > most_lines) std::printf("   ... %zu more\n", parts - most_lines);
  if (predicted != nullptr) return;
  for (const TypeReport& type : report.node_types)
    std::printf("%s: %td nodes, largest / mean %.3f; %td training nodes, %.3f; %td halo nodes\n",
                printable(type.type).c_str(), type.total().nodes, type.balance(&PartSize::nodes),
                type.total().training_nodes, type.balance(&PartSize::training_nodes),
                type.total().halo_nodes);
  for (const TypeReport& type : report.edge_types)
    std::printf("%s: %td edges, largest / mean %.3f; %td cut\n", printable(type.type).c_str(),
                type.total().in_edges, type.balance(&PartSize::in_edges), type.total().cut_edges);
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

nlohmann::ordered_json parts(const PartitionReport& report, const PredictedTraining* predicted) {
  auto list = nlohmann::ordered_json::array();
  for (const PartSize& part : report.parts) {
    list.push_back({{"nodes", part.nodes},
                    {"in_edges", part.in_edges},
                    {"cut_edges", part.cut_edges},
                    {"training_nodes", part.training_nodes},
                    {"halo_nodes", part.halo_nodes}});
    if (predicted != nullptr) list.back()["predicted_peak_bytes"] = predicted->bytes[list.size() - 1];
  }
  return list;
}

}  // namespace

Measured measured(const Communicator& comm, double seconds) {
  return {comm.all_reduce(seconds, ReduceOp::max), max_resident_bytes(comm)};
}

PredictedTraining predict_training(const PartitionReport& report, const TrainOptions& o,
                                   const Widths& widths) {
  Widths trained = widths;  // what the graph does not say is as small as can be
  trained.features = std::max<Index>(trained.features, 1);
  trained.classes = std::max<Index>(trained.classes, 1);
  GraphShape shape;
  set_report(shape, report);
  double largest = 0;
  for (const PartShape& part : shape.parts) largest = std::max(largest, part.nodes);
  const Rates rates = measure_memory(o, trained, largest, shape.edges / shape.nodes);
  PredictedTraining predicted{.model = o.model.with_widths(widths.features, widths.classes),
                              .is_sparse = widths.stored > 0};
  for (const PartShape& part : shape.parts) {
    const Place at{part, static_cast<int>(shape.parts.size()), largest};
    predicted.bytes.push_back(memory_of(o, rates, at).total());
    predicted.sent_bytes += sent_bytes_of(o, rates, at);
  }
  const Index numbers =
      predicted.is_sparse ? layer_sizes(o.model.with_widths(trained.features, trained.classes)).front().out()
                          : widths.features;
  predicted.halo_row_bytes = numbers * static_cast<Index>(sizeof(real));
  return predicted;
}

void print_report(const PartitionReport& report, const PredictedTraining* predicted,
                  const Measured& measured) {
  print_parts(report, predicted);
  std::printf("largest / mean: nodes %.3f, in-edges %.3f, training nodes %.3f, halo nodes %.3f\n",
              report.balance(&PartSize::nodes), report.balance(&PartSize::in_edges),
              report.balance(&PartSize::training_nodes), report.balance(&PartSize::halo_nodes));
  std::printf("edge cut: %td of %td edges, %.2f %%, by %s\n", report.total().cut_edges, report.num_edges,
              100 * report.cut_share(), to_string(report.method));
  if (predicted != nullptr) {
    const ModelDescription& m = predicted->model;
    std::printf(
        "predicted for a %td-layer %s of width %td, %td %sfeatures, %td classes: at most %.1f MB per "
        "rank, "
        "%.1f MB sent per epoch\n",
        m.layers, m.type.c_str(), m.hidden, m.in_feats, predicted->is_sparse ? "sparse " : "", m.out_feats,
        megabytes(predicted->most_bytes()), megabytes(predicted->sent_bytes));
  }
  std::printf("%.1f s, %.2f million edges a second, at most %.0f MB resident per rank\n", measured.seconds,
              static_cast<double>(report.num_edges) / measured.seconds / 1e6,
              megabytes(measured.max_rss_bytes));
  std::fflush(stdout);
}

void write_report(const std::string& file, const PartitionReport& report,
                  const PartitionGraphOptions& options, const PredictedTraining* predicted,
                  const Measured& measured) {
  nlohmann::ordered_json json{{"method", to_string(report.method)},     {"order", to_string(options.order)},
                              {"num_nodes", report.num_nodes},          {"num_edges", report.num_edges},
                              {"cut_edges", report.total().cut_edges},  {"cut_share", report.cut_share()},
                              {"halo_nodes", report.total().halo_nodes}};
  if (predicted != nullptr) json["halo_row_bytes"] = predicted->halo_row_bytes;
  json["balance"] = balances(report);
  if (predicted != nullptr) {
    const ModelDescription& m = predicted->model;
    json["model"] = {{"kind", m.type},
                     {"layers", m.layers},
                     {"hidden", m.hidden},
                     {"features", m.in_feats},
                     {"classes", m.out_feats}};
    json["predicted_peak_bytes"] = predicted->most_bytes();
    json["predicted_bytes_sent"] = predicted->sent_bytes;
  }
  json["seconds"] = measured.seconds;
  json["max_rss_bytes"] = measured.max_rss_bytes;
  json["parts"] = parts(report, predicted);
  if (predicted == nullptr) {
    json["node_types"] = node_types(report);
    json["edge_types"] = edge_types(report);
  }
  write_text(file, json.dump(2) + "\n");
}

}  // namespace sar::tools
