// SPDX-License-Identifier: MIT

/// How errors of the library end LAMMPS.
#pragma once

#include <lammps/error.h>

#include <exception>
#include <string>

/// Runs f; what it throws, the same on all ranks, becomes LAMMPS's error on all ranks, which begins with
/// `who`.
template <class F>
void agreed(LAMMPS_NS::Error* error, const char* who, const F& f) {
  std::string text;
  try {
    f();
    return;
  } catch (const std::exception& thrown) {
    text = std::string(who) + ": " + thrown.what();
  }
  error->all(FLERR, text);
}
