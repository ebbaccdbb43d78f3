# SPDX-License-Identifier: MIT

"""Mini-batches, as dgl.dataloading."""

import numpy as np

from . import _sar
from ._sar import InputError, ShapeError
from .graph import _integers


class NeighborSampler:
    """Local. Draws at most fanouts[i] in-edges of each node for layer i, the first layer first; -1: all in-edges. Of a
    graph with types, at most so many of each edge type; a dict has a number for each relation.

    replace, prob [edges], redraw (new draws in each batch), seed and method ("uniform", "labor") as in
    sar::NeighborSampler. Draws do not depend on the number of ranks.
    """

    def __init__(self, fanouts, **options):
        self.fanouts, self.options = list(fanouts), options

    def of(self, graph):
        """Collective. The sampler of a graph."""
        return _sar.NeighborSampler(graph, self.fanouts, **self.options)


def _rows(indices, num_nodes):
    """The row numbers of a mask or of row numbers."""
    indices = np.asarray(indices)
    if indices.dtype == bool:
        if indices.shape != (num_nodes,):
            raise ShapeError(f"a mask of shape {list(indices.shape)} for {num_nodes} nodes of this rank, expected one bool for each")
        return np.flatnonzero(indices)
    if indices.dtype.kind not in "iu" and indices.size > 0:
        raise InputError(f"the indices have dtype {indices.dtype}, expected integers or bool")
    indices = _integers(indices, "indices")
    if len(indices) and (indices.min() < 0 or indices.max() >= num_nodes):
        raise InputError(f"the indices have the row {indices.min() if indices.min() < 0 else indices.max()}, "
                         f"expected 0 to {num_nodes - 1}, the rows of this rank's nodes")
    return indices


def _rows_of_graph(graph, indices):
    if not graph.is_homogeneous:
        raise InputError(f"the indices of a graph with the node types {graph.ntypes} are a {type(indices).__name__}, expected a dict by node type")
    return _rows(indices, graph.num_nodes())


def _rows_by_type(graph, indices):
    for ntype in indices:
        if not isinstance(ntype, str):
            raise InputError(f"a node type is {ntype!r}, expected one of {graph.ntypes}")
    return {ntype: _rows(each, graph.num_nodes(ntype)) for ntype, each in indices.items()}


class DataLoader:
    """Collective. Iterates over nodes in batches, once for each `for`:

        for input_nodes, output_nodes, blocks in loader:
            y = net(blocks, x[input_nodes])
            loss = cross_entropy(y, labels[output_nodes])

    indices: rows of this rank's nodes, or a mask of them. Of a graph with types, a dict of them by node type;
    input_nodes and output_nodes are dicts then, and the blocks have the types. batch_size counts seeds of all ranks, per_rank those of
    each. input_nodes and output_nodes are rows of this rank. Every rank has the same number of batches, some of them
    perhaps without its nodes. Iterators have positions of their own. `epoch` is the number of the last epoch that
    was begun; set it to go on after a training that was saved.
    """

    def __init__(self, graph, indices, sampler, batch_size=1024, shuffle=True, drop_last=False, per_rank=False, seed=0):
        if isinstance(indices, dict):
            rows = graph.comm.agree(lambda: _rows_by_type(graph, indices))
            seeds = {ntype: each + graph._first_id(ntype) for ntype, each in rows.items()}
        else:
            seeds = graph.comm.agree(lambda: _rows_of_graph(graph, indices)) + graph._first_id()
        self._loader = _sar.BatchLoader(sampler.of(graph), seeds, batch_size, per_rank, shuffle, drop_last, seed)
        self.epoch = 0

    def __len__(self):
        return self._loader.num_batches

    def __iter__(self):
        self.epoch += 1
        loader = self._loader.copy()
        loader.start_epoch(self.epoch)
        while (batch := loader.next()) is not None:
            blocks = batch.blocks
            yield blocks[0].src_rows, blocks[-1].dst_rows, blocks
