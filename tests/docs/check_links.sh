#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# tests/docs/check_links.sh FILE.md...: fails when a link leads to a file or a heading that does not exist, when a document names, in code, a
# file or folder of the tree that does not exist, or says `NAME` in `FILE` (also: of) where the file has no such name.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
failed=0
complain() {
  echo "$1"
  failed=1
}
# The headings of FILE as the ends of links, one a line.
anchors() {
  awk '/^```/ { fenced = !fenced }
       !fenced && /^#+ / { sub(/^#+ +/, ""); $0 = tolower($0); gsub(/[^a-z0-9 _-]/, ""); gsub(/ /, "-"); print }' "$1"
}
for document in "$@"; do
  folder=$(dirname "$document")
  while read -r kind line target; do
    if [ "$kind" = path ]; then
      compgen -G "$root/$target" >/dev/null || complain "$document:$line: there is no $target"
      continue
    elif [[ $kind == name:* ]]; then
      [ ! -f "$root/$target" ] || grep -qw -- "${kind#name:}" "$root/$target" || complain "$document:$line: there is no ${kind#name:} in $target"
      continue
    fi
    file=${target%%#*}
    heading=
    [[ $target != *#* ]] || heading=${target#*#}
    if [ -n "$file" ]; then file=$folder/$file; else file=$document; fi
    if [ ! -e "$file" ]; then
      complain "$document:$line: the link $target leads to no file"
    elif [ -n "$heading" ] && ! anchors "$file" | grep -qx -- "$heading"; then
      complain "$document:$line: the link $target leads to no heading"
    fi
  done < <(awk '{
    text = $0
    while (match(text, /\]\([^) ]+\)/)) {
      target = substr(text, RSTART + 2, RLENGTH - 3)
      text = substr(text, RSTART + RLENGTH)
      if (target !~ /^https?:/) print "link", FNR, target
    }
    text = $0
    while (match(text, /`[A-Za-z_:]+(\(\))?` (in|of) `[a-z_0-9\/]+\.[a-z]+`/)) {
      split(substr(text, RSTART, RLENGTH), part, "`")
      text = substr(text, RSTART + RLENGTH)
      sub(/\(\)/, "", part[2])
      sub(/.*::/, "", part[2])
      if (part[2] != "") print "name:" part[2], FNR, part[4]
    }
    text = $0
    while (match(text, /`[^`]*`/)) {
      target = substr(text, RSTART + 1, RLENGTH - 2)
      text = substr(text, RSTART + RLENGTH)
      sub(/ .*/, "", target)
      if (target ~ /^(autograd|bench|bindings|cmake|comm|core|docs|examples|graph|nn|tests|tools)\/[A-Za-z0-9_.*\/-]*$/) print "path", FNR, target
    }
  }' "$document")
done
exit $failed
