# SPDX-License-Identifier: MIT

"""Weights under the names of PyTorch Geometric."""

import re

import numpy as np

from . import _sar
from ._sar import InputError, ShapeError
from .nn.modules import HeteroGraphConv, Module

# The names of a layer's tensors here and in PyG; one that ends with a dot is the beginning of a name.
_NAMES = {
    _sar.SAGEConv: {"fc_neigh.weight": "lin_l.weight", "fc_self.bias": "lin_l.bias", "fc_self.weight": "lin_r.weight", "fc_pool.": "lin."},
    _sar.GraphConv: {"weight": "lin.weight", "bias": "bias"},
    _sar.GATConv: {"attn_l": "att_src", "attn_r": "att_dst", "fc.": "lin.", "fc_src.": "lin_src.", "fc_dst.": "lin_dst.",
                   "res_fc.weight": "res.weight", "res_fc.bias": "bias", "bias": "bias"},
    _sar.GATv2Conv: {"attn": "att", "fc_src.": "lin_l.", "fc_dst.": "lin_r.", "res_fc.weight": "res.weight", "res_fc.bias": "bias"},
    _sar.GINConv: {"apply_func.": "nn.", "eps": "eps"},
    _sar.GINEConv: {"apply_func.": "nn.", "eps": "eps", "lin_edge.": "lin."},
    _sar.SGConv: {"fc.": "lin."},
    _sar.TAGConv: {"lin.bias": "bias"},
    _sar.RelGraphConv: {"linear_r.W": "weight", "linear_r.coeff": "comp", "loop_weight": "root", "h_bias": "bias"},
}
# Layers with the names of torch or PyG.
_SAME = (_sar.Linear, _sar.MLP, _sar.LayerNorm, _sar.BatchNorm1d, _sar.CategoryEmbedding, _sar.TransformerConv, _sar.Dropout, _sar.APPNPConv)


def _name(layer, leaf):
    if isinstance(layer, _SAME):
        return leaf
    names = next((names for kind, names in _NAMES.items() if isinstance(layer, kind)), {})
    for own, other in names.items():
        if leaf == own or own.endswith(".") and leaf.startswith(own):
            return other + leaf[len(own):] if own.endswith(".") else other
    raise InputError(f"'{leaf}' of a {type(layer).__name__} has no name in PyTorch Geometric, expected a layer that it has")


def _is_transposed(layer, leaf):
    return isinstance(layer, _sar.GraphConv) and leaf == "weight"


def _values(layer):
    """The state of a layer of the library that torch has, too."""
    return {name: np.asarray(value) for name, value in layer.state_dict().items() if name.rpartition(".")[2] != "calls"}


def _blocks(layer):
    """The shape of PyG's blocks of a RelGraphConv with the regularizer bdd: [relations, blocks, in, out]; None of others."""
    if not isinstance(layer, _sar.RelGraphConv) or "bdd" not in layer._made[0]:
        return None
    in_feats, out_feats, num_rels, _, num_blocks = layer._made[0][:5]
    return num_rels, num_blocks, in_feats // num_blocks, out_feats // num_blocks


def _of_layer(layer, mean_heads):
    """The state of a layer under PyG's names."""
    found = {}
    for leaf, value in _values(layer).items():
        if isinstance(layer, _sar.TAGConv) and leaf == "lin.weight":  # PyG has a matrix for each number of hops
            hops = layer._made[0][2] + 1
            found.update({f"lins.{k}.weight": part for k, part in enumerate(np.split(value, hops, axis=1))})
        else:
            found[_name(layer, leaf)] = value.T if _is_transposed(layer, leaf) else value
    if (blocks := _blocks(layer)) is not None:
        found["weight"] = found["weight"].reshape(blocks)
    if isinstance(layer, _sar.GATv2Conv):
        if "lin_r.weight" not in found:  # one matrix for both ends
            found.update({name.replace("lin_l", "lin_r"): found[name] for name in ("lin_l.weight", "lin_l.bias") if name in found})
        found.setdefault("bias", np.zeros(found["att"].size, np.float32))
    if isinstance(layer, (_sar.GATConv, _sar.GATv2Conv)) and mean_heads and "bias" in found:
        heads, width = found["att_src" if isinstance(layer, _sar.GATConv) else "att"].shape[1:]
        found["bias"] = found["bias"].reshape(heads, width).mean(0)
    return {name: np.ascontiguousarray(value) for name, value in found.items()}


