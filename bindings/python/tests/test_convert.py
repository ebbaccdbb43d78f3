# SPDX-License-Identifier: MIT

"""python -m sar.convert mace: models of mace-torch as potentials. Needs mace-torch; skipped without it."""
import os
import subprocess
import sys

import numpy as np
import pytest
import sar

os.environ.setdefault("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")  # e3nn 0.4.4 loads its constants so
torch = pytest.importorskip("torch")
pytest.importorskip("mace.modules")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.skipif(sar.get_communicator().size > 1, reason="mace-torch runs on one rank")]

from ase.build import bulk  # noqa: E402
from e3nn import o3  # noqa: E402
from mace import modules  # noqa: E402
from mace.calculators import MACECalculator  # noqa: E402
from sar import convert  # noqa: E402
from sar.ase import Calculator  # noqa: E402


def model(dtype=torch.float64, **changes):
    torch.manual_seed(1)
    torch.set_default_dtype(dtype)
    block = modules.interaction_classes["RealAgnosticResidualInteractionBlock"]
    options = {
        "r_max": 4.0, "num_bessel": 6, "num_polynomial_cutoff": 5, "max_ell": 2, "interaction_cls": block, "interaction_cls_first": block,
        "num_interactions": 2, "num_elements": 2, "hidden_irreps": o3.Irreps("4x0e+4x1o"), "MLP_irreps": o3.Irreps("4x0e"),
        "gate": torch.nn.functional.silu, "atomic_energies": np.array([-1.0, 2.0]), "avg_num_neighbors": 12, "atomic_numbers": [7, 13],
        "correlation": 3, "radial_MLP": [8, 8], "atomic_inter_scale": 0.7, "atomic_inter_shift": 0.1, **changes}
    return modules.ScaleShiftMACE(**options)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 2e-5), (torch.float32, 5e-5)])
@pytest.mark.parametrize(("transform", "max_ell"), [("None", 2), ("Agnesi", 3)])
def test_a_converted_file_computes_as_mace_torch(tmp_path, dtype, tolerance, transform, max_ell):
    path, out = tmp_path / "m.model", tmp_path / "m.safetensors"
    torch.save(model(dtype, distance_transform=transform, max_ell=max_ell), path)  # constants in the precision of the model
    done = subprocess.run([sys.executable, "-m", "sar.convert", "mace", path, out], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 species, 2 layers of 4 channels" in done.stdout
    atoms = bulk("AlN", "wurtzite", a=3.11, c=4.98) * (2, 1, 1)
    atoms.rattle(0.1, seed=1)
    atoms.calc = MACECalculator(model_paths=str(path), device="cpu", default_dtype="float64")
    energy, forces, stress = atoms.get_potential_energy(), atoms.get_forces(), atoms.get_stress()
    for _ in range(2):  # the second time from tables
        atoms.calc = Calculator(out)
        assert abs(atoms.get_potential_energy() - energy) < tolerance * abs(energy)
        np.testing.assert_allclose(atoms.get_forces(), forces, atol=tolerance * np.abs(forces).max())
        np.testing.assert_allclose(atoms.get_stress(), stress, atol=tolerance * np.abs(stress).max())


def test_what_is_not_converted_is_named(tmp_path):
    with pytest.raises(convert.NotConvertible, match="the class Linear, expected MACE or ScaleShiftMACE"):
        convert.from_mace(torch.nn.Linear(1, 1))
    with pytest.raises(convert.NotConvertible, match="the heads Default, expected pbe, which --head names"):
        convert.from_mace(model(), "pbe")
    with pytest.raises(convert.NotConvertible, match="one layer, expected two or more"):
        convert.from_mace(model(num_interactions=1))
    for options, text in (({"correlation": 4}, "correlation 4, expected 1 to 3"),
                          ({"num_polynomial_cutoff": 1}, "a cutoff of power 1, expected 2 to 64"), ({"gate": None}, "the gate None, expected silu")):
        with pytest.raises(convert.NotConvertible, match=text):
            convert.from_mace(model(**options))
    wrong = tmp_path / "wrong.model"
    wrong.write_text("no model")
    done = subprocess.run([sys.executable, "-m", "sar.convert", "mace", wrong, tmp_path / "out"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"{wrong}: cannot be read by torch.load" in done.stderr
