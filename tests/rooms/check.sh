#!/usr/bin/env bash
# tests/rooms/check.sh [--counts] [TREE]
# Prints the rooms of the source tree: their sizes, their longest functions and their purposes. Then it prints what breaks the rules below, and
# exits with 1 if anything does. With --counts it prints numbers of the library as a whole instead, for any layout of the folders.
#
# A room is a folder with its subfolders; the longest name that fits a file wins. Columns: the room | what its files may include beside its
# own | the file whose head describes the room, in a paragraph that begins with "Room NAME: ". `room(unit)` allows a room to one file of the
# folder and its header only. `public` is everything that <sar/sar.hpp> includes, directly or not; `mpi` allows <mpi.h> and MPI's names. A
# line may name only rooms above it, so that rooms form no cycle.
set -euo pipefail
rooms='
core            |                                                                              | core/tensor.hpp
autograd        | core                                                                         | autograd/variable.hpp
comm            | core mpi                                                                     | comm/communicator.hpp
comm/rows       | core comm mpi                                                                | comm/rows/row_route.hpp
graph/io        | core                                                                         | graph/io/npy.hpp
graph/shard     | core                                                                         | graph/shard/graph_shard.hpp
graph/kernels   | core graph/shard autograd(user_message) autograd(edge_batch)                 | graph/kernels/linear.hpp
graph/message   | core autograd comm comm/rows graph/shard graph/kernels                       | graph/message/graph_shard_manager.hpp
graph/hetero    | core autograd comm comm/rows graph/shard graph/message                       | graph/hetero/hetero_graph.hpp
graph/build     | core autograd comm comm/rows graph/shard graph/message graph/hetero          | graph/build/host_graph.hpp
graph/sampling  | core comm comm/rows graph/shard graph/message graph/hetero graph/build       | graph/sampling/neighbor_sampler.hpp
graph/partition | core comm comm/rows graph/shard                                              | graph/partition/partition.hpp
graph/data      | core comm comm/rows graph/io graph/shard graph/message graph/hetero graph/build graph/partition | graph/data/dataset.hpp
nn              | core autograd comm comm/rows graph/io graph/shard graph/message graph/hetero graph/build graph/sampling graph/partition graph/data | nn/module.hpp
nn/c            | core autograd comm graph/io graph/message graph/build graph/data nn mpi       | nn/c/handle_table.hpp
tools/formats   | core comm comm/rows graph/io graph/data                                      | tools/formats/open_source.hpp
tools           | public mpi tools/formats                                                     | tools/train.cpp
examples        | public mpi                                                                   | examples/gcn.cpp
'
counts=0
if [ "${1-}" = --counts ]; then
  counts=1
  shift
fi
here=$(cd "$(dirname "$0")" && pwd)
cd "${1-$here/../..}"
if [ $counts = 1 ]; then
  folders='core autograd comm graph nn'
else
  folders='core autograd comm graph nn tools examples'
fi
# shellcheck disable=SC2086
files=$(find $folders -name '*.hpp' -o -name '*.cpp' -o -name CMakeLists.txt | sort)
# shellcheck disable=SC2086
printf '%s' "$rooms" | awk -v counts=$counts -f "$here/check.awk" - $files
