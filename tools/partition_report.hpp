/// What `partition` says about its parts: a table for people, JSON for programs.
#pragma once

#include "model_cost.hpp"

#include <sar/core/file.hpp>
#include <sar/graph/data/partition_graph.hpp>
#include <sar/sar.hpp>

#include <nlohmann/json.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace sar::examples {

struct Measured {
  double seconds = 0;
  std::uint64_t max_rss_bytes = 0;  ///< largest rank
};

/// Collective.
inline Measured measured(const Communicator& comm, double seconds) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {comm.all_reduce(seconds, ReduceOp::max),
          comm.all_reduce(static_cast<std::uint64_t>(usage.ru_maxrss) * 1024, ReduceOp::max)};
}

inline double largest_predicted_bytes(const ModelSize& model, const PartitionReport& report) {
  double largest = 0;
  for (const PartSize& part : report.parts)
    largest = std::max(largest, predicted_bytes(model, part, static_cast<int>(report.parts.size())));
  return largest;
}

inline void print_report(const PartitionReport& report, const ModelSize& model, const Measured& measured) {
  const auto integer = [](Index x) { return static_cast<long long>(x); };
  const auto row_bytes = static_cast<Index>(sizeof(real)) * model.features;
  std::printf("%6s %12s %14s %12s %12s %14s %14s %12s\n", "part", "nodes", "in-edges", "cut", "training",
              "halo nodes", "halo bytes", "predicted MB");
  constexpr std::size_t most_lines = 64;
  for (std::size_t p = 0; p < std::min(report.parts.size(), most_lines); ++p) {
    const PartSize& part = report.parts[p];
    std::printf("%6zu %12lld %14lld %12lld %12lld %14lld %14lld %12.1f\n", p, integer(part.nodes),
                integer(part.in_edges), integer(part.cut_edges), integer(part.training_nodes),
                integer(part.halo_nodes), integer(part.halo_nodes * row_bytes),
                predicted_bytes(model, part, static_cast<int>(report.parts.size())) / 1e6);
  }
  if (report.parts.size() > most_lines) std::printf("   ... %zu more\n", report.parts.size() - most_lines);
  std::printf("largest / mean: nodes %.3f, in-edges %.3f, training nodes %.3f, halo nodes %.3f\n",
              report.balance(&PartSize::nodes), report.balance(&PartSize::in_edges),
              report.balance(&PartSize::training_nodes), report.balance(&PartSize::halo_nodes));
  std::printf("edge cut: %lld of %lld edges, %.2f %%\n", integer(report.total().cut_edges),
              integer(report.num_edges), 100 * report.cut_share());
  std::printf(
      "a %d-layer %s of width %lld, %lld features, %lld classes: at most %.1f MB a worker, %.1f MB sent per "
      "epoch\n",
      model.layers, model.kind.c_str(), integer(model.hidden), integer(model.features),
      integer(model.classes), largest_predicted_bytes(model, report) / 1e6,
      predicted_bytes_sent(model, report) / 1e6);
  std::printf("%.1f s, %.2f million edges a second, at most %.0f MB resident a rank\n", measured.seconds,
              static_cast<double>(report.num_edges) / measured.seconds / 1e6,
              static_cast<double>(measured.max_rss_bytes) / 1e6);
  std::fflush(stdout);
}

inline void write_report(const std::string& file, const PartitionReport& report,
                         const PartitionGraphOptions& options, const ModelSize& model,
                         const Measured& measured) {
  nlohmann::ordered_json json{{"method", to_string(options.method)},
                              {"order", to_string(options.order)},
                              {"num_nodes", report.num_nodes},
                              {"num_edges", report.num_edges},
                              {"cut_edges", report.total().cut_edges},
                              {"cut_share", report.cut_share()},
                              {"halo_nodes", report.total().halo_nodes},
                              {"halo_row_bytes", sizeof(real) * static_cast<std::size_t>(model.features)},
                              {"balance",
                               {{"nodes", report.balance(&PartSize::nodes)},
                                {"in_edges", report.balance(&PartSize::in_edges)},
                                {"training_nodes", report.balance(&PartSize::training_nodes)},
                                {"halo_nodes", report.balance(&PartSize::halo_nodes)}}},
                              {"model",
                               {{"kind", model.kind},
                                {"layers", model.layers},
                                {"hidden", model.hidden},
                                {"features", model.features},
                                {"classes", model.classes}}},
                              {"predicted_peak_bytes", largest_predicted_bytes(model, report)},
                              {"predicted_bytes_sent", predicted_bytes_sent(model, report)},
                              {"seconds", measured.seconds},
                              {"max_rss_bytes", measured.max_rss_bytes},
                              {"parts", nlohmann::ordered_json::array()}};
  for (const PartSize& part : report.parts)
    json["parts"].push_back(
        {{"nodes", part.nodes},
         {"in_edges", part.in_edges},
         {"cut_edges", part.cut_edges},
         {"training_nodes", part.training_nodes},
         {"halo_nodes", part.halo_nodes},
         {"predicted_peak_bytes", predicted_bytes(model, part, static_cast<int>(report.parts.size()))}});
  write_text(file, json.dump(2) + "\n");
}

}  // namespace sar::examples
