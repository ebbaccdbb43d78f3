# SPDX-License-Identifier: MIT

"""Graphs from graphs, as dgl's transforms. Each returns another graph with the fields of the nodes and edges that stay; their values
are constants if the edges changed. Ids of nodes stay."""

import numpy as np

from . import _sar
from ._sar import Block, GraphBase, InputError, ShapeError, Tensor
from .graph import Graph, _edata, _edge_field


def _require_plain(graph, what):
    if not graph.is_homogeneous or isinstance(graph, Block) or not graph.is_block:
        raise InputError(f"{what} of a {'block' if isinstance(graph, Block) else 'graph with types or two sets of nodes'}, expected a "
                         "graph of one node type and one edge type")


def _numbers(field):
    return field.numpy() if isinstance(field, Tensor) else field


def _of_edges(graph, etype):
    return _edata(graph) if graph.is_homogeneous else graph[etype].edata


def _rebuilt(graph, src, dst, kept, ids):
    """A graph of the same nodes. kept: the edge row of `graph` whose fields a new edge has, -1: fields of 0 and weight 1."""
    weight = graph.edge_weight
    if weight is not None:
        weight = np.where(kept < 0, 1, _numbers(weight).reshape(-1)[kept] if len(_numbers(weight)) else 1)
    new = Graph((src, dst), nodes=graph.src_ids, edge_ids=ids, edge_weight=weight, comm=graph.comm)
    new._take_options(graph)
    new._counts = getattr(graph, "_counts", None)  # local_rows() is that of the same nodes
    new.ndata.update(graph.ndata)
    for name, field in _edata(graph).items():
        values = _numbers(field)
        rows = values[kept] if len(values) else np.zeros((len(kept), *values.shape[1:]), values.dtype)
        rows[kept < 0] = 0
        new.edata[name] = _edge_field(new, rows, new.canonical_etypes[0])
    return new


def _first_free_id(graph):
    """An id that is larger than those of all edges."""
    ids = graph.edge_ids
    return 1 + graph.comm.all_reduce(int(ids.max()) if len(ids) else -1, "max")


def add_self_loop(graph):
    """Collective. The graph with an edge from each node to itself, beside those that there are (dgl.add_self_loop). Fields of the new
    edges are 0, weights 1.

        >>> graph = sar.Graph(([0, 1, 1], [1, 2, 2]), num_nodes=4)
        >>> sar.add_self_loop(graph).num_edges()
        7
    """
    _require_plain(graph, "add_self_loop()")
    src, dst, _ = graph._edges()
    nodes = graph.src_ids
    kept = np.concatenate([np.arange(len(src)), np.full(len(nodes), -1)])
    ids = np.concatenate([graph.edge_ids, _first_free_id(graph) + nodes])
    return _rebuilt(graph, np.concatenate([src, nodes]), np.concatenate([dst, nodes]), kept, ids)


def remove_self_loop(graph):
    """Collective. The graph without edges from a node to itself (dgl.remove_self_loop).

        >>> graph = sar.Graph(([0, 1], [1, 1]), num_nodes=2)
        >>> sar.remove_self_loop(graph).num_edges()
        1
    """
    _require_plain(graph, "remove_self_loop()")
    src, dst, _ = graph._edges()
    kept = np.flatnonzero(src != dst)
    return _rebuilt(graph, src[kept], dst[kept], kept, graph.edge_ids[kept])


def reverse(graph):
    """Collective. The graph with (v, u) for each edge (u, v), with its weight and fields (dgl.reverse).

        >>> graph = sar.Graph(([0], [1]), num_nodes=2)
        >>> src, dst = sar.reverse(graph).edges()
        >>> src.tolist(), dst.tolist()
        ([1], [0])
    """
    _require_plain(graph, "reverse()")
    src, dst, _ = graph._edges()
    return _rebuilt(graph, dst, src, np.arange(len(src)), graph.edge_ids)


