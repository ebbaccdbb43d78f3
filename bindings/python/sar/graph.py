# SPDX-License-Identifier: MIT

"""Graphs from arrays and from objects of other packages, and message passing on them."""

import contextlib
import html
import json
import operator
import zlib
from collections import namedtuple
from types import SimpleNamespace

import numpy as np

from . import _sar, fn
from ._arguments import given as _in_words
from ._sar import Communicator, GraphBase, HostGraph, InputError, ShapeError, Tensor


def _count(value, what):
    try:
        return operator.index(value)
    except TypeError:
        raise InputError(f"{what} is {_in_words(value)}, expected an integer") from None


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
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        edge = int(np.argmin(np.isfinite(array.reshape(-1))))
        raise InputError(f"the {what} have {array.reshape(-1)[edge]} at edge {edge}, expected finite numbers")
    return np.ascontiguousarray(array, dtype=np.float32).reshape(-1)


def _check_equal(comm, what, values):
    """Collective. Raises InputError on all ranks unless they give the same arrays and numbers, by name."""
    if comm.size == 1:
        return
    if len(set(comm.all_gather([zlib.crc32("\n".join(values).encode())]))) > 1:
        raise InputError(f"the ranks give {what} with different types, or with weights on some ranks only")
    mine = [zlib.crc32(value.view(np.uint8).data) if isinstance(value, np.ndarray) else value for value in values.values()]
    of_ranks = comm.all_gather(mine).reshape(comm.size, len(mine))
    for i, name in enumerate(values):
        other = np.flatnonzero(of_ranks[:, i] != of_ranks[0, i])
        if len(other):
            found = f": {of_ranks[0, i]} and {of_ranks[other[0], i]}" if name.startswith("num") else ""
            raise InputError(f"rank 0 and rank {other[0]} give {what} with different {name}{found}; expected the same whole graph on all "
                             "ranks, or `nodes`")


# What an object describes: the ends of edges, their weights, whether these are 1 where the object has none, the number of nodes, and
# the fields of nodes and edges: arrays by name.
_Given = namedtuple("_Given", ["src", "dst", "weight", "weight_is_default", "num_nodes", "nodes", "edges"], defaults=[None, False, None, {}, {}])

_COLUMNS = {"source": ("source", "src", "u", "from"), "target": ("target", "dst", "v", "to", "destination"), "weight": ("weight",)}


def _numeric(values):
    """An array of numbers; None of anything else. Tensors of torch are constants here, also in a type that NumPy has not."""
    try:
        values = values.detach() if hasattr(values, "detach") else values
        array = np.asarray(values.float() if str(getattr(values, "dtype", "")) == "torch.bfloat16" else values)
    except (TypeError, ValueError, RuntimeError):
        return None
    return array if array.dtype.kind in "fiub" else None


def _field(values, count):
    """An array of numbers with `count` rows; None of anything else."""
    array = _numeric(values)
    return array if array is not None and array.ndim > 0 and len(array) == count else None


def _fields(items, count):
    """The items that are fields, by name."""
    found = {str(name): _field(values, count) for name, values in items}
    return {name: values for name, values in found.items() if values is not None}


def _node_fields(items, count, nodes=None):
    """The fields of an object with `count` nodes; with `nodes`, the ids of those that this rank owns, fields with a row for each of
    them."""
    if nodes is None:
        return _fields(items, count)
    items, ends = list(items), nodes if isinstance(nodes, tuple) and len(nodes) == 2 else (nodes,)
    owned = len(_integers(nodes, "nodes")) if len(ends) == 1 else -1
    found = _fields(items, owned)
    for name in _fields(items, count) if count != owned else ():
        wanted = f"a row for each of the {owned} `nodes` of this rank" if len(ends) == 1 else "no fields in a graph with different sources and destinations"
        raise ShapeError(f"the field '{name}' has {count} rows, expected {wanted}")
    return found


def _items(store):
    """Names and values of a Data of PyG, or of the store of a type."""
    if hasattr(store, "items") or hasattr(store, "to_dict"):
        return list((store if hasattr(store, "items") else store.to_dict()).items())
    return [(name, getattr(store, name)) for name in dir(store) if not name.startswith("_")]


