# SPDX-License-Identifier: MIT

"""Modules that Python code defines."""

from .. import _sar
from .._sar import InputError, ModuleBase, ModuleTree, Tensor
from . import functional


def Parameter(values):
    """A leaf that requires a gradient, with a copy of the values. As an attribute of a Module it is a parameter."""
    return _sar.tensor(values, requires_grad=True, copy=True)


class Module(ModuleTree):
    """torch.nn.Module: attributes that are modules, and leaves that require a gradient, belong to it by name.

        class Net(sar.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = sar.nn.SAGEConv(64, 16), sar.nn.SAGEConv(16, 4)

            def forward(self, graph, x):
                return self.second(graph, sar.nn.functional.relu(self.first(graph, x)))
    """

    def __setattr__(self, name, value):
        parts = self.__dict__.setdefault("_parts", {})
        if parts.pop(name, None) is not None:
            self._unset(name)
        if isinstance(value, ModuleBase):
            self._set_module(name, value)
            parts[name] = value
        elif isinstance(value, Tensor) and value.requires_grad and value.is_leaf:
            self._set_parameter(name, value)
            parts[name] = value
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        if self.__dict__.get("_parts", {}).pop(name, None) is not None:
            self._unset(name)
        object.__delattr__(self, name)

    def register_buffer(self, name, values):
        """Makes a constant a part of the state that is not learned; it is the attribute `name`."""
        values = _sar.tensor(values, copy=True)
        if self.__dict__.setdefault("_parts", {}).pop(name, None) is not None:
            self._unset(name)
        self._set_buffer(name, values)
        self._parts[name] = values
        object.__setattr__(self, name, values)

    def forward(self, *arguments, **options):
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *arguments, **options):
        return self.forward(*arguments, **options)

    def named_children(self):
        """Names and modules one level below."""
        return [(name, part) for name, part in self.__dict__.get("_parts", {}).items() if isinstance(part, ModuleBase)]

    def children(self):
        """Modules one level below."""
        return [part for _, part in self.named_children()]

    def __repr__(self):
        lines = [f"  ({name}): " + repr(part).replace("\n", "\n  ") for name, part in self.named_children()]
        return f"{type(self).__name__}(" + ("\n" + "\n".join(lines) + "\n" if lines else "") + ")"


def _layer_repr(layer):
    shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in layer.named_parameters())
    return f"{type(layer).__name__}({shapes})"


ModuleBase.__repr__ = _layer_repr


class ModuleList(Module):
    """torch.nn.ModuleList."""

    def __init__(self, modules=()):
        super().__init__()
        for module in modules:
            self.append(module)

    def append(self, module):
        setattr(self, str(len(self)), module)
        return self

    def __len__(self):
        return len(self.children())

    def __iter__(self):
        return iter(self.children())

    def __getitem__(self, i):
        return self.children()[i]


class ModuleDict(Module):
    """torch.nn.ModuleDict. A dot in a key, which no name has, is written %2E."""

    def __init__(self, modules=None):
        super().__init__()
        for name, module in (modules or {}).items():
            self[name] = module

    def __setitem__(self, name, module):
        setattr(self, name.replace(".", "%2E"), module)

    def __getitem__(self, name):
        return self._parts[name.replace(".", "%2E")]

    def __contains__(self, name):
        return name.replace(".", "%2E") in self.__dict__.get("_parts", {})

    def keys(self):
        return [name.replace("%2E", ".") for name, _ in self.named_children()]

    def items(self):
        return [(name.replace("%2E", "."), part) for name, part in self.named_children()]


class Sequential(ModuleList):
    """torch.nn.Sequential: modules, and functions without parameters."""

    def __init__(self, *steps):
        super().__init__()
        self._steps = []
        for i, step in enumerate(steps):
            if isinstance(step, ModuleBase):
                setattr(self, str(i), step)
            self._steps.append(step)

    def forward(self, x):
        for step in self._steps:
            x = step(x)
        return x


def _activation(name, function):
    class Activation(Module):
        __doc__ = f"torch.nn.{name}."

        def forward(self, x):
            return function(x)

    Activation.__name__ = Activation.__qualname__ = name
    return Activation


ReLU, ELU, GELU, SiLU, Sigmoid, Tanh = (
    _activation(name, function)
    for name, function in (("ReLU", functional.relu), ("ELU", functional.elu), ("GELU", functional.gelu),
                           ("SiLU", functional.silu), ("Sigmoid", functional.sigmoid), ("Tanh", functional.tanh)))
Identity = _activation("Identity", lambda x: x)


class HeteroGraphConv(Module):
    """Collective. dgl.nn.HeteroGraphConv: a layer for each relation, and the sum or mean of their results at each node
    type. Each relation fetches its own rows.

    graph may be a block of a mini-batch: feats has rows of its sources, the result of its destinations.

    mods: {relation: layer}; a relation is named as in graph.canonical_etypes, or by its name if only one has it.
    """

    def __init__(self, mods, aggregate="sum"):
        super().__init__()
        if aggregate not in ("sum", "mean"):
            raise InputError(f"aggregate is '{aggregate}', expected 'sum' or 'mean'")
        self.aggregate = aggregate
        self.mods = ModuleDict({key if isinstance(key, str) else ":".join(key): module for key, module in mods.items()})

    def forward(self, graph, feats):
        found = {}
        for name, module in self.mods.items():
            source, _, destination = etype = graph.canonical(tuple(name.split(":")) if ":" in name else name)
            if source not in feats or destination not in feats:
                raise InputError(f"there are no rows of '{source if source not in feats else destination}', which {name} reads")
            relation = graph[etype]
            if isinstance(module, _ONE_END):
                result = module(relation, feats[source])
            else:  # the destinations of a block are its first sources
                of_ends = feats[destination][:graph.num_dst_nodes(destination)] if isinstance(graph, _sar.Block) else feats[destination]
                result = module(relation, (feats[source], of_ends))
            found.setdefault(destination, []).append(result)
        return {ntype: _reduced(results, self.aggregate) for ntype, results in found.items()}


_ONE_END = (_sar.GraphConv, _sar.CFConv)  # layers that read the sources only


def _reduced(results, aggregate):
    total = results[0]
    for result in results[1:]:
        total = total + result
    return total / float(len(results)) if aggregate == "mean" and len(results) > 1 else total
