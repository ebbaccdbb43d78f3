#!/usr/bin/env bash
# tests/rooms/can_fail.sh: check.sh accepts a copy of the tree, and finds each of the mistakes that are added to it here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r "$here"/../../{core,autograd,comm,graph,nn,tools,examples} "$copy"
cd "$copy"
"$here/check.sh" . >/dev/null || { echo "the tree breaks the rules already"; exit 1; }

# expect COMPLAINT: check.sh prints COMPLAINT and no other one, and exits with 1.
expect() {
  local status=0 said
  "$here/check.sh" . >report || status=$?
  said=$(awk 'blank == 2; /^$/ { ++blank }' report)
  if [ $status != 1 ] || [ "$said" != "$1" ]; then
    printf 'expected exit status 1 and\n%s\nfound %s and\n%s\n' "$1" $status "$said"
    exit 1
  fi
  echo "found: $1"
}

echo '#include <sar/nn/module.hpp>' >core/upwards.hpp
expect 'core/upwards.hpp:1: core may not include nn/module.hpp'
rm core/upwards.hpp

echo '#include <sar/graph/kernels/linear.hpp>' >graph/io/sideways.hpp
expect 'graph/io/sideways.hpp:1: graph/io may not include graph/kernels/linear.hpp'
rm graph/io/sideways.hpp

echo '#include <sar/nn/ring_two.hpp>' >nn/ring_one.hpp
touch nn/ring_two.hpp
echo '#include <sar/nn/ring_one.hpp>' >nn/ring_two.cpp
expect 'nn/ring_two.cpp: is not in nn/CMakeLists.txt
cycle: nn/ring_one -> nn/ring_two -> nn/ring_one'
rm nn/ring_*

printf '%s\n' '// MPI_Barrier' 'void wait() { MPI_Barrier(MPI_COMM_WORLD); }' >graph/message/waiting.hpp
expect 'graph/message/waiting.hpp:2: graph/message may not use MPI'
rm graph/message/waiting.hpp

echo '#include <Eigen/Core>' >nn/shown.hpp
echo '#include <sar/nn/shown.hpp>' >>nn/sar.hpp
expect 'nn/shown.hpp:1: a public header shows <Eigen/Core>'
