# SPDX-License-Identifier: MIT

# awk -f check_lines.awk .clang-format FILE...: fails when a line of a source is longer than .clang-format allows. Not meant: formulas, which
# clang-format leaves alone (comments with four blanks), and raw strings, which it cannot break.
FILENAME == ARGV[1] {
  if ($1 == "ColumnLimit:") limit = $2 + 0
  next
}
length($0) > limit && !/^ *\/\/\/?    / && !/R"/ {
  print FILENAME ":" FNR ": " length($0) " characters, the limit is " limit ": " $0
  bad = 1
}
END { exit bad || !limit }
