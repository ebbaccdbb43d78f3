#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# functions_test.sh SOURCE_DIR: the C++11 classes and the Fortran module call every function of sar.h, arguments_test.c tries every
# function that takes arguments, and random_calls_test.c every one that takes or makes a handle.
set -euo pipefail
cd "$1"
declared=$(tr '\n' ' ' <bindings/c/sar.h | grep -oE 'SAR_API [a-z0-9_* ]+\(' | grep -oE 'sar_[a-z0-9_]+\(' | tr -d '(' | sort -u)
[ "$(wc -l <<<"$declared")" -ge 50 ] || { echo "FAILED: few functions in sar.h"; exit 1; }
# requires PATTERN FILE...: the files name all functions but those that the pattern matches
requires() {
  for name in $(grep -vxE "$1" <<<"$declared"); do
    grep -qwF "$name" "${@:2}" || { echo "FAILED: $name is not in ${*:2}"; exit 1; }
  done
}
requires '' bindings/c/sar_cxx11.hpp
requires 'sar_array_.*|sar_comm_create' bindings/fortran/sar_interface.inc
# a wrapper of arguments.h that arguments_test.c does not try is an error of the compiler
requires 'sar_array_.*|sar_init|sar_finalize|sar_last_error|sar_version|sar_precision|sar_memory_re.*|sar_refuse_next' tests/c_api/arguments.h
requires "$(grep -vx sar_refuse_next <<<"$declared" | paste -sd '|')" tests/c_api/arguments_test.c
requires 'sar_array_.*|sar_init|sar_finalize|sar_last_error|sar_version|sar_precision|sar_set_num_threads|sar_memory_.*|sar_refuse_next' \
  tests/c_api/random_calls_test.c
