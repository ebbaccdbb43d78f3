# SPDX-License-Identifier: MIT

"""python -m sar.convert mace MODEL OUT [--head NAME]: writes a model of mace-torch as a potential of sar.

MODEL is a file that torch.save wrote, of a MACE or a ScaleShiftMACE; OUT is a .safetensors file for load_potential. Runs where mace-torch is
installed; the potential needs neither mace-torch nor PyTorch. Of a model with several heads, --head NAME selects one, by default the last."""

import argparse
import contextlib
import importlib
import itertools
import json
import math
import os
import struct
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]


class NotConvertible(ValueError):
    """A model that sar cannot compute."""


def _require(holds: bool, found: str, expected: str) -> None:
    if not holds:
        raise NotConvertible(f"the model has {found}, expected {expected}")


def _array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().double().numpy())


def _linear(module: Any, name: str) -> dict[int, np.ndarray]:
    """The matrix [out, in] of each degree of an o3.Linear, whose input channels of a degree are side by side."""
    _require(type(module).__module__.startswith("e3nn."), f"{name} of class {type(module).__name__}", "e3nn's Linear (convert it from cuEquivariance)")
    parts: dict[int, list[np.ndarray]] = {}
    for _, ins, weight in module.weight_views(yield_instruction=True):
        degree = module.irreps_in[ins.i_in].ir.l
        parts.setdefault(degree, []).append(ins.path_weight * _array(weight).T)
    return {degree: np.concatenate(each, axis=1) for degree, each in parts.items()}


def _by_species(module: Any) -> dict[int, np.ndarray]:
    """The matrices [species, in, out] of each degree of a product with one-hot rows of species."""
    return {
        module.irreps_in1[ins.i_in1].ir.l: ins.path_weight / math.sqrt(module.irreps_in1[ins.i_in1].ir.dim) * _array(weight).transpose(1, 0, 2)
        for _, ins, weight in module.weight_views(yield_instruction=True)
    }


def _network(module: Any) -> list[np.ndarray]:
    """The matrices [out, in] of a FullyConnectedNet with SiLU between them."""
    matrices, factor = [], 1.0
    for layer in module:
        weight = _array(layer.weight)
        matrices.append(factor / math.sqrt(weight.shape[0]) * weight.T)
        if layer.act is not None:
            _require(layer.act.f.__name__ == "silu", f"a radial network with {layer.act.f.__name__}", "silu")
            factor = float(layer.act.cst)
    return matrices


def _unique_basis(rows: np.ndarray) -> np.ndarray:
    """The reduced row echelon form of these rows, orthonormalized from the first to the last: SymmetricBasis of nn/atoms/couplings.hpp, without its factors."""
    rows, rank = rows.copy(), 0
    for column in range(rows.shape[1]):
        if rank == len(rows):
            break
        pivot = rank + int(np.argmax(np.abs(rows[rank:, column])))
        if abs(rows[pivot, column]) < 1e-8:
            continue
        rows[[rank, pivot]] = rows[[pivot, rank]]
        rows[rank] /= rows[rank, column]
        for i in range(len(rows)):
            if i != rank:
                rows[i] -= rows[i, column] * rows[rank]
        rank += 1
    for i in range(rank):
        for _ in range(2):
            rows[i] -= rows[:i].T @ (rows[:i] @ rows[i])
        rows[i] /= np.linalg.norm(rows[i])
    return rows[:rank]


def _couplings(ls: tuple[int, ...], degree: int, products: list[tuple[int, ...]]) -> np.ndarray:
    """All couplings of factors of these degrees to `degree`, in any order and over any degree between, as rows of coefficients: Block::mixing."""
    wigner, double = importlib.import_module("e3nn.o3").wigner_3j, importlib.import_module("torch").float64
    at = {product: i for i, product in enumerate(products)}
    rows = []
    for order in sorted(set(itertools.permutations(ls))):
        a, b, c = (0,) * (3 - len(ls)) + order
        for between in range(abs(a - b), a + b + 1):
            if not abs(between - c) <= degree <= between + c:
                continue
            tensor = np.einsum("abm,mco->oabc", _array(wigner(a, b, between, dtype=double)), _array(wigner(between, c, degree, dtype=double)))
            tensor = math.sqrt((2 * between + 1) * (2 * degree + 1)) * tensor.reshape(2 * degree + 1, *(2 * l + 1 for l in order))
            row = np.zeros((2 * degree + 1, len(products)))
            for place in itertools.product(*(range(2 * l + 1) for l in order)):
                row[:, at[tuple(sorted(l * l + m for l, m in zip(order, place)))]] += tensor[(slice(None), *place)]
            rows.append(row.ravel())
    return np.reshape(rows, (len(rows), (2 * degree + 1) * len(products)))


