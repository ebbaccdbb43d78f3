# SPDX-License-Identifier: MIT

"""Many small graphs, of which each is a sample: graph classification and regression."""

from types import SimpleNamespace

import numpy as np

from . import _sar
from ._sar import BatchedGraph, Communicator, InputError, ShapeError
from .dataloading import _Loader, _rows
from .graph import _edges_of, _integers, _items, _numeric, _range


class _Items(dict):
    """Arrays by name, and of which of them an object says what they belong to."""

    kinds = {}


def _sample(given):
    """Ends of edges, number of nodes, and arrays by name of whatever describes a graph; fields are told apart later."""
    kinds = {}
    if isinstance(given, dict):
        if "edge_index" not in given:
            raise InputError(f"a graph is a dict with {sorted(given)}, expected edge_index among them")
        given = SimpleNamespace(**given)
    if hasattr(given, "edge_index"):
        src, dst = np.asarray(given.edge_index)
        items = {str(name): _numeric(value) for name, value in _items(given) if name not in ("edge_index", "num_nodes")}
        num_nodes = getattr(given, "num_nodes", None)
        if num_nodes is None and (x := items.get("x")) is not None:
            num_nodes = len(x)
    else:
        known = _edges_of(given)
        src, dst, num_nodes = known.src, known.dst, known.num_nodes
        twice = sorted(set(known.nodes) & set(known.edges))
        if twice:
            raise InputError(f"nodes and edges of a sample have the fields {twice}, expected other names for one of them")
        kinds = {**dict.fromkeys(known.nodes, "nodes"), **dict.fromkeys(known.edges, "edges")}
        items = {**known.nodes, **known.edges}
        if known.weight is not None:
            items["weight"] = np.asarray(known.weight)
        for name, value in getattr(given, "graph", {}).items() if isinstance(getattr(given, "graph", None), dict) else ():
            items[str(name)] = _numeric(value)
    src, dst = _integers(src, "sources of edges"), _integers(dst, "destinations of edges")
    if num_nodes is None:
        num_nodes = int(max(src.max(), dst.max())) + 1 if len(src) else 0
    found = _Items((name, value) for name, value in items.items() if value is not None)
    found.kinds = kinds
    return src, dst, int(num_nodes), found


def _kind(name, samples):
    """Of what a field of this name has a row in each sample: the nodes, the edges or the graphs."""
    kinds = {items.kinds.get(name) for *_, items in samples}
    if kinds == {"nodes"} or kinds == {"edges"}:
        return kinds.pop()
    values = [items[name] for *_, items in samples]

    def fits(counts):
        return all(value.ndim > 0 and len(value) == count for value, count in zip(values, counts))

    nodes, edges = [count for _, _, count, _ in samples], [len(src) for src, *_ in samples]
    of_edges = "edge" in name or name == "weight"
    for kind, counts in (("edges", edges), ("nodes", nodes)) if of_edges else (("nodes", nodes), ("edges", edges)):
        of_graphs = name in ("y", "label") if kind == "nodes" else not of_edges  # where each graph has one of them
        if fits(counts) and not (of_graphs and set(counts) == {1}):
            return kind
    if len({value.size for value in values}) == 1:
        return "graphs"
    raise ShapeError(f"the field '{name}' has neither a row for each node nor for each edge nor the same size in each graph")


