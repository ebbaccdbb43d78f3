// SPDX-License-Identifier: MIT

/// Local. Files of other programs, which are not read.
#pragma once

#include "first_lines.hpp"

#include <string>

namespace sar::formats {

/// Throws InputError, beginning with `path`, for the text formats of other programs: JSON, GraphML and GEXF,
/// GML, DOT, Pajek, DIMACS, LGL.
void refuse_other_formats(const std::string& path, const FirstLines& first);

/// Throws InputError, beginning with `path`, for binary files that hold graphs, by their names or first
/// bytes: pickles of Python and torch, HDF5, MATLAB, one .npy file; it says how to convert them.
void refuse_binary_formats(const std::string& path);

}  // namespace sar::formats
