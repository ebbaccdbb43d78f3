// SPDX-License-Identifier: MIT

/// What the labels of nodes are.
#pragma once

#include <sar/config.hpp>

namespace sar { inline namespace SAR_PRECISION {

enum class LabelType {
  classes,   ///< one class a node
  binary,    ///< several labels a node, each 0 or 1
  values,    ///< numbers: regression
  automatic  ///< what the data say; refused where they do not say it
};

constexpr const char* to_string(LabelType type) {
  return type == LabelType::classes  ? "classes"
         : type == LabelType::binary ? "binary"
         : type == LabelType::values ? "values"
                                     : "automatic";
}

}}  // namespace sar
