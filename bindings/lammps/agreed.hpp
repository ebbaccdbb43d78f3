// SPDX-License-Identifier: MIT

/// How errors of the library end LAMMPS.
#pragma once

#include <lammps/error.h>

#include <sar/core/error.hpp>

#include <new>
#include <string>

/// Returns f(); what the library throws, the same on all ranks, becomes LAMMPS's error on all ranks, which
/// begins with `who`. Errors of LAMMPS itself, which one rank may throw alone, go on to where LAMMPS ends the
/// ranks.
template <class F>
auto agreed(LAMMPS_NS::Error* error, const char* who, const F& f) -> decltype(f()) {
  std::string text;
  try {
    return f();
  } catch (const sar::Error& thrown) {
    text = std::string(who) + ": " + thrown.what();
  } catch (const std::bad_alloc& thrown) {
    text = std::string(who) + ": " + thrown.what();
  }
  error->all(FLERR, text);
}