def add_reverse_edges(graph):
    """Collective. The graph with (v, u) beside each edge (u, v) that is no self loop, with its weight and fields
    (dgl.add_reverse_edges).

        >>> graph = sar.Graph(([0, 1, 1], [1, 2, 2]), num_nodes=4)
        >>> sar.add_reverse_edges(graph).num_edges()
        6
    """
    _require_plain(graph, "add_reverse_edges()")
    src, dst, _ = graph._edges()
    rows = np.arange(len(src))
    back = np.flatnonzero(src != dst)
    ids = np.concatenate([graph.edge_ids, _first_free_id(graph) + graph.edge_ids[back]])
    return _rebuilt(graph, np.concatenate([src, dst[back]]), np.concatenate([dst, src[back]]), np.concatenate([rows, back]), ids)


def to_simple(graph):
    """Collective. The graph with one edge of those between the same nodes: that of the lowest id (dgl.to_simple).

        >>> graph = sar.Graph(([0, 1, 1], [1, 2, 2]), num_nodes=4)
        >>> sar.to_simple(graph).num_edges()
        2
    """
    _require_plain(graph, "to_simple()")
    src, dst, _ = graph._edges()
    order = np.lexsort([graph.edge_ids, src, dst])
    first = np.ones(len(order), bool)
    first[1:] = (np.diff(src[order]) != 0) | (np.diff(dst[order]) != 0)
    kept = np.sort(order[first])
    return _rebuilt(graph, src[kept], dst[kept], kept, graph.edge_ids[kept])


def to_bidirected(graph):
    """Collective. The graph in which each pair of nodes that an edge joins has one edge each way (dgl.to_bidirected). Of
    several edges, that of the lowest id stays; an edge that is added has weight and fields of its reverse. PyG's ToUndirected
    adds up weights instead.

        >>> graph = sar.Graph(([0, 1, 1], [1, 2, 2]), num_nodes=4)
        >>> sar.to_bidirected(graph).num_edges()
        4
    """
    return to_simple(add_reverse_edges(graph))


def _chosen(graph, ntype, given):
    """The rows of this rank's nodes that are chosen, and the ids of those of all ranks."""
    ids = graph.node_ids(ntype)
    given = np.asarray(given)
    if given.dtype == bool:
        if given.shape != ids.shape:
            raise ShapeError(f"a mask of shape {list(given.shape)} for {len(ids)} nodes of this rank, expected one bool for each")
        return np.flatnonzero(given), ids[given], None
    if given.ndim != 1 or given.dtype.kind not in "iu" and given.size:
        raise InputError(f"nodes are given as an array of {given.dtype} with {given.ndim} dimensions, expected ids or a mask")
    return None, np.unique(given), len(given)


def _common(graph, ntype, given):
    comm = graph.comm
    rows, mine, count = comm.agree(lambda: _chosen(graph, ntype, given))
    everywhere = np.unique(comm.all_gather(mine))
    ids = graph.node_ids(ntype)
    found = np.flatnonzero(np.isin(ids, everywhere))
    if comm.all_reduce(len(found)) != len(everywhere):
        known = comm.all_gather(ids[found])
        raise InputError(f"there is no node {np.setdiff1d(everywhere, known)[0]} in the graph")
    return found, everywhere


