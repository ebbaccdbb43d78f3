# SPDX-License-Identifier: MIT

"""potentials.py TRAIN VALID TEST --init-weights FILE [--epochs N] [...]: the training of `train --task potential` in PyTorch

Reads structures in extended XYZ and the potential of `train --epochs 0 --save-weights FILE`: its weights, cutoff, energy shifts and scales. Trains
the same network on the same loss by double backward, with Adam and a cosine schedule. Prints a JSON line for each epoch with its seconds, and at
the end errors of forces in meV/A, of energies in meV per atom and of stresses in meV/A^3. Cells are orthogonal, longer than twice the cutoff."""
import argparse
import json
import pathlib
import re
import struct
import time

import numpy as np
import torch
from torch import nn

p = argparse.ArgumentParser(allow_abbrev=False)
for name in ("train", "valid", "test"):
    p.add_argument(name, type=pathlib.Path)
p.add_argument("--init-weights", type=pathlib.Path, required=True)
p.add_argument("--epochs", type=int, default=10)
p.add_argument("--batch-size", type=int, default=4)
p.add_argument("--lr", type=float, default=0.005)
p.add_argument("--clip-norm", type=float, default=10)
p.add_argument("--ema", type=float, default=0)
p.add_argument("--energy-weight", type=float, default=10)
p.add_argument("--forces-weight", type=float, default=10)
p.add_argument("--stress-weight", type=float, default=10)
p.add_argument("--threads", type=int, default=1)
p.add_argument("--seed", type=int, default=0)
o = p.parse_args()
torch.set_num_threads(o.threads)
torch.manual_seed(o.seed)


def mlp(width_in, width, width_out):
    return nn.Sequential(nn.Linear(width_in, width), nn.SiLU(), nn.Linear(width, width_out))


class Conv(nn.Module):
    def __init__(self, feats, num_basis):
        super().__init__()
        self.interatomic_context_net = mlp(feats, feats, 3 * feats)
        self.filter_net = nn.Linear(num_basis, 3 * feats)
        self.mu_channel_mix = nn.Linear(feats, 2 * feats, bias=False)
        self.intraatomic_context_net = mlp(2 * feats, feats, 3 * feats)

    def forward(self, src, dst, s, v, basis, share, d):
        a, b, g = (self.interatomic_context_net(s)[src] * (self.filter_net(basis) * share)).chunk(3, 1)
        vectors = b[:, None] * d
        if v is not None:
            vectors = vectors + g[:, None] * v[src]
        s = s.index_add(0, dst, a)
        v = (s.new_zeros(len(s), 3, s.shape[1]) if v is None else v).index_add(0, dst, vectors)
        v_mix, w_mix = self.mu_channel_mix(v).chunk(2, 2)
        a, b, g = self.intraatomic_context_net(torch.cat([s, torch.sqrt((v_mix**2).sum(1) + 0.01)], 1)).chunk(3, 1)
        return s + a + g * (v_mix * w_mix).sum(1), v + b[:, None] * w_mix