def _fields_of_ranks(comm, fields, count, what):
    """Collective. The fields of nodes or edges in an order that is the same on all ranks; a rank without `count` of them, which may not
    know the fields, has them without rows."""
    if comm.size == 1:
        return fields
    kinds = {name: ["float" if values.dtype.kind == "f" else "bool" if values.dtype == bool else "int", *values.shape[1:]]
             for name, values in sorted(fields.items())}
    mine = json.dumps(kinds) if count else ""
    texts = bytes(comm.all_gather(list((mine + "\n").encode())).astype(np.uint8)).decode().split("\n")
    found = sorted(set(filter(None, texts)))
    if len(found) > 1:
        raise InputError(f"the ranks give fields of {what} with different names, types or widths: {found[0]} and {found[1]}")
    return {name: fields[name] if count else np.zeros((0, *width), kind) for name, (kind, *width) in json.loads(found[0] if found else "{}").items()}


def _common_attributes(attributes, count, without=()):
    """The attributes that all nodes or edges of NetworkX have and that are numbers."""
    first = attributes[0] if attributes else {}
    names = [name for name in first if name not in without and all(name in each for each in attributes)]
    found = []
    for name in names:
        try:
            found.append((name, np.array([each[name] for each in attributes])))
        except ValueError:  # arrays of different lengths
            pass
    return _fields(found, count)


def _pyg_edges(store, num_nodes, owned=None):
    """A Data of PyG, or the edges of a type."""
    if store.edge_index is None:  # of the transform ToSparseTensor: adj_t[destination, source]
        dst, src, value = _sparse_entries(store.adj_t)
        store = SimpleNamespace(**{**dict(_items(store)), "edge_index": np.array([src, dst]), "edge_weight": value})
    src, dst = np.asarray(store.edge_index)
    weight, rows = getattr(store, "edge_weight", None), _numeric(getattr(store, "edge_attr", None))
    taken = {"edge_index", "edge_weight"}
    if weight is None and rows is not None and rows.size == len(src):
        weight, taken = rows.reshape(-1), taken | {"edge_attr"}
    items = [(name, value) for name, value in _items(store) if name not in taken]
    edges = _fields([(name, value) for name, value in items if "edge" in str(name)], len(src))
    nodes = _node_fields([(name, value) for name, value in items if "edge" not in str(name)], num_nodes, owned)
    return _Given(src, dst, weight, False, num_nodes, nodes, edges)


def _sparse_entries(matrix):
    """Rows, columns and values of a sparse matrix of SciPy or torch, or of a SparseTensor of torch_sparse."""
    if hasattr(matrix, "coo"):
        row, column, value = matrix.coo()
        return np.asarray(row), np.asarray(column), None if value is None else np.asarray(value)
    if hasattr(matrix, "to_sparse_coo"):
        entries = matrix.detach().to_sparse_coo().coalesce()
        return *np.asarray(entries.indices()), np.asarray(entries.values())
    entries = matrix.tocoo()
    return entries.row, entries.col, entries.data


def _is_sparse(given):
    """Whether an object is a sparse matrix of SciPy or torch."""
    return hasattr(given, "tocoo") or hasattr(given, "to_sparse_coo") and str(given.layout) != "torch.strided"


def _networkx_edges(given, owned=None):
    place = {node: i for i, node in enumerate(given.nodes)}
    if owned is not None:  # nodes are called by their ids
        place = dict(zip(place, _integers(list(place), "nodes of NetworkX beside `nodes`")))
    ends = list(given.edges(data=True))
    pairs = np.array([(place[u], place[v]) for u, v, _ in ends], dtype=np.int64).reshape(-1, 2)
    weight = np.array([data.get("weight", 1) for _, _, data in ends])
    edges = _common_attributes([data for _, _, data in ends], len(ends), without=("weight",))
    if not given.is_directed():
        back = np.flatnonzero(pairs[:, 0] != pairs[:, 1])
        pairs, weight = np.concatenate([pairs, pairs[back][:, ::-1]]), np.concatenate([weight, weight[back]])
        edges = {name: np.concatenate([values, values[back]]) for name, values in edges.items()}
    if owned is None or (isinstance(owned, tuple) and len(owned) == 2):
        nodes = _common_attributes([data for _, data in given.nodes(data=True)], len(place))
        nodes = _node_fields(nodes.items(), len(place), owned)
    else:
        mine = {place[node]: data for node, data in given.nodes(data=True)}
        nodes = _common_attributes([mine.get(node, {}) for node in _integers(owned, "nodes").tolist()], len(owned))
    return _Given(pairs[:, 0], pairs[:, 1], weight, True, len(place), nodes, edges)


