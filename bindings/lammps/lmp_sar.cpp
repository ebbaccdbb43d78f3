// SPDX-License-Identifier: MIT

/// LAMMPS with pair_style sar and fix sar/learn: the program `lmp`, which knows the styles before it reads
/// the input.
#include "fix_sar_learn.hpp"

#include <lammps/force.h>
#include <lammps/input.h>
#include <lammps/lammps.h>
#include <lammps/modify.h>

#include <dlfcn.h>

#include <exception>
#include <iostream>

namespace {

LAMMPS_NS::Pair* make_pair_sar(LAMMPS_NS::LAMMPS* lmp) {
  return new PairSar(lmp);  // LAMMPS deletes it
}

LAMMPS_NS::Fix* make_fix_sar_learn(LAMMPS_NS::LAMMPS* lmp, int narg, char** arg) {
  return new FixSarLearn(lmp, narg, arg);
}

}  // namespace

// LAMMPS forgets all styles that it was not compiled with in `clear`, which calls this function, as the
// constructor does: the library's calls come here, because the program has the symbol.
void LAMMPS_NS::LAMMPS::post_create() {
  (*force->pair_map)["sar"] = make_pair_sar;
  (*modify->fix_map)["sar/learn"] = make_fix_sar_learn;
  void* const original = dlsym(RTLD_NEXT, "_ZN9LAMMPS_NS6LAMMPS11post_createEv");
  reinterpret_cast<void (*)(LAMMPS*)>(original)(this);
}

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  try {
    LAMMPS_NS::LAMMPS lmp(argc, argv, MPI_COMM_WORLD);
    lmp.input->file();
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
}
