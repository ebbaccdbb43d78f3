#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# stages.sh BENCH RANKS... [-- HALO_ROWS]: instructions of bench_stages by callgrind, a JSON line for each number of ranks. Other work on the machine, and ranks
# that share a core, change times, but not these.
#     cmake --preset valgrind -DSAR_BUILD_BENCHMARKS=ON -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O3 -g1 -DNDEBUG"
#     cmake --build build/valgrind --target bench_stages
#     bench/stages.sh build/valgrind/bench/bench_stages 2 4 8 16 32 64
# Rank 0 alone runs under valgrind. All numbers are of one pass, which is half of a step forward and backward, of width 16:
#     messages, stages   messages that a rank sends, and as many that it receives; stages of the halo
#     library            instructions outside of MPI: those of a pass with halo rows, less those of a pass over the same local edges alone
#     with_mpi           the same with those inside of MPI
#     .._per_message     these by messages
#     without_halo       instructions outside of MPI of the pass without halo rows
#     mpi_polling        what with_mpi leaves out: instructions of Open MPI's loop that looks for messages (opal_progress), but for what it does with a message
#     polls              how often the library looks for messages in the pass with halo rows
# Each is the least of 8 repetitions. What rank 0 does while it waits is another number in each of them, and larger where ranks share a core: hence mpi_polling is
# left out. The library's own part of it is not; in the repetition with the fewest instructions there is little of it, as `polls` shows.
# MPIRUN: the command that starts a program, "mpirun --bind-to none --oversubscribe".
set -euo pipefail
bench=$1
shift
ranks=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do ranks+=("$1"); shift; done
[ $# -eq 0 ] || shift
halo_rows=${1:-126}
read -ra mpirun <<<"${MPIRUN:-mpirun --bind-to none --oversubscribe}"
export OMPI_MCA_mpi_yield_when_idle=1  # more ranks than cores
arguments=("$halo_rows" 2000 2 8 16)   # halo rows, nodes, cores, repetitions, width
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Of a step: its name, and its instructions outside of MPI, inside, and in the loop that looks for messages; how often the library looks. The file has a line for
# each function (fn=) and each function that it calls (cfn=), of an object (ob=); a name is written once, with a number.
count() {
  awk '
    function name(kind, text,   number) {
      number = text
      sub(/\).*/, ")", number)
      if (number != text) names[kind, number] = substr(text, length(number) + 2)
      return names[kind, number]
    }
    /^ob=/ { object = name("object", substr($0, 4)) }
    /^cob=/ { name("object", substr($0, 5)) }
    /^fn=/ { caller = name("function", substr($0, 4)) }
    /^cfn=/ { called = name("function", substr($0, 5)) }
    /^calls=/ {
      calls = substr($1, 7)
      getline  # its second number: instructions of these calls
      if (called ~ /^step_/) step = called
      if (called ~ /^P?MPI_/ && object ~ /bench_stages$/) mpi += $2
      if (called == "opal_progress" && caller != "opal_progress") polling += $2
      if (called ~ /^mca_pml_ob1_recv_frag_callback/) polling -= $2
      if (called == "sched_yield" && object ~ /bench_stages$/) yields += $2
      if (called ~ /Halo(Fetch|Push)::Impl::advance\(bool\)$/) polls += calls
    }
    /^totals:/ { total = $2 }
    END {
      sub(/\(.*/, "", step)
      if (step != "") print step, total - mpi - yields, mpi - polling, polling, polls
    }' "$1"
}

value() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$scratch/out"; }

for n in "${ranks[@]}"; do
  rm -f "$scratch"/*
  others=()
  [ "$n" -eq 1 ] || others=(: -n $((n - 1)) "$bench" "${arguments[@]}")
  # Instructions of the steps only; a file of what was counted before each barrier, behind which a step begins.
  "${mpirun[@]}" -n 1 valgrind --tool=callgrind --callgrind-out-file="$scratch/counts" --toggle-collect='step_*' --dump-before='sar::*::Communicator::barrier*' \
    "$bench" "${arguments[@]}" "${others[@]}" >"$scratch/out" 2>"$scratch/errors" || { cat "$scratch/errors" >&2; exit 1; }
  for file in "$scratch"/counts.*; do
    [ "${file##*.}" -le 3 ] || count "$file"  # .1: nothing, .2 and .3: the first repetition
  done >"$scratch/steps"
  awk -v ranks="$n" -v messages="$(value messages)" -v stages="$(value stages)" '
    !($1 in library) || $2 < library[$1] { library[$1] = $2; polls[$1] = $5 }
    !($1 in mpi) || $3 < mpi[$1] { mpi[$1] = $3 }
    !($1 in polling) || $4 < polling[$1] { polling[$1] = $4 }
    function overhead(of) { return (of["step_with_halo"] - of["step_on_local_edges"]) / 2 }
    function per_message(instructions) { return messages > 0 ? instructions / messages : 0 }
    END {
      messages /= 2
      alone = overhead(library)
      all = alone + overhead(mpi)
      printf "{\"name\": \"stages_instructions\", \"ranks\": %d, \"messages\": %g, \"stages\": %g, \"library\": %d, \"with_mpi\": %d, ", ranks, messages, stages / 2, alone, all
      printf "\"library_per_message\": %d, \"with_mpi_per_message\": %d, ", per_message(alone), per_message(all)
      printf "\"without_halo\": %d, \"mpi_polling\": %d, \"polls\": %g}\n", library["step_on_local_edges"] / 2, overhead(polling), polls["step_with_halo"] / 2
    }' "$scratch/steps"
done
