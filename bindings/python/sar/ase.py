# SPDX-License-Identifier: MIT
# mypy: disallow-untyped-calls=False

"""Potentials as calculators of ASE, the package ase, which this module imports.

    from sar.ase import Calculator
    atoms.calc = Calculator("si.safetensors")
"""

from __future__ import annotations

import copy
import os
import tempfile
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

try:
    from ase.calculators import calculator
except ImportError:
    raise ImportError("sar.ase needs the package ase: pip install ase") from None
from ase.data import chemical_symbols
from ase.stress import full_3x3_to_voigt_6_stress

from . import _sar


class InputError(_sar.InputError, calculator.InputError):
    """Atoms that a calculator cannot take: an exception of sar and of ASE."""


class Calculator(calculator.Calculator):
    """Collective at the first use of a communicator. Energies, forces and stresses of a potential, in eV and Angstrom.

    potential: the file of train --task potential or of sar.save_potential(), a list of such files, which are a committee,
    or a sar.Potential.
    margin: in Angstrom, added to the cutoff of the neighbor list, which is made anew when an atom has moved by more than half
    of it; by default a twentieth of the cutoff.
    comm: the ranks that share the atoms; by default those of sar.get_communicator(). All of them have the same Atoms and make
    the same calls, each computes a share of the atoms, and all have the same results.

    Stresses, of structures with three cell vectors, have ASE's sign and order. `energies` and `stresses` are those of atoms,
    and add to `energy` and `stress`; `stresses` take longer, and are computed if they are asked for. A committee also has the
    property `energy_deviation`, in each call, and `forces_deviation` of each atom if it is asked for, which takes a pass for each
    head: atoms.calc.get_property("forces_deviation", atoms). Raises InputError on every
    rank for a species that the potential does not know, no atoms, positions that are not finite and as sar.NeighborList.
    """

    implemented_properties = ["energy", "free_energy", "energies", "forces", "stress", "stresses"]

    def __init__(self, potential: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | _sar.Potential, margin: float | None = None, comm: Any = None, **options: Any) -> None:
        super().__init__(**options)
        comm = _sar.get_communicator() if comm is None else comm
        self._comm = comm if isinstance(comm, _sar.Communicator) else _sar.Communicator(comm)
        self.potential: _sar.Potential = potential if isinstance(potential, _sar.Potential) else _sar.load_potential(potential, self._comm)
        if self.potential.committee > 1:
            self.implemented_properties = [*self.implemented_properties, "energy_deviation", "forces_deviation"]
        self._margin = 0.05 * self.potential.cutoff if margin is None else margin
        self._neighbors: _sar.NeighborList | None = None

    def _get_name(self) -> str:
        return "sar"

    def __deepcopy__(self, memo: dict[int, Any]) -> Calculator:
        """Local. A calculator with the same potential and ranks, and a neighbor list of its own."""
        made: Calculator = type(self).__new__(type(self))
        memo[id(self)] = made
        memo.update({id(each): each for each in (self.potential, self._comm)})
        vars(made).update(copy.deepcopy({**vars(self), "_neighbors": None}, memo))
        return made

    def __reduce__(self) -> Any:
        """Local. Of one rank: the potential travels in the bytes of its file."""
        if self._comm.size > 1:
            raise TypeError("a calculator on several ranks cannot be pickled: give each process the file of the potential")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "potential.safetensors")
            _sar.save_potential(self.potential, path, self._comm)
            with open(path, "rb") as file:
                return _from_bytes, (type(self), file.read(), self._margin, self.parameters)

    def calculate(self, atoms: Any = None, properties: Sequence[str] = ("energy",), system_changes: Any = calculator.all_changes) -> None:
        self.results: dict[str, Any] = {}
        super().calculate(atoms, properties, system_changes)
        try:
            self.results = self._computed(self.atoms, "stresses" in properties, "forces_deviation" in properties)
        except _sar.InputError as error:
            raise InputError(str(error)) from None

    def _computed(self, atoms: Any, per_atom: bool, deviations: bool) -> dict[str, Any]:
        comm = self._comm
        if comm.size > 1:
            given = zlib.crc32(atoms.numbers.tobytes(), zlib.crc32(atoms.positions.tobytes()))
            if len(set(comm.all_gather([given]))) > 1:
                raise InputError("the ranks have different atoms, expected the same positions and species on all ranks")
        kinds, place = np.unique(atoms.numbers, return_inverse=True)
        species = np.array([self.potential.species(chemical_symbols[kind]) for kind in kinds], dtype=np.int64)[place]
        begin, end = (len(atoms) * rank // comm.size for rank in (comm.rank, comm.rank + 1))
        positions, cell = atoms.positions[begin:end], atoms.cell.array
        if self._neighbors is None:
            self._neighbors = _sar.NeighborList(positions, self.potential.cutoff, cell, atoms.pbc, self._margin, comm)
        else:
            self._neighbors.update(positions, cell, atoms.pbc)
        values = self.potential(self._neighbors, species[begin:end], per_atom, deviations)

        columns = [values.energies[:, None], values.forces.numpy()] + ([np.asarray(values.virials)] if per_atom else [])
        columns += [values.force_deviations[:, None]] if deviations else []
        rows = np.concatenate(columns, axis=1, dtype=np.float64)
        rows = comm.all_gather(rows).reshape(len(atoms), rows.shape[1])
        results = {"energy": values.energy, "free_energy": values.energy, "energies": rows[:, 0], "forces": rows[:, 1:4].copy()}
        if self.potential.committee > 1:
            results["energy_deviation"] = values.energy_deviation
        if deviations:
            results["forces_deviation"] = rows[:, -1].copy()
        if atoms.cell.volume > 0:
            results["stress"] = full_3x3_to_voigt_6_stress(-values.virial / atoms.get_volume())
            if per_atom:
                results["stresses"] = full_3x3_to_voigt_6_stress(-rows[:, 4:13].reshape(-1, 3, 3) / atoms.get_volume())
        return results


class LearningCalculator(Calculator):
    """Collective at the first use of a communicator. A calculator whose potential learns where it is unsure.

        atoms.calc = LearningCalculator("si.safetensors", labels=EMT(), threshold=0.3, directory="learned")

    Where the deviation of an atom's force is above `threshold` in eV/Angstrom, `labels`, a calculator of ASE, computes
    energy, forces and, if it can, stress of the atoms on rank 0; the potential is trained for `steps` steps on them and all before; and
    the values are those of the potential with its new weights.

    potential: with a committee, as of train --committee H; margin, comm: as of Calculator. every: how many calculations there are from one look
    at the deviations, which takes a pass for each head, to the next. most: of labelled structures. learner: the options of
    sar.PotentialLearner, such as lr. Raises InputError for a potential without a committee.
    """

    def __init__(self, potential: str | os.PathLike[str] | _sar.Potential, labels: Any, threshold: float, directory: str | os.PathLike[str] | None = None,
                 steps: int = 200, every: int = 1, most: int | None = None, learner: dict[str, Any] | None = None, margin: float | None = None,
                 comm: Any = None, **options: Any) -> None:
        super().__init__(potential, margin, comm, **options)
        if self.potential.committee < 2:
            raise InputError("the potential has no committee, expected one of train --committee H")
        self.learner = _sar.PotentialLearner(self.potential, directory, comm=self._comm, **(learner or {}))
        self.labelled = 0
        self._labels, self._threshold, self._steps, self._every, self._most = labels, threshold, steps, every, most
        self._calculations = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Calculator:
        raise TypeError("a calculator that learns cannot be copied: its copies would train the same potential")

    def __reduce__(self) -> Any:
        raise TypeError("a calculator that learns cannot be pickled: give it a directory")

    def _computed(self, atoms: Any, per_atom: bool, deviations: bool) -> dict[str, Any]:
        looks = self._calculations % self._every == 0 and self.labelled != self._most
        results = super()._computed(atoms, per_atom, deviations or looks)
        if not looks or results["forces_deviation"].max() <= self._threshold:
            self._calculations += 1
            return results
        species = [self.potential.species(name) for name in atoms.get_chemical_symbols()]
        labels: dict[str, Any] = {}
        failure = ""
        if self._comm.rank == 0:
            try:
                copy_of_atoms = atoms.copy()
                copy_of_atoms.set_constraint()  # the forces are those of the calculator
                copy_of_atoms.calc = self._labels
                labels = {"energy": copy_of_atoms.get_potential_energy(), "forces": copy_of_atoms.get_forces()}
                if atoms.cell.volume > 0 and "stress" in self._labels.implemented_properties:
                    labels["stress"] = copy_of_atoms.get_stress(voigt=False)
            except Exception as error:  # of any calculator
                failure = f"{type(error).__name__}: {error}"
        failure = bytes(self._comm.all_gather(list(failure.encode())).astype(np.uint8)).decode()
        if failure:
            raise InputError(f"a structure that is to be learned got no labels: {failure}")

        def learn() -> None:
            self.learner.add(atoms.positions, species, cell=atoms.cell.array, pbc=atoms.pbc, **(labels or {"energy": 0.0}))
            self.learner.train(self._steps)

        self._comm.agree(learn)  # a structure that cannot be learned is none of the learner's
        self.labelled += 1
        self._calculations += 1
        return super()._computed(atoms, per_atom, deviations or looks)


def _from_bytes(made: type[Calculator], file: bytes, margin: float, parameters: dict[str, Any]) -> Calculator:
    """A calculator of one rank from what __reduce__ gives."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "potential.safetensors")
        with open(path, "wb") as whole:
            whole.write(file)
        comm = _sar.Communicator.self()
        return made(_sar.load_potential(path, comm), margin, comm, **parameters)
