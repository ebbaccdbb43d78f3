// SPDX-License-Identifier: MIT

/// Formats a recorded trace as text.
#pragma once

#include <sar/config.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Returns the trace of this process as comma-separated JSON objects in Chrome's trace event format: the
/// complete events of process `rank`, the names of its lanes, and the counter live_bytes at the end of each
/// scope.
[[nodiscard]] std::string trace_text(int rank);

}}  // namespace sar