def _table_edges(given):
    """A DataFrame of pandas with a row for each edge."""
    columns = {}
    for role, names in _COLUMNS.items():
        found = [name for name in given.columns if str(name).lower() in names]
        if len(found) > 1 or (not found and role != "weight"):
            raise InputError(f"a table has the columns {list(given.columns)}, expected one called {' or '.join(names)}")
        columns[role] = found[0] if found else None
    src, dst = (np.asarray(given[columns[role]]) for role in ("source", "target"))
    weight = None if columns["weight"] is None else np.asarray(given[columns["weight"]])
    others = [(name, given[name]) for name in given.columns if name not in columns.values()]
    return _Given(src, dst, weight, edges=_fields(others, len(src)))


def _edges_of(given, owned=None):
    """What an object without types describes. owned: the ids of the nodes of this rank, or None."""
    if isinstance(given, GraphBase):
        raise InputError("a sar.Graph is given, expected arrays or a graph of another package; sar.add_self_loop() and other transforms make "
                         "a graph of one")
    if hasattr(given, "edge_index"):  # torch_geometric.data.Data
        return _pyg_edges(given, int(given.num_nodes), owned)
    if _is_sparse(given):
        if given.shape[0] != given.shape[1]:
            raise ShapeError(f"a sparse matrix of shape {list(given.shape)}, expected as many rows as columns")
        src, dst, weight = _sparse_entries(given)
        return _Given(src, dst, weight, True, given.shape[0])
    if hasattr(given, "ndata") and hasattr(given, "edges"):  # dgl.DGLGraph
        src, dst = given.edges()
        count = int(given.num_nodes())
        return _Given(np.asarray(src), np.asarray(dst), None, False, count, _node_fields(dict(given.ndata).items(), count, owned),
                      _fields(dict(getattr(given, "edata", {})).items(), len(src)))
    if hasattr(given, "number_of_nodes") and hasattr(given, "is_directed"):  # networkx
        return _networkx_edges(given, owned)
    if hasattr(given, "columns") and hasattr(given, "iloc"):  # pandas.DataFrame
        return _table_edges(given)
    try:
        src, dst = given
        if isinstance(given, list) and all(isinstance(end, tuple) and len(end) == 2 for end in given):
            raise TypeError("two edges, or sources and destinations")
    except (TypeError, ValueError):
        raise InputError(f"edges are given as {_in_words(given)}, expected (sources, destinations), an array [2, edges] "
                        "or a graph of SciPy, NetworkX, DGL, PyG or pandas") from None
    return _Given(src, dst)


def _types_of(given, owned=None):
    """What an object with types describes, by edge type, and the numbers and fields of the nodes by node type; None of others. owned: the
    ids of the nodes of this rank by type, or None."""
    owned = owned if isinstance(owned, dict) else {}
    if hasattr(given, "edge_types") and hasattr(given, "node_types"):  # torch_geometric.data.HeteroData
        counts = {ntype: int(given[ntype].num_nodes) for ntype in given.node_types}
        edges = {tuple(etype): _pyg_edges(given[tuple(etype)], -1) for etype in given.edge_types}
        return edges, counts, {ntype: _node_fields(_items(given[ntype]), count, owned.get(ntype)) for ntype, count in counts.items()}
    if hasattr(given, "canonical_etypes") and hasattr(given, "ntypes") and max(len(given.canonical_etypes), len(given.ntypes)) > 1:
        counts, edges = {ntype: int(given.num_nodes(ntype)) for ntype in given.ntypes}, {}
        for etype in given.canonical_etypes:
            src, dst = (np.asarray(ends) for ends in given.edges(etype=etype))
            edges[tuple(etype)] = _Given(src, dst, edges=_fields(dict(given.edges[etype].data).items(), len(src)))
        return edges, counts, {ntype: _node_fields(dict(given.nodes[ntype].data).items(), count, owned.get(ntype))
                               for ntype, count in counts.items()}
    return None


def _as_rows(values):
    """A field: numbers with a point as a tensor, integers and bools as an array."""
    if isinstance(values, Tensor) or values.dtype.kind == "f":
        return _sar.tensor(values)
    return values if values.dtype == bool else np.ascontiguousarray(values, np.int64)


_PART = 1 << 22  # a part of an integer that float32 has exactly


