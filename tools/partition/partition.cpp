// SPDX-License-Identifier: MIT

/// Partitions a graph once, for many trainings; see --help.
///     mpirun -n 2 partition path/to/dataset --parts 8 --out parts
/// The number of ranks that partition and the number of parts are independent.
///
/// Room tools/partition: The program `partition`.
#include "formats/open_source.hpp"
#include "heartbeat.hpp"
#include "partition_options.hpp"
#include "plan/plan_prediction.hpp"
#include "program.hpp"
#include "source_widths.hpp"

#include <sar/core/files/file.hpp>
#include <sar/data.hpp>
#include <sar/graph/data/partition_graph.hpp>
#include <sar/models.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace sar::tools {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Prints a line for each phase (name, size, seconds), and every ten seconds how much of it is done.
class Progress {
 public:
  Progress(const Communicator& comm, Heartbeat& heartbeat)
      : speaks_(comm.rank() == 0), heartbeat_(heartbeat) {}

  void operator()(const std::string& phase, Index done, Index total) {
    if (!speaks_) return;
    if (done == 0) {
      begin_ = told_ = Clock::now();
      heartbeat_.phase(phase);
    }
    if (done == total) {
      std::printf("%-28s %12td   %.1f s\n", phase.c_str(), total, seconds_since(begin_));
    } else if (seconds_since(told_) > 10) {
      std::printf("  %s: %.0f %% after %.0f s\n", phase.c_str(),
                  100 * static_cast<double>(done) / static_cast<double>(total), seconds_since(begin_));
      told_ = Clock::now();
    }
    std::fflush(stdout);
  }

 private:
  bool speaks_;
  Heartbeat& heartbeat_;
  Clock::time_point begin_, told_;
};

/// What partitioning took.
struct Measured {
  double seconds = 0;               ///< of the slowest rank
  std::uint64_t max_rss_bytes = 0;  ///< of the largest rank
};

/// What a training on the parts needs, as `plan` predicts it.
struct PredictedTraining {
  ModelDescription model;          ///< with the widths of the graph
  bool is_sparse = false;          ///< the features are sparse rows
  std::vector<double> bytes = {};  ///< at the peak of a step on each part
  double sent_bytes = 0;           ///< by all ranks together in a training step after the first
  Index halo_row_bytes = 0;  ///< of a row of the features, or of their product with the weights if sparse

  [[nodiscard]] double most_bytes() const { return *std::ranges::max_element(bytes); }
};

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
                    {"halo_nodes", part.halo_nodes},
                    {"neighbors", part.neighbors}});
    if (predicted != nullptr) list.back()["predicted_peak_bytes"] = predicted->bytes[list.size() - 1];
  }
  return list;
}

/// Trains on a small generated graph, with one type of nodes and edges.
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

/// Without a prediction for a graph with several types, for which there is none.
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

/// Throws InputError when the file cannot be written.
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

/// Throws InputError, before the graph is read, when the results could not be written. Collective.
void check_outputs(const Communicator& comm, const PartitionOptions& o) {
  comm.agree([&] {
    if (comm.rank() != 0) return;
    require<InputError>(!o.out.empty(), "the name of the output directory is empty");
    if (!o.report.empty()) check_writable(o.report);
    std::error_code error;
    require<InputError>(!std::filesystem::exists(std::filesystem::symlink_status(o.out, error)), o.out,
                        ": already exists, expected a new directory");
    check_writable(std::filesystem::path(o.out + "/").parent_path().string());
  });
}

void partition(const Communicator& comm, PartitionOptions& o) {
  const ThreadLimit threads(o.threads > 0 ? o.threads : default_num_threads(comm));
  check_outputs(comm, o);
  Heartbeat heartbeat(comm.rank() == 0 ? &std::cout : nullptr);
  heartbeat.phase("reading the graph");
  const std::unique_ptr<GraphSource> source = formats::open_source(comm, o.input, o.source);
  require<InputError>(o.graph.parts <= source->num_nodes(), o.input, ": there are ", source->num_nodes(),
                      " nodes for --parts ", o.graph.parts, ", expected at least one for each part");
  print_notes(*source, source->description());
  if (source->has_listed_pairs())
    say(comm, "WARNING: ", source->name(),
        ": the split lists pairs of nodes, which a partition directory does not store; train --task link "
        "splits its edges by --split-edges");
  const Widths widths = complete_widths(o.widths, *source, o.graph.data);
  const auto begin = Clock::now();
  const PartitionReport report = partition_graph(*source, o.out, o.graph, Progress(comm, heartbeat));
  const Measured measured{comm.all_reduce(seconds_since(begin), ReduceOp::max), max_resident_bytes(comm)};
  comm.agree([&] {
    if (comm.rank() != 0) return;
    std::optional<PredictedTraining> predicted;
    if (report.node_types.size() <= 1 && report.edge_types.size() <= 1)
      predicted = predict_training(report, o.train, widths);
    const PredictedTraining* const of_parts = predicted ? &*predicted : nullptr;
    print_report(report, of_parts, measured);
    if (!o.report.empty()) write_report(o.report, report, o.graph, of_parts, measured);
  });
}

}  // namespace
}  // namespace sar::tools

int main(int argc, char** argv) {
  return sar::tools::run<sar::tools::PartitionOptions>(
      "Partitions a graph into parts, from which train reads.", "partition", argc, argv,
      sar::tools::partition);
}
