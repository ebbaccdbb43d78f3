#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# fortran_test.sh PYTHON DOCS: docs/fortran.md has the procedures of the Fortran module and their arguments.
set -euo pipefail
"$1" "$2/fortran_reference.py" | diff "$2/fortran.md" - || {
  echo "FAILED: docs/fortran.md differs from the sources: write it again with docs/fortran_reference.py >docs/fortran.md"
  exit 1
}
