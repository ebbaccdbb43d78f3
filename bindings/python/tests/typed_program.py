# SPDX-License-Identifier: MIT

"""A program of a user with types. test_types.py checks it with mypy --strict and pyright, and runs it: it ends with a loss."""

import os
import tempfile

import numpy as np
import numpy.typing as npt

import sar
from sar.nn import functional as F


class Net(sar.nn.Module):
    def __init__(self, in_feats: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first = sar.nn.SAGEConv(in_feats, hidden)
        self.second = sar.nn.SAGEConv(hidden, classes)
        self.scale = sar.nn.Parameter(np.ones(classes))
        self.drop = sar.nn.Dropout(0.1)

    def forward(self, graphs: list[sar.Graph] | list[sar.Block], x: sar.Tensor) -> sar.Tensor:
        h = self.drop(F.relu(self.first(graphs[0], x)), graphs[0])
        return self.second(graphs[-1], h) * self.scale


def smoothed(graph: sar.Graph, x: sar.Tensor) -> sar.Tensor:
    graph.ndata["h"] = x
    graph.edata["w"] = sar.ones((graph.num_edges(), 1))
    graph.update_all(sar.fn.u_mul_e("h", "w", "m"), sar.fn.mean("m", "y"))
    direct: sar.Tensor = graph.update_all(sar.fn.u_mul_e(x, graph.edata["w"]), sar.fn.mean)
    score = graph.apply_edges(lambda edges: F.relu(edges.src["h"] - edges.dst["h"]).sum(-1, keepdims=True))
    weight: sar.Tensor = sar.edge_softmax(graph, score)
    total: sar.Tensor = graph.update_all(sar.fn.copy_e(weight), "sum")
    return graph.ndata["y"] + direct + 0 * total.mean()


def train(graph: sar.Graph, x: sar.Tensor, labels: npt.NDArray[np.int64], folder: str) -> float:
    net = Net(x.shape[1], 8, 2)
    optimizer = sar.optim.Adam(net, lr=0.02, betas=(0.9, 0.999))
    schedule = sar.optim.lr_scheduler.StepLR(optimizer, 5, gamma=0.9)
    loss = sar.zeros(1)
    for _ in range(10):
        loss = F.cross_entropy(net([graph, graph], x), labels, np.ones(len(x), bool), weight=[1.0, 2.0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.clip_grad_norm(1.0)
        optimizer.step()
        schedule.step()
    loader = sar.DataLoader(graph, np.arange(len(x)), sar.NeighborSampler([4, -1], replace=False), batch_size=16)
    for input_nodes, output_nodes, blocks in loader:
        batch_loss: sar.Tensor = F.cross_entropy(net(blocks, x[input_nodes]), labels[output_nodes])
        optimizer.zero_grad()
        batch_loss.backward()
        optimizer.step()
    path = os.path.join(folder, "net.safetensors")
    sar.save_weights(net, path)
    again = Net(x.shape[1], 8, 2)
    sar.load_weights(again, path)
    again.load_state_dict({name: np.array(value) for name, value in net.state_dict().items()})
    with sar.no_grad():
        logits: sar.Tensor = again.eval()([graph, graph], x)
    correct = float((logits.argmax(1) == labels).mean()) if len(labels) else 0.0
    probability = F.exp(logits - logits.max(axis=1, keepdims=True))
    assert 0 <= correct <= 1 and bool((probability.numpy() <= 1).all()) and (2 * logits[:, 0]).ndim == 1
    return loss.item()


def of_types(graph: sar.Graph) -> dict[str, sar.Tensor]:
    conv = sar.nn.HeteroGraphConv({"follows": sar.nn.GraphConv(4, 8), "plays": sar.nn.SAGEConv((4, 5), 8)})
    rows = {"user": sar.tensor(graph.local_rows(np.ones((3, 4)), "user")), "game": sar.tensor(graph.local_rows(np.ones((2, 5)), "game"))}
    result: dict[str, sar.Tensor] = conv(graph, rows)
    return result


def main(folder: str) -> float:
    draw = np.random.default_rng(0)
    graph = sar.Graph((draw.integers(0, 40, 200), draw.integers(0, 40, 200)), num_nodes=40, add_self_loops=True)
    features = draw.normal(size=(40, 4)).astype(np.float32)
    x = smoothed(graph, sar.tensor(graph.local_rows(features)))
    types = sar.Graph({("user", "follows", "user"): ([0, 1], [1, 2]), ("user", "plays", "game"): ([0, 2, 2], [0, 0, 1])}, {"user": 3, "game": 2})
    assert of_types(types)["game"].shape[1] == 8
    return train(graph, x, graph.local_rows((features[:, 0] > 0).astype(np.int64)), folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        print(f"loss {main(own):.3f}")
