#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# Memcheck on two ranks: a training and some problems of the stress test. Usage: tests/valgrind.sh; fails at the first error or
# lost block that is not of MPI itself (tests/valgrind.supp, and Open MPI's own list where it is installed).
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset valgrind >/dev/null
cmake --build --preset valgrind
memcheck=(valgrind --quiet --error-exitcode=1 --num-callers=40 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite
          --suppressions=tests/valgrind.supp)
for list in /usr/share/openmpi/openmpi-valgrind.supp; do
  [ ! -e "$list" ] || memcheck+=(--suppressions="$list")
done
export SAR_STRESS_SEEDS="${SAR_STRESS_SEEDS:-10}"
tests/mpirun.sh mpirun 2 "${memcheck[@]}" build/valgrind/tests/stress/test_stress
tests/mpirun.sh mpirun 2 "${memcheck[@]}" build/valgrind/tools/train --graph karate --epochs 3 --batch-norm --threads 2
tests/mpirun.sh mpirun 2 "${memcheck[@]}" build/valgrind/tools/train --graph karate --model gat --epochs 2 --mfg
