#!/usr/bin/env bash
set -euo pipefail
usage() {
  cat <<'END'
Usage: tests/run.sh                     a selection of tests of every part, on 1 to 3 ranks: some minutes
       tests/run.sh --all [PRESET...]   all tests of these presets of CMakePresets.json, release if none is given
Installs the packages that are missing, configures, builds and runs the tests. SAR_WERROR=ON makes warnings errors.
END
}
cd "$(dirname "$0")/.."
all=no presets=()
for argument in "$@"; do
  case "$argument" in
    -h | --help) usage && exit 0 ;;
    --all) all=yes ;;
    -*) usage >&2 && exit 2 ;;
    *) all=yes presets+=("$argument") ;;
  esac
done
[ ${#presets[@]} -gt 0 ] || presets=(release)
packages=()
case " ${presets[*]} " in *" mpich "*) packages+=(mpich libmpich-dev) ;; esac
case " ${presets[*]} " in *" aarch64 "*) packages+=(g++-aarch64-linux-gnu qemu-user) ;; esac
cmake/install-packages.sh "${packages[@]}"
case " ${presets[*]} " in *" aarch64 "*) [ -d build/aarch64-sysroot ] || cmake/aarch64-sysroot.sh build/aarch64-sysroot ;; esac

# run CONFIGURE_PRESET BUILD_AND_TEST_PRESET
run() {
  echo "== $2"
  cmake --preset "$1" -DSAR_WERROR="${SAR_WERROR:-OFF}" >/dev/null
  cmake --build --preset "$2"
  # Programs under Open MPI start slowly and yield while they wait, so that twice as many keep the processors busy; MPICH does not yield.
  local jobs=$(($(nproc) * 2))
  [ "$2" != mpich ] || jobs=$(nproc)
  ctest --preset "$2" -j "$jobs"
}
if [ "$all" = no ]; then
  run release quick
else
  for preset in "${presets[@]}"; do run "$preset" "$preset"; done
fi
