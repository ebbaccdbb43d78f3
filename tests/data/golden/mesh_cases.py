# SPDX-License-Identifier: MIT

"""mesh_cases.py OUT

Writes OUT/mesh/<case>/*.npy and args.txt, for pack.py: networks on meshes and of atoms in double precision, with PyTorch alone. Each is written
here from the formulas of its paper, edge by edge in tables, with PyTorch's own Linear, LayerNorm and gradients."""
import sys

import torch
from cases import Group, values
from torch import nn

save = Group(sys.argv[1], "mesh", seed=31).save


def mlp(sizes, activation, norm=False):
    layers = []
    for width_in, width_out in zip(sizes, sizes[1:]):
        layers += [nn.Linear(width_in, width_out), activation()]
    layers.pop()
    return nn.Sequential(*layers, *([nn.LayerNorm(sizes[-1])] if norm else []))


def shake(module):
    """Parameters that are exact in single precision and that have no value of their initialization left, LayerNorm's above all."""
    for parameter in module.parameters():
        parameter.data = (parameter.data + 0.1 * values(*parameter.shape)).float().double()


def gradients(module):
    return {f"param.{name}": value for name, value in module.named_parameters()} | \
           {f"grad_param.{name}": value.grad for name, value in module.named_parameters()}


def sum_at(rows, dst, num_nodes):
    return torch.zeros(num_nodes, *rows.shape[1:]).index_add(0, dst, rows)


class Block(nn.Module):
    def __init__(self, hidden, hidden_layers, activation):
        super().__init__()
        self.edge_mlp = mlp([3 * hidden] + (hidden_layers + 1) * [hidden], activation, norm=True)
        self.node_mlp = mlp([2 * hidden] + (hidden_layers + 1) * [hidden], activation, norm=True)

    def forward(self, src, dst, h, e):
        e = e + self.edge_mlp(torch.cat([e, h[src], h[dst]], 1))
        return h + self.node_mlp(torch.cat([h, sum_at(e, dst, len(h))], 1)), e


class MeshGraphNet(nn.Module):
    """Encode, process, decode: arXiv 2010.03409."""

    def __init__(self, node_feats, edge_feats, out_feats, hidden, blocks, hidden_layers, activation):
        super().__init__()
        widths = hidden_layers * [hidden]
        self.node_encoder = mlp([node_feats, *widths, hidden], activation, norm=True)
        self.edge_encoder = mlp([edge_feats, *widths, hidden], activation, norm=True)
        self.processor = nn.ModuleList(Block(hidden, hidden_layers, activation) for _ in range(blocks))
        self.decoder = mlp([hidden, *widths, out_feats], activation)

    def forward(self, src, dst, x, edge_feats):
        h, e = self.node_encoder(x), self.edge_encoder(edge_feats)
        for block in self.processor:
            h, e = block(src, dst, h, e)
        return self.decoder(h)


def statistics(rows):
    """Mean and deviation, which gradients take for constants."""
    return rows.detach().mean(0), rows.detach().std(0, unbiased=False)


def normalized(rows):
    mean, std = statistics(rows)
    return (rows - mean) / std


def mesh_case(name, blocks, hidden_layers, activation, normalize=False):
    nodes, edges, hidden = 15, 44, 4
    src, dst = torch.randint(nodes - 1, (edges,)), torch.randint(nodes - 1, (edges,))  # the last node is isolated
    src[:8] = 3  # a hub
    dst[8:12] = 4
    src[12:14], dst[12:14] = 5, 6  # parallel edges
    src[src == dst] = (dst[src == dst] + 1) % (nodes - 1)  # no loops: a length of 0 has no slope
    net = MeshGraphNet(3, 4, 2, hidden, blocks, hidden_layers, activation)
    shake(net)
    x, positions = values(nodes, 3).requires_grad_(), values(nodes, 3).requires_grad_()
    apart = positions[src] - positions[dst]
    e = torch.cat([apart, apart.norm(dim=1, keepdim=True)], 1)
    arrays = {}
    if normalize:
        target = 300 * values(nodes, 2) - 900
        mean, std = statistics(target)
        out = net(src, dst, normalized(x), normalized(e)) * std + mean
        arrays["target"] = target
    else:
        out = net(src, dst, x, e)
    grad_out = values(nodes, 2)
    out.backward(grad_out)
    save(name, dict(graph="homogeneous", num_src=nodes, num_dst=nodes, hidden=hidden, blocks=blocks, hidden_layers=hidden_layers,
                    activation=activation.__name__.lower(), normalize=int(normalize)),
         src=src, dst=dst, x=x, positions=positions, grad_out=grad_out, out=out, grad_x=x.grad,
         grad_positions=positions.grad, **arrays, **gradients(net))


