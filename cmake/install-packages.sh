#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# Installs what the library, its tests and examples are built with (Debian 12, Ubuntu 24.04), and the packages given, where
# anything is missing. With SAR_PACKAGES=OFF in the environment it does nothing. Where it cannot install, it says what is missing and ends
# without an error, because the packages may be there by another way: CMake looks for them.
set -euo pipefail
[ "${SAR_PACKAGES:-ON}" != OFF ] || exit 0
packages=(g++ cmake ninja-build libeigen3-dev libtbb-dev libopenmpi-dev openmpi-bin libmetis-dev libptscotch-dev doctest-dev
          libcli11-dev nlohmann-json3-dev zlib1g-dev libsqlite3-dev liblmdb-dev pkg-config "$@")
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if ! command -v apt-get >/dev/null; then
  echo "this system has no apt-get: it should have the equivalents of ${missing[*]}" >&2
  exit 0
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "neither root nor sudo, so these packages are not installed: ${missing[*]}" >&2
    exit 0
  fi
  as_root=(sudo)
fi
echo "installing ${missing[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
