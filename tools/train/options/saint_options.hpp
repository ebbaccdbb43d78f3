// SPDX-License-Identifier: MIT

/// The options of `train` about samplers: whose draws, subgraphs of GraphSAINT, and kept halo rows.
#pragma once

#include "train_options.hpp"

#include <sar/graph/sampling/saint_options.hpp>

namespace CLI {
class App;
}

namespace sar::tools {

/// "saint-node", "saint-edge", "saint-walk"
const char* name_of(SaintMethod method);

/// Adds --sampler and the options of its subgraphs.
void add_saint_options(CLI::App& app, SampleOptions& o);
/// Sets what follows from --sampler.
void set_sampler(SampleOptions& o);
/// Checks the combination of options. Throws CLI::ValidationError.
void check_saint(const CLI::App& app, const TrainOptions& o);

/// Adds --halo-cache-bytes, and checks it. Throws CLI::ValidationError.
void add_halo_cache_option(CLI::App& app, TrainOptions& o);
void check_halo_cache(const CLI::App& app, const TrainOptions& o);

}  // namespace sar::tools