class PaiNNConv(nn.Module):
    """Message and update block of arXiv 2102.03150."""

    def __init__(self, feats, cutoff, num_basis, norm_epsilon=1e-8, radial="sinc", smooth="cosine"):
        super().__init__()
        self.radial, self.smooth = radial, smooth
        self.feats, self.cutoff, self.num_basis, self.norm_epsilon = feats, cutoff, num_basis, norm_epsilon
        self.interatomic_context_net = mlp([feats, feats, 3 * feats], nn.SiLU)
        self.filter_net = nn.Linear(num_basis, 3 * feats)
        self.mu_channel_mix = nn.Linear(feats, 2 * feats, bias=False)
        self.intraatomic_context_net = mlp([2 * feats, feats, 3 * feats], nn.SiLU)

    def forward(self, src, dst, s, v, positions, shifts):
        apart = positions[src] + shifts - positions[dst]
        r = apart.norm(dim=1, keepdim=True)
        d = (apart / r).unsqueeze(2)
        k = torch.arange(1, self.num_basis + 1)
        x = r / self.cutoff
        basis = {"sinc": lambda: torch.sin(k * torch.pi * r / self.cutoff) / r,
                 "bessel": lambda: (2 / self.cutoff)**0.5 * torch.sin(k * torch.pi * x) / r,
                 "gaussian": lambda: torch.exp(-0.5 * (x * (self.num_basis - 1) - (k - 1))**2)}[self.radial]()
        share = {"cosine": lambda: 0.5 * (torch.cos(torch.pi * r / self.cutoff) + 1),
                 "polynomial": lambda: 1 - 28 * x**6 + 48 * x**7 - 21 * x**8}[self.smooth]()
        share = torch.where(x < 1, share, 0.0)
        a, b, g = (self.interatomic_context_net(s)[src] * self.filter_net(basis) * share).chunk(3, 1)
        s = s + sum_at(a, dst, len(s))
        v = v + sum_at(b.unsqueeze(1) * d + g.unsqueeze(1) * v[src], dst, len(s))

        v_mix, w_mix = self.mu_channel_mix(v).chunk(2, 2)
        length = torch.sqrt((v_mix**2).sum(1) + self.norm_epsilon)
        a, b, g = self.intraatomic_context_net(torch.cat([s, length], 1)).chunk(3, 1)
        return s + a + g * (v_mix * w_mix).sum(1), v + b.unsqueeze(1) * w_mix


