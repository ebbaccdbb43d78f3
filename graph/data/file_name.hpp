/// Names of types and fields as names of files.
#pragma once

#include <sar/config.hpp>

#include <string>

namespace sar::inline SAR_PRECISION {

/// The name of a file for any name: letters that every file system takes stay, others and a leading dot
/// become %XX. Throws InputError for a name of more than 200 bytes. Local.
std::string escaped(const std::string& name);
/// The same of an edge type: "author:writes:paper".
std::string escaped(const std::string& src_type, const std::string& name, const std::string& dst_type);

/// The name that escaped() was given; what it does not write stays as it is. Local.
std::string unescaped(const std::string& name);

}  // namespace sar