def subgraph(graph, nodes):
    """Collective. The graph of some nodes and of all edges between them, with their fields (dgl.node_subgraph). nodes: ids, or a mask
    of this rank's nodes; of a graph with types, a dict of these by node type, and types without an entry have no node. Ids of
    several ranks are added: all may give the same, or each some.

    parent_rows of the result are the rows of `graph` that its nodes have, or a dict of them by node type: y = x[sub.parent_rows].

        >>> graph = sar.Graph(([0, 1, 1], [1, 2, 2]), num_nodes=4)
        >>> sub = sar.subgraph(graph, [1, 2])
        >>> sub.num_nodes(), sub.num_edges(), sub.parent_rows.tolist()
        (2, 2, [1, 2])
    """
    if isinstance(graph, Block):
        raise InputError("subgraph() of a block, expected a graph")
    if graph.is_homogeneous == isinstance(nodes, dict):
        raise InputError(f"nodes are given as a {type(nodes).__name__} for a graph with the node types {graph.ntypes}, expected "
                         f"{'ids or a mask' if graph.is_homogeneous else 'a dict by node type'}")
    if graph.is_homogeneous:
        _require_plain(graph, "subgraph()")
        nodes = {graph.ntypes[0]: nodes}
    for ntype in nodes:
        if ntype not in graph.ntypes:
            raise InputError(f"there is no node type '{ntype}', expected one of {graph.ntypes}")
    rows, chosen = {}, {}
    for ntype in graph.ntypes:
        rows[ntype], chosen[ntype] = _common(graph, ntype, nodes.get(ntype, np.zeros(0, np.int64)))
    if not sum(map(len, chosen.values())):
        raise InputError("a subgraph of no nodes, expected at least one on any rank")
    edges, kept, ids = {}, {}, {}
    for etype in graph.canonical_etypes:
        relation = graph if graph.is_homogeneous else graph[etype]
        src, dst, _ = relation._edges()
        kept[etype] = np.flatnonzero(np.isin(src, chosen[etype[0]]) & np.isin(dst, chosen[etype[2]]))
        weight = relation.edge_weight
        edges[etype] = [src[kept[etype]], dst[kept[etype]]]
        if weight is not None:
            edges[etype].append(_numbers(weight).reshape(-1)[kept[etype]])
        ids[etype] = relation.edge_ids[kept[etype]]
    mine = {ntype: graph.node_ids(ntype)[rows[ntype]] for ntype in graph.ntypes}
    if graph.is_homogeneous:
        ((etype, (src, dst, *weight)),), (own,) = edges.items(), mine.values()
        new = Graph((src, dst), nodes=own, edge_ids=ids[etype], edge_weight=weight[0] if weight else None, comm=graph.comm)
    else:
        new = Graph({etype: tuple(arrays) for etype, arrays in edges.items()}, nodes=mine, comm=graph.comm)
    new._take_options(graph)
    for ntype in graph.ntypes:
        new._frame_of(ntype).update({name: field[rows[ntype]] for name, field in graph._frame_of(ntype).items()})
    for etype in graph.canonical_etypes:
        for name, field in _of_edges(graph, etype).items():
            _of_edges(new, etype)[name] = _edge_field(new, _numbers(field)[kept[etype]], etype)
    new.parent_rows = rows[graph.ntypes[0]] if graph.is_homogeneous else rows
    return new


def _offsets(graph, ids_of_types):
    """Where the ids of each type begin if those of one type follow those of the type before it."""
    counts = [0]
    for ids in ids_of_types:
        counts.append(1 + graph.comm.all_reduce(int(ids.max()) if len(ids) else -1, "max"))
    return np.cumsum(counts)


def _side_by_side(names, frames, what):
    """The rows of some fields of all types, one type after the other."""
    result = {}
    for name in names:
        missing = [kind for kind, frame in frames.items() if name not in frame]
        if missing:
            raise InputError(f"to_homogeneous(): the {what} of {missing[0]} have no field '{name}', expected one of all types")
        fields = [frame[name] for frame in frames.values()]
        if len({field.shape[1:] for field in fields}) > 1:
            raise ShapeError(f"to_homogeneous(): the fields '{name}' of {what} have rows of the shapes "
                             f"{', '.join(str(tuple(field.shape[1:])) for field in fields)}, expected one for all types")
        all_tensors = all(isinstance(field, Tensor) for field in fields)
        result[name] = _sar.cat(fields, 0) if all_tensors else np.concatenate([_numbers(field) for field in fields])
    return result


