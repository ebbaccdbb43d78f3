# SPDX-License-Identifier: MIT

"""Networks that a description names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import _sar
from ._arguments import given


class GraphModel(_sar.GraphModel):
    """Collective at the first use of a communicator. The network of a description, a dict or its JSON text
    (docs/models.md), as the program train makes it:

        net = sar.GraphModel({"type": "sage", "in_feats": 64, "hidden": 32, "out_feats": 4, "layers": 2})
        y = net(graph, x)

    cached: the first layer keeps the aggregate of its input, which must be constant, until the graph or the input is
    another object, as train does. No effect on layers that have no constant aggregate.

        >>> graph = sar.Graph(([0, 1, 2], [1, 2, 0]), num_nodes=3)
        >>> model = sar.GraphModel({"type": "gcn", "in_feats": 4, "hidden": 8, "out_feats": 2, "layers": 2})
        >>> model(graph, sar.ones((3, 4))).shape
        (3, 2)
    """

    def __init__(self, description: str | Mapping[str, Any], comm: _sar.Communicator | None = None, cached: bool = False) -> None:
        super().__init__(_json_of(description), comm, cached)


class Potential(_sar.Potential):
    """The potential of a description, a dict or its JSON text, with weights drawn at random; load_potential() reads one that
    is trained:

        potential = sar.load_potential("si.safetensors")
        neighbors = sar.NeighborList(positions, potential.cutoff, cell, margin=0.5)
        values = potential(neighbors, np.full(len(positions), potential.species("Si")))

        >>> potential = sar.Potential({"type": "painn", "hidden": 8, "layers": 1, "species": ["Cu"], "cutoff": 4})
        >>> neighbors = sar.NeighborList([[0, 0, 0], [2.3, 0, 0]], potential.cutoff)
        >>> potential(neighbors, [0, 0]).forces.shape
        (2, 3)
    """

    def __init__(self, description: str | Mapping[str, Any]) -> None:
        super().__init__(_json_of(description))


def _json_of(description: str | Mapping[str, Any]) -> str:
    if not isinstance(description, (str, Mapping)):
        raise TypeError(f"a description is {given(description)}, expected a dict or its JSON text")
    return description if isinstance(description, str) else json.dumps({"sar_model": 1, **description})


def _description(model: _sar.GraphModel | _sar.Potential) -> Any:
    return json.loads(model._json)


for _type in (_sar.GraphModel, _sar.Potential):
    setattr(_type, "description", property(_description, doc="The description as a dict."))
