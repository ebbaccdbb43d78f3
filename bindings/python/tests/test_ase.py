# SPDX-License-Identifier: MIT

"""The calculator of ASE."""

import concurrent.futures
import copy
import os
import pickle

import numpy as np
import pytest
from test_files import folder  # noqa: F401
from test_process import alone, python

import sar

ase = pytest.importorskip("ase", reason="the calculator of ASE is not tested without the package ase")
import ase.build  # noqa: E402
import ase.calculators.calculator  # noqa: E402
import ase.calculators.emt  # noqa: E402
import ase.calculators.singlepoint  # noqa: E402
import ase.constraints  # noqa: E402
import ase.filters  # noqa: E402
import ase.io  # noqa: E402
import ase.md.verlet  # noqa: E402
import ase.optimize  # noqa: E402
import ase.units  # noqa: E402
from ase.calculators.fd import calculate_numerical_forces, calculate_numerical_stress  # noqa: E402

from sar.ase import Calculator, InputError, LearningCalculator  # noqa: E402


@pytest.fixture(scope="module")
def potential():
    sar.manual_seed(5)
    return sar.Potential({"type": "painn", "hidden": 8, "layers": 2, "species": ["Si", "O"], "cutoff": 4, "num_basis": 6,
                          "energy_shifts": [-3.0, 1.0], "energy_scales": [10.0, 8.0]})


def silicon():
    atoms = ase.build.bulk("Si", cubic=True)
    atoms.symbols[[1, 4]] = "O"
    atoms.rattle(0.2, seed=1)
    return atoms


def tilted(pbc):
    """With a cell that is thinner than the cutoff."""
    atoms = silicon()[:4]
    atoms.set_cell([[3.4, 0, 0], [1.2, 3.1, 0], [-0.7, 0.8, 5]])
    atoms.pbc = pbc
    return atoms


STRUCTURES = {"crystal": silicon, "tilted": lambda: tilted(True), "slab": lambda: tilted([True, False, True]),
              "cell without images": lambda: tilted(False), "molecule": lambda: ase.Atoms("SiO2", [[0, 0, 0], [1.5, 0, 0.3], [-0.2, 1.7, 0]]),
              "atom": lambda: ase.Atoms("O"),
              "flat cell": lambda: ase.Atoms("SiO2", [[0, 0, 0], [1.5, 0, 0.3], [-0.2, 1.7, 0]], cell=[[5, 0, 0], [0, 5, 0], [5, 5, 0]])}


@pytest.mark.parametrize("name", STRUCTURES)
def test_derivatives_of_the_energy(name, potential):
    atoms = STRUCTURES[name]()
    atoms.calc = Calculator(potential)
    forces = atoms.get_forces()
    assert forces.dtype == np.float64 and np.abs(forces).max() > 0.1 or name == "atom"
    chosen = [0, len(atoms) - 1]
    np.testing.assert_allclose(calculate_numerical_forces(atoms, eps=0.01, iatoms=chosen), forces[chosen], rtol=3e-3, atol=3e-3)
    np.testing.assert_allclose(atoms.get_potential_energies().sum(), atoms.get_potential_energy())
    if name in ("molecule", "atom", "flat cell"):
        with pytest.raises(ase.calculators.calculator.PropertyNotImplementedError):
            atoms.get_stress()
        return
    stress = atoms.get_stress()
    assert np.abs(stress).max() > 3e-3
    np.testing.assert_allclose(calculate_numerical_stress(atoms, eps=0.003), stress, rtol=5e-3, atol=2e-4)
    np.testing.assert_allclose(atoms.get_stresses().sum(0), stress, atol=1e-6)


def test_energies_are_those_of_the_potential(potential):
    atoms = tilted(True)
    atoms.calc = Calculator(potential)
    alone = sar.Communicator.self()
    neighbors = sar.NeighborList(atoms.positions, potential.cutoff, atoms.cell, atoms.pbc, comm=alone)
    values = potential(neighbors, [potential.species(symbol) for symbol in atoms.symbols])
    np.testing.assert_allclose(atoms.get_potential_energy(), values.energy, rtol=1e-6)
    assert atoms.get_potential_energy(force_consistent=True) == atoms.get_potential_energy()
    np.testing.assert_allclose(atoms.get_potential_energies(), values.energies, rtol=1e-5)
    np.testing.assert_allclose(atoms.get_forces(), values.forces.numpy(), atol=1e-4)


