#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# tests/docs/check_text.sh [TREE]: fails when a source has a line that is longer than .clang-format allows (check_lines.awk), or when a document,
# or a comment or a text in a source, has a word that docs/glossary.md refuses (check_words.awk).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "${1-$here/../..}"
folders='autograd bench bindings comm core docs examples graph nn tests tools'
# shellcheck disable=SC2086
sources=$(find $folders -name '*.cpp' -o -name '*.hpp' -o -name '*.h' | LC_ALL=C sort)
# shellcheck disable=SC2086
others=$(find ./*.md .github $folders -name '*.md' -o -name '*.c' -o -name '*.f90' | grep -v '^docs/glossary.md$' | LC_ALL=C sort)
status=0
# shellcheck disable=SC2086
awk -f "$here/check_lines.awk" .clang-format $sources || status=1
# shellcheck disable=SC2086
awk -f "$here/check_words.awk" docs/glossary.md $sources $others || status=1
exit $status
