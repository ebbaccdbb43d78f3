/// A recorded trace as text.
#pragma once

#include <sar/config.hpp>

#include <string>

namespace sar::inline SAR_PRECISION {

/// What this process recorded, as JSON objects of Chrome's trace event format, separated by commas: the
/// complete events of process `rank`, the names of its lanes, and the counter live_bytes at the ends of
/// scopes.
[[nodiscard]] std::string trace_text(int rank);

}  // namespace sar
