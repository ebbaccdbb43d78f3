/// Names of version 1.0 that have become the field's own. Programs written for 1.0 compile with them; new ones
/// use the names on the right.
#pragma once

#include <sar/autograd/ops.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/message/message.hpp>
#include <sar/nn/sage_conv.hpp>

namespace sar {

using InFeats = InFeatures;
using Mode = HaloMode;
using Over = ReduceDim;
using Target = MessageTarget;

}  // namespace sar
