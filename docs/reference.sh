#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# Usage: docs/reference.sh DIR. Writes the API reference of the public headers, what sar.hpp, data.hpp and models.hpp include, to DIR/html.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: docs/reference.sh DIR" >&2 && exit 2; }
mkdir -p "$1"
SAR_REFERENCE=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
headers=()
to_read=(nn/sar.hpp graph/data/data.hpp nn/models/models.hpp)
while [ ${#to_read[@]} -gt 0 ]; do
  header=${to_read[0]}
  to_read=("${to_read[@]:1}")
  [[ " ${headers[*]} " != *" $header "* && $header != config.hpp && $header != sar.hpp ]] || continue
  headers+=("$header")
  mapfile -t -O ${#to_read[@]} to_read < <(sed -n 's|^#include <sar/\(.*\)>.*|\1|p' "$header")
done
SAR_HEADERS="${headers[*]}" SAR_REFERENCE=$SAR_REFERENCE doxygen docs/Doxyfile
[ -e "$SAR_REFERENCE/html/classsar_1_1Tensor.html" ] || { echo "the reference does not have sar::Tensor" >&2 && exit 1; }