def test_a_supercell(potential):
    atoms = tilted(True)
    large = atoms.repeat((2, 1, 2))
    atoms.calc, large.calc = Calculator(potential), Calculator(potential)
    np.testing.assert_allclose(large.get_potential_energy(), 4 * atoms.get_potential_energy(), rtol=1e-5)
    np.testing.assert_allclose(large.get_forces()[:4], atoms.get_forces(), atol=2e-4)
    np.testing.assert_allclose(large.get_stress(), atoms.get_stress(), atol=2e-5)


def test_one_calculator_for_changing_atoms(potential):
    calc = Calculator(potential)
    atoms = silicon()
    for change in (lambda: None, lambda: atoms.symbols.__setitem__(0, "O"), lambda: atoms.set_cell(1.02 * atoms.cell, scale_atoms=True),
                   lambda: atoms.set_pbc([True, True, False]), lambda: atoms.pop(3), lambda: atoms.append("O"), lambda: atoms.rattle(0.3),
                   lambda: atoms.set_cell(None), lambda: atoms.set_pbc(False), lambda: atoms.set_cell([9, 9, 9])):
        change()
        atoms.calc = Calculator(potential)
        if atoms.cell.rank < 3 and atoms.pbc.any():
            with pytest.raises(InputError, match="linearly dependent"):
                calc.get_forces(atoms)
            continue
        np.testing.assert_allclose(calc.get_potential_energy(atoms), atoms.get_potential_energy(), rtol=1e-6)
        np.testing.assert_allclose(calc.get_forces(atoms), atoms.get_forces(), atol=1e-4)
        assert ("stress" in calc.results) == (atoms.cell.rank == 3)


def test_what_is_refused(potential):
    calc, atoms = Calculator(potential), silicon()
    before = calc.get_forces(atoms)
    for wrong, text in ((ase.Atoms("SiFe", [[0, 0, 0], [2, 0, 0]]), "does not know the species 'Fe', expected one of Si, O"),
                        (ase.Atoms("Si", [[np.nan, 0, 0]]), "nan"), (ase.Atoms(), "no atoms"), (ase.Atoms("Si", pbc=True), "linearly dependent")):
        for error in (InputError, sar.InputError, ase.calculators.calculator.InputError):
            with pytest.raises(error, match=text):
                calc.get_potential_energy(wrong)
        calc.calculate(atoms)
        with pytest.raises(InputError, match=text):
            calc.calculate(wrong)
        assert not calc.results
    np.testing.assert_array_equal(calc.get_forces(atoms), before)
    with pytest.raises(ase.calculators.calculator.PropertyNotImplementedError):
        calc.get_property("dipole", atoms)
    with pytest.raises(sar.InputError, match="nothing.safetensors"):
        Calculator("nothing.safetensors")


def test_copies_of_atoms_have_a_calculator_of_their_own(potential):
    atoms = silicon()
    atoms.calc = Calculator(potential)
    before, energy = atoms.get_forces(), atoms.get_potential_energy()
    again = copy.deepcopy(atoms)
    assert again.calc is not atoms.calc and again.calc.potential is atoms.calc.potential
    assert again.calc.results["energy"] == energy and again.calc.results["forces"] is not atoms.calc.results["forces"]
    again.positions[0, 0] += 0.3
    assert np.abs(again.get_forces() - before).max() > 0.01
    np.testing.assert_array_equal(atoms.get_forces(), before)
    atoms.positions[1, 0] += 0.1
    assert not np.array_equal(atoms.get_forces(), before)


def test_a_calculator_is_pickled_with_its_potential(potential):
    if sar.get_communicator().size > 1:
        with pytest.raises(TypeError, match="a calculator on several ranks cannot be pickled"):
            pickle.dumps(Calculator(potential))
    one = sar.Communicator.self()
    atoms = silicon()
    atoms.calc = Calculator(potential, margin=0.3, comm=one)
    again = pickle.loads(pickle.dumps(atoms))
    assert again.calc is not atoms.calc
    again.rattle(0.01, seed=3), atoms.rattle(0.01, seed=3)
    assert again.get_potential_energy() == atoms.get_potential_energy()
    assert np.array_equal(again.get_forces(), atoms.get_forces())


