// SPDX-License-Identifier: MIT

// The plugin for `plugin load sarplugin.so`. LAMMPS's lammpsplugin.h is not among the headers that packages
// of LAMMPS install: the layout that LAMMPS expects is declared here.
#include "pair_sar.hpp"

#include <lammps/lammps.h>

namespace {

struct LammpsPlugin {
  const char* version;
  const char* style;
  const char* name;
  const char* info;
  const char* author;
  union {
    LAMMPS_NS::Pair* (*make)(LAMMPS_NS::LAMMPS*);
    LAMMPS_NS::Pair* (*make_with_arguments)(LAMMPS_NS::LAMMPS*, int, char**);
  };
  void* handle;
};

using Register = void (*)(LammpsPlugin*, void* lammps);

LAMMPS_NS::Pair* make_pair_sar(LAMMPS_NS::LAMMPS* lammps) {
  return new PairSar(lammps);  // LAMMPS deletes it
}

}  // namespace

extern "C" void lammpsplugin_init(void* lammps, void* handle, void* register_plugin) {
  LammpsPlugin plugin{};
  plugin.version = static_cast<LAMMPS_NS::LAMMPS*>(lammps)->version;
  plugin.style = "pair";
  plugin.name = "sar";
  plugin.info = "pair style of graph neural networks";
  plugin.author = "the authors of sar";
  plugin.make = make_pair_sar;
  plugin.handle = handle;
  reinterpret_cast<Register>(register_plugin)(&plugin, lammps);
}
