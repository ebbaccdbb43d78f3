// SPDX-License-Identifier: MIT

/// The options with which every kind of attention is tried.
#pragma once

#include <sar/graph/message/graph.hpp>

#include <vector>

namespace sar::test {

/// Every mode, with stages of one row, of some rows and of all.
inline std::vector<GraphOptions> all_options() {
  std::vector<GraphOptions> all;
  for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot})
    for (const Index bytes : {0, 1, 300})
      all.push_back({.mode = mode, .pipeline_depth = bytes == 1 ? 3 : 1, .max_halo_bytes = bytes});
  return all;
}

}  // namespace sar::test
