# SPDX-License-Identifier: MIT

"""molecules.py OUT [--graphs N] [--seed N]

Writes OUT/MOLECULES_*.txt, a dataset in the files of the TU collection that is like MUTAG: N molecules of 10 to 28 atoms of 7 elements, of which
each has a ring of six carbons, chains and one nitro group. The class says whether the nitro group is at the ring (1) or at a chain (-1), so it
depends on the structure around an atom and not on numbers of atoms or bonds. 3 % of the classes are wrong. Needs the standard library alone."""
import argparse
import pathlib
import random

CARBON, NITROGEN, OXYGEN, OTHERS = 0, 1, 2, (3, 4, 5, 6)


def molecule(draw):
    """Elements of the atoms, bonds, and the class."""
    atoms, bonds = [CARBON] * 6, [(i, (i + 1) % 6) for i in range(6)]
    chain = []
    for _ in range(draw.randrange(4, 19)):
        at = draw.choice(chain) if chain and draw.random() < 0.7 else draw.randrange(6)
        chain.append(len(atoms))
        bonds.append((at, len(atoms)))
        atoms.append(CARBON if draw.random() < 0.8 else draw.choice(OTHERS))
    at_ring = draw.random() < 0.6
    ends = [v for v in (range(6) if at_ring else chain) if atoms[v] == CARBON]
    nitrogen = len(atoms)
    bonds += [(draw.choice(ends or [0]), nitrogen), (nitrogen, nitrogen + 1), (nitrogen, nitrogen + 2)]
    atoms += [NITROGEN, OXYGEN, OXYGEN]
    is_one = (at_ring or not ends) != (draw.random() < 0.03)
    return atoms, bonds, 1 if is_one else -1


def main():
    p = argparse.ArgumentParser(allow_abbrev=False)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--graphs", type=int, default=600)
    p.add_argument("--seed", type=int, default=1)
    o = p.parse_args()
    o.out.mkdir(parents=True, exist_ok=True)
    draw = random.Random(o.seed)
    lines = {name: [] for name in ("A", "graph_indicator", "graph_labels", "node_labels")}
    first = 1
    for graph in range(1, o.graphs + 1):
        atoms, bonds, label = molecule(draw)
        lines["graph_labels"].append(label)
        lines["node_labels"] += atoms
        lines["graph_indicator"] += [graph] * len(atoms)
        both = sorted(bonds + [(v, u) for u, v in bonds])
        lines["A"] += [f"{first + u}, {first + v}" for u, v in both]
        first += len(atoms)
    for name, values in lines.items():
        (o.out / f"MOLECULES_{name}.txt").write_text("".join(f"{value}\n" for value in values))


if __name__ == "__main__":
    main()