def _to_layer(layer, given, place):
    """The state of a layer from its state under PyG's names, of which it takes what it reads out of `given`."""
    attention = isinstance(layer, (_sar.GATConv, _sar.GATv2Conv))

    def take(name, shape, keep=False):
        if place + name not in given:
            raise InputError(f"the state has no '{place + name}', expected one of shape {list(shape)}")
        value = np.asarray(given[place + name] if keep else given.pop(place + name))
        if attention and name == "bias" and value.size and shape[0] % value.size == 0:
            value = np.tile(value, shape[0] // value.size)  # of the mean of the heads
        if value.shape not in (shape, _blocks(layer)) and (value.size, int(np.prod(shape))) != (1, 1):
            raise ShapeError(f"'{place + name}' has shape {list(value.shape)}, expected {list(shape)}")
        return value.reshape(shape)

    found = {}
    for leaf, value in _values(layer).items():
        if isinstance(layer, _sar.TAGConv) and leaf == "lin.weight":
            hops = layer._made[0][2] + 1
            found[leaf] = np.concatenate([take(f"lins.{k}.weight", (value.shape[0], value.shape[1] // hops)) for k in range(hops)], 1)
        elif leaf.rpartition(".")[2] == "num_batches_tracked":
            found[leaf] = int(np.asarray(given.pop(place + _name(layer, leaf), value)).item())
        elif _is_transposed(layer, leaf):
            found[leaf] = take(_name(layer, leaf), value.shape[::-1]).T
        else:
            found[leaf] = take(_name(layer, leaf), value.shape)
    if isinstance(layer, _sar.GATv2Conv):
        _take_both_ends(layer, found, given, place, take)
    return found


def _take_both_ends(layer, found, given, place, take):
    """PyG's bias of a GATv2Conv, which is added to the result, and its second matrix, where this layer has one for both ends."""
    shared = "fc_dst.weight" not in found
    if shared:
        for name in ("weight", "bias"):
            own = found.get(f"fc_src.{name}")
            if own is not None and not np.array_equal(take(f"lin_r.{name}", own.shape), own):
                raise InputError(f"'{place}lin_l.{name}' and '{place}lin_r.{name}' differ, expected a layer without share_weights")
    if place + "bias" not in given:
        return
    size = found["attn"].size
    bias = take("bias", (size,))
    if not bias.any():
        return
    if shared or "fc_src.bias" not in found:
        raise InputError(f"'{place}bias' is not 0, expected a GATv2Conv with bias and without share_weights")
    found["fc_src.bias"] = found["fc_src.bias"] + bias  # the scores have the sum of both
    found["fc_dst.bias"] = found["fc_dst.bias"] - bias


def _places(module, prefix="", other=""):
    """The modules that have tensors of their own, with the beginnings of their names here and in PyG."""
    yield module, prefix, other
    for name, part in module.named_children():
        if isinstance(module, HeteroGraphConv):
            for key, layer in part.items():
                types = module._etypes.get(key, key)
                if isinstance(types, str):
                    raise InputError(f"the relation '{key}' of a HeteroGraphConv is given by its name, expected (source type, name, "
                                     "destination type), which PyTorch Geometric's names have")
                yield from _places(layer, f"{prefix}{name}.{key}.", f"{other}convs.<{'___'.join(types)}>.")
        else:
            yield from _places(part, f"{prefix}{name}.", f"{other}{name}.")


def _mlps_as_sequences(module, given):
    """A state in which PyG's MLPs have the names of torch's Sequential: lins.0, norms.0, lins.1 become 0, 1, 3 if the module has its
    linear layers and norms there."""
    if not any(re.search(r"(^|\.)lins\.\d+\.", name) for name in given):
        return dict(given)
    expected = {name: np.ndim(value) for name, value in pyg_state_dict(module).items()}
    found = {}
    for name, value in given.items():
        part = re.fullmatch(r"((?:.*\.)?)(lins|norms)\.(\d+)\.(?:module\.)?(.*)", name)
        if part and name not in expected:
            place, kind, number, leaf = part.groups()
            dims = {int(at[1]): expected[at[0]] for at in (re.fullmatch(re.escape(place) + r"(\d+)\.weight", e) for e in expected) if at}
            at = sorted(n for n, d in dims.items() if (d == 2) == (kind == "lins"))
            name = f"{place}{at[int(number)]}.{leaf}" if int(number) < len(at) else name
        found[name] = value
    return found


def _own(module):
    """The parameters and buffers of a module of Python, without those of its parts."""
    names = [name for name, _ in module.named_parameters(remove_duplicate=False)] + [name for name, _ in module.named_buffers()]
    return {name: module.state_dict()[name] for name in names if "." not in name}


def pyg_state_dict(module, mean_heads=()):
    """Local. The state of a module under the names and in the layouts of PyTorch Geometric 2.4 and later, as arrays by name:
    torch.nn.Module.load_state_dict() reads it, given as tensors of torch. Modules of Python have their own names, so the net of PyG has
    the same attributes. mean_heads: names of the GATConv and GATv2Conv whose heads are averaged (PyG's concat=False). Raises
    sar.InputError for a layer that PyTorch Geometric does not have.

        >>> net = sar.nn.Sequential(sar.nn.GATConv(4, 8, num_heads=2))
        >>> sorted(sar.pyg_state_dict(net))
        ['0.att_dst', '0.att_src', '0.bias', '0.lin.weight']
    """
    found = {}
    for part, prefix, other in _places(module):
        values = _own(part) if isinstance(part, Module) else _of_layer(part, prefix.rstrip(".") in mean_heads)
        found.update({other + name: np.array(value) for name, value in values.items()})
    return found


def load_pyg_state_dict(module, state):
    """Local; the same on all ranks. Copies a state of PyTorch Geometric, arrays or tensors of torch by name, into a module, whose
    attributes have the names of PyG's. Raises sar.InputError or sar.ShapeError, and changes nothing, for names and shapes that do
    not match. For files, and for other names of attributes, see load_weights().

        >>> net = sar.nn.Sequential(sar.nn.GATConv(4, 8, num_heads=2))
        >>> state = sar.pyg_state_dict(net)
        >>> sar.load_pyg_state_dict(net, state)
    """
    given, found = _mlps_as_sequences(module, state), {}
    for part, prefix, other in _places(module):
        if isinstance(part, Module):
            for name, value in _own(part).items():
                if other + name not in given:
                    raise InputError(f"the state has no '{other + name}', which the module has")
                found[prefix + name] = given.pop(other + name)
        else:
            if isinstance(part, _sar.BatchNorm1d):  # PyG's BatchNorm has torch's as its module
                given = {other + name.removeprefix(f"{other}module.") if name.startswith(f"{other}module.") else name: value
                         for name, value in given.items()}
            found.update({prefix + leaf: value for leaf, value in _to_layer(part, given, other).items()})
    if given:
        raise InputError(f"the state has '{next(iter(given))}', which the module has not")
    module.load_state_dict(found)


def save_pyg_weights(module, path, mean_heads=(), comm=None):
    """Collective. Writes pyg_state_dict() to a .safetensors file, which safetensors.torch.load_file reads.

        >>> net = sar.nn.Sequential(sar.nn.GATConv(4, 8, num_heads=2))
        >>> sar.save_pyg_weights(net, "gat.safetensors")
    """
    tree = Module()
    for name, value in pyg_state_dict(module, mean_heads).items():
        if value.dtype.kind not in "f":  # the number of batches of a batch norm, which torch can do without
            continue
        *parents, leaf = name.split(".")
        at = tree
        for parent in parents:
            if parent not in at.__dict__.get("_parts", {}):
                setattr(at, parent, Module())
            at = at._parts[parent]
        at.register_buffer(leaf, value)
    _sar.save_weights(tree, path, comm=comm)
