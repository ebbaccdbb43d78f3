/// A recorded trace as text.
#pragma once

#include <string>

namespace sar {

/// What this process recorded, as JSON objects of Chrome's trace event format, separated by commas: the
/// complete events of process `rank`, the names of its lanes, and the counter live_bytes at the ends of
/// scopes.
[[nodiscard]] std::string trace_text(int rank);

}  // namespace sar
