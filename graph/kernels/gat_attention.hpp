// SPDX-License-Identifier: MIT

/// The kernel of additive scores (GAT); attention_kernel.hpp has the formulas.
#pragma once

#include <sar/graph/kernels/attention_kernel.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <memory>

namespace sar { inline namespace SAR_PRECISION {

std::unique_ptr<ShardKernel> make_gat_kernel(const AttentionOperands& operands);

}}  // namespace sar
