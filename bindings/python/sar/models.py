"""Networks that a description names."""

import json

from . import _sar


class GraphModel(_sar.GraphModel):
    """Collective at the first use of a communicator. The network of a description, a dict or its JSON text
    (docs/models.md), as the program train makes it:

        net = sar.GraphModel({"type": "sage", "in_feats": 64, "hidden": 32, "out_feats": 4, "layers": 2})
        y = net(graph, x)
    """

    def __init__(self, description, comm=None):
        if not isinstance(description, str):
            description = json.dumps({"sar_model": 1, **description})
        super().__init__(description, comm)


def _description(model):
    return json.loads(model._json)


_sar.GraphModel.description = property(_description, doc="The description as a dict.")
