#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# levels_test.sh PROGRAM: AVX2 and AVX-512 of one library give the same hashes, but for the gradient of softplus, which cf conv has.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for level in x86-64-v3 x86-64-v4; do
  SAR_INSTRUCTION_SET=$level "$1" --reproducible 80 3 2 1 >"$scratch/$level"
  [ "$(wc -l <"$scratch/$level")" -ge 20 ] || { echo "$level: only $(cat "$scratch/$level")"; exit 1; }
done
diff <(grep -v "cf conv" "$scratch/x86-64-v3") <(grep -v "cf conv" "$scratch/x86-64-v4") || { echo "AVX2 and AVX-512 differ"; exit 1; }
