#!/usr/bin/env bash
# SPDX-License-Identifier: MIT

# make_versions.sh DIR: installs each release of DGL and PyTorch Geometric under DIR, outside the repository, and lets make_versions.py write versions/,
# golden/versions.safetensors and golden/gcn_norm.safetensors with it. Python 3.11; about 6 GB. stand_ins/ replaces two compiled packages.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
if [ ! -f .ready ]; then
  python3.11 -m venv venv
  venv/bin/pip install -q torch==2.2.1 "numpy<2" scipy "pandas<2.3" "setuptools<70" wheel safetensors
  venv/bin/pip install -q torchdata==0.7.1 pyyaml pydantic networkx requests tqdm psutil scikit-learn jinja2 pyparsing aiohttp packaging six xxhash "numpy<2" \
    class_resolver==0.3.10 googledrivedownloader==0.4 rdflib ase h5py numba python-louvain yacs
  for version in 1.6.3 1.7.2 2.0.4 2.3.1 2.6.1 2.8.1; do venv/bin/pip install -q --no-deps --target "pyg-$version" "torch-geometric==$version"; done
  for version in 1.1.3 2.1.0; do venv/bin/pip install -q --no-deps --target "dgl-$version" "dgl==$version"; done
  touch .ready
fi
rm -rf cases "$here/versions"
for release in pyg-* dgl-*; do
  name=${release//[-.]/_}
  PYTORCH_JIT=0 DGLBACKEND=pytorch PYTHONPATH=$release:$here/stand_ins venv/bin/python -W ignore "$here/make_versions.py" "${name%_*}" cases
done
venv/bin/python "$here/../golden/pack.py" cases
