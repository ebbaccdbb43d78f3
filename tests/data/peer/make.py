#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""make.py [FOLDER]: writes the files of this folder, golden/peer.safetensors and golden/pyg.safetensors with DGL 2.1.0 and PyTorch Geometric 2.8.1.

Each model of `train`, built as the examples of both do and with their names: CASE.safetensors has its weights, golden/peer.safetensors the graph,
the features and the logits; golden/pyg.safetensors has layers that DGL does not have, with gradients. With a FOLDER of files that were saved from these models, their logits are compared instead."""
import importlib.util
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from safetensors.torch import load_file, save_file

import dgl
import dgl.nn
import torch_geometric.nn as pyg

HERE = Path(__file__).resolve().parent
NODES, IN, HIDDEN, CLASSES, RELATIONS = 12, 5, 6, 4, 3


def edges():
    """Both directions of every edge, parallel edges, and a loop at every node, so that DGL and PyG normalize alike."""
    ends = [(v, (v + step) % NODES) for v in range(NODES) for step in (1, 4)] + [(0, v) for v in range(2, 9)] + [(3, 7), (3, 7)]
    both = ends + [(v, u) for u, v in ends] + [(v, v) for v in range(NODES)]
    return torch.tensor(both).T.contiguous()


EDGES = edges()
ETYPE = torch.tensor([(3 * u + v) % RELATIONS for u, v in EDGES.T.tolist()])
GRAPH = dgl.graph((EDGES[0], EDGES[1]), num_nodes=NODES)


def relation_norm():
    """1 / the in-edges of the destination that have the type."""
    keys = EDGES[1] * RELATIONS + ETYPE
    return (1 / torch.bincount(keys)[keys].double()).reshape(-1, 1)


def mlp(width_in, width_out):
    return nn.Sequential(nn.Linear(width_in, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, width_out))


class DglMlp(nn.Module):
    def __init__(self, width_in, width_out):
        super().__init__()
        self.linears = nn.ModuleList([nn.Linear(width_in, HIDDEN), nn.Linear(HIDDEN, width_out)])
        self.batch_norm = nn.BatchNorm1d(HIDDEN)

    def forward(self, x):
        return self.linears[1](F.relu(self.batch_norm(self.linears[0](x))))


class Two(nn.Module):
    """Two layers called conv1 and conv2, as in tutorials of both."""

    def __init__(self, first, second, act=F.relu, flatten=False, names=('conv1', 'conv2')):
        super().__init__()
        self.names, self.act, self.flatten = names, act, flatten
        for name, layer in zip(names, (first, second)):
            self.add_module(name, layer)

    def forward(self, call, x):
        h = self.act(call(getattr(self, self.names[0]), x))
        if self.flatten:
            h = h.flatten(1)
        return call(getattr(self, self.names[1]), h)


class Stack(nn.Module):
    """A list of layers."""

    def __init__(self, name, layers, act=F.relu, flatten=False):
        super().__init__()
        self.name, self.act, self.flatten = name, act, flatten
        self.add_module(name, nn.ModuleList(layers))

    def forward(self, call, x):
        layers = getattr(self, self.name)
        for layer in layers[:-1]:
            x = self.act(call(layer, x))
            if self.flatten:
                x = x.flatten(1)
        return call(layers[-1], x)


class Wrapped(nn.Module):
    """As DistributedDataParallel does."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, call, x):
        return self.module(x, EDGES)


def plain_dgl(layer, x):
    return layer(GRAPH, x)


def plain_pyg(layer, x):
    return layer(x, EDGES)


def typed_dgl(layer, x):
    return layer(GRAPH, x, ETYPE, norm=relation_norm())


def typed_pyg(layer, x):
    return layer(x, EDGES, ETYPE)


def mean_of_heads(call):
    return lambda layer, x: (lambda y: y.mean(1) if y.dim() == 3 and y.shape[2] == CLASSES else y)(call(layer, x))