def _contraction(module: Any, degree: int, max_l: int, species: int) -> np.ndarray:
    """The weights [species, paths, channels] of values of one degree in the order of SymmetricBasis."""
    components = {l: range(l * l, (l + 1) ** 2) for l in range(max_l + 1)}
    found = []
    for nu in range(1, module.correlation + 1):
        place = module.correlation - nu
        if getattr(module, "weights_max_zeroed" if place == 0 else f"weights_{place - 1}_zeroed", False):
            continue
        u = _array(module.U_tensors(nu))
        u = u.reshape(2 * degree + 1, *[(max_l + 1) ** 2] * nu, -1)
        weights = _array(module.weights_max if place == 0 else module.weights[place - 1])
        for ls in itertools.combinations_with_replacement(range(max_l + 1), nu):
            if (sum(ls) + degree) % 2 != 0:
                continue
            products = sorted({tuple(sorted(x)) for x in itertools.product(*(components[l] for l in ls))})
            rows = np.array([
                sum(u[(o, *x)] for x in set(itertools.permutations(product))) for o in range(2 * degree + 1) for product in products
            ]).T
            couplings = _couplings(ls, degree, products)  # those of the model may have the digits of single precision
            basis = _unique_basis(couplings)
            _require(np.allclose(rows @ basis.T @ basis, rows, atol=1e-4), f"other couplings of {ls} to {degree}", "e3nn's")
            if len(basis) > 0:
                scales = np.abs(basis @ couplings.T).sum(axis=1)
                found.append(np.einsum("pk,zkc->zpc", basis @ rows.T / scales[:, None], weights))
    weights = np.concatenate(found, axis=1)
    return np.repeat(weights, species, axis=0) if len(weights) == 1 else weights


def _radial(model: Any, description: dict[str, Any], numbers: list[int]) -> None:
    radial = model.radial_embedding
    _require(hasattr(radial.bessel_fn, "bessel_weights"), f"the radial basis {type(radial.bessel_fn).__name__}", "BesselBasis")
    frequencies = radial.bessel_fn.bessel_weights
    cutoff = description["cutoff"]
    expected = np.pi / cutoff * np.arange(1, len(frequencies) + 1)
    _require(np.allclose(_array(frequencies), expected, rtol=1e-5), "trained frequencies of the Bessel functions", "k pi / r_max")
    _require(getattr(radial, "apply_cutoff", True), "apply_cutoff=False", "True")
    _require(2 <= int(radial.cutoff_fn.p) <= 64, f"a cutoff of power {int(radial.cutoff_fn.p)}", "2 to 64")
    description |= {"num_basis": len(frequencies), "cutoff_power": int(radial.cutoff_fn.p)}
    transform = getattr(radial, "distance_transform", None)
    if transform is not None:
        constants = {"AgnesiTransform": {"a": 1.0805, "q": 0.9183, "p": 4.5791}, "SoftTransform": {"alpha": 4.0}}
        name = type(transform).__name__
        _require(name in constants, f"the distance transform {name}", "AgnesiTransform or SoftTransform")
        for key, value in constants[name].items():
            _require(abs(float(getattr(transform, key)) - value) < 1e-5, f"{name} with {key} = {float(getattr(transform, key))}", f"{value}")
        description["distance_transform"] = {"AgnesiTransform": "agnesi", "SoftTransform": "soft"}[name]
        description["covalent_radii"] = [float(transform.covalent_radii[z]) for z in numbers]


