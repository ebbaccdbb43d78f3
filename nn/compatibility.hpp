/// Names of version 1.0 that have become the field's own. Programs written for 1.0 compile with them; new
/// ones use the names on the right.
#pragma once

#include <sar/autograd/ops.hpp>
#include <sar/core/half.hpp>
#include <sar/core/parallel.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/message/message.hpp>
#include <sar/nn/sage_conv.hpp>
#include <sar/nn/state_dict.hpp>

#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {

using InFeats = InFeatures;
using Mode = HaloMode;
using Over = ReduceDim;
using Target = MessageTarget;
using other_real = other_precision;

inline void poll() {
  poll_progress();
}
inline Variable linear_io(Variable x, Variable weight, Variable bias = {}) {
  return affine(std::move(x), std::move(weight), std::move(bias));
}
inline Variable typed_matmul(Variable x, Variable w, std::span<const Index> types) {
  return gather_mm(std::move(x), std::move(w), types);
}
inline Variable row_matmul(Variable x, Variable w) {
  return bmm(std::move(x), std::move(w));
}
template <class Buffer>  // a template, so that lists in braces mean the other write_safetensors
requires std::is_same_v<Buffer, NamedBuffer>
void write_safetensors(const std::string& path, const std::vector<Buffer>& tensors,
                       const std::vector<NamedCounter>& counters, SafetensorsType type,
                       const std::map<std::string, std::string>& metadata = {}) {
  write_state_dict(path, {tensors, counters}, type, metadata);
}

}  // namespace sar
