#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# tests/rooms/can_fail.sh: check.sh accepts a copy of the tree, and finds each of the mistakes that are added to it here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
(cd "$here"/../.. && find core autograd comm graph nn bindings tools examples tests -name '*.hpp' -o -name '*.cpp' -o -name sar.h -o -name '*.f90' -o -name CMakeLists.txt) |
  tar -C "$here/../.." -cf - -T - | tar -C "$copy" -xf -
cd "$copy"
"$here/check.sh" . >/dev/null || { echo "the tree breaks the rules already"; exit 1; }

# expect COMPLAINT: check.sh prints COMPLAINT and no other one, and exits with 1.
expect() {
  local status=0 said
  "$here/check.sh" . >report || status=$?
  said=$(awk 'blank; /^$/ { blank = 1 }' report)
  if [ $status != 1 ] || [ "$said" != "$1" ]; then
    printf 'expected exit status 1 and\n%s\nfound %s and\n%s\n' "$1" $status "$said"
    exit 1
  fi
  echo "found: $1"
}

# add FILE LINE...: a new file of these lines.
add() {
  printf '%s\n' "${@:2}" >"$1"
}

add core/tensor/upwards.hpp '#include <sar/nn/modules/module.hpp>'
expect 'core/tensor/upwards.hpp:1: core/tensor may not include nn/modules/module.hpp, of a room below it in the table'
rm core/tensor/upwards.hpp

add comm/halo/gradients.hpp '#include <sar/autograd/variable.hpp>'
expect 'comm/halo/gradients.hpp:1: comm/halo may not include autograd/variable.hpp'
rm comm/halo/gradients.hpp

add nn/models/read.hpp '#include <sar/graph/data/graph_data.hpp>'
expect 'nn/models/read.hpp:1: nn/models, of the library models, may not include graph/data/graph_data.hpp, of the library data'
rm nn/models/read.hpp

add nn/train/modelled.hpp '#include <sar/nn/models/graph_model.hpp>'
expect 'nn/train/modelled.hpp:1: nn/train, of the library sar, may not include nn/models/graph_model.hpp, of the library models'
rm nn/train/modelled.hpp

sed -i 's/sar_models/sar_data/' nn/models/CMakeLists.txt
expect 'nn/models/CMakeLists.txt: names sar_data, its room is of the library models'
sed -i 's/sar_data/sar_models/' nn/models/CMakeLists.txt

add tools/inside.hpp '#include <sar/core/simd/lanes.hpp>'
expect 'tools/inside.hpp:1: core/simd/lanes.hpp is not public'
rm tools/inside.hpp

add nn/train/ring_one.hpp '#include <sar/nn/train/ring_two.hpp>'
touch nn/train/ring_two.hpp
add nn/train/ring_two.cpp '#include <sar/nn/train/ring_one.hpp>'
expect 'nn/train/ring_two.cpp: is not in nn/train/CMakeLists.txt
cycle: nn/train/ring_one -> nn/train/ring_two -> nn/train/ring_one'
rm nn/train/ring_*

add graph/message/waiting.hpp '// MPI_Barrier' 'inline void wait() { MPI_Barrier(MPI_COMM_WORLD); }'
expect 'graph/message/waiting.hpp:2: graph/message may not use MPI'
rm graph/message/waiting.hpp

add graph/lonely.hpp
expect 'graph/lonely.hpp: is in no room'
rm graph/lonely.hpp

for i in $(seq 1 25); do touch "core/tensor/unit_$i.hpp" "tests/comm/unit_$i.hpp"; done
expect 'core/tensor: has more than 25 units
tests/comm: has more than 25 units'
rm core/tensor/unit_* tests/comm/unit_*

touch graph/data/linear.hpp tests/nn/conv/train_test.cpp tests/core/train_test.cpp
expect 'graph/kernels/linear.cpp: has the name of graph/data/linear.hpp
tests/nn/train/train_test.cpp: has the name of tests/nn/conv/train_test.cpp'
rm graph/data/linear.hpp tests/nn/conv/train_test.cpp tests/core/train_test.cpp

add graph/shard/promises.hpp 'namespace sar { inline namespace SAR_PRECISION {' \
  'inline int kept(int x);' 'inline int kept(int x) { return x; }' 'template <class T> T also_kept(T x) {' '  return x;' '}' \
  'using Function = void (*)(int);' 'constexpr int number = kept(1);' 'struct Shape { int rows() const { return 1; } Shape() = default; };' \
  'void broken(const int& x,' '            int y = kept(2));' 'class Later { public: Later(); virtual void may() = 0; };' '}}'
expect 'graph/shard/promises.hpp:10: declares broken(), and there is no source of this name
graph/shard/promises.hpp:12: declares Later(), and there is no source of this name'
rm graph/shard/promises.hpp

add core/old.hpp 'namespace sar::inline SAR_PRECISION {' '}'
expect 'core/old.hpp:1: ctags and cscope do not understand namespace sar::inline'
rm core/old.hpp

sed -i 's/Room nn\/conv/Place nn\/conv/' nn/conv/sage_conv.hpp
expect 'nn/conv/sage_conv.hpp: its head has no paragraph "Room nn/conv: ..."'
sed -i 's/Place nn\/conv/Room nn\/conv/' nn/conv/sage_conv.hpp

add nn/train/shown.hpp '#include <Eigen/Core>'
echo '#include <sar/nn/train/shown.hpp>' >>nn/sar.hpp
expect 'nn/train/shown.hpp:1: a public header shows <Eigen/Core>'