class PaiNN(nn.Module):
    def __init__(self, num_species, feats, convs, cutoff, num_basis, norm_epsilon=1e-8, **functions):
        super().__init__()
        self.embedding = nn.Parameter(values(num_species, feats))
        self.convs = nn.ModuleList(PaiNNConv(feats, cutoff, num_basis, norm_epsilon, **functions) for _ in range(convs))
        self.outnet = mlp([feats, max(feats // 2, 1), 1], nn.SiLU)

    def forward(self, src, dst, species, positions, shifts):
        s = self.embedding[species]
        v = torch.zeros(len(s), 3, s.shape[1])
        for conv in self.convs:
            s, v = conv(src, dst, s, v, positions, shifts)
        return self.outnet(s)


def pairs(positions, reach, box=None):
    """src, dst and shifts of all pairs up to a distance, in a box with those of the images next to it."""
    cells = [torch.zeros(3)] if box is None else [box * cell for cell in torch.cartesian_prod(*3 * [torch.arange(-1., 2)])]
    found = [(u, v, cell) for u in range(len(positions)) for v in range(len(positions)) for cell in cells
             if 0 < (positions[u] + cell - positions[v]).norm() < reach]
    src, dst, shifts = zip(*found)
    return torch.tensor(src), torch.tensor(dst), torch.stack(shifts)


def conv_case(name):
    atoms, feats, cutoff, num_basis = 9, 3, 2.5, 4
    conv = PaiNNConv(feats, cutoff, num_basis)
    shake(conv)
    s, v, positions = (values(*shape).requires_grad_() for shape in ((atoms, feats), (atoms, 3, feats), (atoms, 3)))
    src, dst, shifts = pairs(positions.detach(), cutoff + 0.3)
    out_s, out_v = conv(src, dst, s, v, positions, shifts)
    grad_out_s, grad_out_v = values(*s.shape), values(*v.shape)
    torch.autograd.backward([out_s, out_v], [grad_out_s, grad_out_v])
    save(name, dict(graph="homogeneous", num_src=atoms, num_dst=atoms, feats=feats, cutoff=cutoff, num_basis=num_basis),
         src=src, dst=dst, s=s, v=v, positions=positions, out_s=out_s, out_v=out_v, grad_out_s=grad_out_s, grad_out_v=grad_out_v,
         grad_s=s.grad, grad_v=v.grad, grad_positions=positions.grad, **gradients(conv))


def painn_case(name, box=None):
    atoms, num_species, feats, convs, cutoff, num_basis = 9, 3, 4, 2, 1.5, 5
    model = PaiNN(num_species, feats, convs, cutoff, num_basis)
    shake(model)
    species = torch.arange(atoms) % num_species
    positions = (0.75 * torch.randn(atoms, 3) if box is None else torch.rand(atoms, 3) * box).float().double().requires_grad_()
    src, dst, shifts = pairs(positions.detach(), cutoff + 0.1, box)
    shifts.requires_grad_()
    energies = model(src, dst, species, positions, shifts)
    energy = energies.sum()
    energy.backward()
    save(name, dict(graph="homogeneous", num_src=atoms, num_dst=atoms, num_species=num_species, feats=feats, convs=convs, cutoff=cutoff,
                    num_basis=num_basis),
         src=src, dst=dst, species=species, positions=positions, shifts=shifts, energies=energies, energy=energy.reshape(1),
         forces=-positions.grad, grad_shifts=shifts.grad, **gradients(model))


def potential_case(name, box, **functions):
    """A loss of energies, forces and stresses of two structures, differentiated twice."""
    atoms, num_species, feats, convs, cutoff, num_basis = 12, 2, 4, 2, 1.6, 5
    model = PaiNN(num_species, feats, convs, cutoff, num_basis, norm_epsilon=0.01, **functions)
    shake(model)
    species = torch.arange(atoms) % num_species
    positions = (torch.rand(atoms, 3) * box).float().double().requires_grad_()
    structure = torch.arange(atoms) * 2 // atoms
    src, dst, shifts = pairs(positions.detach(), cutoff + 0.1, box)
    same = structure[src] == structure[dst]
    src, dst, shifts = src[same], dst[same], shifts[same]
    strain = torch.zeros(2, 3, 3, requires_grad=True)
    strained = lambda x, of: x + torch.einsum("na,nab->nb", x, strain[of])
    out = model(src, dst, species, strained(positions, structure), strained(shifts, structure[dst]))
    energies = sum_at(out[:, 0], structure, 2)
    slope, virial = torch.autograd.grad(energies.sum(), [positions, strain], create_graph=True)
    volumes = box.prod() * torch.ones(2)
    labels = dict(label_energies=values(2), label_forces=values(atoms, 3), label_stresses=values(2, 3, 3))
    weights = dict(energy=1.5, forces=20.0, stress=3.0)
    counts = torch.bincount(structure)
    loss = weights["energy"] * (((energies - labels["label_energies"]) / counts)**2).mean() \
        + weights["forces"] * ((-slope - labels["label_forces"])**2).mean() \
        + weights["stress"] * ((virial / volumes.reshape(2, 1, 1) - labels["label_stresses"])**2).mean()
    loss.backward()
    save(name, dict(graph="homogeneous", num_src=atoms, num_dst=atoms, num_species=num_species, feats=feats, convs=convs, cutoff=cutoff,
                    num_basis=num_basis, norm_epsilon=0.01, **{f"weight_{key}": value for key, value in weights.items()}),
         src=src, dst=dst, species=species, positions=positions, shifts=shifts, structures=structure, energies=energies,
         forces=-slope, virial=virial, volumes=volumes, loss=loss.reshape(1), **labels, **gradients(model))


mesh_case("mesh_graph_net__relu", blocks=2, hidden_layers=2, activation=nn.ReLU)
mesh_case("mesh_graph_net__silu_normalize", blocks=2, hidden_layers=1, activation=nn.SiLU, normalize=True)
conv_case("painn_conv")
painn_case("painn__molecule")
painn_case("painn__periodic", box=torch.tensor([2.5, 3.25, 2.25]))
potential_case("potential", box=torch.tensor([2.5, 3.25, 2.25]))
potential_case("potential__gaussian", box=torch.tensor([2.5, 3.25, 2.25]), radial="gaussian", smooth="polynomial")
potential_case("potential__bessel", box=torch.tensor([2.5, 3.25, 2.25]), radial="bessel", smooth="polynomial")