def test_calculators_in_threads(potential):
    one = sar.Communicator.self()
    expected = []
    for seed in range(4):
        atoms = silicon()
        atoms.rattle(0.05, seed=seed)
        atoms.calc = Calculator(potential, comm=one)
        expected.append(atoms.get_forces())

    def forces(seed):
        atoms = silicon()
        atoms.rattle(0.05, seed=seed)
        atoms.calc = calculators[seed]
        return atoms.get_forces()

    calculators = [copy.deepcopy(pickle.loads(pickle.dumps(Calculator(potential, comm=one)))) for _ in range(4)]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:  # one helper thread: MPI has one thread at a time
        found = list(pool.map(forces, range(4)))
    assert all(np.array_equal(a, b) for a, b in zip(found, expected))


def test_a_committee_has_deviations():
    sar.manual_seed(6)
    committee = sar.Potential({"type": "painn", "hidden": 8, "layers": 2, "species": ["Si", "O"], "cutoff": 4, "num_basis": 6, "committee": 3,
                               "deviation_scales": [2.0, 3.0]})
    assert committee.committee == 3
    atoms = silicon()
    atoms.calc = Calculator(committee)
    forces = atoms.get_forces()
    assert atoms.calc.results["energy_deviation"] > 0 and "forces_deviation" not in atoms.calc.results
    deviations = atoms.calc.get_property("forces_deviation", atoms)
    assert deviations.shape == (len(atoms),) and np.all(deviations > 0)
    assert np.array_equal(atoms.get_forces(), forces)
    with pytest.raises(ase.calculators.calculator.PropertyNotImplementedError):
        one = silicon()
        one.calc = Calculator(sar.Potential({"type": "painn", "hidden": 4, "layers": 1, "species": ["Si", "O"], "cutoff": 3}))
        one.calc.get_property("forces_deviation", one)


def test_several_files_are_a_committee(shared_dir):
    description = {"type": "painn", "hidden": 8, "layers": 1, "species": ["Si", "O"], "cutoff": 4, "num_basis": 6}
    files, forces = [], []
    for seed in (1, 2):
        sar.manual_seed(seed)
        files.append(shared_dir / f"{seed}.safetensors")
        sar.save_potential(sar.Potential(description), files[-1])
        atoms = silicon()
        atoms.calc = Calculator(files[-1])
        forces.append(atoms.get_forces())
    atoms = silicon()
    atoms.calc = Calculator(files)
    assert atoms.calc.potential.committee == 2
    np.testing.assert_allclose(atoms.get_forces(), np.mean(forces, axis=0), atol=1e-6)
    expected = np.sqrt(np.mean(np.sum((np.array(forces) - np.mean(forces, axis=0)) ** 2, axis=-1), axis=0))
    np.testing.assert_allclose(atoms.calc.get_property("forces_deviation", atoms), expected, atol=1e-6)
    assert expected.max() > 1e-3


def test_mace(comm):
    sar.manual_seed(3)
    mace = sar.Potential({"type": "mace", "hidden": 4, "layers": 2, "species": ["O", "Si"], "cutoff": 4, "num_basis": 6, "max_l": 2})
    atoms = silicon()
    atoms.rattle(0.1, seed=2)
    atoms.calc = Calculator(mace)
    forces, one = atoms.get_forces(), silicon()
    one.positions = atoms.positions
    one.calc = Calculator(mace, comm=sar.Communicator.self())
    np.testing.assert_allclose(one.get_forces(), forces, atol=1e-5 * np.abs(forces).max())
    np.testing.assert_allclose(one.get_stress(), atoms.get_stress(), atol=1e-5 * np.abs(atoms.get_stress()).max())
    step = 0.01
    energies = []
    for sign in (1, -1):
        atoms.positions[2, 1] += sign * step
        energies.append(atoms.get_potential_energy())
        atoms.positions[2, 1] -= sign * step
    assert abs((energies[1] - energies[0]) / (2 * step) - forces[2, 1]) < 2e-2 * np.abs(forces).max()


def test_ranks(comm, potential):
    atoms, whole = silicon(), silicon()
    atoms.calc, whole.calc = Calculator(potential), Calculator(potential, comm=sar.Communicator.self())
    for each in (atoms, whole):
        each.set_momenta(np.random.default_rng(1).normal(size=(8, 3)))
        ase.md.verlet.VelocityVerlet(each, 0.5 * ase.units.fs).run(10)
    np.testing.assert_allclose(atoms.positions, whole.positions, atol=1e-4)
    np.testing.assert_allclose(atoms.get_stresses(), whole.get_stresses(), atol=1e-4)
    for mine in (atoms.positions, atoms.get_forces(), atoms.get_potential_energies(), atoms.get_stress(), [atoms.get_potential_energy()]):
        of_ranks = comm.all_gather(mine).reshape(comm.size, -1)
        np.testing.assert_array_equal(of_ranks, of_ranks[[0] * comm.size])
    if comm.size > 1:
        atoms.positions[0, 0] += 1e-9 * (1 + comm.rank)
        with pytest.raises(InputError, match="the ranks have different atoms"):
            atoms.get_forces()
        atoms.positions[0, 0] = 0.1
        atoms.get_forces()


