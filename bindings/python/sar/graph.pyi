# SPDX-License-Identifier: MIT

# The types of graph.py. tests/test_types.py compares the two.
from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from . import fn
from ._sar import Block as Block, Communicator as Communicator, GraphBase as GraphBase, HostGraph, Integers, Tensor

_EdgeType = tuple[str, str, str]

class _Nodes:
    data: dict[str, Tensor]
    def __init__(self, data: dict[str, Tensor]) -> None: ...

class Graph(HostGraph):
    parent_rows: Any
    def __init__(self, edges: Any, num_nodes: int | Mapping[str, int] | None = None, *, nodes: Any = None, edge_weight: ArrayLike | None = None,
                 edge_ids: ArrayLike | None = None, add_reverse_edges: bool = False, add_self_loops: bool | str = False, comm: Any = None,
                 **options: Any) -> None: ...
    def num_edges(self, etype: str | _EdgeType | None = None) -> int: ...
    def local_rows(self, rows: Any, ntype: str | None = None) -> Any: ...
    def edge_rows(self, rows: ArrayLike, fill: float = 0, etype: str | _EdgeType | None = None) -> Tensor: ...
    @property
    def nodes(self) -> dict[str, _Nodes]: ...
    def __getitem__(self, etype: object) -> GraphBase: ...
    def multi_update_all(self, messages: Mapping[Any, tuple[fn.Message, fn.Reduction | str]], cross_reducer: str) -> Any: ...

def _integers(values: ArrayLike, what: str) -> Integers: ...
