# SPDX-License-Identifier: MIT

"""Graphs with several types of nodes and edges."""

import operator

import numpy as np

from . import _sar, fn
from ._sar import Communicator, HostGraph, InputError, ShapeError
from .graph import _check_ends, _check_equal, _floats, _integers


def _checked(edges, num_nodes):
    """Ends and weights of the edges of each type as arrays, and the number of nodes of each type."""
    counts, ends = {ntype: operator.index(count) for ntype, count in (num_nodes or {}).items()}, {}
    for etype, (src, dst, *weight) in edges.items():
        if not isinstance(etype, tuple) or len(etype) != 3:
            raise InputError(f"an edge type is {etype!r}, expected (source type, relation, destination type)")
        relation = etype[1]
        if len(weight) > 1:
            raise InputError(f"{relation} has {2 + len(weight)} arrays, expected (sources, destinations) or (sources, destinations, weights)")
        src, dst = _integers(src, f"sources of {relation}"), _integers(dst, f"destinations of {relation}")
        if src.shape != dst.shape:
            raise ShapeError(f"{relation} has {len(src)} sources of edges and {len(dst)} destinations, expected equal numbers")
        ends[etype] = src, dst, _floats(weight[0] if weight else None, len(src), f"weights of {relation}")
        for ntype, ids in ((etype[0], src), (etype[2], dst)):
            if num_nodes is None:
                counts[ntype] = max(counts.get(ntype, 0), int(ids.max()) + 1 if len(ids) else 0)
            elif ntype not in counts:
                raise InputError(f"num_nodes has no '{ntype}', which {relation} joins")
            _check_ends(ids, counts[ntype], f"an edge of {relation} has the {ntype}")
    return ends, counts


class HeteroGraph(HostGraph):
    """Collective. dgl.heterograph: {(source type, relation, destination type): (sources, destinations)}.

    num_nodes: the number of nodes of each type, of a whole graph that every rank gives; by default one more than the
    largest id. A third array of an edge type has weights. Each rank keeps a contiguous range of the nodes of each type; local_rows() takes its rows.
    graph[relation] is the graph of an edge type; fields are graph.nodes[type].data and graph[relation].edata.
    Raises InputError or ShapeError on all ranks, as sar.Graph.
    """

    def __init__(self, edges, num_nodes=None, *, comm=None):
        comm = _sar.get_communicator() if comm is None else comm
        comm = comm if isinstance(comm, Communicator) else Communicator(comm)
        ends, counts = comm.agree(lambda: _checked(edges, num_nodes))
        given = {f"num_nodes of '{ntype}'": count for ntype, count in counts.items()}
        for (_, relation, _), (src, dst, weight) in ends.items():
            given.update({f"numbers of edges of '{relation}'": len(src), f"sources of '{relation}'": src, f"destinations of '{relation}'": dst})
            given.update({} if weight is None else {f"weights of '{relation}'": weight})
        _check_equal(comm, "a graph", given)
        self._counts = counts
        self._ranges = {ntype: [count * r // comm.size for r in (comm.rank, comm.rank + 1)] for ntype, count in counts.items()}
        mine = {}
        for etype, (src, dst, weight) in ends.items():
            begin, end = self._ranges[etype[2]]
            chosen = np.flatnonzero((dst >= begin) & (dst < end))
            mine[etype] = src[chosen], dst[chosen], None if weight is None else weight[chosen]
        super().__init__(comm, {ntype: np.arange(*self._ranges[ntype]) for ntype in counts}, mine)
        self._frames = {ntype: {} for ntype in counts}
        self._relations = {}

    def local_rows(self, ntype, rows):
        """Local. This rank's rows of an array with a row for each node of a type."""
        if len(rows) != self._counts[ntype]:
            raise _sar.ShapeError(f"an array of {len(rows)} rows for {self._counts[ntype]} nodes of the type '{ntype}'")
        return rows[slice(*self._ranges[ntype])]

    @property
    def nodes(self):
        """graph.nodes[type].data has the fields of the nodes of a type."""
        return {ntype: _Nodes(frame) for ntype, frame in self._frames.items()}

    @property
    def etypes(self):
        """The names of the relations, in the order of canonical_etypes."""
        return [relation for _, relation, _ in self.canonical_etypes]

    def num_edges(self, etype):
        """Local. Edges of a relation on this rank."""
        return self[etype].num_edges()

    def canonical(self, etype):
        """Local. (source type, relation, destination type) of a relation's name."""
        if isinstance(etype, tuple):
            return etype
        found = [each for each in self.canonical_etypes if etype in (each[1], ":".join(each))]
        if len(found) != 1:
            raise InputError(f"the graph has {len(found)} edge types '{etype}', expected one of {self.canonical_etypes}")
        return found[0]

    def __getitem__(self, etype):
        etype = self.canonical(etype)
        if etype not in self._relations:
            relation = super().__getitem__(etype)
            relation.__dict__["_srcdata"] = self._frames[etype[0]]
            relation.__dict__["_dstdata"] = self._frames[etype[2]]
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
            rows = self._frames[etype[0]][message.left] if isinstance(message.left, str) else message.left
            reduction = fn.Reduction(reduction) if isinstance(reduction, str) else reduction
            direct[etype] = rows, reduction.name
            out[etype[2]] = reduction.out
        result = self._multi_update_all(direct, cross_reducer)
        if not any(out.values()):
            return result
        for ntype, rows in result.items():
            self._frames[ntype][out[ntype]] = rows
        return None


class _Nodes:
    def __init__(self, data):
        self.data = data
