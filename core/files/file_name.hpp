// SPDX-License-Identifier: MIT

/// File names for the names of types and fields.
#pragma once

#include <sar/config.hpp>

#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Returns a file name for any name: characters that every file system allows are kept; others, and
/// a leading dot, become %XX. Throws InputError for an empty name and for a file name of more than 200
/// bytes.
std::string escaped(const std::string& name);
/// Returns the file name of an edge type, for example "author:writes:paper".
std::string escaped(const std::string& src_type, const std::string& name, const std::string& dst_type);

/// Local. Returns the name that escaped() was called with. A percent sign without two hexadecimal digits is
/// kept.
std::string unescaped(const std::string& name);

}}  // namespace sar
