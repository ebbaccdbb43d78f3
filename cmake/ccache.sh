#!/bin/sh
# SPDX-License-Identifier: MIT

# Compiles with ccache: cmake/ccache.sh SOURCE_DIR CCACHE COMPILER ARGUMENT...
# The same sources in another folder are found, too. An old precompiled header is removed before it is compiled
# anew: ccache runs the preprocessor first, which would read the old one in place of the headers. One with other
# comments is another one: the compiler compares the headers in it with the files to include each once.
export CCACHE_BASEDIR="$1" CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
shift
case " $* " in
  *" c++-header "*)
    export CCACHE_COMMENTS=1
    previous=
    for argument; do
      [ "$previous" != -o ] || rm -f "$argument"
      previous=$argument
    done
    ;;
esac
exec "$@"
