#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# foreign_instructions_test.sh SETS LIBRARY...: in libraries that were built with SAR_NATIVE=OFF for x86-64, inline functions and instances of
# templates have instructions of more than x86-64-v2 only in the namespaces of the instruction sets. The linker keeps one of all functions of
# such a name for the whole program: any other could end up on a processor that lacks its instructions.
set -euo pipefail
command -v objdump >/dev/null || { echo "skipped: there is no objdump"; exit 77; }
export LC_ALL=C
sets=${1//,/|}  # the names of the namespaces; the first is the baseline
sets=${sets#*|}
shift

# check LIBRARY: prints what is foreign in it, and fails then.
check() {
  # Mnemonics of AVX, FMA and AVX-512 begin with v; the others are those of BMI, LZCNT, MOVBE and AMX. grep leaves the names of functions and
  # the lines that may have one, a small part of all.
  {
    nm "$1" 2>/dev/null
    objdump -d --no-show-raw-insn "$1" |
      grep -E '^[0-9a-f]+ <|:[[:space:]]+(v|tile|tdp|andn|bextr|bls|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt|movbe)'
  } | awk -v sets="$sets" -v has_kernels="$([[ $1 =~ libsar(_double)?\.a$ ]] && echo 1 || echo 0)" '
    NF == 3 && $2 ~ /^[WVu]$/ { merged[$3] = 1; next }
    /^[0-9a-f]+ <.*>:$/ {
      name = substr($2, 2, length($2) - 3)
      ++functions
      of_sets += is_of_set = name ~ sets
      looks = name in merged && !is_of_set
      next
    }
    looks && $2 ~ /^(v.*|tile.*|tdp.*|(andn|bextr|bls[ir]|blsmsk|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt|movbe)[lq]?)$/ && $2 !~ /^ver[rw]$/ {
      if (!(name in seen)) print name " has " $2 " " $3
      seen[name] = 1
    }
    END {
      if (functions < 20 || (has_kernels && (functions < 1000 || of_sets < 300 || length(merged) < 300))) { print functions " functions, " of_sets " of instruction sets: too few"; exit 1 }
      for (name in seen) exit 1
    }' | c++filt || { echo "FAILED: $1"; return 1; }
}

checks=()
for library in "$@"; do
  check "$library" &
  checks+=($!)
done
for running in "${checks[@]}"; do wait "$running"; done
