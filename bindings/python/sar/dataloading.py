# SPDX-License-Identifier: MIT

"""Mini-batches, as dgl.dataloading."""

import numpy as np

from . import _sar
from ._arguments import given as _in_words
from ._sar import InputError, ShapeError
from .graph import _integers, _numbers_of_ids


class _Loader:
    """The batches of a loader of the library, once for each `for`, and the number of the last epoch that was begun."""

    def __init__(self, loader):
        self._loader, self.epoch = loader, 0

    def __len__(self):
        return self._loader.num_batches

    def __iter__(self):
        self.epoch += 1
        loader = self._loader.copy()
        loader.start_epoch(self.epoch)
        while (batch := loader.next()) is not None:
            yield self._given(batch)

    def _given(self, batch):
        return batch


class NeighborSampler:
    """Local. Draws at most fanouts[i] in-edges of each node for layer i, the first layer first; -1: all in-edges. Of a
    graph with types, at most so many of each edge type; a dict has a number for each relation.

    replace, prob [edges], redraw (new draws in each batch), seed and method ("uniform", "labor") as in
    sar::NeighborSampler. Draws do not depend on the number of ranks.

        >>> graph = sar.Graph((np.arange(9), np.arange(1, 10)), num_nodes=10)
        >>> sampler = sar.NeighborSampler([5, -1])
        >>> (batch,) = sar.DataLoader(graph, [9], sampler)
        >>> len(batch[2])
        2
    """

    def __init__(self, fanouts, **options):
        if not isinstance(fanouts, (list, tuple, np.ndarray)):
            raise InputError(f"the fanouts are {_in_words(fanouts)}, expected a list with a number, or a dict of numbers, for each layer")
        self.fanouts, self.options = list(fanouts), options

    def of(self, graph):
        """Collective. The sampler of a graph."""
        return _sar.NeighborSampler(graph, self.fanouts, **self.options)


def _rows(indices, count, what="nodes of this rank"):
    """The row numbers of a mask or of row numbers; None: all."""
    if indices is None:
        return np.arange(count)
    indices = np.asarray(indices)
    if indices.dtype == bool:
        if indices.shape != (count,):
            raise ShapeError(f"a mask of shape {list(indices.shape)} for {count} {what}, expected one bool for each")
        return np.flatnonzero(indices)
    if indices.dtype.kind not in "iu" and indices.size > 0:
        raise InputError(f"the indices have dtype {indices.dtype}, expected integers or bool")
    indices = _integers(indices, "indices")
    if len(indices) and (indices.min() < 0 or indices.max() >= count):
        raise InputError(f"the indices have the row {indices.min() if indices.min() < 0 else indices.max()}, expected 0 to {count - 1}, the rows of "
                         f"the {what}")
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


class DataLoader(_Loader):
    """Collective. Iterates over nodes in batches, once for each `for`:

        for input_nodes, output_nodes, blocks in loader:
            y = net(blocks, x[input_nodes])
            loss = cross_entropy(y, labels[output_nodes])

    indices: rows of this rank's nodes, or a mask of them; None: all. Of a graph with types, a dict of them by node type;
    input_nodes and output_nodes are dicts then, and the blocks have the types. batch_size counts seeds of all ranks, per_rank those of
    each. input_nodes and output_nodes are rows of this rank. Every rank has the same number of batches, some of them
    perhaps without its nodes. Iterators have positions of their own. `epoch` is the number of the last epoch that
    was begun; set it to go on after a training that was saved.

        >>> graph = sar.Graph((np.arange(9), np.arange(1, 10)), num_nodes=10)
        >>> loader = sar.DataLoader(graph, np.arange(10) < 6, sar.NeighborSampler([5]), batch_size=4)
        >>> [len(output_nodes) for input_nodes, output_nodes, blocks in loader]
        [4, 2]
    """

    def __init__(self, graph, indices, sampler, batch_size=1024, shuffle=True, drop_last=False, per_rank=False, seed=0):
        if not hasattr(sampler, "of"):
            raise InputError(f"the sampler is {_in_words(sampler)}, expected a sar.NeighborSampler")
        if isinstance(indices, dict):
            rows = graph.comm.agree(lambda: _rows_by_type(graph, indices))
            seeds = {ntype: each + graph._first_id(ntype) for ntype, each in rows.items()}
        else:
            seeds = graph.comm.agree(lambda: _rows_of_graph(graph, indices)) + graph._first_id()
        super().__init__(_sar.BatchLoader(sampler.of(graph), seeds, batch_size, per_rank, shuffle, drop_last, seed))

    def _given(self, batch):
        blocks = batch.blocks
        return blocks[0].src_rows, blocks[-1].dst_rows, blocks


