#!/usr/bin/env bash
# foreign_instructions_test.sh LIBRARY...: the functions of libraries that were built with SAR_NATIVE=OFF for x86-64 use instructions of
# more than x86-64-v2 only in the namespaces of their instruction sets. Any other could be the one of its name that the linker keeps
# for the whole program.
set -euo pipefail
command -v objdump >/dev/null || { echo "SKIPPED: there is no objdump"; exit 0; }
for library in "$@"; do
  # mnemonics of AVX, FMA and AVX-512 begin with v; those of BMI, LZCNT and MOVBE are listed; vector registers beyond xmm15
  objdump -d --no-show-raw-insn "$library" 2>/dev/null | awk '
    /^[0-9a-f]+ <.*>:$/ { name = substr($2, 2, length($2) - 3); ++functions; foreign = name ~ /x86_64_v[34]/; of_sets += foreign; next }
    !foreign && $2 ~ /^(v[a-z]|tile|tdp|ldtilecfg|andn|bextr|bls|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx|lzcnt|movbe)/ && $2 !~ /^ver[rw]/ {
      if (!(name in seen)) print name " has " $2 " " $3
      seen[name] = 1
    }
    END {
      if (functions < 1000 || of_sets < 300) { print functions " functions, " of_sets " of instruction sets: too few"; exit 1 }
      for (name in seen) exit 1
    }' | c++filt || { echo "FAILED: $library"; exit 1; }
done
