# SPDX-License-Identifier: MIT

"""Datasets of files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _sar
from ._arguments import given
from ._sar import Communicator, GraphBase, InputError, Tensor


class Dataset:
    """A dataset, of which each rank has some nodes: graph, features [nodes, F], labels [nodes] (-1: none), targets,
    train_mask, val_mask, test_mask, node_ids (original ids), num_classes, name.

        >>> np.save("edge_index.npy", [[0, 1, 2], [1, 2, 0]])
        >>> np.save("features.npy", np.ones((3, 4), np.float32))
        >>> np.save("labels.npy", [0, 1, 0])
        >>> for name in ("train_mask", "val_mask", "test_mask"):
        ...     np.save(name, [True, True, True])
        ...
        >>> sar.load_dataset(".").labels.tolist()
        [0, 1, 0]
    """

    graph: GraphBase
    name: str
    num_classes: int
    num_nodes: int
    num_edges: int
    features: Tensor
    labels: np.ndarray[Any, np.dtype[np.int64]]
    targets: Tensor | None
    train_mask: np.ndarray[Any, np.dtype[np.bool_]]
    val_mask: np.ndarray[Any, np.dtype[np.bool_]]
    test_mask: np.ndarray[Any, np.dtype[np.bool_]]
    node_ids: np.ndarray[Any, np.dtype[np.int64]]

    def __init__(self, data: Any, graph: GraphBase) -> None:
        self.graph = graph
        for name in ("name", "num_classes", "num_nodes", "num_edges", "features", "labels", "targets", "train_mask",
                     "val_mask", "test_mask", "node_ids"):
            setattr(self, name, getattr(data, name))

    def __repr__(self) -> str:
        return f"sar.Dataset({self.name}: {self.num_nodes} nodes, {self.num_edges} edges, {self.num_classes} classes)"


def load_dataset(path: str | os.PathLike[str], *, add_reverse_edges: bool = False, add_self_loops: bool | str = False,
                 drop_duplicates: bool = False, normalize_features: bool = False, partition: str = "contiguous",
                 label_type: str = "classes", sparse_features: bool | str = "auto", split: int = 0,
                 comm: Any = None) -> Dataset:
    """Collective. Loads a dataset directory, a partition or a DGL partition (docs/file_formats.md).

    add_self_loops: "remaining" adds them as PyG's add_remaining_self_loops. partition: contiguous, random, metis or
    ldg, of what is not partitioned. sparse_features: whether features are stored as sparse rows (Tensor.is_sparse); "auto" takes
    them for rows of 64 columns or more of which at most an eighth are not 0. Raises sar.InputError, the same on every rank, for
    damaged files.

        >>> np.save("edge_index.npy", [[0, 1, 2], [1, 2, 0]])
        >>> np.save("features.npy", np.ones((3, 4), np.float32))
        >>> np.save("labels.npy", [0, 1, 0])
        >>> for name in ("train_mask", "val_mask", "test_mask"):
        ...     np.save(name, [True, True, True])
        ...
        >>> data = sar.load_dataset(".")
        >>> data.features.shape, data.num_classes
        ((3, 4), 2)
    """
    comm = _sar.get_communicator() if comm is None else comm
    comm = comm if isinstance(comm, Communicator) else Communicator(comm)
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"the path of a dataset is {given(path)}, expected a string or a path")
    if comm.agree(lambda: os.path.isfile(path)):
        raise InputError(f"{os.fspath(path)} is a file, expected a directory of a dataset: sar.partition() makes one of it")
    data = _sar._load_dataset(comm, os.fspath(path), add_reverse_edges, add_self_loops, drop_duplicates,
                              normalize_features, partition, label_type, sparse_features, split)
    return Dataset(data, _sar._construct_graph(comm, data))
