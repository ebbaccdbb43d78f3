#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# shared_symbols_test.sh LIBRARY HEADER MAJOR: the shared library shows the functions that the header declares and no other name, and
# its own name has the major version.
set -euo pipefail
library=$1 header=$2 major=$3
shown=$(nm -D --defined-only "$library" | awk '{ print $NF }' | sort -u)
declared=$(tr '\n' ' ' <"$header" | grep -oE 'SAR_API [a-z0-9_* ]+\(' | grep -oE 'sar_[a-z0-9_]+\(' | tr -d '(' | sort -u)
[ "$(wc -l <<<"$declared")" -ge 50 ] || { echo "FAILED: few functions in $header"; exit 1; }
diff <(echo "$declared") <(echo "$shown") || { echo "FAILED: < is declared and not shown, > is shown and not declared"; exit 1; }
readelf -d "$library" | grep -qF "soname: [libsar_c.so.$major]" || { echo "FAILED: the soname is not libsar_c.so.$major"; exit 1; }
