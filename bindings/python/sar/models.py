"""Networks that a description names."""

import json

from . import _sar


class GraphModel(_sar.GraphModel):
    """Collective at the first use of a communicator. The network of a description, a dict or its JSON text
    (docs/models.md), as the program train makes it:

        net = sar.GraphModel({"type": "sage", "in_feats": 64, "hidden": 32, "out_feats": 4, "layers": 2})
        y = net(graph, x)

    cached: the first layer keeps the aggregate of its input, which must be constant, until the graph or the input is
    another object, as train does. No effect on layers that have no constant aggregate.
    """

    def __init__(self, description, comm=None, cached=False):
        if not isinstance(description, str):
            description = json.dumps({"sar_model": 1, **description})
        super().__init__(description, comm, cached)


def _description(model):
    return json.loads(model._json)


_sar.GraphModel.description = property(_description, doc="The description as a dict.")
