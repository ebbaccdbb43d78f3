#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""make_versions.py LIBRARY CASES: writes versions/LIBRARY_MODEL.safetensors and the arrays of these models for pack.py, in double precision.

LIBRARY is pyg_1_7 or another release that can be imported (make_versions.sh starts this once for each). The models are small ones as people build them:
their weights have the names of that release, CASES/versions has the graph, the features and the logits. CASES/gcn_norm has layers on a graph with edge
weights, with gradients."""
import importlib
import sys
import types
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from safetensors.torch import save_file

HERE = Path(__file__).resolve().parent
NODES, IN, HIDDEN, CLASSES = 12, 5, 6, 4
library, cases = sys.argv[1], Path(sys.argv[2])
IS_DGL = library.startswith('dgl')
if IS_DGL:
    dgl = importlib.import_module('dgl')
    layers = importlib.import_module('dgl.nn')
else:
    six = types.ModuleType('torch._six')  # PyG 1.6 reads names from it that torch has no more
    six.container_abcs, six.string_classes, six.int_classes = importlib.import_module('collections.abc'), str, int
    sys.modules.setdefault('torch._six', six)
    layers = importlib.import_module('torch_geometric.nn')


def edges():
    """Both directions of every edge, parallel edges, and a loop at every node, so that DGL and PyG normalize alike."""
    ends = [(v, (v + step) % NODES) for v in range(NODES) for step in (1, 4)] + [(0, v) for v in range(2, 9)] + [(3, 7), (3, 7)]
    return torch.tensor(ends + [(v, u) for u, v in ends] + [(v, v) for v in range(NODES)]).T.contiguous()


def directed_edges():
    """Few nodes have as many in-edges as out-edges; node 11 has no in-edge, node 10 no out-edge; node 2 has a loop."""
    ends = [(v, (v * v + step) % 10) for v in range(10) for step in (1, 3, 6)] + [(11, 4), (11, 2), (1, 10), (2, 2)]
    return torch.tensor(sorted(set(ends) - {(v, v) for v in range(NODES) if v != 2})).T.contiguous()


EDGES = edges()


def call(layer, x):
    return layer(dgl.graph((EDGES[0], EDGES[1]), num_nodes=NODES), x) if IS_DGL else layer(x, EDGES)


def mlp(width_in, width_out):
    return nn.Sequential(nn.Linear(width_in, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, width_out))


class Two(nn.Module):
    """Two layers called conv1 and conv2; heads of the first side by side, of the second averaged."""

    def __init__(self, first, second, act=F.relu):
        super().__init__()
        self.conv1, self.conv2, self.act = first, second, act

    def forward(self, x):
        y = call(self.conv2, self.act(call(self.conv1, x)).flatten(1))
        return y.mean(1) if y.dim() == 3 else y


class Gin(nn.Module):
    """As in PyG's examples, which keep the networks of the layers as modules, too."""

    def __init__(self):
        super().__init__()
        self.nn1, self.nn2 = mlp(IN, HIDDEN), mlp(HIDDEN, CLASSES)
        options = dict(learn_eps=True) if IS_DGL else dict(train_eps=True)
        self.conv1, self.conv2 = layers.GINConv(self.nn1, **options), layers.GINConv(self.nn2, **options)

    def forward(self, x):
        return call(self.conv2, F.relu(call(self.conv1, x)))


class Whole(nn.Module):
    """A network that PyG makes, wrapped as torch.nn.DataParallel wraps it."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x, EDGES)


def of_pyg():
    """PyG's own classes of networks, and torch.compile."""
    if not hasattr(layers, 'GraphSAGE'):
        return {}
    plain = dict(num_layers=2, out_channels=CLASSES, norm=layers.BatchNorm(HIDDEN))
    in_order = [(layers.GCNConv(IN, HIDDEN, add_self_loops=False), 'x, edge_index -> x'), nn.ReLU(),
                (layers.GCNConv(HIDDEN, CLASSES, add_self_loops=False), 'x, edge_index -> x')]
    return {
        'sage_class': (dict(model='sage', batch_norm=1), Whole(layers.GraphSAGE(IN, HIDDEN, **plain))),
        'gat_class': (dict(model='gat'), Whole(layers.GAT(IN, HIDDEN, heads=1, num_layers=2, out_channels=CLASSES, act='elu', add_self_loops=False))),
        'gcn_sequential': (dict(model='gcn'), Whole(layers.Sequential('x, edge_index', in_order))),
        'gcn_compiled': (dict(model='gcn'), torch.compile(two('GCNConv', first=dict(add_self_loops=False), second=dict(add_self_loops=False)), backend='eager')),
    }


def two(name, act=F.relu, first={}, second={}, widths=(HIDDEN, CLASSES)):
    layer = getattr(layers, name, None)
    return layer and Two(layer(IN, widths[0], **first), layer(HIDDEN, widths[1], **second), act)


