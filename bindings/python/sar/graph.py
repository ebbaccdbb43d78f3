# SPDX-License-Identifier: MIT

"""Graphs from arrays and from objects of other packages, and message passing on them."""

import contextlib
import operator
import zlib

import numpy as np

from . import _sar, fn
from ._sar import Communicator, GraphBase, HostGraph, InputError, ShapeError, Tensor


def _integers(values, what):
    array = np.asarray(values)
    if array.ndim != 1:
        raise ShapeError(f"the {what} have {array.ndim} dimensions, expected 1")
    if array.dtype.kind not in "iu" and array.size > 0:
        raise InputError(f"the {what} have dtype {array.dtype}, expected integers")
    return np.ascontiguousarray(array, dtype=np.int64)


def _floats(values, count, what):
    """A number for each of `count` edges, in float32; None of None."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" and array.size > 0:
        raise InputError(f"the {what} have dtype {array.dtype}, expected real numbers")
    if array.shape not in ((count,), (count, 1)):
        raise ShapeError(f"there are {what} of shape {list(array.shape)} for {count} edges, expected one for each")
    return np.ascontiguousarray(array, dtype=np.float32).reshape(-1)


def _check_equal(comm, what, values):
    """Collective. Raises InputError on all ranks unless they give the same arrays and numbers, by name."""
    if comm.size == 1:
        return
    if len(set(comm.all_gather([zlib.crc32("\n".join(values).encode())]))) > 1:
        raise InputError(f"the ranks give {what} with different types, or with weights on some ranks only")
    mine = [zlib.crc32(value.view(np.uint8)) if isinstance(value, np.ndarray) else value for value in values.values()]
    of_ranks = comm.all_gather(mine).reshape(comm.size, len(mine)).astype(np.int64)
    for i, name in enumerate(values):
        other = np.flatnonzero(of_ranks[:, i] != of_ranks[0, i])
        if len(other):
            found = f": {of_ranks[0, i]} and {of_ranks[other[0], i]}" if name.startswith("num") else ""
            raise InputError(f"rank 0 and rank {other[0]} give {what} with different {name}{found}; expected the same whole graph on all "
                             "ranks, or `nodes`")


def _edges_of(given):
    """The ends of edges, their weights, whether these are 1 where the object has none, and the number of nodes, of
    whatever describes a graph."""
    if hasattr(given, "edge_index"):  # torch_geometric.data.Data
        src, dst = np.asarray(given.edge_index)
        weight, rows = getattr(given, "edge_weight", None), getattr(given, "edge_attr", None)
        if weight is None and rows is not None and np.asarray(rows).size == len(src):
            weight = np.asarray(rows).reshape(-1)
        return src, dst, weight, False, int(given.num_nodes)
    if hasattr(given, "tocoo"):  # a sparse matrix of SciPy
        if given.shape[0] != given.shape[1]:
            raise ShapeError(f"a sparse matrix of shape {list(given.shape)}, expected as many rows as columns")
        matrix = given.tocoo()
        return matrix.row, matrix.col, matrix.data, True, given.shape[0]
    if hasattr(given, "ndata") and hasattr(given, "edges"):  # dgl.DGLGraph
        src, dst = given.edges()
        return np.asarray(src), np.asarray(dst), None, False, int(given.num_nodes())
    if hasattr(given, "number_of_nodes") and hasattr(given, "is_directed"):  # networkx
        place = {node: i for i, node in enumerate(given.nodes)}
        pairs = np.array([(place[u], place[v]) for u, v in given.edges()], dtype=np.int64).reshape(-1, 2)
        weight = np.array([weight for _, _, weight in given.edges(data="weight", default=1)])
        if not given.is_directed():
            loops = pairs[:, 0] == pairs[:, 1]
            pairs, weight = np.concatenate([pairs, pairs[~loops][:, ::-1]]), np.concatenate([weight, weight[~loops]])
        return pairs[:, 0], pairs[:, 1], weight, True, len(place)
    try:
        src, dst = given
    except (TypeError, ValueError):
        raise TypeError(f"edges are given as a {type(given).__name__}, expected (sources, destinations), an array [2, edges] "
                        "or a graph of SciPy, NetworkX, DGL or PyG") from None
    return src, dst, None, False, None


def _checked(given, num_nodes, nodes, edge_weight):
    """Ends and weights of edges as arrays, and the number of nodes."""
    src, dst, own_weight, _, own_nodes = given
    src, dst = _integers(src, "sources of edges"), _integers(dst, "destinations of edges")
    if src.shape != dst.shape:
        raise ShapeError(f"there are {len(src)} sources of edges and {len(dst)} destinations, expected equal numbers")
    weight = _floats(own_weight if edge_weight is None else edge_weight, len(src), "weights")
    if nodes is None:
        num_nodes = own_nodes if num_nodes is None else operator.index(num_nodes)
        if num_nodes is None:
            num_nodes = int(max(src.max(), dst.max())) + 1 if len(src) else 0
        _check_ends(src, num_nodes, "an edge has the source")
        _check_ends(dst, num_nodes, "an edge has the destination")
    elif num_nodes is not None:
        raise InputError(f"num_nodes is {num_nodes} beside `nodes`, which say how many nodes there are: expected one of them")
    return src, dst, weight, num_nodes


def _check_ends(ids, num_nodes, what):
    if len(ids) and (ids.min() < 0 or ids.max() >= num_nodes):
        raise InputError(f"{what} {ids.min() if ids.min() < 0 else ids.max()}, expected nodes 0 to {num_nodes - 1}")


def _checked_types(edges, num_nodes, nodes):
    """Ends and weights of the edges of each type as arrays, and the number of nodes of each type, or the ids of `nodes`."""
    if nodes is not None and num_nodes is not None:
        raise InputError("num_nodes beside `nodes`, which say how many nodes there are: expected one of them")
    own = None if nodes is None else {ntype: _integers(ids, f"nodes '{ntype}'") for ntype, ids in nodes.items()}
    known = own if own is not None else None if num_nodes is None else {ntype: operator.index(count) for ntype, count in num_nodes.items()}
    counts, ends = dict(known or {}), {}
    for etype, given in edges.items():
        if not isinstance(etype, tuple) or len(etype) != 3:
            raise InputError(f"an edge type is {etype!r}, expected (source type, relation, destination type)")
        relation = etype[1]
        try:
            src, dst, *weight = given
        except (TypeError, ValueError):
            raise InputError(f"{relation} is given as a {type(given).__name__}, expected (sources, destinations) or (sources, destinations, "
                             "weights)") from None
        if len(weight) > 1:
            raise InputError(f"{relation} has {2 + len(weight)} arrays, expected (sources, destinations) or (sources, destinations, weights)")
        src, dst = _integers(src, f"sources of {relation}"), _integers(dst, f"destinations of {relation}")
        if src.shape != dst.shape:
            raise ShapeError(f"{relation} has {len(src)} sources of edges and {len(dst)} destinations, expected equal numbers")
        ends[etype] = src, dst, _floats(weight[0] if weight else None, len(src), f"weights of {relation}")
        for ntype, ids in ((etype[0], src), (etype[2], dst)):
            if known is None:
                counts[ntype] = max(counts.get(ntype, 0), int(ids.max()) + 1 if len(ids) else 0)
            elif ntype not in known:
                raise InputError(f"{'num_nodes' if nodes is None else '`nodes`'} has no '{ntype}', which {relation} joins")
            if nodes is None:
                _check_ends(ids, counts[ntype], f"an edge of {relation} has the {ntype}")
    return ends, counts


class Graph(HostGraph):
    """Collective. A graph whose nodes are distributed over the ranks.

    edges: (sources, destinations), an array [2, edges], a sparse matrix of SciPy (an edge from row to column for
    each stored value), or a graph of NetworkX, DGL or PyG. Integers are used without a copy where they are 64-bit.
    With node and edge types, {(source type, relation, destination type): (sources, destinations)}, as
    dgl.heterograph; a third array has weights. num_nodes and nodes are dicts by node type then.

    edge_weight: a number for each edge, a constant, which layers and graph.edge_weight read. By default the values of a
    sparse matrix or the attribute "weight" of NetworkX, unless all are 1, and the edge_weight of PyG, or its
    edge_attr with one column. An edge_attr with more columns becomes graph.edata["edge_attr"]. Other attributes of
    nodes and edges, such as DGL's fields, are not read: see edge_rows().

    Without `nodes`, every rank gives the same whole graph with nodes 0 to num_nodes - 1, and keeps a contiguous
    range of them with their in-edges; local_rows() takes this rank's rows of an array of all nodes. With `nodes`,
    each rank gives the ids of the nodes that it owns and some of the edges, each edge on one rank; row i of a node
    tensor is nodes[i]. A pair of ids (sources, destinations) makes a bipartite graph.

    add_reverse_edges adds (v, u) for each edge (u, v), with its weight; then add_self_loops adds (v, v) for each
    node, with weight 1, or with "remaining" for each node that has none on any rank. Edge ids count the edges in this
    order. These, edge_weight and edge_ids are for a graph without types. Options are those of set_options(). Raises
    InputError or ShapeError on all ranks for edges between other nodes, arrays of different lengths and ranks with
    different whole graphs.

    graph[relation] is the graph of an edge type; fields are graph.nodes[type].data and graph[relation].edata.
    """

    def __init__(self, edges, num_nodes=None, *, nodes=None, edge_weight=None, edge_ids=None, add_reverse_edges=False,
                 add_self_loops=False, comm=None, **options):
        comm = _sar.get_communicator() if comm is None else comm
        comm = comm if isinstance(comm, Communicator) else Communicator(comm)
        self._relations = {}
        if isinstance(edges, dict):
            for name, value in (("edge_weight", edge_weight), ("edge_ids", edge_ids), ("add_reverse_edges", add_reverse_edges),
                                ("add_self_loops", add_self_loops)):
                if value is not None and value is not False:
                    hint = ", expected weights as the third array of an edge type" if name == "edge_weight" else ", expected a graph without"
                    raise InputError(f"{name} of a graph with types{hint}")
            self._init_types(comm, edges, num_nodes, nodes)
            self.set_options(**options)
            return
        given = _edges_of(edges)
        src, dst, weight, num_nodes = comm.agree(lambda: _checked(given, num_nodes, nodes, edge_weight))
        if edge_weight is None and given[3] and comm.all_reduce(float(np.any(weight != 1)), "max") == 0:
            weight = None
        if edge_ids is not None and (add_reverse_edges or add_self_loops or nodes is None):
            raise InputError("edge_ids are given, which goes with `nodes`, without add_reverse_edges and add_self_loops")
        if add_self_loops and add_self_loops not in (True, "remaining"):
            raise InputError(f"add_self_loops is {add_self_loops!r}, expected True, False or 'remaining'")
        if add_self_loops and isinstance(nodes, tuple):
            raise InputError("add_self_loops of a bipartite graph")
        self._reversed = bool(add_reverse_edges)
        num_given = len(src)
        if add_reverse_edges:
            src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
            weight = None if weight is None else np.concatenate([weight, weight])
        whole = nodes is None
        if whole:
            begin, end = _range(comm, num_nodes)
            mine = np.arange(begin, end)
        else:
            mine = nodes
        self._loops = 0
        if add_self_loops:
            loops = np.arange(num_nodes) if whole else _integers(nodes, "nodes")
            if add_self_loops == "remaining":
                own = src[src == dst]
                if whole:
                    loops = np.setdiff1d(loops, own)
                else:  # another rank may give a loop of this rank's nodes
                    loops = loops[np.asarray(HostGraph(comm, loops, own, own, None, None).in_degrees()).reshape(-1) == 0]
            self._loops = len(loops)
            src, dst = np.concatenate([src, loops]), np.concatenate([dst, loops])
            weight = None if weight is None else np.concatenate([weight, np.ones(len(loops), np.float32)])
        if whole:
            _check_equal(comm, "a graph", {"num_nodes": num_nodes, "numbers of edges": len(src), "sources of edges": src,
                                           "destinations of edges": dst, **({} if weight is None else {"edge weights": weight})})
        chosen = None
        if whole and comm.size > 1:
            chosen = np.flatnonzero((dst >= begin) & (dst < end))
            src, dst = src[chosen], dst[chosen]
            weight = None if weight is None else weight[chosen]
            edge_ids = chosen
        super().__init__(comm, mine, src, dst, edge_ids, weight, False, options)
        self._counts = {self.ntypes[0]: num_nodes} if whole else None
        self._given = {self.canonical_etypes[0]: (num_given, chosen)}
        rows = getattr(edges, "edge_attr", None) if hasattr(edges, "edge_index") else None
        if rows is not None and np.asarray(rows).size != num_given:
            self.edata["edge_attr"] = _sar.tensor(self.edge_rows(rows))

    def _init_types(self, comm, edges, num_nodes, nodes):
        ends, counts = comm.agree(lambda: _checked_types(edges, num_nodes, nodes))
        self._counts = counts if nodes is None else None
        self._reversed, self._loops, self._given = False, 0, {}
        if nodes is not None:
            self._given = {etype: (len(src), None) for etype, (src, *_) in ends.items()}
            super().__init__(comm, counts, {etype: (*given, None) for etype, given in ends.items()})
            return
        given = {f"num_nodes of '{ntype}'": count for ntype, count in counts.items()}
        for (_, relation, _), (src, dst, weight) in ends.items():
            given.update({f"numbers of edges of '{relation}'": len(src), f"sources of '{relation}'": src, f"destinations of '{relation}'": dst})
            given.update({} if weight is None else {f"weights of '{relation}'": weight})
        _check_equal(comm, "a graph", given)
        mine = {}
        for etype, (src, dst, weight) in ends.items():
            begin, end = _range(comm, counts[etype[2]])
            chosen = np.flatnonzero((dst >= begin) & (dst < end))
            mine[etype] = src[chosen], dst[chosen], None if weight is None else weight[chosen], chosen
            self._given[etype] = len(src), chosen
        super().__init__(comm, {ntype: np.arange(*_range(comm, count)) for ntype, count in counts.items()}, mine)

    def num_edges(self, etype=None):
        """Local. In-edges of this rank's nodes; by default of all types."""
        return super().num_edges() if etype is None else self[etype].num_edges()

    def local_rows(self, rows, ntype=None):
        """Local. This rank's rows of an array with a row for each node of the whole graph; a view of it. ntype: the type
        of these nodes, if there are several."""
        if self._counts is None:
            raise InputError("local_rows() of a graph that was made with `nodes`: give the rows of these nodes")
        if ntype is None and len(self._counts) > 1:
            raise InputError(f"local_rows() of a graph with the node types {self.ntypes}: say of which")
        ntype = self.ntypes[0] if ntype is None else ntype
        if ntype not in self._counts:
            raise InputError(f"there is no node type '{ntype}', expected one of {self.ntypes}")
        count = self._counts[ntype]
        if len(rows) != count:
            raise ShapeError(f"an array of {len(rows)} rows for a graph of {count} nodes{_of_type(self, ntype)}")
        return rows[slice(*_range(self.comm, count))]

    def edge_rows(self, rows, fill=0, etype=None):
        """Collective. A row for each in-edge of this rank's nodes, in the order of edge tensors, from rows for the
        edges that were given to Graph(). A reverse edge has the row of its edge, an added self loop has `fill`. The result
        is a constant. etype: the type of these edges, if there are several."""
        if etype is None and len(self._given) > 1:
            raise InputError(f"edge_rows() of a graph with the edge types {self.canonical_etypes}: say of which")
        etype = self.canonical_etypes[0] if etype is None else self.canonical(etype)
        if etype not in self._given:
            raise InputError(f"there is no edge type {etype}, expected one of {self.canonical_etypes}")
        num_given, chosen = self._given[etype]
        rows = np.asarray(rows, dtype=np.float32)
        if len(rows) != num_given:
            raise ShapeError(f"{len(rows)} rows for {num_given} edges that were given{_of_type(self, etype[1])}")
        parts = [rows] * (2 if self._reversed else 1)
        parts.append(np.full((self._loops, *rows.shape[1:]), fill, np.float32))
        rows = np.concatenate(parts)
        return self._to_graph_order(etype, rows if chosen is None else rows[chosen])

    def _frame_of(self, ntype):
        if not self.is_homogeneous:
            return self.__dict__.setdefault("_frames", {}).setdefault(ntype, {})
        return _srcdata(self) if ntype == self.ntypes[0] else _dstdata(self)

    @property
    def nodes(self):
        """graph.nodes[type].data has the fields of the nodes of a type."""
        return {ntype: _Nodes(self._frame_of(ntype)) for ntype in self.ntypes}

    def __getitem__(self, etype):
        etype = self.canonical(etype)
        if etype not in self._relations:
            relation = super().__getitem__(etype)
            relation.__dict__["_srcdata"], relation.__dict__["_dstdata"] = self._frame_of(etype[0]), self._frame_of(etype[2])
            self._relations[etype] = relation
        return self._relations[etype]

    def multi_update_all(self, messages, cross_reducer):
        """Collective. {etype: (fn.copy_u(...), fn.sum(...))} for several edge types, and the reduction of their results
        at each node type: sum, mean, max, min or stack. Halo rows that several read are fetched once. Returns the rows
        of each node type that a relation reaches, or writes the fields that the reductions name."""
        direct, out = {}, {}
        for etype, (message, reduction) in messages.items():
            etype = self.canonical(etype)
            if not isinstance(message, fn.Message) or (message.op, message.lhs) != ("copy", "u"):
                raise InputError("multi_update_all() takes fn.copy_u; compute others by graph[etype].update_all()")
            rows = self._frame_of(etype[0])[message.left] if isinstance(message.left, str) else message.left
            reduction = fn.Reduction(reduction) if isinstance(reduction, str) else reduction
            direct[etype] = rows, reduction.name
            out[etype[2]] = reduction.out
        result = self._multi_update_all(direct, cross_reducer)
        if not any(out.values()):
            return result
        for ntype, rows in result.items():
            self._frame_of(ntype)[out[ntype]] = rows
        return None