def cases():
    """name: arguments of `train`, the model, how a layer is called."""
    d, p = dgl.nn, pyg
    sage = dict(num_layers=2, norm='batch_norm')
    per_head = HIDDEN // 2
    heads = dict(heads=2, out_heads=3)
    return {
        'sage_dgl': (dict(model='sage'), Stack('layers', [d.SAGEConv(IN, HIDDEN, 'mean'), d.SAGEConv(HIDDEN, CLASSES, 'mean')]), plain_dgl),
        'sage_pyg': (dict(model='sage', batch_norm=1), Wrapped(p.GraphSAGE(IN, HIDDEN, out_channels=CLASSES, **sage)), plain_pyg),
        'gcn_dgl': (dict(model='gcn'), Two(d.GraphConv(IN, HIDDEN), d.GraphConv(HIDDEN, CLASSES)), plain_dgl),
        'gcn_pyg': (dict(model='gcn'), Two(p.GCNConv(IN, HIDDEN, add_self_loops=False), p.GCNConv(HIDDEN, CLASSES, add_self_loops=False)), plain_pyg),
        'gat_dgl': (dict(model='gat', residual=2, layers=3, **heads),
                    Stack('gat_layers', [d.GATConv(IN, per_head, 2, activation=F.elu), d.GATConv(HIDDEN, per_head, 2, residual=True, activation=F.elu),
                                         d.GATConv(HIDDEN, CLASSES, 3, residual=True)], act=lambda x: x, flatten=True), mean_of_heads(plain_dgl)),
        'gat_pyg': (dict(model='gat', **heads),
                    Two(p.GATConv(IN, per_head, heads=2, add_self_loops=False),
                        p.GATConv(HIDDEN, CLASSES, heads=3, concat=False, add_self_loops=False), act=F.elu), plain_pyg),
        'gat_residual_pyg': (dict(model='gat', heads=2, out_heads=1, residual=1),
                             Two(p.GATConv(IN, per_head, heads=2, residual=True, add_self_loops=False),
                                 p.GATConv(HIDDEN, CLASSES, heads=1, residual=True, add_self_loops=False), act=F.elu,
                                 names=('conv_in', 'conv_out')), plain_pyg),
        'gatv2_dgl': (dict(model='gatv2', residual=2, **heads),
                      Stack('gatv2_layers', [d.GATv2Conv(IN, per_head, 2, activation=F.elu), d.GATv2Conv(HIDDEN, CLASSES, 3, residual=True)],
                            act=lambda x: x, flatten=True), mean_of_heads(plain_dgl)),
        'gatv2_pyg': (dict(model='gatv2', **heads),
                      Two(p.GATv2Conv(IN, per_head, heads=2, add_self_loops=False),
                          p.GATv2Conv(HIDDEN, CLASSES, heads=3, concat=False, add_self_loops=False), act=F.elu), plain_pyg),
        'gin_dgl': (dict(model='gin'), Stack('ginlayers', [d.GINConv(DglMlp(IN, HIDDEN), learn_eps=True),
                                                            d.GINConv(DglMlp(HIDDEN, CLASSES), learn_eps=True)]), plain_dgl),
        'gin_pyg': (dict(model='gin'), Stack('convs', [p.GINConv(mlp(IN, HIDDEN), train_eps=True), p.GINConv(mlp(HIDDEN, CLASSES), train_eps=True)]),
                    plain_pyg),
        'rgcn_dgl': (dict(model='rgcn', num_bases=2), Two(d.RelGraphConv(IN, HIDDEN, RELATIONS, 'basis', 2), d.RelGraphConv(HIDDEN, CLASSES, RELATIONS, 'basis', 2)),
                     typed_dgl),
        'rgcn_pyg': (dict(model='rgcn'), Two(p.RGCNConv(IN, HIDDEN, RELATIONS), p.RGCNConv(HIDDEN, CLASSES, RELATIONS)), typed_pyg),
        'rgcn_bases_pyg': (dict(model='rgcn', num_bases=2), Two(p.RGCNConv(IN, HIDDEN, RELATIONS, num_bases=2), p.RGCNConv(HIDDEN, CLASSES, RELATIONS, num_bases=2)),
                           typed_pyg),
    }


def randomize(model, name):
    """No tensor keeps a value that another layer could have, or that hides what it does (a bias of 0)."""
    generator = torch.Generator().manual_seed(sum(name.encode()))
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand(tensor.shape, generator=generator, dtype=torch.float64) + (0.5 if key.endswith('running_var') else -0.5))
            else:
                tensor.fill_(7)


