# SPDX-License-Identifier: MIT

"""Writes the .npz files beside this one: a small graph in the binary form of OGB's folders, as NumPy stores and
as it deflates it."""
import numpy as np

nodes, edges = 23, 90
e = np.arange(edges)
v = np.arange(nodes)
data = {
    "edge_index": np.stack([e * 7 % nodes, (e * e + 5) % nodes]).astype(np.int64),
    "num_nodes_list": np.array([nodes], dtype=np.int64),
    "num_edges_list": np.array([edges], dtype=np.int64),
    "node_feat": (v[:, None] * 4 + np.arange(4)).astype(np.float32) / 8,
    "node_year": (2000 + v)[:, None].astype(np.int64),
    "edge_feat": (e[:, None] + np.array([0.5, 0.25])).astype(np.float16),
}
labels = np.where(v % 3 == 0, np.nan, v % 5).astype(np.float32)[:, None]
np.savez("stored.npz", **data)
np.savez_compressed("deflated.npz", **data)
data["edge_index"] = np.asfortranarray(data["edge_index"].astype(np.int32))
data["node_feat"] = np.asfortranarray(data["node_feat"].astype(">f4"))
data["node_year"] = data["node_year"].astype(">u2")
np.savez("stored_fortran.npz", **data)
np.savez_compressed("deflated_fortran.npz", **data)
np.savez_compressed("label.npz", node_label=labels)
