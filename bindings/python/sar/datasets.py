# SPDX-License-Identifier: MIT

"""Datasets of files."""

import os

from . import _sar
from ._sar import Communicator, InputError


class Dataset:
    """A dataset, of which each rank has some nodes: graph, features [nodes, F], labels [nodes] (-1: none), targets,
    train_mask, val_mask, test_mask, node_ids (original ids), num_classes, name."""

    def __init__(self, data, graph):
        self.graph = graph
        for name in ("name", "num_classes", "num_nodes", "num_edges", "features", "labels", "targets", "train_mask",
                     "val_mask", "test_mask", "node_ids"):
            setattr(self, name, getattr(data, name))

    def __repr__(self):
        return f"sar.Dataset({self.name}: {self.num_nodes} nodes, {self.num_edges} edges, {self.num_classes} classes)"


def load_dataset(path, *, add_reverse_edges=False, add_self_loops=False, drop_duplicates=False, normalize_features=False,
                 partition="contiguous", label_type="classes", split=0, comm=None):
    """Collective. Loads a dataset directory, a partition or a DGL partition (docs/file_formats.md).

    add_self_loops: "remaining" adds them as PyG's add_remaining_self_loops. partition: contiguous, random, metis or
    ldg, of what is not partitioned. Raises sar.InputError, the same on every rank, for damaged files.
    """
    comm = _sar.get_communicator() if comm is None else comm
    comm = comm if isinstance(comm, Communicator) else Communicator(comm)
    if comm.agree(lambda: os.path.isfile(path)):
        raise InputError(f"{os.fspath(path)} is a file, expected a directory of a dataset: sar.partition() makes one of it")
    data = _sar._load_dataset(comm, os.fspath(path), add_reverse_edges, add_self_loops, drop_duplicates,
                              normalize_features, partition, label_type, split)
    return Dataset(data, _sar._construct_graph(comm, data))
