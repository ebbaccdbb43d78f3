# SPDX-License-Identifier: MIT

"""Writes one small graph as text with pandas, NumPy, NetworkX, igraph and SciPy: the fixtures of foreign_text_test.cpp.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install pandas numpy networkx igraph scipy
    /tmp/venv/bin/python make.py
"""

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse

edges = [(5, 7), (7, 2), (2, 5), (5, 6), (6, 0), (0, 1), (1, 3), (3, 4)]
weights = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]
table = pd.DataFrame(edges, columns=["source", "target"])
weighted = table.assign(weight=weights)

table.to_csv("pandas_index.csv")
weighted.to_csv("pandas_index_weight.csv")
table.to_csv("pandas_no_index.csv", index=False)
table[["target", "source"]].to_csv("pandas_reversed.csv", index=False)
table.to_csv("pandas_bom.csv", encoding="utf-8-sig")
table.to_csv("pandas_utf16.csv", encoding="utf-16")
table.to_csv("pandas_tab.tsv", sep="\t")
table.to_csv("pandas_semicolon.csv.gz", sep=";", compression={"method": "gzip", "mtime": 1})
table.astype(float).to_csv("pandas_float.csv")
table.reset_index().to_csv("pandas_two_indices.csv")
table.assign(timestamp=1217567877).to_csv("pandas_timestamp.csv", index=False)
pd.DataFrame(edges).to_csv("pandas_numbered.csv")
pd.read_csv("pandas_index.csv").to_csv("pandas_unnamed_0.csv", index=False)
names = table.map(lambda v: f"Node, {v}")
names.to_csv("pandas_names.csv", index=False)
np.savetxt("numpy.txt", table, header="source target", fmt="%d")
np.savetxt("numpy_float.txt", table)

graph = nx.DiGraph()
graph.add_weighted_edges_from((u, v, w) for (u, v), w in zip(edges, weights))
nx.write_edgelist(graph, "networkx.edgelist")
nx.write_edgelist(graph, "networkx_comma.edgelist", delimiter=",")
nx.write_edgelist(graph, "networkx_plain.edgelist", data=False)
nx.write_weighted_edgelist(graph, "networkx_weighted.edgelist")
nx.write_adjlist(graph, "networkx.adjlist")
nx.to_pandas_edgelist(graph).to_csv("networkx_pandas.csv")
nx.write_graphml(graph, "networkx.graphml")
nx.write_pajek(graph, "networkx.net")
nx.write_gml(graph, "networkx.gml")

g = igraph.Graph(n=8, edges=edges, directed=True, edge_attrs={"weight": weights})
g.vs["name"] = [str(v) for v in range(8)]
g.write_edgelist("igraph.edgelist")
g.write_ncol("igraph.ncol")
igraph.Graph(n=8, edges=edges, vertex_attrs={"name": [str(v) for v in range(8)]}).write_lgl("igraph.lgl")
g.write_dimacs("igraph.dimacs", 0, 4, capacity=g.es["weight"])
g.get_edge_dataframe().to_csv("igraph_pandas.csv")

matrix = scipy.sparse.coo_array((weights, tuple(zip(*edges))), shape=(8, 8))
scipy.io.mmwrite("scipy.mtx", matrix)
