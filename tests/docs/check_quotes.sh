#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# check_quotes.sh ROOT FILE.md...: each fragment that begins with ```c PATH or ```fortran PATH stands in the file ROOT/PATH, which the tests compile:
# the same lines one after the other, whatever their indentation.
set -euo pipefail
root=$1
shift
for document in "$@"; do
  awk -v root="$root" '
    function trimmed(line) { gsub(/^[ \t]+|[ \t]+$/, "", line); return line }
    function check(  file, line, text) {
      file = root "/" path
      text = "\n"
      while ((getline line < file) > 0) text = text trimmed(line) "\n"
      close(file)
      if (index(text, fragment)) return
      print FILENAME ":" start ": these lines are not in " path
      bad = 1
    }
    /^```/ && path != "" { check(); path = ""; next }
    /^```(c|fortran)( |$)/ {
      path = $2; start = FNR; fragment = "\n"
      if (path == "") { print FILENAME ":" FNR ": a fragment without the file that it is from"; bad = 1 }
      next
    }
    path != "" { fragment = fragment trimmed($0) "\n" }
    END { exit bad }' "$document"
done
