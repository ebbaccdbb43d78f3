// SPDX-License-Identifier: MIT

// The plugin for `plugin load sarplugin.so`. LAMMPS's lammpsplugin.h is not among the headers that packages
// of LAMMPS install: the layout that LAMMPS expects is declared here.
#include "fix_sar_learn.hpp"

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
    LAMMPS_NS::Fix* (*make_with_arguments)(LAMMPS_NS::LAMMPS*, int, char**);
  };
  void* handle;
};

using Register = void (*)(LammpsPlugin*, void* lammps);

LAMMPS_NS::Pair* make_pair_sar(LAMMPS_NS::LAMMPS* lammps) {
  return new PairSar(lammps);  // LAMMPS deletes it
}

LAMMPS_NS::Fix* make_fix_sar_learn(LAMMPS_NS::LAMMPS* lammps, int narg, char** arg) {
  return new FixSarLearn(lammps, narg, arg);
}

}  // namespace

extern "C" void lammpsplugin_init(void* lammps, void* handle, void* register_plugin) {
  const auto add = [&](const char* style, const char* name, const char* info, const auto& set) {
    LammpsPlugin plugin{};
    plugin.version = static_cast<LAMMPS_NS::LAMMPS*>(lammps)->version;
    plugin.style = style;
    plugin.name = name;
    plugin.info = info;
    plugin.author = "the authors of sar";
    set(plugin);
    plugin.handle = handle;
    reinterpret_cast<Register>(register_plugin)(&plugin, lammps);
  };
  add("pair", "sar", "pair style of graph neural networks",
      [](LammpsPlugin& plugin) { plugin.make = make_pair_sar; });
  add("fix", "sar/learn", "a potential of pair_style sar learns while it runs",
      [](LammpsPlugin& plugin) { plugin.make_with_arguments = make_fix_sar_learn; });
}