def from_mace(model: Any, head: str | None = None) -> tuple[dict[str, Any], Arrays]:
    """Returns the description and the weights of a model of mace-torch. Raises NotConvertible for one that sar cannot compute."""
    chemical_symbols = importlib.import_module("ase.data").chemical_symbols
    name = type(model).__name__
    _require(name in ("MACE", "ScaleShiftMACE"), f"the class {name}", "MACE or ScaleShiftMACE")
    model = model.double()
    heads = list(getattr(model, "heads", None) or ["Default"])
    _require(head is None or head in heads, f"the heads {', '.join(heads)}", f"{head}, which --head names")
    chosen = heads.index(head) if head is not None else len(heads) - 1
    numbers = [int(z) for z in model.atomic_numbers]
    layers = len(model.interactions)
    _require(layers >= 2, "one layer", "two or more")
    for key in ("joint_embedding", "embedding_readout"):
        _require(not hasattr(model, key), key, "none")
    _require(not getattr(model, "use_so3", False), "use_so3=True", "False")

    kinds = [type(each).__name__ for each in model.interactions]
    known = ("RealAgnosticInteractionBlock", "RealAgnosticResidualInteractionBlock", "RealAgnosticDensityInteractionBlock",
             "RealAgnosticDensityResidualInteractionBlock")
    for kind in kinds:
        _require(kind in known, f"a layer {kind}", "one of " + ", ".join(known))
    density = "Density" in kinds[0]
    _require(all(("Density" in kind) == density for kind in kinds), "layers with and without a density", "one of both")
    _require(all("Residual" in kind for kind in kinds[1:]), f"the layer {kinds[-1]}", "a residual one behind the first layer")

    hidden = [irrep for _, irrep in model.products[0].linear.irreps_out]
    channels = {count for count, _ in model.products[0].linear.irreps_out}
    _require(len(channels) == 1 and [(ir.l, ir.p) for ir in hidden] == [(l, (-1) ** l) for l in range(len(hidden))],
             f"hidden irreps {model.products[0].linear.irreps_out}", "equal channels of 0e, 1o, 2e, ...")
    _require(model.products[-1].linear.irreps_out.lmax == 0, "more than scalars behind the last layer", "scalars")
    max_l = model.spherical_harmonics.irreps_out.lmax if hasattr(model.spherical_harmonics, "irreps_out") else model.spherical_harmonics._lmax
    correlations = {each.correlation for product in model.products for each in product.symmetric_contractions.contractions}
    _require(len(correlations) == 1, f"correlations {sorted(correlations)}", "one for all layers")
    _require(max(correlations) <= 3, f"correlation {max(correlations)}", "1 to 3")
    _require(max_l <= 3, f"max_ell {max_l}", "0 to 3")
    scale, shift = 1.0, 0.0
    if name == "ScaleShiftMACE":
        scale, shift = (float(np.atleast_1d(_array(each))[chosen if each.numel() > 1 else 0]) for each in (model.scale_shift.scale, model.scale_shift.shift))
    energies = np.atleast_2d(_array(model.atomic_energies_fn.atomic_energies))[chosen]
    feats = channels.pop()
    description: dict[str, Any] = {
        "sar_model": 1, "type": "mace", "hidden": feats, "layers": layers, "species": [chemical_symbols[z] for z in numbers],
        "cutoff": float(model.r_max), "max_l": int(max_l), "hidden_l": len(hidden) - 1, "correlation": int(correlations.pop()),
        "residual_first": "Residual" in kinds[0], "density": density, "energy_shifts": [float(e) + shift for e in energies],
        "energy_scales": [scale] * len(numbers)}
    _radial(model, description, numbers)
    if hasattr(model, "pair_repulsion_fn"):
        zbl = model.pair_repulsion_fn
        _require(abs(float(zbl.a_exp) - 0.3) < 1e-5 and abs(float(zbl.a_prefactor) - 0.4543) < 1e-5, "trained ZBL", "its published constants")
        description |= {"zbl_power": int(zbl.p), "zbl_scale": scale, "covalent_radii": [float(zbl.covalent_radii[z]) for z in numbers]}

    arrays: Arrays = {"embedding": _linear(model.node_embedding.linear, "node_embedding")[0].T}

    def put(prefix: str, matrices: dict[int, np.ndarray], suffix: str = "") -> None:
        arrays.update({f"{prefix}.{degree}{suffix}": matrix for degree, matrix in matrices.items()})

    for i, (layer, product) in enumerate(zip(model.interactions, model.products)):
        at = f"layers.{i}"
        _require(getattr(layer, "edge_irreps", layer.node_feats_irreps) == layer.node_feats_irreps, "edge_irreps", "those of the nodes")
        paths = [(layer.conv_tp.irreps_in1[ins.i_in1].ir.l, layer.conv_tp.irreps_in2[ins.i_in2].ir.l, layer.conv_tp.irreps_out[ins.i_out].ir.l)
                 for ins in layer.conv_tp.instructions]
        in_l = layer.node_feats_irreps.lmax
        expected = [(l1, l2, l3) for l3 in range(max_l + 1) for l1 in range(in_l + 1) for l2 in range(max_l + 1)
                    if abs(l1 - l2) <= l3 <= l1 + l2 and (l1 + l2 + l3) % 2 == 0]
        _require(paths == expected, f"the paths {paths}", f"{expected}")
        radial = _network(layer.conv_tp_weights)
        factors = [ins.path_weight / math.sqrt(2 * l3 + 1) for ins, (_, _, l3) in zip(layer.conv_tp.instructions, paths)]
        radial[-1] = np.repeat(factors, feats)[:, None] * radial[-1]
        widths = {len(each) for each in radial[:-1]}
        _require(len(widths) == 1, f"a radial network of widths {sorted(widths)}", "equal ones")
        description |= {"radial_hidden": widths.pop(), "radial_layers": len(radial) - 1}
        put(f"{at}.linear_up", _linear(layer.linear_up, "linear_up"), ".weight")
        put(f"{at}.radial", dict(enumerate(radial)), ".weight")
        if density:
            arrays[f"{at}.density.weight"] = _network(layer.density_fn)[0]
        neighbors = 1.0 if density else float(layer.avg_num_neighbors)
        description["neighbors"] = neighbors
        put(f"{at}.linear", {l: matrix / neighbors for l, matrix in _linear(layer.linear, "linear").items()}, ".weight")
        put(f"{at}.skip", _by_species(layer.skip_tp))
        contractions = product.symmetric_contractions.contractions
        arrays[f"{at}.contraction"] = np.concatenate([_contraction(each, l, max_l, len(numbers)) for l, each in enumerate(contractions)], axis=1)
        put(f"{at}.product", _linear(product.linear, "product"), ".weight")

    for i in range(layers - 1):
        only_last = len(model.readouts) == 1
        arrays[f"readouts.{i}.weight"] = np.zeros((1, feats)) if only_last else _linear(model.readouts[i].linear, "readout")[0][chosen : chosen + 1]
    last = model.readouts[-1]
    _require(type(last).__name__ == "NonLinearReadoutBlock", f"the last readout {type(last).__name__}", "NonLinearReadoutBlock")
    first, second = _linear(last.linear_1, "readout")[0], _linear(last.linear_2, "readout")[0]
    gate = last.non_linearity.acts[0]
    gate_name = gate.f.__name__ if hasattr(gate, "f") else "None"
    _require(gate_name == "silu", f"the gate {gate_name}", "silu")
    width = len(first) // len(heads)
    mine = slice(chosen * width, (chosen + 1) * width)
    arrays["readout.0.weight"], arrays["readout.1.weight"] = first[mine], float(gate.cst) * second[chosen : chosen + 1, mine]
    description["readout_hidden"] = width
    return description, arrays


