#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""Writes formats/ with DGL 2.1.0: a homogeneous partition with graph_formats=['csc'], and the graph of its first part in every combination of
formats (part0/graph.coo.dgl to graph.coo_csr_csc.dgl). There is no file of original ids; the graph has them as its data 'orig_id'."""
import itertools
import os
import shutil
import tempfile

import dgl
import torch

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'formats')


def make_graph():
    """The graph homogeneous/ of make.py, with its data."""
    edges = [(v, (v + step) % 11) for v in range(11) for step in (1, 3, 4)] + [(5, 5), (0, 1)]
    src, dst = (torch.tensor(ends) for ends in zip(*edges))
    graph = dgl.graph((src, dst), num_nodes=11)
    nodes, ids = torch.arange(11), torch.arange(len(edges))
    graph.ndata['features'] = torch.stack([nodes, nodes / 4, -nodes], 1).float()
    graph.ndata['labels'] = nodes % 3
    graph.ndata['train_mask'] = nodes % 2 == 0
    graph.ndata['orig_id'] = nodes
    graph.edata['orig_id'] = ids
    return graph


def clear_padding(path):
    """DGL fills the rest of its header with whatever is in memory."""
    with open(path, 'r+b') as file:
        file.seek(32)
        file.write(bytes(4096 - 32))


def partition(formats, out):
    dgl.seed(1)
    dgl.distributed.partition_graph(make_graph(), 'cycle', 2, out, part_method='random', graph_formats=formats)
    for part in (0, 1):
        clear_padding(f'{out}/part{part}/graph.dgl')


def main():
    shutil.rmtree(HERE, ignore_errors=True)
    partition(['csc'], HERE)
    for count in (1, 2, 3):
        for formats in itertools.combinations(['coo', 'csr', 'csc'], count):
            with tempfile.TemporaryDirectory() as scratch:
                partition(list(formats), scratch)
                shutil.copy(f'{scratch}/part0/graph.dgl', f'{HERE}/part0/graph.{"_".join(formats)}.dgl')


if __name__ == '__main__':
    main()