def transformer_cases():
    return {'TransformerConv__plain': {}, 'TransformerConv__no_bias': dict(bias=False), 'TransformerConv__no_root_weight': dict(root_weight=False),
            'TransformerConv__beta_mean': dict(beta=True, concat=False), 'TransformerConv__beta_no_bias_edge': dict(beta=True, bias=False, edge_dim=2),
            'TransformerConv__edge': dict(edge_dim=2)}


def save_transformer(name, options, folder):
    """A layer of two heads of three features: inputs, parameters, result and the gradients of sum(out * grad_out)."""
    generator = torch.Generator().manual_seed(sum(name.encode()))
    draw = lambda *shape: torch.rand(shape, generator=generator) - 0.5
    layer = pyg.TransformerConv(IN, 3, heads=2, **options)
    randomize(layer, name)
    x, e = draw(NODES, IN).requires_grad_(), draw(EDGES.shape[1], 2).requires_grad_()
    out = layer(x, EDGES, e if 'edge_dim' in options else None)
    grad_out = draw(*out.shape)
    (out * grad_out).sum().backward()
    arrays = {'src': EDGES[0], 'dst': EDGES[1], 'in.feat': x, 'grad_in.feat': x.grad, 'out': out, 'grad_out': grad_out}
    if 'edge_dim' in options:
        arrays.update({'in.efeat': e, 'grad_in.efeat': e.grad})
    for key, parameter in layer.named_parameters():
        arrays['param.' + key] = parameter
        if parameter.grad is not None:
            arrays['grad_param.' + key] = parameter.grad
    folder.mkdir(parents=True)
    for key, value in arrays.items():
        np.save(folder / f'{key}.npy', value.detach().numpy())
    lines = {**dict(bias=True, root_weight=True, beta=False, concat=True, edge_dim=0), **options}
    lines = {key: int(value) for key, value in lines.items()}
    lines.update(case=name, graph='homogeneous', num_src=NODES, num_dst=NODES, heads=2, out_feats=3)
    (folder / 'args.txt').write_text(''.join(f'{key}={lines[key]}\n' for key in sorted(lines)))


def main():
    torch.set_default_dtype(torch.float64)
    x = torch.rand((NODES, IN), generator=torch.Generator().manual_seed(1), dtype=torch.float64) - 0.5
    saved = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    common = dict(layers=2, hidden=HIDDEN, heads=1, out_heads=1, residual=0, batch_norm=0, num_rels=RELATIONS, num_bases=0, num_classes=CLASSES,
                  graph='homogeneous', num_src=NODES, num_dst=NODES)
    with tempfile.TemporaryDirectory() as scratch:
        for name, (args, model, call) in cases().items():
            randomize(model, name)
            model.eval()
            logits = model(call, x).detach()
            if saved:
                model.load_state_dict(load_file(saved / f'{name}.safetensors'))
                error = (model(call, x).detach() - logits).abs().max().item() / logits.abs().max().item()
                print(f'{name}: largest difference {error:.1e}')
                assert error < 1e-5
                continue
            save_file({key: tensor.contiguous() for key, tensor in model.state_dict().items()}, HERE / f'{name}.safetensors')
            folder = Path(scratch, 'peer', name)
            folder.mkdir(parents=True)
            for array, value in {'src': EDGES[0], 'dst': EDGES[1], 'etype': ETYPE, 'norm': relation_norm(), 'in.feat': x, 'out': logits}.items():
                np.save(folder / f'{array}.npy', value.numpy())
            lines = {**common, **args, 'case': name}
            (folder / 'args.txt').write_text(''.join(f'{key}={lines[key]}\n' for key in sorted(lines)))
        if not saved:
            spec = importlib.util.spec_from_file_location('pack', HERE.parent / 'golden' / 'pack.py')
            pack = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(pack)
            for name, options in transformer_cases().items():
                save_transformer(name, options, Path(scratch, 'pyg', name))
            for group in ('peer', 'pyg'):
                pack.pack(Path(scratch, group), HERE.parent / 'golden' / f'{group}.safetensors')


if __name__ == '__main__':
    main()