def save(path: str, description: dict[str, Any], arrays: Arrays) -> None:
    """Writes a .safetensors file in double precision, which both precisions of sar read, under another name first. Raises OSError."""
    header: dict[str, Any] = {"__metadata__": {"sar.model": json.dumps(description)}}
    at = 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F64", "shape": list(array.shape), "data_offsets": [at, at + 8 * array.size]}
        at += 8 * array.size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    part = f"{path}.part"
    try:
        with open(part, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for array in arrays.values():
                file.write(np.ascontiguousarray(array, "<f8").tobytes())
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m sar.convert", description=__doc__)
    parser.add_argument("kind", choices=["mace"])
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--head", help="of a model with several heads")
    args = parser.parse_args()
    os.environ.setdefault("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")  # e3nn 0.4.4 loads its constants so
    try:
        importlib.import_module("mace.modules")
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise SystemExit(f"{error}: pip install mace-torch, in this environment") from error
    try:
        model = torch.load(args.model, map_location="cpu", weights_only=False)
    except Exception as error:  # of many kinds, also of modules that the model needs
        raise SystemExit(f"{args.model}: cannot be read by torch.load: {error}, expected a model that mace-torch saved") from error
    try:
        description, arrays = from_mace(model, args.head)
    except NotConvertible as error:
        raise SystemExit(f"{args.model}: {error}") from error
    try:
        save(args.out, description, arrays)
    except OSError as error:
        raise SystemExit(f"{args.out}: cannot be written: {error.strerror}") from error
    print(f"{args.out}: {len(description['species'])} species, {description['layers']} layers of {description['hidden']} channels")


if __name__ == "__main__":
    main()