class PaiNN(nn.Module):
    """arXiv 2102.03150"""

    def __init__(self, description):
        super().__init__()
        feats, self.num_basis, self.cutoff = description["hidden"], description["num_basis"], description["cutoff"]
        self.embedding = nn.Parameter(torch.empty(len(description["species"]), feats))
        self.convs = nn.ModuleList(Conv(feats, self.num_basis) for _ in range(description["layers"]))
        self.outnet = mlp(feats, max(feats // 2, 1), 1)

    def forward(self, src, dst, species, vectors):
        r = vectors.norm(dim=1, keepdim=True)
        share = 0.5 * (torch.cos(torch.pi * r / self.cutoff) + 1)
        basis = torch.sin(torch.arange(1, self.num_basis + 1) * torch.pi / self.cutoff * r) / r
        d = (vectors / r)[:, :, None]
        s, v = self.embedding[species], None
        for conv in self.convs:
            s, v = conv(src, dst, s, v, basis, share, d)
        return self.outnet(s)[:, 0]


def read_potential(path):
    """The description and the weights of a .safetensors file."""
    data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__")
    description = next(json.loads(value) for value in metadata.values() if '"painn"' in value)
    weights = {name: torch.frombuffer(bytearray(data[8 + length:][slice(*of["data_offsets"])]),
                                      dtype={"F32": torch.float32, "F64": torch.float64}[of["dtype"]]).reshape(of["shape"])
               for name, of in header.items()}
    return description, weights


def read_structures(path, names, cutoff):
    """For each structure: species, src, dst, edge vectors, energy, forces, stress, volume."""
    lines = iter(path.read_text().splitlines())
    for line in lines:
        keys = next(lines)
        numbers = lambda key: np.array(re.search(rf'\b{key}="?([^"]*?)("|\s\w+=)', keys)[1].split(), float)
        rows = [next(lines).split() for _ in range(int(line))]
        cell = numbers("Lattice").reshape(3, 3)
        box = np.diag(cell)
        assert (cell == np.diag(box)).all() and box.min() > 2 * cutoff
        x = np.array([row[1:4] for row in rows], float)
        apart = x[:, None] - x[None]  # [src, dst]
        apart -= box * np.round(apart / box)
        r = np.linalg.norm(apart, axis=-1)
        src, dst = np.nonzero((r < cutoff) & ~np.eye(len(x), dtype=bool))
        xx, yy, zz, yz, xz, xy = numbers("stress")
        tensor = lambda values: torch.tensor(np.array(values), dtype=torch.float32)
        yield dict(species=torch.tensor([names.index(row[0]) for row in rows]), src=torch.from_numpy(src), dst=torch.from_numpy(dst),
                   vectors=tensor(apart[src, dst]), energy=numbers("energy")[0], forces=tensor([[float(f) for f in row[4:7]] for row in rows]),
                   stress=tensor([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), volume=box.prod())


description, weights = read_potential(o.init_weights)
model = PaiNN(description)
model.load_state_dict(weights)
shifts = torch.tensor(description["energy_shifts"], dtype=torch.float64)
scales = torch.tensor(description["energy_scales"], dtype=torch.float32)
parts = {name: list(read_structures(getattr(o, name), description["species"], description["cutoff"])) for name in ("train", "valid", "test")}


def errors(structures, training):
    """Errors of energies per atom [structures], of forces [atoms, 3] and of stresses [structures, 3, 3]."""
    sizes = torch.tensor([len(each["species"]) for each in structures])
    of_atoms = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    first = sizes.cumsum(0) - sizes
    together = lambda key: torch.cat([each[key] for each in structures])
    src, dst = (torch.cat([each[key] + at for each, at in zip(structures, first)]) for key in ("src", "dst"))
    species, vectors = together("species"), together("vectors").requires_grad_()
    atomic = scales[species] * model(src, dst, species, vectors)
    slope, = torch.autograd.grad(atomic.sum(), vectors, create_graph=training)
    zeros = torch.zeros(len(species), 3)
    forces = zeros.index_add(0, dst, slope).index_add(0, src, -slope)
    strain_slope = torch.zeros(len(sizes), 9).index_add(0, of_atoms[dst], (vectors[:, :, None] * slope[:, None]).flatten(1))
    volumes = torch.tensor([each["volume"] for each in structures], dtype=torch.float32)
    labels = torch.tensor([each["energy"] - shifts[each["species"]].sum().item() for each in structures], dtype=torch.float32)
    return ((torch.zeros(len(sizes)).index_add(0, of_atoms, atomic) - labels) / sizes, forces - together("forces"),
            strain_slope.reshape(-1, 3, 3) / volumes[:, None, None] - torch.stack([each["stress"] for each in structures]))


def means(structures):
    found = [[part.detach().abs() for part in errors(structures[k:k + 8], False)] for k in range(0, len(structures), 8)]
    return {name: round(1000 * torch.cat([part.flatten() for part in parts]).mean().item(), 4)
            for name, parts in zip(("energy_mae", "forces_mae", "stress_mae"), zip(*found))}


def with_average(f):
    """f() with the moving averages as weights."""
    if average is None:
        return f()
    kept = [parameter.detach().clone() for parameter in model.parameters()]
    for parameter, mean in zip(model.parameters(), average):
        parameter.data.copy_(mean)
    result = f()
    for parameter, value in zip(model.parameters(), kept):
        parameter.data.copy_(value)
    return result


optimizer = torch.optim.Adam(model.parameters(), lr=o.lr)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(o.epochs, 1))
average, steps = [parameter.detach().clone() for parameter in model.parameters()] if o.ema else None, 0
for epoch in range(1, o.epochs + 1):
    begin, total = time.perf_counter(), 0.0
    order = torch.randperm(len(parts["train"])).tolist()
    for at in range(0, len(order), o.batch_size):
        energy, force, stress = errors([parts["train"][k] for k in order[at:at + o.batch_size]], True)
        loss = o.energy_weight * energy.square().mean() + o.forces_weight * force.square().mean() + o.stress_weight * stress.square().mean()
        optimizer.zero_grad()
        loss.backward()
        if o.clip_norm:
            nn.utils.clip_grad_norm_(model.parameters(), o.clip_norm)
        optimizer.step()
        total += loss.item() * len(energy)
        if average:
            steps += 1
            for mean, parameter in zip(average, model.parameters()):
                mean.lerp_(parameter.detach(), 1 - o.ema)
    schedule.step()
    print(json.dumps(dict(epoch=epoch, loss=total / len(order), seconds=round(time.perf_counter() - begin, 2))), flush=True)
print(json.dumps({name: with_average(lambda: means(structures)) for name, structures in parts.items() if name != "train"}))