def test_a_trajectory_keeps_the_results(potential, tmp_path):
    atoms = silicon()
    atoms.calc = Calculator(potential)
    atoms.get_stress()
    ase.io.write(tmp_path / "silicon.traj", atoms)
    again = ase.io.read(tmp_path / "silicon.traj")
    assert again.calc.name == "sar"
    np.testing.assert_array_equal(again.get_forces(), atoms.get_forces())
    np.testing.assert_array_equal(again.get_stress(), atoms.get_stress())


@alone
def test_ase_is_imported_with_the_calculator_only():
    run = python("import sys\nimport sar\nprint('ase' in sys.modules)\nsys.modules['ase'] = None\nimport sar.ase\n")
    assert run.stdout.strip() == "False" and "ImportError: sar.ase needs the package ase: pip install ase" in run.stderr


@pytest.fixture(scope="module")
def copper(tmp_path_factory):
    """A folder with structures that have labels of ASE's EMT, and a potential that is trained on them."""
    place = tmp_path_factory.mktemp("copper")
    draw = np.random.default_rng(0)
    structures = []
    for i in range(40):
        atoms = ase.build.bulk("Cu", cubic=True)
        atoms.set_cell(atoms.cell.array @ (np.eye(3) * draw.uniform(0.94, 1.06) + 0.03 * draw.normal(size=(3, 3))), scale_atoms=True)
        atoms.rattle(0.12, rng=draw)
        atoms.calc = ase.calculators.emt.EMT()
        results = {"energy": atoms.get_potential_energy(), "forces": atoms.get_forces(), "stress": atoms.get_stress()}
        atoms.calc = ase.calculators.singlepoint.SinglePointCalculator(atoms, **results)
        structures.append(atoms)
    ase.io.write(place / "train.xyz", structures[:32])
    ase.io.write(place / "test.xyz", structures[32:])
    try:
        sar.train(task="potential", dataset=place / "train.xyz", test_file=place / "test.xyz", cutoff=4.2, hidden=16, layers=2, num_basis=8, epochs=100,
                  stress_weight=1000, lr=0.01, schedule="cosine", threads=1, save_weights=place / "cu.safetensors", predict=place / "out", progress=False)
    except sar.InputError as error:
        if "there is no program" not in str(error) or os.environ.get("SAR_TRAIN"):
            raise
        pytest.skip(str(error))
    return place


@alone
def test_structures_travel_to_the_program_train_and_back(copper):
    calc = Calculator(copper / "cu.safetensors")
    tests, predicted = (ase.io.read(copper / name, ":") for name in ("test.xyz", "out/test.xyz"))
    for atoms, prediction in zip(tests, predicted, strict=True):
        np.testing.assert_allclose(calc.get_potential_energy(atoms), prediction.get_potential_energy(), rtol=1e-6)
        np.testing.assert_allclose(calc.get_forces(atoms), prediction.get_forces(), atol=1e-4)
        np.testing.assert_allclose(calc.get_stress(atoms), prediction.get_stress(), atol=1e-5)
    for label, least in (("forces", 0.3), ("stress", 0.02)):
        values, predictions = (np.array([atoms.calc.results[label] for atoms in each]) for each in (tests, predicted))
        assert np.abs(values).mean() > least and np.abs(predictions - values).mean() < 0.2 * np.abs(values).mean()


@alone
def test_relaxations(copper):
    calc = Calculator(copper / "cu.safetensors")
    perfect = ase.build.bulk("Cu", cubic=True)
    atoms = perfect.copy()
    atoms.rattle(0.1, seed=1)
    atoms.calc = calc
    with ase.optimize.BFGS(atoms, logfile=None) as relaxation:
        assert relaxation.run(fmax=0.01, steps=60)
    np.testing.assert_allclose(atoms.get_potential_energy(), calc.get_potential_energy(perfect), atol=1e-3)
    atoms.set_cell(atoms.cell.array @ [[1.03, 0.02, 0], [0, 0.98, 0], [0, 0, 1.01]], scale_atoms=True)
    with ase.optimize.BFGS(ase.filters.FrechetCellFilter(atoms), logfile=None) as relaxation:
        assert relaxation.run(fmax=0.01, steps=100)
    assert np.abs(atoms.get_stress()).max() < 1e-3
    np.testing.assert_allclose(atoms.cell.cellpar()[:3], 3.59, rtol=0.015)


