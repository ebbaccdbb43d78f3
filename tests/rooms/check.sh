#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# tests/rooms/check.sh [--counts] [TREE]
# Prints the rooms of the source tree: library, units (a header with its source), lines, lines of code, share of comments, purpose. Then it
# prints what breaks the rules below, and exits with 1 if anything does. With --counts it prints numbers of the library as a whole instead
# (core, autograd, comm, graph, nn and bindings: headers and sources in C++, sar.h and the module for Fortran).
#
# A room is a folder, without its subfolders. Columns of the table: the library | the room | what holds for it | its head, which says in a
# paragraph "Room NAME: ..." what the room is for.
# - A file includes only from its own room and from rooms above it in the table; so rooms form no cycle. A room's head may include the rooms in
#   its subfolders as well, the head of a library (sar.hpp, data.hpp, models.hpp) all rooms of the library. No cycles between units.
# - A library includes only what it links: sar::data and sar::models include sar::sar, and neither includes the other.
# - `not X`: nothing from X or its subfolders. `mpi`: may use <mpi.h> and MPI's names. `public`: of the libraries, only what sar.hpp, data.hpp
#   or models.hpp includes, directly or not. No Eigen and no oneTBB in these headers.
# - At most 25 units in a room. No equal file names but main.cpp within a folder at the top (within tests/X, examples/X). Both hold for tests, too.
# - Every source is listed in the CMakeLists.txt of its folder, or of the one above, and in the library of its room.
# - A header without a source of its name declares no function that is defined elsewhere.
# - Namespaces open as `namespace sar { inline namespace SAR_PRECISION {`, which indexers understand.
set -euo pipefail
rooms='
sar      | core                |                                                        | core/error.hpp
sar      | core/isa            |                                                        | core/isa/instruction_set.hpp
sar      | core/simd           |                                                        | core/simd/lanes.hpp
sar      | core/threads        |                                                        | core/threads/parallel.hpp
sar      | core/memory         |                                                        | core/memory/memory.hpp
sar      | core/tensor         |                                                        | core/tensor/tensor.hpp
sar      | core/trace          |                                                        | core/trace/trace.hpp
sar      | core/files          |                                                        | core/files/npy.hpp
sar      | core/rows           |                                                        | core/rows/rows.hpp
sar      | core/products       |                                                        | core/products/matmul.hpp
sar      | autograd            |                                                        | autograd/variable.hpp
sar      | comm                | mpi  not autograd                                      | comm/communicator.hpp
sar      | comm/halo           | mpi  not autograd                                      | comm/halo/halo_plan.hpp
sar      | comm/rows           | mpi  not autograd                                      | comm/rows/row_route.hpp
sar      | graph/shard         | not autograd  not comm                                 | graph/shard/graph_shard.hpp
sar      | graph/kernels       | not comm                                               | graph/kernels/linear.hpp
sar      | graph/topology      | not autograd                                           | graph/topology/graph_topology.hpp
sar      | graph/message       |                                                        | graph/message/graph.hpp
sar      | graph/hetero        |                                                        | graph/hetero/homogeneous_form.hpp
sar      | graph/construct     |                                                        | graph/construct/host_graph.hpp
sar      | graph/sampling      |                                                        | graph/sampling/neighbor_sampler.hpp
sar      | nn/modules          |                                                        | nn/modules/module.hpp
sar      | nn/conv             |                                                        | nn/conv/sage_conv.hpp
sar      | nn/train            |                                                        | nn/train/optimizer.hpp
sar      | nn                  |                                                        | nn/sar.hpp
data     | graph/partition     | not autograd  not graph/kernels  not graph/message  not nn | graph/partition/partition.hpp
data     | graph/data          | not graph/kernels  not nn/modules  not nn/conv         | graph/data/data.hpp
models   | nn/atoms            |                                                        | nn/atoms/painn.hpp
models   | nn/models           |                                                        | nn/models/models.hpp
models   | nn/atoms/potentials |                                                        | nn/atoms/potentials/potential.hpp
c        | bindings/c          | mpi                                                    | bindings/c/handle_table.hpp
fortran  | bindings/fortran    |                                                        | bindings/fortran/sar.f90
python   | bindings/python     | mpi                                                    | bindings/python/call.hpp
programs | tools/formats/packed | not autograd  not nn                                  | tools/formats/packed/zip_file.hpp
programs | tools/formats       | not autograd  not nn                                   | tools/formats/open_source.hpp
programs | tools/formats/arrays | not autograd  not nn                                  | tools/formats/arrays/npz_arrays.hpp
programs | tools/formats/tables | not autograd  not nn                                  | tools/formats/tables/node_join.hpp
programs | tools/formats/ogb   | not autograd  not nn                                   | tools/formats/ogb/ogb_source.hpp
programs | tools/formats/samples | not autograd  not nn                                 | tools/formats/samples/sample_tables.hpp
programs | tools/formats/rows  | not autograd  not nn                                   | tools/formats/rows/edge_means.hpp
programs | tools/formats/atoms | public                                                | tools/formats/atoms/atom_dataset.hpp
programs | tools               | public  mpi                                            | tools/program.hpp
programs | tools/curves        | public  not comm                                       | tools/curves/curves_svg.hpp
programs | tools/train/options | public  mpi                                            | tools/train/options/add_options.hpp
programs | tools/train         | public  mpi                                            | tools/train/train_steps.hpp
programs | tools/train/atoms   | public  mpi                                            | tools/train/atoms/potential_steps.hpp
programs | tools/train/runs    | public  mpi                                            | tools/train/runs/train.cpp
programs | tools/plan          | public  mpi                                            | tools/plan/plan.cpp
programs | tools/partition     | public  mpi                                            | tools/partition/partition.cpp
programs | tools/generate      | public  mpi                                            | tools/generate/generate.cpp
programs | examples            | public  mpi                                            | examples/gcn.cpp
programs | examples/coupled_surrogate | public  mpi                                     | examples/coupled_surrogate/main.cpp
programs | examples/mesh_surrogate    | public  mpi                                     | examples/mesh_surrogate/main.cpp
programs | examples/hosts/petsc | public  mpi                                           | examples/hosts/petsc/main.cpp
programs | bindings/lammps      | public  mpi                                           | bindings/lammps/pair_sar.hpp
'
counts=0
if [ "${1-}" = --counts ]; then
  counts=1
  shift
fi
here=$(cd "$(dirname "$0")" && pwd)
cd "${1-$here/../..}"
folders='core autograd comm graph nn bindings'
if [ $counts = 0 ]; then
  folders="$folders tools examples tests"
fi
# shellcheck disable=SC2086
files=$(find $folders -name '*.hpp' -o -name '*.cpp' -o -name sar.h -o -name '*.f90' -o -name CMakeLists.txt | LC_ALL=C sort)
status=0
# shellcheck disable=SC2086
printf '%s' "$rooms" | awk -v counts=$counts -f "$here/check.awk" - $files || status=1
if [ $counts = 0 ]; then
  headers=$(for header in $files; do
    if [[ $header == *.hpp && $header != tests/* && ! -e ${header%.hpp}.cpp ]]; then echo "$header"; fi
  done)
  # shellcheck disable=SC2086
  awk -f "$here/headers.awk" $headers || status=1
fi
exit $status