class _Nodes:
    def __init__(self, data):
        self.data = data


def _range(comm, count):
    """The nodes of this rank of a whole graph."""
    return [count * r // comm.size for r in (comm.rank, comm.rank + 1)]


def _of_type(graph, name):
    return "" if graph.is_homogeneous else f" of the type '{name}'"


class _Ends:
    """edges.src(x), or edges.src["h"] of a field, in a message function."""

    def __init__(self, read, frame):
        self._read, self._frame = read, frame

    def __call__(self, x):
        return self._read(x)

    def __getitem__(self, name):
        return self._read(self._frame[name])


class _Edges:
    """The edges of a chunk, as a message function gets them."""

    def __init__(self, batch, frames):
        self.num_edges = batch.num_edges
        self.src, self.dst = _Ends(batch.src, frames["u"]), _Ends(batch.dst, frames["v"])
        self.edata = self.data = _Ends(batch.edata, frames["e"])

    def batch_size(self):
        return self.num_edges


def _frame(graph, name):
    return graph.__dict__.setdefault(name, {})


def _srcdata(graph):
    return _frame(graph, "_srcdata")


def _dstdata(graph):
    whole = graph.is_block and not isinstance(graph, _sar.Block)
    return _frame(graph, "_srcdata" if whole else "_dstdata")


def _ndata(graph):
    if not graph.is_block or isinstance(graph, _sar.Block):
        raise InputError("ndata of a graph whose sources and destinations differ, expected srcdata or dstdata")
    return _frame(graph, "_srcdata")


def _edata(graph):
    return _frame(graph, "_edata")


def _frames(graph):
    return {"u": _srcdata(graph), "v": _dstdata(graph), "e": _edata(graph)}


class _Function:
    """A message function of the user, as the library calls it: on every rank, also where it has no edges. `name` is the
    field that its result names. The backward pass calls it again, so it reads the fields of the time of the call."""

    def __init__(self, graph, message):
        self._frames = {end: dict(frame) for end, frame in _frames(graph).items()}
        self._message, self.name = message, None

    def __call__(self, batch):
        result = self._message(_Edges(batch, self._frames))
        if isinstance(result, dict):
            if len(result) != 1:
                raise InputError(f"a message function returned {len(result)} fields, expected one")
            ((self.name, result),) = result.items()
        return result


def _update_all(graph, message, reduce):
    """Collective. Computes a message for each edge and reduces the messages at each destination.

    message: one of sar.fn, or a function of a chunk of edges that returns a row for each: it reads
    edges.src(x), edges.dst(x) and edges.edata(x), or fields as edges.src["h"]. The interpreter runs it for one
    chunk at a time. reduce: one of sar.fn, or its name. Returns [destinations, ...], or writes the field that
    `reduce` names.
    """
    reduction = fn.Reduction(reduce) if isinstance(reduce, str) else reduce
    if not isinstance(reduction, fn.Reduction):
        raise TypeError(f"the reduction is a {type(reduce).__name__}, expected fn.sum, fn.mean, fn.max or fn.min")
    if isinstance(message, fn.Message):
        if reduction.message is not None and message.out != reduction.message:
            raise InputError(f"the reduction reads the message '{reduction.message}', expected '{message.out}'")
        result = graph._update_all(message.op, message.lhs, message.rhs, *message.operands(_frames(graph)), reduction.name)
    elif callable(message):
        result = graph._update_all_by(_Function(graph, message), reduction.name)
    else:
        raise TypeError(f"the message is a {type(message).__name__}, expected one of sar.fn or a function")
    if reduction.out is None:
        return result
    _dstdata(graph)[reduction.out] = result
    return None


def _apply_edges(graph, message, out=None):
    """Collective. The message of each edge, [edges, ...]; or writes the field of edata that it names, or that a function
    names by returning {name: rows}."""
    if isinstance(message, fn.Message):
        out = message.out if out is None else out
        result = graph._apply_edges(message.op, message.lhs, message.rhs, *message.operands(_frames(graph)))
    elif callable(message):
        function = _Function(graph, message)
        result = graph._apply_edges_by(function)
        out = function.name if out is None else out
    else:
        raise TypeError(f"the message is a {type(message).__name__}, expected one of sar.fn or a function")
    if out is None:
        return result
    _edata(graph)[out] = result
    return None


def _canonical(graph, etype):
    """Local. (source type, relation, destination type) of a relation's name."""
    if isinstance(etype, tuple):
        return etype
    found = [each for each in graph.canonical_etypes if etype in (each[1], ":".join(each))]
    if len(found) != 1:
        raise InputError(f"the graph has {len(found)} edge types '{etype}', expected one of {graph.canonical_etypes}")
    return found[0]


@contextlib.contextmanager
def _local_scope(graph):
    """While it lasts, changes of the fields are undone at its end."""
    frames = [_srcdata(graph), _dstdata(graph), _edata(graph)]
    before = [dict(frame) for frame in frames]
    try:
        yield
    finally:
        for frame, fields in zip(frames, before):
            frame.clear()
            frame.update(fields)


GraphBase.update_all = _update_all
GraphBase.apply_edges = _apply_edges
GraphBase.local_scope = _local_scope
GraphBase.canonical = _canonical
GraphBase.etypes = property(lambda graph: [relation for _, relation, _ in graph.canonical_etypes],
                            doc="The names of the relations, in the order of canonical_etypes.")
GraphBase.ndata = property(_ndata, doc="Fields of the nodes: tensors by name.")
GraphBase.srcdata = property(_srcdata, doc="Fields of the sources.")
GraphBase.dstdata = property(_dstdata, doc="Fields of the destinations.")
GraphBase.edata = property(_edata, doc="Fields of the edges, in the order of edge_ids.")
