// SPDX-License-Identifier: MIT

/// Built-in graphs, the same for every number of ranks and every partitioning.
///
/// Room graph/data/generate: Generated and built-in graphs.
#pragma once

#include <sar/graph/data/generate/karate.hpp>
#include <sar/graph/data/generate/sbm.hpp>
#include <sar/graph/data/generate/words.hpp>
