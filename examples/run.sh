#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# Sets up, builds, and trains a 3-layer GraphSAGE on two ranks. Arguments are passed on to `train` (try --help).
# RANKS=4 examples/run.sh ... runs on four.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/cmake/install-packages.sh"
(cd "$root" && cmake --preset release >/dev/null)
mpiexec=$(sed -n 's/^MPIEXEC_EXECUTABLE:[^=]*=//p' "$root/build/release/CMakeCache.txt")
if ! command -v "$mpiexec" >/dev/null; then
  echo "CMake has found no mpirun ($mpiexec): install that of the MPI, or name it: cmake --preset release -DMPIEXEC_EXECUTABLE=..." >&2
  exit 1
fi
(cd "$root" && cmake --build --preset release --target train)
[ $# -gt 0 ] || set -- --graph sbm --nodes 40000 --degree 20 --model sage --layers 3 --hidden 128 --batch-norm --dropout 0.5 --epochs 30
echo "train $*"
exec "$root/tests/mpirun.sh" "$mpiexec" "${RANKS:-2}" "$root/build/release/tools/train" "$@"
