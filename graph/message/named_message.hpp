// SPDX-License-Identifier: MIT

/// Messages of the fields of a graph's frames.
#pragma once

#include <sar/graph/message/graph_shard_manager.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Local. The message with the fields as operands. Throws InputError for fields that do not exist.
Message resolve(const GraphShardManager& graph, const NamedMessage& named);

}}  // namespace sar
