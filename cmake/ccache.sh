#!/bin/sh
# Compiles with ccache: cmake/ccache.sh SOURCE_DIR CCACHE COMPILER ARGUMENT...
# The same sources in another folder are found, too. An old precompiled header is removed before it is compiled
# anew: ccache runs the preprocessor first, which would read the old one in place of the headers.
export CCACHE_BASEDIR="$1" CCACHE_NOHASHDIR=1
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
shift
case " $* " in
  *" c++-header "*)
    previous=
    for argument; do
      [ "$previous" != -o ] || rm -f "$argument"
      previous=$argument
    done
    ;;
esac
exec "$@"