def _edge_rows(graph, edges):
    """The rows of this rank's edges of a mask, of rows, or of all edges."""
    if len(graph.canonical_etypes) != 1:
        raise InputError(f"edges of a graph with the edge types {graph.canonical_etypes}, expected a dict by edge type, or a graph of one edge type: "
                         "graph[etype]")
    return _rows(edges, graph.num_edges(), "edges of this rank")


class NodePairs:
    """Collective. Pairs of nodes (src[i], dst[i]), each rank its own or none, whose ends are nodes of any rank: src(h) and dst(h) are
    the rows of h, a tensor of this rank's nodes, at the ends: [pairs of this rank, ...]. Both are collective and have gradients.

        pairs = sar.NodePairs(graph, src, dst)
        scores = (pairs.src(h) * pairs.dst(h)).sum(-1)

    src and dst are ids of nodes. Raises sar.InputError on every rank for a node that does not exist.

        >>> graph = sar.Graph((np.arange(9), np.arange(1, 10)), num_nodes=10)
        >>> pairs = sar.NodePairs(graph, [0, 3], [1, 9])
        >>> h = sar.tensor(np.arange(10).reshape(10, 1))
        >>> pairs.dst(h).tolist()
        [[1.0], [9.0]]
    """

    def __init__(self, graph, src, dst):
        numbers = _numbers_of_ids(graph, src, dst)
        self._pairs = _sar._NodePairs(graph, *numbers)

    @classmethod
    def _of(cls, pairs):
        self = cls.__new__(cls)
        self._pairs = pairs
        return self

    @property
    def num_pairs(self):
        """Local. Of this rank."""
        return self._pairs.num_pairs

    def src(self, h):
        """Collective. The rows of h at the sources of the pairs."""
        return self._pairs.src(h)

    def dst(self, h):
        """Collective. The rows of h at the destinations of the pairs."""
        return self._pairs.dst(h)


class EdgeDataLoader(_Loader):
    """Collective. Iterates over edges in batches, once for each `for`, with negative pairs (DGL's as_edge_prediction_sampler):

        loader = sar.EdgeDataLoader(graph, None, sar.NeighborSampler([10, 10]), batch_size=512, negatives="per_source", k=1)
        for input_nodes, rows, positive, negative, blocks in loader:
            h = net(blocks, x[input_nodes])
            scores = (positive.src(h) * positive.dst(h)).sum(-1)

    edges: rows of this rank's edges, or a mask of them; None: all edges. input_nodes are rows of this rank's nodes, `rows` the edges of
    the batch. `positive` has a pair for each of them, `negative` k pairs for each, one after the other; both are NodePairs
    of the rows that the last block computes. negatives: "per_source", an edge's source with other destinations; "global", pairs of
    any nodes; None, for edge classification. They are no edges of the graph, unless exclude_edges=False. exclude: "self" leaves the batch's
    edges out of the blocks, "reverse" also their reverse edges, so that a message does not tell the label. batch_size counts
    edges of all ranks; the other arguments are those of DataLoader. Draws do not depend on the number of ranks.

    Of a graph with types, `edges` is a dict of rows or masks by edge type, None for all edges of a type. `rows`, `positive` and `negative` are
    dicts by the same keys then, each with pairs of nodes of the types of its relation, and `input_nodes` is one by node type. A batch has edges of
    all these types. Their edges are left out together, and with exclude="reverse" also those of any type from the one node to the other and back:

        for input_nodes, rows, positive, negative, blocks in sar.EdgeDataLoader(hetero, {"plays": None}, sampler):
            h = net(blocks, {ntype: x[ntype][chosen] for ntype, chosen in input_nodes.items()})
            scores = (positive["plays"].src(h["user"]) * positive["plays"].dst(h["game"])).sum(-1)

        >>> graph = sar.Graph((np.arange(9), np.arange(1, 10)), num_nodes=10)
        >>> loader = sar.EdgeDataLoader(graph, None, sar.NeighborSampler([5]), batch_size=9, k=2)
        >>> [(positive.num_pairs, negative.num_pairs) for _, _, positive, negative, _ in loader]
        [(9, 18)]
    """

    def __init__(self, graph, edges, sampler, batch_size=1024, shuffle=True, drop_last=False, per_rank=False, negatives="per_source", k=1,
                 exclude="self", exclude_edges=True, exclude_self_loops=True, seed=0):
        options = (negatives or "none", k, exclude or "none", exclude_self_loops, exclude_edges, batch_size, per_rank, shuffle, drop_last, seed)
        self._graph, self._has_negatives = graph, negatives is not None
        if isinstance(edges, dict):
            self._rows = graph.comm.agree(lambda: {etype: _edge_rows(graph[etype], each) for etype, each in edges.items()})
            types = [graph.canonical(etype) for etype in edges]
            if not types or len(set(types)) < len(types):
                raise InputError(f"the edges are those of {types}, expected at least one edge type, and each once")
            super().__init__(_sar._TypedEdgeLoader(sampler.of(graph), graph, types, list(self._rows.values()), *options))
            return
        if not graph.is_homogeneous:
            raise InputError(f"the edges of a graph with the node types {graph.ntypes} are given without their type, expected a dict: "
                             f"{{{graph.canonical_etypes[0]}: None}}")
        self._rows = graph.comm.agree(lambda: _edge_rows(graph, edges))
        super().__init__(_sar._EdgeLoader(sampler.of(graph), graph, self._rows, *options))

    def _given(self, batch):
        if isinstance(self._rows, dict):
            rows = {etype: each[mine] for (etype, each), mine in zip(self._rows.items(), batch.positions)}
            positive, negative = ({etype: NodePairs._of(each) for etype, each in zip(rows, pairs)} for pairs in (batch.positive, batch.negative))
            return batch.blocks[0].src_rows, rows, positive, negative if self._has_negatives else None, batch.blocks
        blocks, negative = batch.blocks, batch.negative
        return (blocks[0].src_rows, self._rows[batch.positions], NodePairs._of(batch.positive),
                None if negative is None else NodePairs._of(negative), blocks)


