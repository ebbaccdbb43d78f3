/// Texts that look like edge lists and are none. Local.
#pragma once

#include "first_lines.hpp"

#include <string>
#include <string_view>

namespace sar::formats {

/// Throws InputError, beginning with `path`, for the text formats of other programs: JSON, GraphML and GEXF,
/// GML, DOT, Pajek, DIMACS, LGL.
void refuse_other_formats(const std::string& path, std::string_view text, const FirstLines& first);

}  // namespace sar::formats