def models():
    """name: arguments of `train`, the model or None."""
    per_head, heads = HIDDEN // 2, dict(heads=2, out_heads=3)
    if IS_DGL:
        first, second = dict(num_heads=2), dict(num_heads=3)
        return {
            'sage': (dict(model='sage'), two('SAGEConv', first=dict(aggregator_type='mean'), second=dict(aggregator_type='mean'))),
            'gcn': (dict(model='gcn'), two('GraphConv')),
            'gat': (dict(model='gat', **heads), two('GATConv', F.elu, first, second, (per_head, CLASSES))),
            'gatv2': (dict(model='gatv2', **heads), two('GATv2Conv', F.elu, first, second, (per_head, CLASSES))),
            'gatv2_shared': (dict(model='gatv2', **heads),
                             two('GATv2Conv', F.elu, dict(first, share_weights=True), dict(second, share_weights=True), (per_head, CLASSES))),
            'gin': (dict(model='gin'), Gin()),
        }
    plain = dict(add_self_loops=False)
    first, second = dict(heads=2, **plain), dict(heads=3, concat=False, **plain)
    return {
        'sage': (dict(model='sage'), two('SAGEConv')),
        'gcn': (dict(model='gcn'), two('GCNConv', first=plain, second=plain)),
        'gat': (dict(model='gat', **heads), two('GATConv', F.elu, first, second, (per_head, CLASSES))),
        'gatv2': (dict(model='gatv2', **heads), two('GATv2Conv', F.elu, first, second, (per_head, CLASSES))),
        'gatv2_shared': (dict(model='gatv2', **heads),
                         two('GATv2Conv', F.elu, dict(first, share_weights=True), dict(second, share_weights=True), (per_head, CLASSES))),
        'gin': (dict(model='gin'), Gin()),
        **of_pyg(),
    }


def randomize(module, name):
    """No tensor keeps a value that another layer could have, or that hides what it does (a bias of 0)."""
    generator = torch.Generator().manual_seed(sum(name.encode()))
    with torch.no_grad():
        for key, tensor in module.state_dict().items():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand(tensor.shape, generator=generator, dtype=torch.float64) + (0.5 if key.endswith('running_var') else -0.5))
            else:
                tensor.fill_(7)


def save_case(group, case, arguments, **arrays):
    folder = cases / group / case
    folder.mkdir(parents=True, exist_ok=True)
    for key, value in arrays.items():
        np.save(folder / f"{key.replace('__', '.')}.npy", np.ascontiguousarray(value.detach().numpy()))
    lines = dict(arguments, case=case, graph='homogeneous', num_src=NODES, num_dst=NODES)
    (folder / 'args.txt').write_text(''.join(f'{key}={lines[key]}\n' for key in sorted(lines)))


def save_models():
    x = torch.rand((NODES, IN), generator=torch.Generator().manual_seed(1)) - 0.5
    common = dict(layers=2, hidden=HIDDEN, heads=1, out_heads=1, residual=0, batch_norm=0, num_rels=1, num_bases=0, num_classes=CLASSES)
    for name, (arguments, model) in models().items():
        if model is None:
            continue
        randomize(model, name)
        weights = {key: tensor.clone().contiguous() for key, tensor in model.eval().state_dict().items()}
        save_file(weights, HERE / 'versions' / f'{library}_{name}.safetensors')
        save_case('versions', f'{library}_{name}', dict(common, **arguments), src=EDGES[0], dst=EDGES[1], in__feat=x, out=model(x))
        print(library, name, *(key for key in weights if not key.startswith(('conv2', 'nn2'))))


def save_layer(case, norm, ends, x, w, layer, out):
    """With the gradients of sum(out * grad_out). The weight is stored as DGL's, [in, out]."""
    grad_out = torch.rand(out.shape, generator=torch.Generator().manual_seed(3)) - 0.5
    (out * grad_out).sum().backward()
    is_linear = hasattr(layer, 'lin')
    weight = layer.lin.weight if is_linear else layer.weight
    turned = (lambda tensor: tensor.T) if is_linear else (lambda tensor: tensor)
    save_case('gcn_norm', f'{library}_{case}', dict(norm=norm, in_feats=IN, out_feats=CLASSES), src=ends[0], dst=ends[1], in__feat=x, grad_in__feat=x.grad,
              in__edge_weight=w, grad_in__edge_weight=w.grad, out=out, grad_out=grad_out, param__weight=turned(weight), param__bias=layer.bias,
              grad_param__weight=turned(weight.grad), grad_param__bias=layer.bias.grad)


def save_layers():
    """The edges of a case are those on which the layer works, with the self loops that GCNConv adds."""
    generator = torch.Generator().manual_seed(2)
    features = torch.rand((NODES, IN), generator=generator) - 0.5
    given = directed_edges()
    weights = torch.rand(given.shape[1], generator=generator) * 4 + 0.1
    if IS_DGL:
        x, w = features.requires_grad_(), weights.requires_grad_()
        graph = dgl.graph((given[0], given[1]), num_nodes=NODES)
        layer = layers.GraphConv(IN, CLASSES, norm='none', allow_zero_in_degree=True)
        randomize(layer, 'GraphConv')
        save_layer('EdgeWeightNorm', 'weights', given, x, w, layer, layer(graph, x, edge_weight=layers.EdgeWeightNorm(norm='both')(graph, w)))
        return
    utils = importlib.import_module('torch_geometric.utils')
    for case, adds in (('GCNConv', True), ('GCNConv_without_loops', False)):
        ends, w = utils.add_remaining_self_loops(given, weights, 1.0, NODES) if adds else (given, weights)
        x, w = features.clone().requires_grad_(), w.clone().requires_grad_()
        layer = layers.GCNConv(IN, CLASSES, add_self_loops=adds)
        randomize(layer, 'GCNConv')
        save_layer(case, 'in_weights', ends, x, w, layer, layer(x, ends, w))  # the loops that are there are not added again


if __name__ == '__main__':
    torch.set_default_dtype(torch.float64)
    (HERE / 'versions').mkdir(exist_ok=True)
    save_models()
    save_layers()
