#!/usr/bin/env bash
# Sets up, builds and runs the tests. Usage: tests/run.sh [PRESET...], presets as in CMakePresets.json (release).
# SAR_WERROR=ON makes warnings errors.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- release
case " $* " in *" mpich"*) cmake/install-packages.sh mpich libmpich-dev ;; *) cmake/install-packages.sh ;; esac
for preset in "$@"; do
  echo "== $preset"
  cmake --preset "$preset" -DSAR_WERROR="${SAR_WERROR:-OFF}" >/dev/null
  cmake --build --preset "$preset"
  ctest --preset "$preset" -j 1
done
