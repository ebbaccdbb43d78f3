#!/usr/bin/env bash
# versions_test.sh TREE VERSION: the changelog begins with the version of the project, in order from there on, and the citation names it.
set -euo pipefail
cd "$1"
version=$2
fail() {
  echo "FAILED: $*"
  exit 1
}
mapfile -t released < <(sed -n 's/^## \([^ ]*\) - [0-9]\{4\}-[0-9][0-9]-[0-9][0-9]$/\1/p' CHANGELOG.md)
[ "$(grep -c '^## ' CHANGELOG.md)" = "${#released[@]}" ] || fail "a heading of CHANGELOG.md is not '## VERSION - YYYY-MM-DD'"
[ "${released[0]}" = "$version" ] || fail "CHANGELOG.md begins with ${released[0]}, the project is $version"
printf '%s\n' "${released[@]}" | sort --version-sort --reverse --check || fail "the versions of CHANGELOG.md are not in order"
grep -qx "version: $version" CITATION.cff || fail "CITATION.cff does not have 'version: $version'"
date=$(sed -n "s/^## $version - //p" CHANGELOG.md)
grep -qx "date-released: $date" CITATION.cff || fail "CITATION.cff does not have 'date-released: $date', the date of CHANGELOG.md"
