# SPDX-License-Identifier: MIT

# awk -f check_fragments.awk docs_test.cpp FILE.md...: fails unless each C++ fragment of the documents has a name of its own and
# docs_test.cpp includes it. Fragments of C and Fortran: check_quotes.sh.
function complain(text) {
  print FILENAME ":" FNR ": " text
  bad = 1
}
FILENAME == ARGV[1] {
  if (match($0, /^#include "[a-z_]+\.inc"/)) compiled[substr($0, 11, RLENGTH - 15)] = 1
  next
}
/^ *```/ {
  fenced = !fenced
  if (!fenced) next
  if (tolower($1) ~ /^```(cc|cxx|c\+\+|h|hpp)$/ || $0 ~ /^ +```cpp/) complain("a fragment begins with ```cpp NAME at the beginning of a line")
  if ($0 !~ /^```cpp/) next
  if ($2 !~ /^[a-z_]+$/) complain("a fragment without a name")
  else if ($2 in seen) complain("two fragments are called " $2)
  else if (!($2 in compiled)) complain("the fragment " $2 " is not compiled: no #include in docs_test.cpp")
  seen[$2] = 1
  next
}
!fenced && /^    .*[;{]$/ { complain("C++ outside of a fragment: ```cpp NAME") }
END {
  for (name in compiled)
    if (!(name in seen)) print ARGV[1] ": no document has a fragment " name
  exit bad || length(seen) != length(compiled)
}