class GraphSamples:
    """Collective. A list of graphs, each a sample of a training. All ranks give the same list; each keeps its share of it.

    graphs: whatever sar.Graph reads (pairs of arrays, graphs of NetworkX, DGL or SciPy, Data objects of PyG), or dicts with
    "edge_index" and fields. A field has a row for each node, for each edge, or is of the graph, as "y" of a Data; it has the same name
    in all graphs. labels: a number or a row for each graph, which becomes graph_data["label"]. Raises sar.InputError and
    sar.ShapeError, the same on every rank.

        samples = sar.GraphSamples([{"edge_index": edges, "x": x} for edges, x in molecules], labels)
        for graph in sar.GraphDataLoader(samples, train_ids, batch_size=64):
            h = net(graph, graph.ndata["x"])
            y = sar.nn.AvgPooling()(graph, h)
            loss = cross_entropy(y, graph.graph_data["label"])

        >>> rings = [{"edge_index": [np.arange(n), (np.arange(n) + 1) % n], "x": np.ones((n, 1))} for n in (3, 4, 5)]
        >>> samples = sar.GraphSamples(rings, labels=[0, 1, 0])
        >>> len(samples)
        3
    """

    def __init__(self, graphs, labels=None, *, add_reverse_edges=False, add_self_loops=False, comm=None):
        comm = _sar.get_communicator() if comm is None else comm
        self.comm = comm if isinstance(comm, Communicator) else Communicator(comm)
        graphs = list(graphs)
        self._count, (self._begin, self._end) = len(graphs), _range(self.comm, len(graphs))
        self._store = self.comm.agree(lambda: self._made(graphs, labels, add_reverse_edges, add_self_loops))
        if len(set(self.comm.all_gather([self._count]))) > 1:
            raise InputError("the ranks give different numbers of graphs, expected the same list on all ranks")

    def _made(self, graphs, labels, add_reverse_edges, add_self_loops):
        samples = [_sample(graph) for graph in graphs]  # all of them, because what a field belongs to is told from all
        if not samples:
            raise InputError("a list of no graphs, expected at least one")
        store = _sar.SampleStore()
        mine = samples[self._begin:self._end]
        for number, (src, dst, num_nodes, _) in enumerate(mine, self._begin):
            store.add(number, num_nodes, src, dst)
        names = list(samples[0][3])
        for number, (*_, items) in enumerate(samples):
            if set(items) != set(names):
                raise InputError(f"graph {number} has the fields {sorted(items)}, expected those of graph 0: {sorted(names)}")
        fields = {name: (_kind(name, samples), [items[name] for *_, items in samples]) for name in names}
        if labels is not None:
            labels = np.asarray(labels)
            if len(labels) != len(samples):
                raise ShapeError(f"there are {len(labels)} labels for {len(samples)} graphs, expected one for each")
            fields["label"] = "graphs", list(labels)
        for name, (kind, values) in fields.items():
            integers = all(value.dtype.kind in "iub" for value in values)
            own = values[self._begin:self._end]
            if kind == "graphs":
                shape = (1,) if values[0].size == 1 else (1, values[0].size)
                own, empty = [value.reshape(shape) for value in own], np.zeros((0, *shape[1:]))
            else:
                empty = np.zeros((0, *values[0].shape[1:]))
            rows = np.concatenate([empty, *own])
            if integers:
                rows = np.concatenate([empty.astype(np.int64), *own])
                columns = int(np.prod(rows.shape[1:]))
                store.set_integers(kind, name, rows.astype(np.int64).reshape(-1), columns)
            else:
                store.set_values(kind, name, rows.astype(np.float32))
        store.sort_edges()
        if add_reverse_edges:
            store.add_reverse_edges()
        if add_self_loops:
            store.add_self_loops()
        return store

    def __len__(self):
        return self._count

    def _positions(self, indices):
        """This rank's positions among numbers of graphs, or a mask of all graphs."""
        indices = _rows(indices, self._count, "graphs")
        return indices[(indices >= self._begin) & (indices < self._end)] - self._begin

    def batch(self, indices=None):
        """Collective. The graphs of these numbers, or all, as one graph: a BatchedGraph."""
        return _as_graph(self._store.batch(self.comm, self.comm.agree(lambda: self._positions(indices))))


def _as_graph(batch):
    graph = _sar._batched(batch)
    graph.ndata.update(graph._nodes)
    graph.edata.update(graph._edge_fields)
    return graph


def batch(graphs, labels=None, **options):
    """Collective. Graphs as one graph without edges between them (dgl.batch): GraphSamples(graphs, labels, ...).batch().

        >>> rings = [{"edge_index": [np.arange(n), (np.arange(n) + 1) % n], "x": np.ones((n, 1))} for n in (3, 4, 5)]
        >>> graph = sar.batch(rings)
        >>> graph.num_nodes(), graph.batch_size
        (12, 3)
    """
    return GraphSamples(graphs, labels, **options).batch()


class GraphDataLoader(_Loader):
    """Collective. Iterates over samples in batches, once for each `for` (dgl.dataloading.GraphDataLoader): each batch is a
    BatchedGraph with its fields in ndata, edata and graph_data.

    indices: numbers of the graphs, or a mask, the same on all ranks. batch_size counts graphs of all ranks. Batches do not depend
    on the number of ranks; a rank computes its graphs of a batch, perhaps none. `epoch` is the number of the last epoch that was begun.

        >>> rings = [{"edge_index": [np.arange(n), (np.arange(n) + 1) % n], "x": np.ones((n, 1))} for n in (3, 4, 5)]
        >>> loader = sar.GraphDataLoader(sar.GraphSamples(rings, labels=[0, 1, 0]), batch_size=2, shuffle=False)
        >>> [graph.graph_data["label"].tolist() for graph in loader]
        [[0, 1], [0]]
    """

    def __init__(self, samples, indices=None, batch_size=32, shuffle=True, drop_last=False, per_rank=False, seed=0):
        positions = samples.comm.agree(lambda: samples._positions(indices))
        super().__init__(_sar._SampleLoader(samples.comm, samples._store, positions, batch_size, per_rank, shuffle, drop_last, seed))

    def _given(self, batch):
        return _as_graph(batch)


__all__ = ["BatchedGraph", "GraphDataLoader", "GraphSamples", "batch"]
