// SPDX-License-Identifier: MIT

/// The check that the options of optimizers have in common.
#pragma once

#include <sar/core/error.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Throws InputError unless the value of the option `name` is 0 or more.
inline void require_not_negative(double value, const char* name) {
  require<InputError>(value >= 0, "the optimizer option ", name, " is ", value, ", expected 0 or more");
}

}}  // namespace sar
