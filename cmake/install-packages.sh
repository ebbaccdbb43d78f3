#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# Installs what the library, its tests and examples are built with (Debian 12, Ubuntu 24.04), and the packages given, where
# anything is missing.
set -euo pipefail
packages=(g++ cmake ninja-build libeigen3-dev libtbb-dev libopenmpi-dev openmpi-bin libmetis-dev libptscotch-dev doctest-dev
          libcli11-dev nlohmann-json3-dev zlib1g-dev libsqlite3-dev liblmdb-dev pkg-config "$@")
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if ! command -v apt-get >/dev/null; then
  echo "this system has no apt-get: please install the equivalents of: ${missing[*]}" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "neither root nor sudo: please have installed: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "installing ${missing[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
