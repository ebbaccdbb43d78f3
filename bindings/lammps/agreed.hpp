// SPDX-License-Identifier: MIT

/// How errors of the library end LAMMPS.
#pragma once

#include <lammps/error.h>

#include <sar/core/error.hpp>

#include <new>
#include <string>

/// Runs f; what the library throws, the same on all ranks, becomes LAMMPS's error on all ranks, which begins
/// with `who`. Errors of LAMMPS itself, which one rank may throw alone, go on to where LAMMPS ends the ranks.
template <class F>
void agreed(LAMMPS_NS::Error* error, const char* who, const F& f) {
  std::string text;
  try {
    f();
    return;
  } catch (const sar::Error& thrown) {
    text = std::string(who) + ": " + thrown.what();
  } catch (const std::bad_alloc& thrown) {
    text = std::string(who) + ": " + thrown.what();
  }
  error->all(FLERR, text);
}