def _edge_field(graph, values, etype):
    """edge_rows() of an array of any numbers."""
    if values.dtype.kind == "f":
        return graph.edge_rows(values, etype=etype)
    numbers = values.astype(np.int64)
    parts = np.stack([numbers % _PART, numbers // _PART % _PART, numbers // _PART // _PART], -1)
    low, middle, high = np.moveaxis(graph.edge_rows(parts, etype=etype).numpy().astype(np.int64), -1, 0)
    return (low + _PART * (middle + _PART * high)).astype(bool if values.dtype == bool else np.int64)


def _checked(given, num_nodes, nodes, edge_weight):
    """Ends and weights of edges as arrays, and the number of nodes."""
    src, dst, own_weight, _, own_nodes, *_ = given
    src, dst = _integers(src, "sources of edges"), _integers(dst, "destinations of edges")
    if src.shape != dst.shape:
        raise ShapeError(f"there are {len(src)} sources of edges and {len(dst)} destinations, expected equal numbers")
    weight = _floats(own_weight if edge_weight is None else edge_weight, len(src), "weights")
    if nodes is None:
        num_nodes = own_nodes if num_nodes is None else _count(num_nodes, "num_nodes")
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


def _remaining_loops(comm, src, dst, nodes):
    """Returns the positions of the edges that stay, and the nodes that have a loop. Of the loops of a node the last one stays: that of the
    highest rank, and there the last in the list. Collective if `nodes` are given, those of this rank; without, all ranks have the same edges."""
    own = np.flatnonzero(src == dst)
    of_node, first = np.unique(src[own][::-1], return_index=True)
    last = own[::-1][first]
    have_loop = of_node
    if nodes is not None:
        contested = np.unique(comm.all_gather(np.setdiff1d(of_node, nodes)))  # given by other ranks than the owner
        mine = np.intersect1d(of_node, contested)
        givers = np.repeat(np.arange(comm.size), comm.all_gather([len(mine)]))
        given, latest = np.unique(comm.all_gather(mine)[::-1], return_index=True)
        last = last[~np.isin(of_node, given[givers[::-1][latest] != comm.rank])]
        have_loop = np.union1d(of_node, contested)
    return np.setdiff1d(np.arange(len(src)), np.setdiff1d(own, last)), have_loop


def _checked_types(edges, num_nodes, nodes):
    """Ends and weights of the edges of each type as arrays, and the number of nodes of each type, or the ids of `nodes`."""
    for name, given in (("num_nodes", num_nodes), ("nodes", nodes)):
        if given is not None and not isinstance(given, dict):
            raise InputError(f"{name} of a graph with types is a {type(given).__name__}, expected a dict by node type")
    if nodes is not None and num_nodes is not None:
        raise InputError("num_nodes beside `nodes`, which say how many nodes there are: expected one of them")
    own = None if nodes is None else {ntype: _integers(ids, f"nodes '{ntype}'") for ntype, ids in nodes.items()}
    known = own if own is not None else None if num_nodes is None else {ntype: _count(count, f"num_nodes of '{ntype}'") for ntype, count in num_nodes.items()}
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
    each stored value), a DataFrame of pandas with the columns source and target, or a graph of NetworkX, DGL or PyG.
    Integers are used without a copy where they are 64-bit. With node and edge types, {(source type, relation,
    destination type): (sources, destinations)}, as dgl.heterograph, or a HeteroData of PyG or a graph with types of DGL;
    a third array has weights. num_nodes and nodes are dicts by node type then.

    edge_weight: a number for each edge, a constant: graph.edge_weight, which sar.GraphModel reads, and a layer if it is an
    argument, conv(graph, x, graph.edge_weight). By default the values of a sparse matrix or the attribute "weight" of NetworkX, unless all are 1, the column "weight" of pandas, and the edge_weight of
    PyG, or its edge_attr with one column. Other numbers of nodes and edges become fields, ndata and edata, with the rows of this
    rank: what a Data of PyG, DGL's ndata and edata, all nodes or all edges of NetworkX and the other columns of pandas have.
    Numbers with a point are tensors there, labels and masks arrays of NumPy.

    Without `nodes`, every rank gives the same whole graph with nodes 0 to num_nodes - 1, and keeps a contiguous
    range of them with their in-edges; local_rows() takes this rank's rows of an array of all nodes. With `nodes`,
    each rank gives the ids of the nodes that it owns and some of the edges, each edge on one rank; row i of a node
    tensor, and of a field of the object that is given, is nodes[i]. NetworkX has the ids as its nodes then. A pair of ids (sources, destinations) makes a bipartite graph.

    add_reverse_edges adds (v, u) for each edge (u, v), with its weight, so that a self loop is there twice; then
    add_self_loops adds (v, v) for each node, with weight 1. With "remaining", each node has one loop: the last one that is given,
    otherwise an added one (PyG's add_remaining_self_loops). Edge ids count the edges in this order. These, edge_weight and
    edge_ids are for a graph without types. Options are those of set_options(). Raises
    InputError or ShapeError on all ranks for edges between other nodes, arrays of different lengths and ranks with
    different whole graphs.

    graph[relation] is the graph of an edge type; fields are graph.nodes[type].data and graph[relation].edata.

        >>> graph = sar.Graph(([0, 1, 2], [1, 2, 0]), num_nodes=4, add_self_loops=True)
        >>> graph.num_nodes(), graph.num_edges()
        (4, 7)
        >>> hetero = sar.Graph({("user", "plays", "game"): ([0, 1], [0, 0])}, {"user": 2, "game": 1})
        >>> hetero["plays"].num_edges()
        2
    """

    def __init__(self, edges, num_nodes=None, *, nodes=None, edge_weight=None, edge_ids=None, add_reverse_edges=False,
                 add_self_loops=False, comm=None, **options):
        comm = _sar.get_communicator() if comm is None else comm
        comm = comm if isinstance(comm, Communicator) else Communicator(comm)
        self._relations = {}
        edges = edges.tocoo() if hasattr(edges, "tocoo") else edges  # a DOK matrix of SciPy is a dict
        typed = None if isinstance(edges, dict) else comm.agree(lambda: _types_of(edges, nodes))
        described, of_nodes = {}, {}
        if typed is not None:
            described, counts, of_nodes = typed
            edges = {etype: (each.src, each.dst) if each.weight is None else (each.src, each.dst, each.weight)
                     for etype, each in described.items()}
            num_nodes = counts if num_nodes is None and nodes is None else num_nodes
        if isinstance(edges, dict):
            for name, value in (("edge_weight", edge_weight), ("edge_ids", edge_ids), ("add_reverse_edges", add_reverse_edges),
                                ("add_self_loops", add_self_loops)):
                if value is not None and value is not False:
                    hint = ", expected weights as the third array of an edge type" if name == "edge_weight" else ", expected a graph without"
                    raise InputError(f"{name} of a graph with types{hint}")
            self._init_types(comm, edges, num_nodes, nodes)
            self.set_options(**options)
            if typed is not None:
                for ntype in self.ntypes:
                    self._take_node_fields(of_nodes.get(ntype, {}), ntype)
                for etype in self.canonical_etypes:
                    self._take_edge_fields(described[etype].edges, etype)
            return
        given = comm.agree(lambda: _edges_of(edges, nodes))
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
        begin, end = _range(comm, num_nodes) if whole else (0, 0)
        mine = np.arange(begin, end) if whole else nodes
        self._loops, chosen = 0, None
        if add_self_loops:
            loops = np.arange(num_nodes) if whole else comm.agree(lambda: _integers(nodes, "nodes"))
            kept = np.arange(len(src))
            if add_self_loops == "remaining":
                kept, have_loop = _remaining_loops(comm, src, dst, None if whole else loops)
                loops = np.setdiff1d(loops, have_loop)
            self._loops = len(loops)
            if len(kept) < len(src):
                chosen = np.concatenate([kept, np.arange(len(src), len(src) + len(loops))])
                edge_ids = chosen if whole else None
            src, dst = np.concatenate([src[kept], loops]), np.concatenate([dst[kept], loops])
            weight = None if weight is None else np.concatenate([weight[kept], np.ones(len(loops), np.float32)])
        if whole:
            _check_equal(comm, "a graph", {"num_nodes": num_nodes, "numbers of edges": len(src), "sources of edges": src,
                                           "destinations of edges": dst, **({} if weight is None else {"edge weights": weight})})
        if whole and comm.size > 1:
            mine_of = np.flatnonzero((dst >= begin) & (dst < end))
            src, dst = src[mine_of], dst[mine_of]
            weight = None if weight is None else weight[mine_of]
            edge_ids = chosen = mine_of if chosen is None else chosen[mine_of]
        super().__init__(comm, mine, src, dst, edge_ids, weight, False, options)
        self._counts = {self.ntypes[0]: num_nodes} if whole else None
        self._given = {self.canonical_etypes[0]: (num_given, chosen)}
        self._take_node_fields(given.nodes, self.ntypes[0])
        self._take_edge_fields(given.edges, self.canonical_etypes[0])

    def _take_node_fields(self, fields, ntype):
        if self._counts is None:
            fields = _fields_of_ranks(self.comm, fields, self.num_nodes(ntype), "nodes")
        for name, values in fields.items():
            self._frame_of(ntype)[name] = _as_rows(values if self._counts is None else self.local_rows(values, ntype))

    def _take_edge_fields(self, fields, etype):
        frame = _edata(self) if self.is_homogeneous else self[etype].edata
        for name, values in _fields_of_ranks(self.comm, fields, self._given[etype][0], "edges").items():
            frame[name] = _edge_field(self, values, etype)

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
        if not hasattr(rows, "__len__"):
            raise InputError(f"the rows are {_in_words(rows)}, expected an array with a row for each node of the whole graph")
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

        def checked():
            array = np.asarray(rows, dtype=np.float32)
            if array.ndim == 0 or len(array) != num_given:
                raise ShapeError(f"rows of shape {list(array.shape)} for {num_given} edges that were given{_of_type(self, etype[1])}, "
                                 "expected one for each")
            return array

        rows = self.comm.agree(checked)
        parts = [rows] * (2 if self._reversed else 1)
        parts.append(np.full((self._loops, *rows.shape[1:]), fill, np.float32))
        rows = np.concatenate(parts)
        return self._to_graph_order(etype, rows if chosen is None else rows[chosen])

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


def _frame_of(graph, ntype):
    """The fields of the nodes of a type."""
    if not graph.is_homogeneous:
        frames = graph.__dict__.setdefault("_frames", {})
        return frames.setdefault(ntype, _Frame(graph.num_nodes(ntype), "nodes"))
    return _srcdata(graph) if ntype == graph.ntypes[0] else _dstdata(graph)


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


class _Frame(dict):
    """Fields by name, each with a row for each node or edge of this rank."""

    def __init__(self, rows, of):
        super().__init__()
        self._rows, self._of = rows, of

    def __setitem__(self, name, value):
        self.update({name: value})

    def update(self, *fields, **named):
        fields = dict(*fields, **named)
        for name, value in fields.items():
            shape = list(np.shape(value) if not hasattr(value, "shape") else value.shape)
            if not shape or shape[0] != self._rows:
                raise ShapeError(f"the field {name!r} of the {self._of} has the shape {shape}, expected a row for each of the {self._rows} "
                                 f"{self._of} of this rank")
        super().update(fields)

    def __ior__(self, fields):
        self.update(fields)
        return self

    def setdefault(self, name, value=None):
        if name not in self:
            self[name] = value
        return self[name]


def _frame(graph, name):
    frame = graph.__dict__.get(name)
    if frame is None:
        rows = graph.num_edges() if name == "_edata" else len(graph.src_ids if name == "_srcdata" else graph.dst_ids)
        frame = graph.__dict__.setdefault(name, _Frame(rows, "edges" if name == "_edata" else "nodes"))
    return frame


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
    chunk at a time. reduce: one of sar.fn, or its name, or a function of nodes as DGL's, which is called for the nodes of each
    in-degree: nodes.mailbox["m"] has their messages [nodes, degree, ...] in the order of the edges' ids, nodes.data["h"] their
    rows of fields, and it returns rows or {name: rows}. It must not communicate. Nodes without in-edges get 0. All messages
    are stored then. Returns [destinations, ...], or writes the field that `reduce` names.
    """
    if callable(reduce) and not isinstance(reduce, fn.Reduction):
        return _reduce_by(graph, message, reduce)
    reduction = fn.Reduction(reduce) if isinstance(reduce, str) else reduce
    if not isinstance(reduction, fn.Reduction):
        raise TypeError(f"the reduction is {_in_words(reduce)}, expected fn.{', fn.'.join(_sar.reductions[:-1])} or fn.{_sar.reductions[-1]}")
    if isinstance(message, fn.Message):
        if reduction.message is not None and message.out != reduction.message:
            raise InputError(f"the reduction reads the message '{reduction.message}', expected '{message.out}'")
        result = graph._update_all(message.op, message.lhs, message.rhs, *message.operands(_frames(graph)), reduction.name)
    elif callable(message):
        result = graph._update_all_by(_Function(graph, message), reduction.name)
    else:
        raise TypeError(f"the message is {_in_words(message)}, expected one of sar.fn or a function")
    if reduction.out is None:
        return result
    _dstdata(graph)[reduction.out] = result
    return None


class _NodeBatch:
    """The destinations of one in-degree, as a reduction of the user gets them."""

    def __init__(self, rows, mailbox, frame):
        self.mailbox, self.data = mailbox, _Ends(lambda x: x[rows], frame)
        self._count = len(rows)

    def batch_size(self):
        return self._count


def _buckets(graph):
    """The rows of destinations of each in-degree above 0, and those of their edges, a node's in the order of edge ids. In
    sar.reproducible() for each in-degree that a rank has: what a reduction captures is then summed over all ranks."""
    name = "_degrees_of_all_ranks" if _sar._is_reproducible() else "_degrees"
    if name not in graph.__dict__:
        of_edges = graph._edges()[2]
        order = np.lexsort([graph.edge_ids, of_edges])
        degrees = np.bincount(of_edges, minlength=graph.num_dst_nodes())
        first = np.cumsum(degrees) - degrees
        found, occurring = [], np.unique(degrees[degrees > 0])
        if _sar._is_reproducible():
            occurring = np.unique(graph.comm.all_gather(occurring))
        for degree in occurring if len(occurring) > 0 else [1]:
            rows = np.flatnonzero(degrees == degree)
            found.append((rows, order[first[rows][:, None] + np.arange(degree)]))
        graph.__dict__[name] = found
    return graph.__dict__[name]


def _reduce_by(graph, message, reduce):
    """update_all() with a reduction of the user. It is called on every rank, also where there are no edges."""
    if isinstance(message, fn.Message):
        name = message.out
        messages = graph._apply_edges(message.op, message.lhs, message.rhs, *message.operands(_frames(graph)))
    elif callable(message):
        function = _Function(graph, message)
        messages, name = graph._apply_edges_by(function), function.name
    else:
        raise TypeError(f"the message is {_in_words(message)}, expected one of sar.fn or a function")
    buckets, frame = _buckets(graph), dict(_dstdata(graph))

    def reduced():
        results, names = [], set()
        for rows, edges in buckets:
            mailbox = messages[edges.reshape(-1)].reshape(*edges.shape, *messages.shape[1:])
            result = reduce(_NodeBatch(rows, {name or "m": mailbox}, frame))
            if isinstance(result, dict):
                if len(result) != 1:
                    raise InputError(f"a reduction returned {len(result)} fields, expected one")
                ((out, result),) = result.items()
                names.add(out)
            if not isinstance(result, Tensor) or result.shape[0] != len(rows):
                given = f"rows of shape {list(result.shape)}" if isinstance(result, Tensor) else f"a {type(result).__name__}"
                raise InputError(f"a reduction returned {given} for {len(rows)} nodes, expected a sar.Tensor with a row for each")
            results.append(result)
        count = graph.num_dst_nodes()
        done = np.concatenate([rows for rows, _ in buckets])
        place = np.full(count, len(done))
        place[done] = np.arange(len(done))
        results.append(_sar.zeros([1, *results[0].shape[1:]]))  # of nodes without in-edges
        return _sar.cat(results)[place], names.pop() if names else None

    result, out = graph.comm.agree(reduced)
    if out is None:
        return result
    _dstdata(graph)[out] = result
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
        raise TypeError(f"the message is {_in_words(message)}, expected one of sar.fn or a function")
    if out is None:
        return result
    _edata(graph)[out] = result
    return None


def _all_edges(graph, etype=None):
    """Collective. The ids of the sources and the destinations of this rank's edges, in the order of edge tensors: two arrays. etype:
    the type of the edges, if there are several."""
    if etype is None and not graph.is_homogeneous:
        if len(graph.canonical_etypes) != 1:
            raise InputError(f"edges() of a graph with the edge types {graph.canonical_etypes}: say of which")
        etype = graph.canonical_etypes[0]
    src, dst, _ = (graph if etype is None else graph[_canonical(graph, etype)])._edges()
    return src, dst


def _numbers_of_ids(graph, src, dst):
    """The global ids of the ends of pairs."""
    src, dst = graph.comm.agree(lambda: (_integers(src, "sources of pairs"), _integers(dst, "destinations of pairs")))
    return _global_ids(graph.comm, graph.src_ids, src), _global_ids(graph.comm, graph.dst_ids, dst)


def _global_ids(comm, ids, given):
    """They are found by the ids of the nodes of all ranks, unless these are 0, 1, 2, ..."""
    counts = comm.all_gather([len(ids)])
    same = np.array_equal(ids, counts[:comm.rank].sum() + np.arange(len(ids)))
    if comm.all_reduce(float(same), "min") == 1:
        comm.agree(lambda: _check_known(given, (given < 0) | (given >= counts.sum())))
        return given
    everywhere = comm.all_gather(ids)
    order = np.argsort(everywhere)

    def found():
        place = order[np.minimum(np.searchsorted(everywhere[order], given), len(order) - 1)]
        _check_known(given, everywhere[place] != given)
        return place

    return comm.agree(found)


def _check_known(given, is_wrong):
    if is_wrong.any():
        raise InputError(f"there is no node {given[is_wrong][0]} in the graph")


def _has_edges_between(graph, u, v, etype=None):
    """Collective. Whether the whole graph has an edge from u[i] to v[i], ids of nodes: an array of bool, or a bool for two numbers. Each
    rank gives pairs of its own, or none. The first call makes a list of the edges, 16 bytes for each. etype: the type of the edges, if
    there are several."""
    if etype is not None:
        graph = graph[etype]
    elif len(graph.canonical_etypes) != 1:
        raise InputError(f"has_edges_between() of a graph with the edge types {graph.canonical_etypes}: say of which")
    if "_edge_set" not in graph.__dict__:
        graph.__dict__["_edge_set"] = _sar._EdgeSet(graph)
    found = graph._edge_set.contains(*_numbers_of_ids(graph, np.atleast_1d(u), np.atleast_1d(v)))
    return bool(found[0]) if np.ndim(u) == np.ndim(v) == 0 else found


def _canonical(graph, etype):
    """Local. (source type, relation, destination type) of a relation's name."""
    if isinstance(etype, tuple):
        return etype
    found = [each for each in graph.canonical_etypes if etype in (each[1], ":".join(each))]
    if len(found) != 1:
        raise InputError(f"the graph has {len(found)} edge types '{etype}', expected one of {graph.canonical_etypes}")
    return found[0]


def _html(graph):
    """What a notebook shows: the text, and a picture of a small graph that is whole on this rank."""
    from .plot import _svg

    return f"<pre>{html.escape(repr(graph))}</pre>" + _svg(graph)


def _repr(graph):
    name = "Block" if isinstance(graph, _sar.Block) else "Graph"
    if graph.is_homogeneous:
        nodes, edges = str(graph.num_global_nodes()), str(graph.num_global_edges())
    else:
        nodes = ", ".join(f"{ntype}: {graph.num_global_nodes(ntype)}" for ntype in graph.ntypes)
        edges = ", ".join(f"{':'.join(etype)}: {graph[etype].num_global_edges()}" for etype in graph.canonical_etypes)
        nodes, edges = "{" + nodes + "}", "{" + edges + "}"
    lines = [f"sar.{name}(nodes={nodes}, edges={edges}; rank {graph.comm.rank} of {graph.comm.size} has {graph.num_nodes()} nodes, "
             f"{graph.num_edges()} in-edges"]
    if name == "Graph":
        plain = graph.is_homogeneous
        frames = [("ndata" if plain and graph.is_block else ntype, _frame_of(graph, ntype)) for ntype in graph.ntypes]
        frames += [("edata" if plain else ":".join(etype), _edata(graph) if plain else graph[etype].edata) for etype in graph.canonical_etypes]
        lines += [f"  {of}: " + ", ".join(f"{field} {list(rows.shape)}" for field, rows in frame.items()) for of, frame in frames if frame]
    return "\n".join(lines) + ")"


@contextlib.contextmanager
def _local_scope(graph):
    """While it lasts, changes of the fields are undone at its end."""
    if graph.is_homogeneous:
        frames = [_srcdata(graph), _dstdata(graph), _edata(graph)]
    else:
        frames = [graph._frame_of(ntype) for ntype in graph.ntypes] + [_edata(graph[etype]) for etype in graph.canonical_etypes]
    before = [dict(frame) for frame in frames]
    try:
        yield
    finally:
        for frame, fields in zip(frames, before):
            frame.clear()
            frame.update(fields)


for _name, _member in {
        "update_all": _update_all, "apply_edges": _apply_edges, "local_scope": _local_scope, "canonical": _canonical, "edges": _all_edges,
        "has_edges_between": _has_edges_between, "__repr__": _repr, "_repr_html_": _html, "_frame_of": _frame_of,
        "etypes": property(lambda graph: [relation for _, relation, _ in graph.canonical_etypes],
                           doc="The names of the relations, in the order of canonical_etypes."),
        "ndata": property(_ndata, doc="Fields of the nodes: tensors by name."),
        "srcdata": property(_srcdata, doc="Fields of the sources."),
        "dstdata": property(_dstdata, doc="Fields of the destinations."),
        "edata": property(_edata, doc="Fields of the edges, in the order of edge_ids.")}.items():
    setattr(GraphBase, _name, _member)