@alone
def test_constant_energy(copper):
    atoms = ase.build.bulk("Cu", cubic=True).repeat(2)
    atoms.calc = Calculator(copper / "cu.safetensors", margin=0.4)
    atoms.set_momenta(np.sqrt(2 * 300 * ase.units.kB * atoms.get_masses())[:, None] * np.random.default_rng(1).normal(size=(32, 3)))
    energies, lists = [], {}

    def observe():
        energies.append(atoms.get_total_energy() / len(atoms))
        vectors = atoms.calc._neighbors.vectors.numpy()
        lists[vectors.ctypes.data] = vectors

    dynamics = ase.md.verlet.VelocityVerlet(atoms, 2 * ase.units.fs)
    dynamics.attach(observe)
    dynamics.run(300)
    kinetic = atoms.get_kinetic_energy() / len(atoms)
    drift = np.mean(energies[-50:]) - np.mean(energies[:50])
    assert np.ptp(energies) < 0.01 * kinetic and abs(drift) < 1e-3 * kinetic and 1 < len(lists) < 60


def learning(directory, **options):
    sar.manual_seed(7)
    potential = sar.Potential({"type": "painn", "hidden": 8, "layers": 2, "species": ["Cu"], "cutoff": 4, "num_basis": 6, "committee": 3})
    options = {"labels": ase.calculators.emt.EMT(), "threshold": 1e-6, "directory": directory, "steps": 3, "learner": {"lr": 0.01}} | options
    return LearningCalculator(potential, **options)


def test_a_calculator_learns_where_it_is_unsure(folder):  # noqa: F811
    atoms = ase.build.bulk("Cu", cubic=True)
    atoms.rattle(0.1, seed=2)
    atoms.set_constraint(ase.constraints.FixAtoms([0]))
    atoms.calc = learning(folder + "/learned", steps=60)
    first = atoms.get_forces(apply_constraint=False)
    learner = atoms.calc.learner
    assert (learner.num_structures, learner.num_steps, atoms.calc.labelled) == (1, 60, 1)
    known = atoms.copy()
    known.calc = ase.calculators.emt.EMT()
    errors = learner.errors()
    assert errors.force == pytest.approx(np.abs(first - known.get_forces(apply_constraint=False)).mean(), rel=1e-3)
    assert errors.energy_per_atom == pytest.approx(abs(atoms.get_potential_energy() - known.get_potential_energy()) / 4, rel=1e-3)
    assert errors.stress == pytest.approx(np.abs(atoms.get_stress(voigt=False) - known.get_stress(voigt=False)).mean(), rel=1e-3)
    atoms.calc._threshold = 1e6  # sure
    atoms.rattle(0.1, seed=3)
    forces = atoms.get_forces()
    assert atoms.calc.labelled == 1

    resumed = learning(folder + "/learned", threshold=1e6)
    assert (resumed.learner.num_structures, resumed.learner.num_steps) == (1, 60)
    atoms.calc = resumed
    assert np.abs(atoms.get_forces() - forces).max() < 1e-6


def test_a_learning_calculator_looks_now_and_then(folder):  # noqa: F811
    atoms = ase.build.bulk("Cu", cubic=True)
    atoms.calc = learning(None, every=3, most=2)
    labelled = []
    for seed in range(8):
        atoms.rattle(0.1, seed=seed)
        atoms.get_forces()
        labelled.append(atoms.calc.labelled)
    assert labelled == [1, 1, 1, 2, 2, 2, 2, 2]


def test_a_structure_without_labels_ends_on_all_ranks():
    atoms = ase.build.bulk("Cu", cubic=True)
    atoms.rattle(0.1, seed=2)
    atoms.calc = learning(None, labels=ase.calculators.singlepoint.SinglePointCalculator(atoms, energy=1.0))
    with pytest.raises(InputError, match="a structure that is to be learned got no labels: PropertyNotImplementedError"):
        atoms.get_forces()
    assert atoms.calc.learner.num_structures == 0
    with pytest.raises(InputError, match="has no committee"):
        LearningCalculator(sar.Potential({"type": "painn", "hidden": 4, "layers": 1, "species": ["Cu"], "cutoff": 4}), None, 1)
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a calculator that learns cannot be"):
            copied(atoms.calc)
