# SPDX-License-Identifier: MIT

"""Writes npy/ beside this file: one small dataset, its arrays in every order, byte order, type and version
that NumPy writes."""
import os

import numpy as np

os.makedirs("npy", exist_ok=True)
nodes = 12
v = np.arange(nodes)
edge_index = np.array([np.r_[v, (v + 1) % nodes], np.r_[(v + 1) % nodes, v]])
features = (v[:, None] * 7 % 11 + np.arange(5)).astype(np.float32)
labels = np.where(v % 6 == 5, -1, v % 3)


def save(name, array, version=None):
    with open(f"npy/{name}.npy", "wb") as file:
        np.lib.format.write_array(file, array, version=version, allow_pickle=False)


def same_but(name, array, dtypes):
    save(name, array)
    for dtype in dtypes:
        save(f"{name}.{dtype}", array.astype(dtype))
    save(f"{name}.big", array.astype(array.dtype.newbyteorder(">")))
    save(f"{name}.fortran", np.asfortranarray(array))
    save(f"{name}.big_fortran", np.asfortranarray(array.astype(array.dtype.newbyteorder(">"))))


same_but("edge_index", edge_index, ["int8", "int32", "uint32", "uint64", "float64"])
same_but("features", features,
         ["int8", "uint16", "uint32", "uint64", "int64", "float16", "float64"])
save("features.version2", features, (2, 0))
save("features.version3", features, (3, 0))
with open("npy/features.npy", "rb") as file:  # Python 2 wrote long integers
    text = file.read()
with open("npy/features.python2.npy", "wb") as file:
    file.write(text.replace(b"(12, 5), }  ", b"(12L, 5L), }"))
save("labels", labels)
save("labels.int8", labels.astype(np.int8))
save("labels.int16", labels.astype(np.int16))
save("labels.float32", np.where(labels < 0, np.nan, labels).astype(np.float32))
save("labels.column", labels[:, None])
save("labels.big", labels.astype(">i8"))
for k, name in enumerate(("train_mask", "val_mask", "test_mask")):
    save(name, v // 4 == k)
save("train_mask.uint8", (v // 4 == 0).astype(np.uint8))
save("train_mask.float64", (v // 4 == 0).astype(np.float64))
save("train_mask.column", (v // 4 == 0)[:, None])

# Nodes 1, 5 and 11 have no label; the masks without these nodes.
unlabelled = np.isin(v, [1, 5, 11])
save("labels.missing", np.where(unlabelled, np.nan, v % 3))
for k, name in enumerate(("train_mask", "val_mask", "test_mask")):
    save(f"{name}.labelled", (v // 4 == k) & ~unlabelled)

# Labels that are no classes: numbers with a fraction, rows of 0 and 1 (-1: missing), one-hot rows.
save("labels.values", np.where(unlabelled, np.nan, v / 8).astype(np.float32))
several = np.stack([v % 2, v % 3 == 0, v < 6], 1).astype(np.int8)
several[unlabelled] = -1
several[2, 1] = -1
save("labels.several", several)
save("labels.one_hot", (v[:, None] % 3 == np.arange(3)).astype(np.uint8))
