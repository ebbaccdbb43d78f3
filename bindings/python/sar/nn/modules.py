# SPDX-License-Identifier: MIT

"""Modules that Python code defines, and what all modules have."""

import copy
import copyreg
import inspect
from collections import namedtuple
from typing import Any

from .. import _sar
from .._arguments import given
from .._sar import Communicator, InputError, ModuleBase, ModuleTree, Tensor
from . import functional


_IncompatibleKeys = namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])


def Parameter(values):
    """A leaf that requires a gradient, with a copy of the values. As an attribute of a Module it is a parameter.

        >>> weight = sar.nn.Parameter(np.zeros((2, 3)))
        >>> weight.requires_grad, weight.shape
        (True, (2, 3))
    """
    return _sar.tensor(values, requires_grad=True, copy=True)


class Module(ModuleTree):
    """torch.nn.Module: attributes that are modules, and leaves that require a gradient, belong to it by name.

        >>> class Net(sar.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.linear = sar.nn.Linear(4, 2)
        ...
        ...     def forward(self, x):
        ...         return self.linear(x)
        ...
        >>> [name for name, parameter in Net().named_parameters()]
        ['linear.weight', 'linear.bias']
    """

    _parts: dict[str, Any]

    def __setattr__(self, name, value):
        if self._is_buffer(name) and isinstance(value, Tensor) and not value.requires_grad:
            return self.register_buffer(name, value)  # another value of a buffer
        self._take(name, value, self._add)

    def _is_buffer(self, name):
        return isinstance(self.__dict__.setdefault("_parts", {}).get(name), Tensor) and name in dict(self.named_buffers())

    def _take(self, name, value, add):
        """Makes `value` a part by add(name, value) and the attribute; what was there stays if one of them fails. A part keeps its place."""
        restore = self._set_buffer if self._is_buffer(name) else self._set_parameter
        parts = self.__dict__["_parts"]
        names = list(parts)
        before = parts.pop(name, None)
        if before is not None:
            self._unset(name)
        try:
            add(name, value)
            object.__setattr__(self, name, value)
        except Exception:
            if parts.pop(name, None) is not None:
                self._unset(name)
            if before is not None:
                parts[name] = before
                if isinstance(before, ModuleBase):
                    self._set_module(name, before)
                else:
                    restore(name, before)
            raise
        finally:
            if before is not None:
                self._reorder(names)
                self.__dict__["_parts"] = {each: parts[each] for each in names if each in parts}

    def _add_buffer(self, name, values):
        self._set_buffer(name, values)
        self._parts[name] = values

    def _add(self, name, value):
        """Makes a module or a parameter a part."""
        if isinstance(value, ModuleBase):
            self._set_module(name, value)
        elif isinstance(value, Tensor) and value.requires_grad and value.is_leaf:
            self._set_parameter(name, value)
        else:
            return
        self._parts[name] = value

    def __delattr__(self, name):
        if self.__dict__.get("_parts", {}).pop(name, None) is not None:
            self._unset(name)
        object.__delattr__(self, name)

    def register_buffer(self, name, values, persistent=True):
        """Local. Makes a constant a part of the state that is not learned; it is the attribute `name`. With persistent=False it is an
        attribute only, and no part of state_dict()."""
        self._take(name, _sar.tensor(values, copy=True), self._add_buffer if persistent else lambda name, values: None)

    def register_parameter(self, name, value):
        """Local. The same as the attribute `name`: a Parameter, or None."""
        setattr(self, name, value)

    def add_module(self, name, module):
        """Local. The same as the attribute `name`."""
        setattr(self, name, module)

    def forward(self, *arguments, **options):
        """What the module computes; module(...) calls it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *arguments, **options):
        return self.forward(*arguments, **options)

    def __repr__(self):
        lines = [f"  ({name}): " + repr(part).replace("\n", "\n  ") for name, part in self.named_children()]
        return f"{type(self).__name__}(" + ("\n" + "\n".join(lines) + "\n" if lines else "") + ")"


def _layer_repr(layer):
    shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in layer.named_parameters())
    return f"{type(layer).__name__}({shapes})"


def _named_children(module):
    """Local. Names and modules one level below. The parts of a layer of the library are not listed."""
    return [(name, part) for name, part in module.__dict__.get("_parts", {}).items() if isinstance(part, ModuleBase)]


def _children(module):
    """Local. Modules one level below."""
    return [part for _, part in module.named_children()]


def _named_modules(module, prefix=""):
    """Local. Names and modules: this one, whose name is `prefix`, and all below it, each once."""
    return list(_walk(module, prefix, set()))


def _walk(module, prefix, seen):
    if id(module) in seen:
        return
    seen.add(id(module))
    yield prefix, module
    for name, part in module.named_children():
        yield from _walk(part, f"{prefix}.{name}" if prefix else name, seen)


def _modules(module):
    """Local. This module and all below it, each once."""
    return [part for _, part in module.named_modules()]


def _apply(module, function):
    """Local. Calls function(module) for each module below this one, and then for this one, which it returns."""
    for part in module.children():
        part.apply(function)
    function(module)
    return module


def _parameters(module, recurse=True):
    """Local. Each parameter once; with recurse=False those of this module without the modules below it."""
    return [parameter for name, parameter in module.named_parameters() if recurse or "." not in name]


def _get_submodule(module, target):
    """Local. The module of a name of named_modules()."""
    for name, part in module.named_modules():
        if name == target:
            return part
    raise InputError(f"there is no module '{target}' in {type(module).__name__}")


def _freeze(module, name):
    """Local; the same on all ranks. Makes the parameter `name` a constant, before it is used: it gets no gradient, and optimizers
    leave it as it is."""
    module._freeze(name)
    _show_parameters(module)


def _requires_grad_(module, requires_grad=True):
    """Local; the same on all ranks. Makes all parameters constants, or leaves again. Make the optimizer afterwards. Returns the
    module."""
    for name, _ in module.named_parameters(remove_duplicate=False):
        module._unfreeze(name) if requires_grad else module._freeze(name)
    _show_parameters(module)
    return module


def _show_parameters(module):
    """Sets the attributes that are parameters to what the library has under their names."""
    known = dict(module.named_parameters(remove_duplicate=False))
    for prefix, part in module.named_modules():
        for name, value in part.__dict__.get("_parts", {}).items():
            found = known.get(f"{prefix}.{name}" if prefix else name)
            if isinstance(value, Tensor) and found is not None:
                part._parts[name] = found
                object.__setattr__(part, name, found)


# Copies and pickles. A layer of the library is made again with the arguments that it was made with, and gets the values.


def _library_class(kind):
    return next(base for base in kind.__mro__ if base.__module__ == _sar.__name__)


def _frozen(module):
    return [name for name, value in module.named_parameters(remove_duplicate=False) if not value.requires_grad]


def _make_layer(kind, arguments, seed=None, streams=0):
    """A layer with these arguments. seed and streams: where the generator was at its making; None: it has streams of its own."""
    before = _sar._generator()
    if seed is not None:
        _sar._set_generator(seed, streams)
    try:
        layer = kind.__new__(kind)
        _library_class(kind).__init__(layer, *arguments)
    finally:
        if seed is not None:
            _sar._set_generator(*before)
    return layer


def _fill_layer(layer, state):
    values, training, frozen, attributes = state
    layer.load_state_dict(values)
    layer._set_training(training)
    for name in frozen:
        layer._freeze(name)
    layer.__dict__.update(attributes)


def _layer_state(layer):
    attributes = {name: value for name, value in layer.__dict__.items() if name != "_made"}
    return layer.state_dict(), layer.training, _frozen(layer), attributes


def _made(layer):
    if "_made" in layer.__dict__:
        return layer._made
    if isinstance(layer, _sar.GraphModel):  # of load_model()
        return (layer._json, None, False), *_sar._generator()
    raise TypeError(f"a {type(layer).__name__} cannot be copied or pickled: save its state_dict()")


def _deepcopy_layer(layer, memo):
    """Local; the same on all ranks. A layer with the same values. A dropout of a copy draws by itself."""
    arguments, *_ = _made(layer)
    new = memo[id(layer)] = _make_layer(type(layer), copy.deepcopy(arguments, memo))
    _fill_layer(new, copy.deepcopy(_layer_state(layer), memo))
    return new


def _reduce_layer(layer):
    return _make_layer, (type(layer), *_made(layer)), _layer_state(layer)


def _ties(module):
    """Lists of names of one parameter, for the parameters of several names."""
    names = {}
    for name, value in module.named_parameters(remove_duplicate=False):
        if value.numpy().size:
            names.setdefault(value.numpy().__array_interface__["data"][0], []).append(name)
    return [group for group in names.values() if len(group) > 1]


def _tie(module, ties):
    """Gives names of one parameter the same tensor: that of a layer of the library if there is one."""
    parts, known = dict(module.named_modules()), dict(module.named_parameters(remove_duplicate=False))
    for names in ties:
        owners = [parts.get(name.rpartition(".")[0]) for name in names]
        own = [isinstance(owner, Module) and name.rpartition(".")[2] in owner._parts for owner, name in zip(owners, names)]
        kept = names[own.index(False)] if False in own else names[0]
        for owner, name, is_own in zip(owners, names, own):
            if is_own and name != kept:
                setattr(owner, name.rpartition(".")[2], known[kept])


def _make_module(kind):
    module = kind.__new__(kind)
    ModuleTree.__init__(module)
    return module


def _tree_state(module):
    parts = list(module.__dict__.get("_parts", {}))
    buffers = [name for name in parts if module._is_buffer(name)]
    attributes = {name: value for name, value in module.__dict__.items() if name not in ("_parts", *parts)}
    return {"training": module.training, "attributes": attributes, "parts": [(name, module._parts[name]) for name in parts],
            "buffers": buffers, "frozen": [name for name in _frozen(module) if "." not in name], "ties": _ties(module)}


def _fill_module(module, state):
    module._set_training(state["training"])
    for name, value in state["parts"]:
        if name in state["buffers"]:
            module.register_buffer(name, value)
        else:
            setattr(module, name, value.requires_grad_() if name in state["frozen"] else value)
    for name in state["frozen"]:
        module.freeze(name)
    module.__dict__.update(state["attributes"])
    _tie(module, state["ties"])


def _deepcopy_module(module, memo):
    """Local; the same on all ranks. A module with copies of the parts, as torch makes it. A dropout of a copy draws by itself."""
    new = memo[id(module)] = _make_module(type(module))
    _fill_module(new, copy.deepcopy(_tree_state(module), memo))
    return new


def _reduce_module(module):
    return _make_module, (type(module),), _tree_state(module)


for _name, _function in (("__repr__", _layer_repr), ("named_children", _named_children), ("children", _children),
                         ("named_modules", _named_modules), ("modules", _modules), ("apply", _apply), ("parameters", _parameters),
                         ("get_submodule", _get_submodule), ("freeze", _freeze), ("requires_grad_", _requires_grad_),
                         ("__deepcopy__", _deepcopy_layer), ("__reduce__", _reduce_layer), ("__setstate__", _fill_layer)):
    setattr(ModuleBase, _name, _function)
for _name, _function in (("__deepcopy__", _deepcopy_module), ("__reduce__", _reduce_module), ("__setstate__", _fill_module)):
    setattr(Module, _name, _function)
setattr(Communicator, "__deepcopy__", lambda self, memo: self)
copyreg.pickle(type(_sar.relu), lambda function: function.__name__)  # functions of the library, such as activations


def _set_numbered(owner, modules):
    """Makes the modules in a list the parts of `owner` that are called by their places, "0", "1", ..., or leaves those of before."""
    before = {name: part for name, part in owner.named_children() if name.isdigit()}

    def replace(parts):
        for name, part in owner.named_children():
            if name.isdigit() and name not in parts:
                delattr(owner, name)
        now = dict(owner.named_children())
        for name, part in parts.items():
            if now.get(name) is not part:
                setattr(owner, name, part)

    try:
        replace({str(i): module for i, module in enumerate(modules) if isinstance(module, ModuleBase)})
    except Exception:
        replace(before)
        raise


class ModuleList(Module):
    """torch.nn.ModuleList: a list of modules, named by their numbers. A slice is a ModuleList of the same modules.

        >>> layers = sar.nn.ModuleList([sar.nn.Linear(4, 4) for _ in range(3)])
        >>> len(layers[1:]), len(layers.parameters())
        (2, 6)
    """

    def __init__(self, modules=()):
        super().__init__()
        self.extend(modules)

    def _replace(self, modules):
        for module in modules:
            if not isinstance(module, ModuleBase):
                raise TypeError(f"a {type(module).__name__} in a {type(self).__name__}, expected a sar.nn.Module")
        _set_numbered(self, modules)

    def append(self, module):
        """Local. Adds a module behind the last one, and returns the list."""
        return self.extend([module])

    def extend(self, modules):
        """Local. Adds modules behind the last one, and returns the list."""
        self._replace([*self, *modules])
        return self

    __iadd__ = extend

    def __add__(self, modules):
        return ModuleList([*self, *modules])

    def insert(self, i, module):
        """Local. Adds a module before the one at place i, whose name it takes; those behind it are renamed."""
        modules = self.children()
        modules.insert(i, module)
        self._replace(modules)

    def pop(self, i=-1):
        """Local. Takes the module at place i out, and returns it; those behind it are renamed."""
        module = self[i]
        del self[i]
        return module

    def __len__(self):
        return len(self.named_children())

    def __iter__(self):
        return iter(self.children())

    def __contains__(self, module):
        return any(module is each for each in self.children())

    def __getitem__(self, i):
        return ModuleList(self.children()[i]) if isinstance(i, slice) else self.children()[i]

    def __setitem__(self, i, module):
        modules = self.children()
        modules[i] = module
        self._replace(modules)

    def __delitem__(self, i):
        modules = self.children()
        del modules[i]
        self._replace(modules)


class ModuleDict(Module):
    """torch.nn.ModuleDict. A dot in a key, which no name has, is written %2E.

        >>> parts = sar.nn.ModuleDict({"a": sar.nn.Linear(4, 2)})
        >>> parts.keys(), parts["a"](sar.ones((3, 4))).shape
        (['a'], (3, 2))
    """

    def __init__(self, modules=None):
        super().__init__()
        for name, module in (modules or {}).items():
            self[name] = module

    def __setitem__(self, name, module):
        if hasattr(type(self), name):
            raise InputError(f"'{name}' is the name of a method, expected another key")
        setattr(self, name.replace(".", "%2E"), module)

    def __getitem__(self, name):
        return self._parts[name.replace(".", "%2E")]

    def __contains__(self, name):
        return name.replace(".", "%2E") in self.__dict__.get("_parts", {})

    def __len__(self):
        return len(self.named_children())

    def __iter__(self):
        return iter(self.keys())

    def values(self):
        """Local. The modules, in the order in which they came."""
        return [part for _, part in self.named_children()]

    def keys(self):
        """Local. The keys, in the order in which they came."""
        return [name.replace("%2E", ".") for name, _ in self.named_children()]

    def items(self):
        """Local. Pairs of a key and its module."""
        return [(name.replace("%2E", "."), part) for name, part in self.named_children()]


def _num_required(function):
    """How many arguments a function has without a default."""
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a function of the library
        return 0
    return sum(each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD) for each in given)


def _takes_graph(step):
    """Whether a step of a Sequential, which is no Sequential itself, is called as step(graph, x)."""
    if isinstance(step, Module):
        return _num_required(type(step).forward) > 2  # self, graph and x
    if not isinstance(step, ModuleBase):
        return _num_required(step) > 1
    return not isinstance(step, (_sar.CategoryEmbedding, _sar.Linear, _sar.MLP, _sar.LayerNorm, _sar.BatchNorm1d, _sar.Dropout))


class Sequential(Module):
    """torch.nn.Sequential: modules, and functions without parameters, one after the other.

        net = sar.nn.Sequential(sar.nn.SAGEConv(64, 16), sar.nn.ReLU(), sar.nn.Dropout(0.5), sar.nn.SAGEConv(16, 4))
        y = net(graph, x)

    Called with a graph, as dgl.nn.Sequential: layers of a graph are called as layer(graph, x), others as layer(x), and dropouts draw
    by the ids of the graph's nodes. Given a list of blocks of a mini-batch, each layer of a graph takes the next one. A module of
    yours takes the graph if its forward() has two arguments without a default.

        >>> graph = sar.Graph(([0, 1, 2], [1, 2, 0]), num_nodes=3)
        >>> net = sar.nn.Sequential(sar.nn.SAGEConv(4, 8), sar.nn.ReLU(), sar.nn.Linear(8, 2))
        >>> net(graph, sar.ones((3, 4))).shape
        (3, 2)
    """

    def __init__(self, *steps):
        super().__init__()
        self._steps, self._takes_graph = [], []
        self.extend(steps)

    def append(self, step):
        """Local. Adds a step behind the last one, and returns the modules."""
        return self.extend([step])

    def extend(self, steps):
        """Local. Adds steps behind the last one, and returns the modules."""
        self._replace([*self._steps, *steps])
        return self

    def __len__(self):
        return len(self._steps)

    def __iter__(self):
        return iter(self._steps)

    def __getitem__(self, i):
        return Sequential(*self._steps[i]) if isinstance(i, slice) else self._steps[i]

    def __setitem__(self, i, step):
        steps = list(self._steps)
        steps[i] = step
        self._replace(steps)

    def __delitem__(self, i):
        steps = list(self._steps)
        del steps[i]
        self._replace(steps)

    def insert(self, i, step):
        """Local. Adds a step before the one at place i; those behind it are renamed."""
        steps = list(self._steps)
        steps.insert(i, step)
        self._replace(steps)

    def _replace(self, steps):
        for step in steps:
            if not callable(step):
                raise TypeError(f"a {type(step).__name__} in a Sequential, expected a module or a function")
        takes_graph = [not isinstance(step, Sequential) and _takes_graph(step) for step in steps]
        _set_numbered(self, steps)
        self._steps, self._takes_graph = steps, takes_graph

    def _num_readers(self):
        """The number of layers of a graph, of which each takes a block."""
        return sum(step._num_readers() if isinstance(step, Sequential) else takes_graph for step, takes_graph in zip(self._steps, self._takes_graph))

    def _draws(self):
        return any(step._draws() if isinstance(step, Sequential) else isinstance(step, _sar.Dropout) for step in self._steps)

    def forward(self, *inputs):
        *graphs, x = inputs
        if len(graphs) > 1:
            raise TypeError(f"a Sequential is called with {len(inputs)} arguments, expected (x) or (graph, x)")
        if not graphs:
            for step in self._steps:
                x = step(x)
            return x
        blocks = graphs[0] if isinstance(graphs[0], (list, tuple)) else None
        graph, used = graphs[0] if blocks is None else None, 0
        if blocks is not None and self._num_readers() != len(blocks):
            raise InputError(f"a Sequential with {self._num_readers()} layers of a graph got {len(blocks)} blocks, expected one for each")
        for step, takes_graph in zip(self._steps, self._takes_graph):
            nested = isinstance(step, Sequential)
            count = step._num_readers() if nested else takes_graph
            if count and blocks is not None:
                mine, used = blocks[used:used + count], used + count
                graph = mine[-1]
                x = step(mine if nested else graph, x)
            elif count:
                x = step(graph, x)
            elif nested and step._draws():
                x = step(blocks[0] if graph is None else graph, x)
            elif isinstance(step, _sar.Dropout):
                x = step(x, blocks[0] if graph is None else graph)
            else:
                x = step(x)
        return x


def _activation(name, function):
    class Activation(Module):
        __doc__ = (f"torch.nn.{name}.\n\n    >>> sar.nn.{name}()(sar.ones((3, 2))).shape\n    (3, 2)\n")

        def forward(self, x):
            return function(x)

    Activation.__name__ = Activation.__qualname__ = name
    return Activation


ReLU, ELU, GELU, SiLU, Sigmoid, Tanh = (
    _activation(name, function)
    for name, function in (("ReLU", functional.relu), ("ELU", functional.elu), ("GELU", functional.gelu),
                           ("SiLU", functional.silu), ("Sigmoid", functional.sigmoid), ("Tanh", functional.tanh)))
Identity = _activation("Identity", lambda x: x)



class Embedding(_sar.CategoryEmbedding):
    """Local. torch.nn.Embedding: a row of the parameter `weight` [num_embeddings, embedding_dim], drawn from a normal distribution,
    for each integer: embedding(ids) [len(ids), embedding_dim]. Every rank has all rows; the optimizer adds the gradients of all
    ranks.

        >>> embedding = sar.nn.Embedding(10, 3)
        >>> embedding([0, 9, 0]).shape
        (3, 3)
    """

    def __init__(self, num_embeddings, embedding_dim):
        super().__init__([num_embeddings], embedding_dim)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.load_state_dict({"weight": _sar._drawn([num_embeddings, embedding_dim], "normal", 1.0)})

    @property
    def weight(self):
        """The rows."""
        return self.named_parameters()[0][1]

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True):
        """An embedding with these rows, which are not trained unless freeze=False."""
        values = _sar.tensor(embeddings, copy=True)
        layer = cls(*values.shape)
        layer.load_state_dict({"weight": values})
        return layer.requires_grad_(not freeze)


def _loss(name, function, example, **defaults):
    known = [*defaults, "reduction"]

    class Loss(Module):
        __doc__ = (f"Collective when called. torch.nn.{name}: functional.{function.__name__} as a module, "
                   f"loss(input, target, mask=None, row_weights=None). The mean over the rows of all ranks, or, with reduction='sum', the sum."
                   f"\n\n    >>> round(sar.nn.{name}()({example[0]}).item(), 4)\n    {example[1]}\n")

        def __init__(self, *unnamed, **options):
            super().__init__()
            if unnamed:
                raise TypeError(f"{name} is given {given(unnamed[0])} without a name, expected options by name: {', '.join(known)}")
            for option in options:
                if option not in known:
                    raise TypeError(f"{name} has no option '{option}', expected one of {', '.join(known)}")
            if options.get("reduction", "mean") not in ("mean", "sum"):
                raise InputError(f"reduction is {given(options['reduction'])}, expected 'mean', 'sum'")
            self._options = {**defaults, **options}

        def forward(self, input, target, mask=None, row_weights=None):
            rows = {"mask": mask, "row_weights": row_weights}
            return function(input, target, **{key: value for key, value in rows.items() if value is not None}, **self._options)

    options = [inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=value) for option, value in (*defaults.items(), ("reduction", "mean"))]
    Loss.__init__.__signature__ = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *options])
    Loss.__name__ = Loss.__qualname__ = name
    return Loss


CrossEntropyLoss = _loss("CrossEntropyLoss", functional.cross_entropy, ("sar.zeros((2, 4)), [0, 3]", 1.3863), weight=None, label_smoothing=0.0)
BCEWithLogitsLoss = _loss("BCEWithLogitsLoss", functional.binary_cross_entropy_with_logits, ("sar.zeros((2, 1)), [[1.0], [0]]", 0.6931))
MSELoss = _loss("MSELoss", functional.mse_loss, ("sar.tensor([1.0, 5]), [1.0, 2]", 4.5))
L1Loss = _loss("L1Loss", functional.l1_loss, ("sar.tensor([1.0, 5]), [1.0, 2]", 1.5))
HuberLoss = _loss("HuberLoss", functional.huber_loss, ("sar.tensor([1.0, 5]), [1.0, 2]", 1.25), delta=1.0)


class HeteroGraphConv(Module):
    """Collective. dgl.nn.HeteroGraphConv: a layer for each relation, and the sum or mean of their results at each node
    type. Each relation fetches its own rows.

    graph may be a block of a mini-batch: feats has rows of its sources, the result of its destinations.

    mods: {relation: layer}; a relation is named as in graph.canonical_etypes, or by its name if only one has it. Parameters are
    mods.('user', 'plays', 'game').* or mods.plays.*, as in DGL.

        >>> hetero = sar.Graph({("user", "plays", "game"): ([0, 1], [0, 0])}, {"user": 2, "game": 1})
        >>> conv = sar.nn.HeteroGraphConv({"plays": sar.nn.SAGEConv((4, 5), 8)})
        >>> conv(hetero, {"user": sar.ones((2, 4)), "game": sar.ones((1, 5))})["game"].shape
        (1, 8)
    """

    def __init__(self, mods, aggregate="sum"):
        super().__init__()
        if aggregate not in ("sum", "mean"):
            raise InputError(f"aggregate is '{aggregate}', expected 'sum' or 'mean'")
        self.aggregate = aggregate
        self.mods = ModuleDict({str(key): module for key, module in mods.items()})  # DGL's names of parameters
        self._etypes = {str(key): key for key in mods}

    def forward(self, graph, feats):
        found = {}
        for name, module in self.mods.items():
            layer: Any = module
            etype = graph.canonical(self._etypes.get(name, name))
            source, _, destination = etype
            if source not in feats or destination not in feats:
                raise InputError(f"there are no rows of '{source if source not in feats else destination}', which {name} reads")
            relation = graph[etype]
            if isinstance(module, _ONE_END):
                result = layer(relation, feats[source])
            else:  # the destinations of a block are its first sources
                of_ends = feats[destination][:graph.num_dst_nodes(destination)] if isinstance(graph, _sar.Block) else feats[destination]
                result = layer(relation, (feats[source], of_ends))
            found.setdefault(destination, []).append(result)
        return {ntype: _reduced(results, self.aggregate) for ntype, results in found.items()}


_ONE_END = (_sar.GraphConv, _sar.CFConv)  # layers that read the sources only


def _reduced(results, aggregate):
    total = results[0]
    for result in results[1:]:
        total = total + result
    return total / float(len(results)) if aggregate == "mean" and len(results) > 1 else total
