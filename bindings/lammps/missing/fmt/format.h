// SPDX-License-Identifier: MIT

// What the headers of Debian's LAMMPS name of another release of fmt than Debian has: declarations alone.
#pragma once

namespace fmt {
class string_view;
class format_args;
template <class... Args, class Format>
format_args make_args_checked(const Format&, const Args&...);
}  // namespace fmt
