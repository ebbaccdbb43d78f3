#!/bin/sh
# SPDX-License-Identifier: MIT

# Compiles with ccache: cmake/ccache.sh SOURCE_DIR CCACHE COMPILER ARGUMENT...
# The same sources in another folder are found, too. An old precompiled header is removed before it is compiled
# anew: ccache runs the preprocessor first, which would read the old one in place of the headers. One of headers
# that differ only in what the preprocessor leaves out is another one: the compiler compares the headers in it
# with the files to include each once.
export CCACHE_BASEDIR="$1" CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
shift
case " $* " in
  *" c++-header "*)
    CCACHE_EXTRAFILES=$(find "$CCACHE_BASEDIR" -path "$CCACHE_BASEDIR/build" -prune -o -name '*.hpp' -print | LC_ALL=C sort | paste -s -d :)
    export CCACHE_EXTRAFILES
    previous=
    for argument; do
      [ "$previous" != -o ] || rm -f "$argument"
      previous=$argument
    done
    ;;
esac
exec "$@"