def to_homogeneous(graph, ndata=(), edata=()):
    """Collective. The graph of all nodes and edges of a graph with types, without types (dgl.to_homogeneous), as
    sar.nn.RelGraphConv reads it. Ids of a type follow those of the type before it.

    ndata, edata: names of fields that all types have, with rows of one shape, which the new graph gets. It also has DGL's fields
    ndata["_TYPE"] and edata["_TYPE"], numbers of types in the order of graph.ntypes and graph.canonical_etypes, and "_ID", the
    ids within the type. Weights stay; edges of a type without weights have the weight 1 beside others. Fields of nodes are
    differentiable, those of edges are constants. Raises InputError for a field that a type has not, ShapeError for rows of other
    shapes.

        >>> hetero = sar.Graph({("user", "plays", "game"): ([0, 1], [0, 0])}, {"user": 2, "game": 1})
        >>> graph = sar.to_homogeneous(hetero)
        >>> graph.num_nodes(), graph.ndata["_TYPE"].tolist(), graph.edata["_TYPE"].tolist()
        (3, [0, 0, 1], [0, 0])
    """
    if isinstance(graph, Block):
        raise InputError("to_homogeneous() of a block, expected a graph")
    comm = graph.comm
    nodes = {ntype: graph.node_ids(ntype) for ntype in graph.ntypes}
    relations = {etype: graph if graph.is_homogeneous else graph[etype] for etype in graph.canonical_etypes}
    of_nodes = comm.agree(lambda: _side_by_side(ndata, {ntype: graph._frame_of(ntype) for ntype in graph.ntypes}, "nodes"))
    of_edges = comm.agree(lambda: _side_by_side(edata, {etype: _of_edges(graph, etype) for etype in relations}, "edges"))
    first = dict(zip(graph.ntypes, _offsets(graph, nodes.values())))
    first_edge = _offsets(graph, [relation.edge_ids for relation in relations.values()])
    src, dst, ids, weights = [], [], [], []
    for (etype, relation), offset in zip(relations.items(), first_edge):
        a, b, _ = relation._edges()
        src.append(a + first[etype[0]])
        dst.append(b + first[etype[2]])
        ids.append(relation.edge_ids + offset)
        weight = relation.edge_weight
        weights.append(np.ones(len(a), np.float32) if weight is None else _numbers(weight).reshape(-1))
    has_weights = any(relation.edge_weight is not None for relation in relations.values())
    new = Graph((np.concatenate(src), np.concatenate(dst)), nodes=np.concatenate([nodes[ntype] + first[ntype] for ntype in graph.ntypes]),
                edge_ids=np.concatenate(ids), edge_weight=np.concatenate(weights) if has_weights else None, comm=comm)
    new._take_options(graph)

    def types(lengths):
        return np.repeat(np.arange(len(lengths)), lengths)

    new._frame_of(new.ntypes[0]).update({"_TYPE": types([len(of) for of in nodes.values()]), "_ID": np.concatenate(list(nodes.values())), **of_nodes})
    of_edges = {"_TYPE": types([len(of) for of in ids]), "_ID": np.concatenate([relation.edge_ids for relation in relations.values()]), **of_edges}
    for name, values in of_edges.items():
        new.edata[name] = _edge_field(new, _numbers(values), new.canonical_etypes[0])
    return new


def _components(count, src, dst):
    """The lowest node that edges, in either direction, join each of `count` nodes with."""
    label = np.arange(count)
    while True:
        new = label.copy()
        low = np.minimum(label[src], label[dst])
        np.minimum.at(new, label[src], low)
        np.minimum.at(new, label[dst], low)
        while not np.array_equal(jumped := new[new], new):
            new = jumped
        if np.array_equal(new, label):
            return label
        label = new


def connected_components(graph):
    """Collective. A number for each node of this rank, the same for nodes that edges in either direction join: the lowest id of such a
    node. Each rank keeps one pair of ids for each node of all ranks meanwhile.

        >>> graph = sar.Graph(([0, 1, 1], [1, 2, 2]), num_nodes=4)
        >>> sar.connected_components(graph).tolist()
        [0, 0, 0, 3]
    """
    _require_plain(graph, "connected_components()")
    src, dst, _ = graph._edges()
    ids, ends = np.unique(np.concatenate([src, dst, graph.src_ids]), return_inverse=True)
    label = _components(len(ids), ends[:len(src)], ends[len(src):2 * len(src)])
    pairs = graph.comm.all_gather(np.stack([ids, ids[label]], 1).reshape(-1)).reshape(-1, 2)
    ids, ends = np.unique(pairs, return_inverse=True)
    ends = ends.reshape(-1, 2)
    label = _components(len(ids), ends[:, 0], ends[:, 1])
    return ids[label[np.searchsorted(ids, graph.src_ids)]]


def largest_connected_component(graph):
    """Collective. The subgraph() of the nodes of the largest component (PyG's LargestConnectedComponents): of several, the one
    with the lowest id.

        >>> graph = sar.Graph(([0, 1, 1], [1, 2, 2]), num_nodes=4)
        >>> sar.largest_connected_component(graph).num_nodes()
        3
    """
    label = connected_components(graph)
    everywhere, counts = np.unique(graph.comm.all_gather(label), return_counts=True)
    return subgraph(graph, label == everywhere[np.argmax(counts)] if len(everywhere) else np.zeros(0, bool))


for _function in (subgraph, add_self_loop, remove_self_loop, reverse):
    setattr(GraphBase, _function.__name__, _function)
