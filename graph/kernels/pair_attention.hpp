// SPDX-License-Identifier: MIT

/// Kernels of scores that need rows of both ends; attention_kernel.hpp has the formulas.
#pragma once

#include <sar/graph/kernels/attention_kernel.hpp>
#include <sar/graph/shard/graph_shard.hpp>

#include <memory>

namespace sar { inline namespace SAR_PRECISION {

std::unique_ptr<ShardKernel> make_gatv2_kernel(const AttentionOperands& operands);
std::unique_ptr<ShardKernel> make_dot_kernel(const AttentionOperands& operands);

}}  // namespace sar
