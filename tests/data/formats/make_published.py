# SPDX-License-Identifier: MIT

"""Writes published/: one small graph in the forms in which datasets are published. An undirected edge is there
once, two splits are the same in all forms that have them, and features are 0 or 1."""
import gzip, io, json, pathlib, zipfile
import numpy as np

out = pathlib.Path(__file__).parent / "published"
nodes, classes, width, splits = 40, 3, 6, 2
random = np.random.default_rng(0)
pairs = sorted({tuple(sorted(p)) for p in random.integers(0, nodes, (110, 2)).tolist() if p[0] != p[1]} | {(v, v + 1) for v in range(nodes - 1)})
edges = np.array(pairs)
labels = random.integers(0, classes, nodes)
features = (random.random((nodes, width)) < 0.3).astype(np.float32)
features[np.arange(nodes), labels] = 1
features[0, width - 1] = 1
part = np.stack([random.permutation(np.arange(nodes) % 4) for _ in range(splits)])  # 0, 1: training, 2: validation, 3: test
train, val, test = part < 2, part == 2, part == 3


def csr(dense, name):
    rows, columns = np.nonzero(dense)
    return {f"{name}_data": np.ones(len(rows), np.float32), f"{name}_indices": columns.astype(np.int32),
            f"{name}_indptr": np.searchsorted(rows, np.arange(len(dense) + 1)).astype(np.int32),
            f"{name}_shape": np.array(dense.shape)}


adjacency = np.zeros((nodes, nodes))
adjacency[edges[:, 0], edges[:, 1]] = 1
np.savez_compressed(out / "platonov.npz", node_features=features, node_labels=labels, edges=edges, train_masks=train, val_masks=val,
                    test_masks=np.asfortranarray(test))
np.savez(out / "shchur.npz", **csr(adjacency, "adj"), **csr(features, "attr"), labels=labels.astype(np.int8),
         class_names=np.array(["a", "b", "c"]), attr_text=np.array(["x", None], object))
np.savez_compressed(out / "pyg.npz", x=features.astype(np.float64), edge_index=edges.T, y=np.eye(classes)[labels], train_mask=train.T,
                    val_mask=val.T, test_mask=test.T)

with open(out / "edges.csv", "w") as file:
    file.write("from,to\n" + "".join(f"{u},{v}\n" for u, v in edges))
names = np.array(["ant", "bee", "cat"])
with open(out / "nodes.csv", "w") as file:
    file.write("id,x0,x1,x2,x3,x4,x5,kind,new_id\n")
    for row, v in enumerate(random.permutation(nodes)):
        file.write(f"{900 + row},{','.join(str(bool(x)) for x in features[v])},{names[labels[v]]},{v}\n")
with open(out / "lists.json", "w") as file:
    json.dump({str(v): np.nonzero(features[v])[0].tolist() for v in random.permutation(nodes)}, file)

ogb = {"raw/num-node-list": f"{nodes}\n", "raw/num-edge-list": f"{len(edges)}\n", "raw/edge": "".join(f"{u},{v}\n" for u, v in edges),
       "raw/node-feat": "".join(",".join(str(x) for x in row) + "\n" for row in features), "raw/node-label": "".join(f"{y}\n" for y in labels)}
for name, mask in ("train", train), ("valid", val), ("test", test):
    ogb[f"split/random/{name}"] = "".join(f"{v}\n" for v in np.nonzero(mask[0])[0])
with zipfile.ZipFile(out / "ogb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("small/", "")
    for name, text in ogb.items():
        archive.writestr(f"small/{name}.csv.gz", gzip.compress(text.encode(), mtime=0))
