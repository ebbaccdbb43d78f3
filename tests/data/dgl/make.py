#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""Writes the DGL partitions of this folder: the formats of DGL, by plain Python.

homogeneous/    as DGL 1.1 writes them: canonical edge types, COO with 64-bit ids; original ids in .npy files
heterogeneous/  as DGL 2.0: a type without nodes in a part, CSR and CSC; original ids in orig_nids.dgl, orig_eids.dgl
old/            as DGL 0.7: edge types without their ends, 32-bit ids, original ids in the part's graph

make_formats.py writes formats/ with DGL itself.
"""
import json
import os
import struct

FORMAT = {'int8': (0, 8, 'b'), 'int16': (0, 16, 'h'), 'int32': (0, 32, 'i'), 'int64': (0, 64, 'q'), 'uint8': (1, 8, 'B'), 'float32': (2, 32, 'f'),
          'float64': (2, 64, 'd'), 'bool': (6, 8, 'B')}


def pack(code, *values):
    return struct.pack('<' + code, *values)


def text(value):
    return pack('Q', len(value)) + value.encode()


def array(dtype, values, row=()):
    """`values` is flat; `row` the shape of one row."""
    code, bits, letter = FORMAT[dtype]
    width = 1
    for extent in row:
        width *= extent
    shape = (len(values) // width, ) + row
    data = pack(f'{len(values)}{letter}', *values)
    return (pack('QQ', 0xDD5E40F096B4A13F, 0) + pack('iii', 1, 0, len(shape)) + pack('BBH', code, bits, 1) + pack(f'{len(shape)}q', *shape) +
            pack('q', len(data)) + data)


def named(tensors):
    return pack('Q', len(tensors)) + b''.join(text(name) + data for name, data in tensors.items())


def tensors_file(tensors):
    return pack('QQ', 0xDD5A9FBE3FA2443F, len(tensors)) + named(tensors)


def csr(ids, num_rows, num_cols, elements):
    """elements[k] = (row, column), k is the id."""
    order = sorted(range(len(elements)), key=lambda k: elements[k][0])
    begins = [sum(row < r for row, _ in elements) for r in range(num_rows + 1)]
    return (pack('Qqq', 0xDD6CD31205DFF127, num_cols, num_rows) + array(ids, begins) + array(ids, [elements[k][1] for k in order]) + array(ids, order) +
            b'\0')


def graph_file(form, ids, num_nodes, edges, node_data, edge_data, has_bits):
    """A homogeneous graph in the format coo, csr or csc, which is a bit of the format word, or a number in old files."""
    meta = pack('Q', 0xDD3C5FFE20046ABF) + csr('int64', 1, 1, [(0, 0)])
    if form == 'coo':
        adjacency = (pack('Qqq', 0xDD61FFD305DFF127, num_nodes, num_nodes) + array(ids, [s for s, _ in edges]) + array(ids, [d for _, d in edges]) +
                     array('int64', []) + b'\0\0')
    else:
        adjacency = csr(ids, num_nodes, num_nodes, edges if form == 'csr' else [(d, s) for s, d in edges])
    number = {'coo': 1, 'csr': 2, 'csc': 4}[form] | 1 << 32 if has_bits else {'coo': 1, 'csr': 2, 'csc': 3}[form]
    graph = (pack('Q', 0xDD589FBE35224ABF) + meta + pack('Q', 1) + pack('QQQ', 0xDD2E60F0F6B4A127, number, 7 | 1 << 32) + meta + adjacency +
             pack('Qq', 1, num_nodes) + pack('Q', 1) + named(node_data) + pack('Q', 1) + named(edge_data) + pack('Q', 1) + text('_N') + pack('Q', 1) +
             text('_E'))
    header = pack('QQQQ', 0xDD2E4FF046B4A13F, 2, 2, 1).ljust(4096, b'\0')
    labels = named({})
    begin = len(header) + 8 + len(labels)
    return header + pack('Q', begin) + labels + graph + pack('Q', 16) + pack('QQ', 1, begin) + pack('Q', 16)


def npy(values, shape=None):
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape or (len(values), )}, }}"
    return b'\x93NUMPY\x01\x00' + pack('H', 118) + (header.ljust(117) + '\n').encode() + pack(f'{len(values)}q', *values)


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as out:
        out.write(data)


def partition(out, name, num_parts, nodes, edges, part_of, node_data, edge_data, style):
    """nodes: {type: count}; edges: {(source type, type, destination type): [(source, destination)]}; data: {type: f(ids)}."""
    ntypes, etypes = list(nodes), list(edges)
    members = [(p, t, v) for p in range(num_parts) for t in ntypes for v in range(nodes[t]) if part_of(t, v) == p]
    links = [(p, t, e) for p in range(num_parts) for t in etypes for e in range(len(edges[t])) if part_of(t[2], edges[t][e][1]) == p]
    node_id = {(t, v): i for i, (_, t, v) in enumerate(members)}
    etype_name = (lambda t: t[1]) if style['plain'] else ':'.join

    def ranges(items, key):
        found = [[i for i, (p, t, _) in enumerate(items) if (p, t) == (part, key)] for part in range(num_parts)]
        return [[ids[0], ids[-1] + 1] if ids else [-1, -1] for ids in found]

    description = {
        'graph_name': name, 'num_nodes': len(members), 'num_edges': len(links), 'part_method': 'random', 'num_parts': num_parts, 'halo_hops': 1,
        'node_map': {t: ranges(members, t) for t in ntypes}, 'edge_map': {etype_name(t): ranges(links, t) for t in etypes},
        'ntypes': {t: i for i, t in enumerate(ntypes)}, 'etypes': {etype_name(t): i for i, t in enumerate(etypes)}}
    for p in range(num_parts):
        inner = [i for i, m in enumerate(members) if m[0] == p]
        mine = [i for i, m in enumerate(links) if m[0] == p]
        ends = lambda i: (node_id[links[i][1][0], edges[links[i][1]][links[i][2]][0]], node_id[links[i][1][2], edges[links[i][1]][links[i][2]][1]])
        halo = sorted({ends(i)[0] for i in mine} - set(inner))
        local = {v: i for i, v in enumerate(inner + halo)}
        outer = [i for i in range(len(links)) if i not in mine and all(v in local for v in ends(i))]
        all_links = mine + outer
        if style['form'][p] != 'coo':
            all_links.reverse()  # the order in the file says nothing
        ndata = {'_ID': array('int64', list(local)), 'inner_node': array(style['flag'], [int(v in inner) for v in local]),
                 'part_id': array('int64', [members[v][0] for v in local])}
        edata = {'_ID': array('int64', all_links), 'inner_edge': array(style['flag'], [int(i in mine) for i in all_links])}
        if len(ntypes) > 1:
            ndata['_TYPE'] = array('int32', [ntypes.index(members[v][1]) for v in local])
            edata['_TYPE'] = array('int32', [etypes.index(links[i][1]) for i in all_links])
        if style['orig'] == 'graph':
            ndata['orig_id'] = array('int64', [members[v][2] for v in local])
            edata['orig_id'] = array('int64', [links[i][2] for i in all_links])
        folder = f'{out}/part{p}'
        write(f'{folder}/graph.dgl',
              graph_file(style['form'][p], style['ids'], len(local), [tuple(local[v] for v in ends(i)) for i in all_links], ndata, edata,
                         has_bits=not style['plain']))
        originals = {t: [v for q, u, v in members if (q, u) == (p, t)] for t in ntypes}
        original_edges = {t: [e for q, u, e in links if (q, u) == (p, t)] for t in etypes}
        write(f'{folder}/node_feat.dgl', tensors_file({f'{t}/{field}': f(originals[t]) for t in ntypes for field, f in node_data.get(t, {}).items()}))
        write(f'{folder}/edge_feat.dgl',
              tensors_file({f'{etype_name(t)}/{field}': f(original_edges[t]) for t in etypes for field, f in edge_data.get(t[1], {}).items()}))
        if style['orig'] == 'dgl':
            write(f'{folder}/orig_nids.dgl', tensors_file({t: array('int64', originals[t]) for t in ntypes}))
            write(f'{folder}/orig_eids.dgl', tensors_file({etype_name(t): array('int64', original_edges[t]) for t in etypes}))
        description[f'part-{p}'] = {'node_feats': f'part{p}/node_feat.dgl', 'edge_feats': f'part{p}/edge_feat.dgl', 'part_graph': f'part{p}/graph.dgl'}
    if style['orig'] == 'npy':
        write(f'{out}/orig_node_ids.npy', npy([v for _, _, v in members]))
        write(f'{out}/orig_edge_ids.npy', npy([e for _, _, e in links]))
    for t in etypes:  # the graph before partitioning, for the tests
        write(f'{out}/original_edges.{t[1]}.npy', npy([s for s, _ in edges[t]] + [d for _, d in edges[t]], (2, len(edges[t]))))
    write(f'{out}/{name}.json', json.dumps(description, indent=4).encode())


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    # the tests know these formulas
    features = lambda ids: array('float32', [x for v in ids for x in (v, v / 4, -v)], (3, ))
    labels = lambda ids: array('int64', [v % 3 for v in ids])
    mask = lambda kind: lambda ids: array(kind, [int(v % 2 == 0) for v in ids])
    check = lambda ids: array('int64', ids)
    year = lambda ids: array('int32', [1990 + e for e in ids])

    cycle = [(v, (v + step) % 11) for v in range(11) for step in (1, 3, 4)] + [(5, 5), (0, 1)]
    weight = lambda ids: array('float32', [(7 * cycle[e][0] + 13 * cycle[e][1]) % 101 / 101 for e in ids])
    partition(f'{here}/homogeneous', 'cycle', 2, {'_N': 11}, {('_N', '_E', '_N'): cycle}, lambda t, v: v * 5 // 4 % 2,
              {'_N': {'features': features, 'labels': labels, 'train_mask': mask('uint8'), 'orig_check': check}},
              {'_E': {'weight': weight, 'orig_check': check}}, {'plain': False, 'form': ['coo', 'coo'], 'ids': 'int64', 'flag': 'uint8', 'orig': 'npy'})

    papers = {('author', 'writes', 'paper'): [(a, (3 * a + k) % 9) for a in range(6) for k in (0, 2)],
              ('paper', 'cites', 'paper'): [(p, q) for p in range(9) for q in range(p) if (p + q) % 3 == 1],
              ('paper', 'rev_writes', 'author'): [((3 * a + k) % 9, a) for a in range(6) for k in (0, 2)]}
    paper_data = {'author': {'orig_check': check},
                  'paper': {'features': features, 'labels': labels, 'train_mask': mask('bool'), 'orig_check': check}}
    partition(f'{here}/heterogeneous', 'papers', 2, {'author': 6, 'paper': 9}, papers, lambda t, v: v % 2 if t == 'paper' else 1, paper_data,
              {'cites': {'year': year}}, {'plain': False, 'form': ['csr', 'csc'], 'ids': 'int64', 'flag': 'int8', 'orig': 'dgl'})
    partition(f'{here}/old', 'papers', 3, {'author': 6, 'paper': 9}, papers, lambda t, v: (v * v + 1) % 3, paper_data, {'cites': {'year': year}},
              {'plain': True, 'form': ['coo', 'csc', 'coo'], 'ids': 'int32', 'flag': 'int32', 'orig': 'graph'})


if __name__ == '__main__':
    main()