def negative_pairs(graph, edges=None, k=1, negatives="per_source", exclude_edges=True, exclude_self_loops=True, seed=0, epoch=0):
    """Collective. k pairs of nodes that no edge joins for each of these edges of this rank (rows or a mask; None: all), one
    after the other, as sar.NodePairs: for a training on the whole graph. The arguments are those of EdgeDataLoader. Other epochs
    give other pairs; they do not depend on the number of ranks.

        >>> graph = sar.Graph((np.arange(9), np.arange(1, 10)), num_nodes=10)
        >>> pairs = sar.negative_pairs(graph, k=2)
        >>> pairs.num_pairs
        18
    """
    rows = graph.comm.agree(lambda: _edge_rows(graph, edges))
    draws = _sar._PairDraws(graph, k, exclude_self_loops, exclude_edges, seed)
    return NodePairs._of(_sar._NodePairs(graph, *draws.draw(negatives, rows, epoch)))


class ClusterLoader(_Loader):
    """Collective. Iterates over the nodes of a graph in batches of whole clusters, once for each `for` (Cluster-GCN, DGL's
    ClusterGCNSampler): each batch is the graph of the nodes of some clusters and of the edges between them, for all layers.

        for graph in sar.ClusterLoader(data.graph, num_clusters=100, clusters_per_batch=10):
            y = net(graph, x[graph.dst_rows])

    clusters: the cluster of each node of this rank, or None: a partitioner makes num_clusters, by the method metis, ldg, contiguous or
    random; "automatic" is metis, or ldg in a library without it. They do not depend on the number of ranks.

        >>> graph = sar.Graph((np.arange(9), np.arange(1, 10)), num_nodes=10)
        >>> loader = sar.ClusterLoader(graph, clusters=np.arange(10) // 5)
        >>> [graph.num_dst_nodes() for graph in loader]
        [5, 5]
    """

    def __init__(self, graph, num_clusters=None, clusters_per_batch=1, shuffle=True, method="automatic", clusters=None, seed=0):
        if (num_clusters is None) == (clusters is None):
            raise InputError("num_clusters and clusters, expected one of them")
        if num_clusters is not None:
            src, dst, _ = graph._edges()
            clusters = _sar._cluster_nodes(graph, *_numbers_of_ids(graph, src, dst), graph.edge_ids, num_clusters, method, seed)
        super().__init__(_sar._ClusterLoader(graph, clusters, clusters_per_batch, shuffle, seed))


class SAINTLoader(_Loader):
    """Collective. Iterates over random subgraphs (GraphSAINT, PyG's GraphSAINTSampler): yields the graph of the drawn nodes and of all
    edges between them, and a weight of each node in the loss, 1 / p:

        for graph, weights in sar.SAINTLoader(data.graph, method="walk", draws=1000, walk_length=2):
            y = net(graph, x[graph.dst_rows])
            loss = cross_entropy(y, labels[graph.dst_rows], row_weights=weights / num_nodes)

    method: "node", "edge" or "walk"; draws: nodes, edges or roots of a batch, of all ranks together; batches: of an epoch, 0: as many
    as draw about as many nodes as there are. With scale_messages, layers that read graph.edge_weight compute in the mean what they
    compute on the whole graph; False for attention and maxima. Draws do not depend on the number of ranks.

        >>> graph = sar.Graph((np.arange(9), np.arange(1, 10)), num_nodes=10)
        >>> loader = sar.SAINTLoader(graph, method="node", draws=5, batches=2)
        >>> len([weights for batch, weights in loader])
        2
    """

    def __init__(self, graph, method="node", draws=1000, walk_length=2, batches=0, coverage=50, scale_messages=True, seed=0):
        super().__init__(_sar._SaintLoader(graph, method, draws, walk_length, batches, coverage, scale_messages, seed))

    def _given(self, batch):
        return batch.graph, batch.loss_weights
