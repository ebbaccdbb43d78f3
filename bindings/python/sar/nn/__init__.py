# SPDX-License-Identifier: MIT

"""Layers under DGL's and torch's names. A layer of a graph is called as layer(graph, x)."""

from .. import _sar
from .._sar import (
    MLP,
    AGNNConv,
    APPNPConv,
    AvgPooling,
    BatchNorm1d,
    CategoryEmbedding,
    CFConv,
    DotGatConv,
    Dropout,
    EdgeConv,
    EdgeGATConv,
    GATConv,
    GATv2Conv,
    GINConv,
    GINEConv,
    GraphConv,
    HGTConv,
    LayerNorm,
    Linear,
    MaxPooling,
    NNConv,
    RelGraphConv,
    SAGEConv,
    SGConv,
    SumPooling,
    TAGConv,
    TransformerConv,
)
from . import functional
from .modules import (
    ELU,
    GELU,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    Embedding,
    HeteroGraphConv,
    HuberLoss,
    Identity,
    L1Loss,
    Module,
    ModuleDict,
    ModuleList,
    MSELoss,
    Parameter,
    ReLU,
    Sequential,
    Sigmoid,
    SiLU,
    Tanh,
)


def GCNConv(in_channels: int, out_channels: int, bias: bool = True, cached: bool = False) -> GraphConv:
    """torch_geometric.nn.GCNConv: GraphConv with the weights of in-edges normalized. PyG adds self loops in the layer;
    here the graph has them: sar.Graph(..., add_self_loops="remaining").

        >>> graph = sar.Graph(([0, 1, 2], [1, 2, 0]), num_nodes=3, add_self_loops="remaining")
        >>> conv = sar.nn.GCNConv(4, 8)
        >>> conv(graph, sar.ones((3, 4))).shape
        (3, 8)
    """
    return GraphConv(in_channels, out_channels, norm="in_weights", bias=bias, cached=cached)


__all__ = [
    "AGNNConv", "APPNPConv", "AvgPooling", "BCEWithLogitsLoss", "BatchNorm1d", "CFConv", "CategoryEmbedding", "CrossEntropyLoss",
    "DotGatConv", "Dropout", "ELU", "EdgeConv", "EdgeGATConv", "Embedding", "GATConv", "GATv2Conv", "GCNConv", "GELU", "GINConv",
    "GINEConv", "GraphConv", "HGTConv", "HeteroGraphConv", "HuberLoss", "Identity", "L1Loss", "LayerNorm", "Linear", "MLP",
    "MSELoss", "MaxPooling", "Module", "ModuleDict", "ModuleList", "NNConv", "Parameter", "ReLU", "RelGraphConv", "SAGEConv",
    "SGConv", "Sequential", "SiLU", "Sigmoid", "SumPooling", "TAGConv", "Tanh", "TransformerConv", "functional",
]
