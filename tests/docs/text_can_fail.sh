#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# tests/docs/text_can_fail.sh: check_text.sh accepts a small tree, and finds each of the mistakes that are added to it here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree"/{.github,autograd,bench,bindings,comm,core,docs,examples,graph,nn,tests,tools}
cp "$here/../../.clang-format" "$tree"
cp "$here/../../docs/glossary.md" "$tree/docs"
long=$(printf '%0120d' 0)
cat >"$tree/README.md" <<'END'
Text, `neighbours` as code, and

```cpp name
int winner = 0;
```
END
printf '%s\n' 'int winner = 0;  // the argmax' "///     $long" >"$tree/core/good.cpp"
"$here/check_text.sh" "$tree" || { echo "a tree without mistakes is refused"; exit 1; }

# expect FILE LINE: a file with this line after a line without a mistake is refused, and both are said.
expect() {
  local status=0
  printf '%s\n' '// a comment' "$2" >"$tree/$1"
  said=$("$here/check_text.sh" "$tree") || status=$?
  if [ $status != 1 ] || [[ "$said" != "$1:2: "*"$2" ]]; then
    printf 'expected exit status 1 and the line of %s, found %s and\n%s\n' "$1" $status "$said"
    exit 1
  fi
  rm "$tree/$1"
}
expect core/comment.hpp 'int best;  // the winner'
expect core/text.cpp 'throw Error("no Neighbours");'
expect docs/page.md 'A page about global arrays.'
expect nn/long.cpp "int a$long;"
expect bindings/c.h ' * initialises a neighbour'
