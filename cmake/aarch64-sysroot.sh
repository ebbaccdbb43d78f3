#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# aarch64-sysroot.sh DIR: DIR becomes a folder with MPI and oneTBB of arm64, for cmake/aarch64-linux-gnu.cmake. Needs Debian or Ubuntu, and
# changes nothing of this system: apt works on a database of its own in DIR.download.
set -euo pipefail
[ $# = 1 ] || { echo "Usage: cmake/aarch64-sysroot.sh DIR" >&2; exit 2; }
root=$1 work=$(realpath -m "$1").download
[ ! -e "$root" ] || { echo "$root: is there already" >&2; exit 1; }
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/root"
: >"$work/status"
options=(APT::Architecture=arm64 APT::Architectures=arm64 Dir::State::status="$work/status" Dir::State::lists="$work/lists"
         Dir::Cache::archives="$work/archives" Dir::Cache::pkgcache= Dir::Cache::srcpkgcache= Debug::NoLocking=true)
apt=(apt-get -qq "${options[@]/#/-o}")
"${apt[@]}" update
# The headers are those that a compiler with a sysroot does not look for in /usr/include of this machine.
"${apt[@]}" --yes --no-install-recommends --download-only install libopenmpi-dev libtbb-dev libstdc++6 \
  nlohmann-json3-dev doctest-dev
for package in "$work"/archives/*.deb; do dpkg -x "$package" "$work/root"; done
mv "$work/root" "$root"
rm -r "$work"
