// SPDX-License-Identifier: MIT

/// What `partition` says about its parts: a table for people, JSON for programs.
#pragma once

#include "model_cost.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/graph/data/parts/partition_graph.hpp>

#include <cstdint>
#include <string>

namespace sar::tools {

/// What partitioning took.
struct Measured {
  double seconds = 0;               ///< of the slowest rank
  std::uint64_t max_rss_bytes = 0;  ///< of the largest rank
};

/// Collective; `seconds` are those of this rank.
Measured measured(const Communicator& comm, double seconds);

/// Local.
void print_report(const PartitionReport& report, const ModelSize& model, const Measured& measured);

/// Local. Throws InputError when the file cannot be written.
void write_report(const std::string& file, const PartitionReport& report,
                  const PartitionGraphOptions& options, const ModelSize& model, const Measured& measured);

}  // namespace sar::tools
