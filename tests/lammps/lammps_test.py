# SPDX-License-Identifier: MIT

"""lammps_test.py MPIRUN_SH MPIEXEC LMP_SAR MAKE_POTENTIAL PRECISION [PLUGIN]: pair_style sar in LAMMPS, which loads the plugin, if there is one. The
same trajectory on 1, 2 and 4 ranks, forces and pressure by differences of energies, sums of values of atoms, a triclinic cell, both newton settings, ranks without atoms, atoms that leave, hybrid
styles, restarts, clear, deviations of a committee, learning, bonds, excluded pairs, and errors that end LAMMPS on all ranks."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

mpirun, mpiexec, program, make_potential, precision, *plugin = sys.argv[1:]
exact = precision == "double"
scratch = tempfile.TemporaryDirectory()
at = Path(scratch.name)
environment = dict(os.environ)
if plugin:  # LAMMPS takes the library of the plugin's MPI by the name of MPICH's binary interface, and calls MPI_Init
    mpi = re.search(r"libmpich\.so\S* => (\S+)", subprocess.run(["ldd", *plugin], stdout=subprocess.PIPE, text=True, check=True).stdout)[1]
    (at / "libmpi.so.12").symlink_to(mpi)
    environment.update(LD_LIBRARY_PATH=str(at), MPIR_CVAR_DEFAULT_THREAD_LEVEL="MPI_THREAD_FUNNELED")

BOX = """
lattice diamond 5.43
region box block 0 2 0 2 0 2
create_box 2 box
create_atoms 1 box basis 2 2 basis 5 2
displace_atoms all random 0.2 0.2 0.2 12345
"""
STYLE = """
pair_style sar 4.0
pair_coeff * * {at}/si_o.safetensors Si O
"""
THERMO = """
neighbor 0.5 bin
timestep 0.001
fix move all nve
compute pe all pe/atom
compute stress all stress/atom NULL
compute sums all reduce sum c_pe c_stress[1] c_stress[2] c_stress[3] c_stress[4] c_stress[5] c_stress[6]
thermo_style custom step pe etotal press pxx pyy pzz pxy pxz pyz vol atoms c_sums[1] c_sums[2] c_sums[3] c_sums[4] c_sums[5] c_sums[6] c_sums[7]
thermo_modify format float %.15g norm no
thermo 10
"""


def script(body, settings=""):
    return (("plugin load %s\n" % plugin[0] if plugin else "") + "units metal\natom_style atomic\nboundary p p p\n" + settings + body).replace("{at}", str(at))


def run(ranks, text):
    Path(at, "in.test").write_text(text)
    return subprocess.run([mpirun, mpiexec, str(ranks), program, "-in", str(at / "in.test"), "-log", str(at / "log.test")], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=240, cwd=at, env=environment)


def thermo(ranks, text):
    """The rows of all runs, each a dictionary."""
    done = run(ranks, text)
    assert done.returncode == 0, done.stdout
    rows, names = [], None
    for line in (at / "log.test").read_text().splitlines():
        words = line.split()
        if words[:2] == ["Step", "PotEng"]:
            names = words
        elif line.startswith("Loop time"):
            names = None
        elif names and len(words) == len(names) and words[0] != "fix":
            rows.append({name: float(word) for name, word in zip(names, words)})
    assert rows, done.stdout
    return rows


def near(a, b, tolerance):
    assert abs(a - b) <= tolerance * max(1, abs(b)), "%.15g is not %.15g" % (a, b)


def check_sums(row):
    """Energies and virials of atoms, with the kinetic energy of the atoms in both, add up."""
    near(row["c_sums[1]"], row["PotEng"], 1e-10 if exact else 1e-5)
    for k, name in enumerate(("Pxx", "Pyy", "Pzz", "Pxy", "Pxz", "Pyz")):
        near(-row["c_sums[%d]" % (k + 2)] / row["Volume"], row[name], 1e-8 if exact else 2e-3)


subprocess.run([make_potential, str(at / "si_o.safetensors"), "4", "1", "0", "1", "Si", "O"], check=True)
subprocess.run([make_potential, str(at / "mace.safetensors"), "4", "1", "0", "mace", "Si", "O"], check=True)
subprocess.run([make_potential, str(at / "zbl.safetensors"), "4", "1", "3", "1", "Si", "O"], check=True)
subprocess.run([make_potential, str(at / "si.safetensors"), "3.5", "0.01", "0", "1", "Si"], check=True)
subprocess.run([make_potential, str(at / "committee.safetensors"), "4", "1", "0", "4", "Si", "O"], check=True)
MASSES = "mass 1 28.0855\nmass 2 15.999\n"
START = BOX + MASSES + STYLE + THERMO + "velocity all create 1000 4928 loop geom\n"

# The same trajectory, over several neighbor lists, on 1, 2 and 4 ranks and with both newton settings.
DUMP = "dump x all custom 10 {at}/trajectory id xu yu zu vx vy vz\ndump_modify x sort id format float %.17g\n"


def trajectory():
    """Positions and velocities of all atoms in all steps that were written, in the order of the first positions: numbers depend on the ranks."""
    lines = (line.split() for line in (at / "trajectory").read_text().splitlines() if not line.startswith("ITEM"))
    rows = [[float(word) for word in words] for words in lines if len(words) == 7]
    first_step = rows[:next((k for k in range(1, len(rows)) if rows[k][0] == rows[0][0]), len(rows))]
    order = sorted(range(len(first_step)), key=lambda i: first_step[i][1:4])
    return [rows[begin + i][1:] for begin in range(0, len(rows), len(order)) for i in order]


first = first_atoms = None
for ranks, settings in ((1, ""), (2, ""), (4, ""), (3, "newton off\n"), (4, "processors 1 1 *\ncomm_modify mode single\n"))[:2 if plugin else 5]:
    rows = thermo(ranks, script(START + DUMP + "run 50\n", settings))
    atoms = trajectory()
    assert len(rows) == 6 and len(atoms) == 6 * rows[0]["Atoms"], len(atoms)
    first_atoms = first_atoms or atoms
    for atom, expected in zip(atoms, first_atoms):
        for a, b in zip(atom, expected):
            near(a, b, 1e-9 if exact else 1e-4)
    for row in rows:
        check_sums(row)
    first = first or rows
    for row, expected in zip(rows, first):
        near(row["PotEng"], expected["PotEng"], 1e-9 if exact else 1e-5)
        near(row["Press"], expected["Press"], 1e-7 if exact else 1e-3)
    near(rows[-1]["TotEng"], rows[0]["TotEng"], 2e-5)

# A potential of MACE: the same on 1, 2 and 4 ranks, whose ghosts are those of one cutoff, and energy that is kept.
first = None
for ranks in (1, 2, 4)[:2 if plugin else 3]:
    rows = thermo(ranks, script(START.replace("si_o", "mace") + "run 30\n"))
    for row in rows:
        check_sums(row)
    first = first or rows
    for row, expected in zip(rows, first):
        near(row["PotEng"], expected["PotEng"], 1e-9 if exact else 1e-5)
        near(row["Press"], expected["Press"], 1e-7 if exact else 1e-3)
    near(rows[-1]["TotEng"], rows[0]["TotEng"], 2e-5)

# Deviations of a committee: those of the library, on any number of ranks, in steps that ask for them, by all ways to them that this LAMMPS has.
SURE = BOX + MASSES + STYLE.replace("sar 4.0", "sar 4.0 deviation 10").replace("si_o", "committee")
SURE += "fix own all property/atom d_sar_deviation\ncompute own all property/atom d_sar_deviation\ncompute largest all reduce max c_own\n"
SURE += "compute sure all pair sar\nvelocity all create 1000 4928 loop geom\ntimestep 0.001\nfix move all nve\nneighbor 0.5 bin\n"
COLUMNS = "thermo_style custom step pe atoms c_sure[1] c_sure[2] c_sure[3] c_largest%s\nthermo_modify format float %%.15g\nthermo 10\n"
SURE_DUMP = "dump s all custom 10 {at}/deviations id element x y z c_own%s\ndump_modify s sort id element Si O format float %%.17g\n"
FIX_PAIR = "fix sure all pair 10 sar deviation 1\ncompute fixed all reduce max f_sure\n"


def last_dump():
    lines = (at / "deviations").read_text().splitlines()
    return [line.split()[1:] for line in lines[max(i for i, line in enumerate(lines) if line.startswith("ITEM: ATOMS")) + 1:]]


for ranks in (1, 2) if plugin else (1, 2, 4):
    extra = " f_sure" if plugin else ""
    text = SURE + (FIX_PAIR if plugin else "") + COLUMNS % (" c_fixed" if plugin else "") + SURE_DUMP % extra + "run 25\n"
    rows = thermo(ranks, script(text))
    atoms = last_dump()  # of step 20
    found = subprocess.run([make_potential, str(at / "committee.safetensors"), "deviations", "10.86"], check=True, stdout=subprocess.PIPE, text=True,
                           input="".join(" ".join(atom[:4]) + "\n" for atom in atoms))
    of_energy, *of_forces = (float(word) for word in found.stdout.split())
    assert len(of_forces) == len(atoms) and max(of_forces) > 1.2 * min(of_forces) > 0, of_forces
    tolerance = 1e-9 if exact else 1e-4
    for atom, expected in zip(atoms, of_forces):
        for value in atom[4:]:
            near(float(value), expected, tolerance * max(of_forces))
    row = rows[2]
    assert row["Step"] == 20 and len(rows) == 4, rows
    near(row["c_sure[1]"], of_energy, tolerance)
    for value in [row["c_sure[2]"], row["c_largest"]] + ([row["c_fixed"]] if plugin else []):
        near(value, max(of_forces), tolerance)
    near(row["c_sure[3]"], sum(of_forces) / len(of_forces), tolerance)
    assert rows[3]["c_sure[2]"] == row["c_sure[2]"], "step 25 computes no deviations: %r" % rows
HALT = "variable largest equal c_sure[2]\nfix stop all halt 10 v_largest > 1e-6 error %s message yes\nrun 50\n"
stopped = thermo(2, script(SURE + COLUMNS % "" + HALT % "soft"))
assert stopped[-1]["Step"] == 10, stopped
halted = run(2, script(SURE + COLUMNS % "" + HALT % "hard"))
assert halted.returncode != 0 and "Fix halt condition for fix-id stop met on step 10" in halted.stdout, halted.stdout
alone = run(2, script(SURE.replace("committee", "si_o") + "run 0\n"))
assert alone.returncode != 0 and "deviations of a potential without a committee, expected one of train --committee H" in alone.stdout, alone.stdout

if plugin:  # the same style; ranks of MPICH do not yield the processors, so that more of them are slow
    unknown = run(2, script((BOX + MASSES + STYLE).replace("Si O\n", "Si C\n") + "run 0\n"))
    assert unknown.returncode != 0 and "the potential does not know the species 'C'" in unknown.stdout, unknown.stdout
    print("passed")
    sys.exit()

# Fast atoms, which move farther than the graph's margin while LAMMPS keeps its lists, whose skin is larger.
FAST = START.replace("create 1000 4928", "create 8000 4928") + "neigh_modify delay 0\n"
far, kept = (thermo(2, script(FAST.replace("neighbor 0.5", "neighbor " + skin) + "run 60\n"))[-1] for skin in ("0.3", "3.0"))
near(kept["PotEng"], far["PotEng"], 1e-9 if exact else 2e-5)

# Two atoms approach each other across the boundary. When the graph is made again, one of them is within cutoff and margin, and has no ghost.
PAIR = "region box block 0 20 0 20 0 20\ncreate_box 2 box\ncreate_atoms 1 single 0.05 5 5\ncreate_atoms 1 single 15.45 5 5\n" + MASSES + STYLE + THERMO
PAIR += "group one id 1\ngroup two id 2\nvelocity one set -40 0 0 units box\nvelocity two set 40 0 0 units box\nneigh_modify delay 0\n"
far, kept = (thermo(1, script(PAIR.replace("neighbor 0.5", "neighbor " + skin) + "run 10\n"))[-1] for skin in ("0.5", "3.0"))
near(kept["PotEng"], far["PotEng"], 1e-9 if exact else 2e-5)

# Forces of an atom, and the pressure in three directions, are differences of energies. The cell is triclinic, and thinner than the cutoff.
CELL = """
lattice custom 3.2 a1 1 0 0 a2 0.3 1 0 a3 0.2 -0.25 0.95 basis 0 0 0 basis 0.45 0.55 0.5
region cell prism 0 3.2 0 3.2 0 3.04 0.96 0.64 -0.8 units box
create_box 2 cell
create_atoms 1 box basis 2 2
"""
PRESS = CELL + MASSES + STYLE + THERMO
step = 1e-4 if exact else 5e-3


def energy(changes):
    return thermo(2, script(PRESS + changes + "run 0\n"))[0]["PotEng"]


row = thermo(2, script(PRESS + "displace_atoms all random 0.1 0.1 0.1 77\ndump f all custom 1 {at}/forces id fx fy fz\ndump_modify f format float %.15g\nrun 0\n"))[0]
check_sums(row)
moved = "displace_atoms all random 0.1 0.1 0.1 77\ngroup one id 1\n"
forces = {int(line.split()[0]): [float(w) for w in line.split()[1:]] for line in (at / "forces").read_text().splitlines()[9:]}
assert len(forces) > 1, forces
for axis in range(3):
    shift = lambda by: moved + "displace_atoms one move %s units box\n" % " ".join(str(by if k == axis else 0) for k in range(3))
    near(forces[1][axis], -(energy(shift(step)) - energy(shift(-step))) / (2 * step), 1e-6 if exact else 2e-2)
for axis, name in enumerate("xyz"):
    tilts = (("xy", 0.96), ("xz", 0.64)) if name == "x" else (("yz", -0.8),) if name == "y" else ()
    scale = lambda by: moved + "change_box all %s scale %.15g %s remap units box\n" % (
        name, 1 + by, " ".join("%s delta %.15g" % (tilt, by * length) for tilt, length in tilts))
    slope = (energy(scale(step)) - energy(scale(-step))) / (2 * step)
    pressure = -slope / row["Volume"] * 1.6021765e6
    assert abs(row["P%s%s" % (name, name)] - pressure) < (1e-6 if exact else 1e-2) * 2e4, (name, pressure, row)

# Ranks without atoms, before, during and after a run; atoms that migrate and that leave through an open boundary.
CLUSTER = BOX.replace("block 0 2 0 2 0 2", "block 0 8 0 2 0 2").replace("create_atoms 1 box", "region some block 0 1 0 2 0 2\ncreate_atoms 1 region some")
FAR = CLUSTER + MASSES + STYLE + THERMO + "velocity all create 300 4928 loop geom\nvelocity all set 2000 NULL NULL sum yes units box\n"
FAR = FAR.replace("timestep 0.001", "timestep 0.0002")
alone = thermo(1, script(FAR + "run 100\n", "processors 1 * *\n"))
for ranks in (2, 4):
    rows = thermo(ranks, script(FAR + "run 100\n", "processors %d 1 1\n" % ranks))
    for row, expected in zip(rows, alone):
        check_sums(row)
        near(row["PotEng"], expected["PotEng"], 1e-8 if exact else 1e-5)
rows = thermo(3, script(FAR.replace("boundary p p p", "") + "thermo_modify lost ignore\nrun 300\n", "boundary f p p\nprocessors 3 1 1\n"))
assert rows[-1]["Atoms"] == 0 and rows[-1]["PotEng"] == 0, rows[-1]

# A second potential of some types besides another style; a restart continues as if there had been none.
SW = "# A B C epsilon sigma a lambda gamma costheta0 A B p q tol\nSi Si Si 2.1683 2.0951 1.80 21.0 1.20 -0.333333333333 7.049556277 0.6022245584 4.0 0.0 0.0\n"
(at / "Si.sw").write_text(SW)
HYBRID = "pair_style hybrid/overlay sw sar\npair_coeff * * sw {at}/Si.sw Si Si\npair_coeff * * sar {at}/si.safetensors Si NULL\n"
both = thermo(2, script(BOX + MASSES + HYBRID + THERMO + "run 0\n"))[0]
check_sums(both)
parts = [thermo(1, script(BOX + MASSES + style + THERMO + "run 0\n"))[0] for style in
         ("pair_style sw\npair_coeff * * {at}/Si.sw Si Si\n",
          "pair_style hybrid/overlay zero 4 sar\npair_coeff * * zero\npair_coeff * * sar {at}/si.safetensors Si NULL\n")]
for name in ("PotEng", "Pxx", "Pyz"):
    near(both[name], sum(part[name] for part in parts), 1e-9 if exact else 1e-4)

# ZBL of a potential is that of LAMMPS, whose lists are made again in time.
SOON = THERMO + "neigh_modify delay 0\nrun 10\n"
OVERLAY = "pair_style hybrid/overlay sar zbl 1.5 3\npair_coeff * * sar {at}/si_o.safetensors Si O\n" \
    "pair_coeff 1 1 zbl 14 14\npair_coeff 1 2 zbl 14 8\npair_coeff 2 2 zbl 8 8\n"
own = thermo(2, script(BOX + MASSES + "pair_style sar\npair_coeff * * {at}/zbl.safetensors Si O\n" + SOON))
theirs = thermo(1, script(BOX + MASSES + OVERLAY + SOON))
for mine, other in zip(own, theirs):
    check_sums(mine)
    for name in ("PotEng", "Pxx", "Pyy", "Pxy"):
        near(mine[name], other[name], 1e-9 if exact else 1e-4)

# The heat flux by centroid virials, which for ZBL are those of LAMMPS.
FLUX = "compute ke all ke/atom\ncompute centroids all centroid/stress/atom NULL virial\ncompute flux all heat/flux ke pe centroids\n" \
    "thermo_style custom step c_flux[1] c_flux[2] c_flux[3] c_flux[4]\nthermo_modify format float %.15g norm no\n" \
    "velocity all create 1000 4928 loop geom\n"
by_rank = []
for ranks, style in ((1, OVERLAY), (2, "pair_style sar\npair_coeff * * {at}/zbl.safetensors Si O\n"), (3, "pair_style sar\npair_coeff * * {at}/zbl.safetensors Si O\n")):
    lines = script(BOX + MASSES + style + SOON.replace("run 10", FLUX + "run 10"))
    done = run(ranks, lines)
    assert done.returncode == 0, done.stdout
    words = [line.split() for line in (at / "log.test").read_text().splitlines()]
    begin = max(i for i, of in enumerate(words) if of[:2] == ["Step", "c_flux[1]"])
    by_rank.append([float(word) for of in words[begin + 1:begin + 3] for word in of[1:]])
for fluxes in by_rank:
    assert len(fluxes) == 8 and max(map(abs, fluxes)) > 1, fluxes
    for a, b in zip(fluxes, by_rank[0]):
        near(a, b, 1e-9 if exact else 1e-4)

whole = thermo(2, script(START + "run 20\nwrite_restart {at}/restart\nrun 20\n"))
again = thermo(4, script("read_restart {at}/restart\n" + STYLE + THERMO + "run 20\n", "").replace("atom_style atomic\nboundary p p p\n", ""))
near(again[-1]["PotEng"], whole[-1]["PotEng"], 1e-8 if exact else 1e-5)

# The style is there after clear, as well.
once = BOX + MASSES + STYLE + THERMO + "run 0\n"
rows = thermo(2, script(once + "clear\nunits metal\natom_style atomic\nboundary p p p\n" + once))
assert len(rows) == 2 and rows[0]["PotEng"] == rows[1]["PotEng"], rows

# Several styles, twice, with clear in between and then the style alone. Excluded pairs of atoms that the potential does not see change nothing.
SEVERAL = BOX + MASSES + "pair_style hybrid/overlay sar zbl 1.5 3 lj/cut 4\npair_coeff * * sar {at}/si_o.safetensors Si O\n" \
    "pair_coeff 1 1 zbl 14 14\npair_coeff 1 2 zbl 14 8\npair_coeff 2 2 zbl 8 8\npair_coeff 2 2 lj/cut 0.01 2.5\n" + THERMO + "run 5\n"
CLEAR = "clear\nunits metal\natom_style atomic\nboundary p p p\n"
rows = thermo(2, script(SEVERAL + CLEAR + SEVERAL + CLEAR + once))
assert len(rows) == 5 and rows[:2] == rows[2:4], rows
alone = thermo(2, script(once))[0]
assert rows[4] == alone, rows
zero = BOX + MASSES + "pair_style hybrid/overlay zero 4 sar\npair_coeff * * zero\npair_coeff * * sar {at}/si.safetensors Si NULL\n" + THERMO + "run 0\n"
seen = thermo(2, script(zero.replace("run 0", "neigh_modify exclude type 2 2 exclude type 1 2\nrun 0")))[0]
near(seen["PotEng"], thermo(2, script(zero))[0]["PotEng"], 1e-12)

# Bonded atoms interact as all others, if the input says so.
BONDS = START.replace("create_box 2 box", "create_box 2 box bond/types 1 extra/bond/per/atom 4 extra/special/per/atom 10")
BONDS += "bond_style zero\nbond_coeff * 2.35\ncreate_bonds single/bond 1 1 2\n"
bonded = lambda text: script(text + "run 0\n").replace("atom_style atomic", "atom_style bond")
near(thermo(2, bonded(BONDS + "special_bonds lj/coul 1 1 1\n"))[0]["PotEng"], alone["PotEng"], 1e-12 if exact else 1e-6)
overlaid = BONDS.replace(STYLE, "pair_style hybrid/overlay sar lj/cut 4\npair_coeff * * sar {at}/si_o.safetensors Si O\npair_coeff * * lj/cut 0 2.5\n")
overlaid += "special_bonds lj/coul 0.5 0.5 0.5\npair_modify pair sar special lj 1 1 1\n"
near(thermo(2, bonded(overlaid))[0]["PotEng"], alone["PotEng"], 1e-12 if exact else 1e-6)

# Errors end LAMMPS on all ranks, with one sentence.
def error(ranks, text):
    done = run(ranks, text)
    assert done.returncode != 0, done.stdout
    assert done.stdout.count("ERROR") >= 1, done.stdout
    return done.stdout


def expect(text, found):
    assert text in found, "no '%s' in %s" % (text, found)


# Learning: labels of the potential itself, computed by another LAMMPS, have no errors; the run goes on with new weights, and from checkpoints.
LEARN = BOX + "displace_atoms all random 0.05 0.05 0.05 3\nchange_box all triclinic\nchange_box all xy final 0.4 xz final -0.2 yz final 0.3 remap\n" + MASSES
LEARN += STYLE.replace("si_o", "committee") + THERMO + "velocity all create 300 4928 loop geom\ncompute p all pressure NULL virial\n"
SHOW = "thermo_style custom step pe c_p[1] c_p[2] c_p[3] c_p[4] c_p[5] c_p[6] f_learn[1] f_learn[2] f_learn[3] f_learn[4]\nthermo_modify format float %.15g norm no\n"
FIX = "fix learn all sar/learn 10 1e-9 {at}/learned lammps {at}/labels.in steps 3 batch 2 lr 0.01 most 2\n"
(at / "labels.in").write_text(("plugin load %s\n" % plugin[0] if plugin else "") + STYLE.replace("si_o", "committee").replace("{at}", str(at)))


def learned_structures(folder="learned"):
    """The energy, the stress and the columns of atoms of each structure of learned.xyz."""
    lines, found = (at / folder / "learned.xyz").read_text().splitlines(), []
    while lines:
        count = int(lines[0])
        stress = re.search(r'stress="([^"]*)"', lines[1])
        found.append((float(re.search(r" energy=(\S+)", lines[1])[1]), stress and [float(x) for x in stress[1].split()],
                      [line.split() for line in lines[2:count + 2]]))
        lines = lines[count + 2:]
    return found


def error_of(done):
    assert done.returncode != 0 and "ERROR" in done.stdout, done.stdout
    return done.stdout


last = None
for ranks in (1, 2):
    shutil.rmtree(at / "learned", ignore_errors=True)
    rows = thermo(ranks, script(LEARN + FIX + SHOW + "run 30\n"))
    assert [row["f_learn[1]"] for row in rows] == [0, 1, 2, 2], rows
    assert rows[1]["f_learn[3]"] < 1e-5 and rows[1]["f_learn[4]"] < 1e-5 < rows[2]["f_learn[4]"], rows
    assert rows[1]["f_learn[2]"] > 1e-3, rows
    energy, stress, atoms = learned_structures()[0]
    near(energy, rows[1]["PotEng"], 1e-6)
    for k, c in enumerate((0, 4, 8, 1, 2, 5)):
        near(stress[c], -6.241509074e-7 * rows[1]["c_p[%d]" % (k + 1)], 1e-6)
    assert len(atoms) == 64 and {name for name, *_ in atoms} == {"Si", "O"}, atoms
    if last:
        for name in ("PotEng", "f_learn[2]", "f_learn[4]"):
            near(rows[3][name], last[3][name], 1e-8 if exact else 1e-3)
    last = rows
COEFF = "pair_coeff * * {at}/committee.safetensors Si O\n"  # another potential with the old weights: the checkpoint has the new ones
done = run(2, script(LEARN + FIX.replace("/learned", "/twice") + "run 10\n" + COEFF + "run 20\n"))
assert done.returncode == 0 and "fix sar/learn: has 1 structures and 3 steps of " in done.stdout, done.stdout
again, unbroken = learned_structures("twice"), learned_structures()
assert len(again) == len(unbroken) == 2, done.stdout
near(again[1][0], unbroken[1][0], 1e-8 if exact else 1e-5)
SCREEN = script(LEARN + FIX + "run 0\n")
done = run(2, SCREEN)
assert done.returncode == 0 and "fix sar/learn: has 2 structures and 6 steps of " in done.stdout, done.stdout
assert (at / "learned" / "potential.safetensors").exists() and not list((at / "learned").glob("*.tmp")), list((at / "learned").iterdir())

# Labels of a command, which gets the structure and writes numbers.
(at / "label.py").write_text("""
import sys
lines = open(sys.argv[-2]).read().splitlines()
count = int(lines[0])
assert "Properties=species:S:1:pos:R:3 pbc" in lines[1], lines[1]
numbers = [-7.5] + [0.25] * 3 * count + ([0.125] * 9 if "stress" in sys.argv else [])
open(sys.argv[-1], "w").write("\\n".join(map(str, numbers[:-1] if "short" in sys.argv else numbers)))
sys.exit(3 if "fails" in sys.argv else 0)
""")
COMMAND = 'fix learn all sar/learn 5 1e-9 {at}/%s command "%s {at}/label.py%s" steps 1 most 1\n'
for ranks, word in ((1, ""), (2, " stress")):
    thermo(ranks, script(LEARN + COMMAND % ("by_command" + word.strip(), sys.executable, word) + "run 6\n"))
    (energy, stress, atoms), = learned_structures("by_command" + word.strip())
    assert energy == -7.5 and stress == ([0.125] * 9 if word else None) and atoms[5][4:] == ["0.25"] * 3, (energy, stress, atoms[5])
expect_learn = [
    ("ended with status 768, expected 0", LEARN + COMMAND % ("refused", sys.executable, " fails") + "run 6\n"),
    ("label.txt: has 192 numbers, expected the energy, 192 of forces, and 9 of the stress or none", LEARN + COMMAND % ("refused", sys.executable, " short") + "run 6\n"),
    ("none.in: cannot be read", LEARN + FIX.replace("labels.in", "none.in") + "run 10\n"),
    ("got the group heavy", LEARN + "group heavy type 1\n" + FIX.replace("learn all", "learn heavy") + "run 0\n"),
    ("got most -1", LEARN + FIX.replace("most 2", "most -1") + "run 0\n"),
    ("got lr without a number", LEARN + FIX.replace(" 0.01 most 2", "") + "run 0\n"),
    ("got neither", LEARN + FIX.replace("lammps", "neither") + "run 0\n"),
    ("the potential has no committee", LEARN.replace("committee", "si_o") + FIX + "run 0\n"),
    ("there is no pair_style sar with a potential", LEARN.replace("pair_style sar 4.0", "pair_style zero 4.0").replace(
        "pair_coeff * * {at}/committee.safetensors Si O", "pair_coeff * *") + FIX + "run 0\n"),
    ("atoms of type 2 are not seen by the potential", LEARN.replace("Si O\n", "Si NULL\n").replace("pair_style sar 4.0", "pair_style hybrid/overlay sar 4.0 zero 4.0")
     .replace("pair_coeff * * {at}", "pair_coeff * * zero\npair_coeff * * sar {at}") + FIX + "run 0\n"),
    ("run_style respa, expected run_style verlet", LEARN + FIX + "run_style respa 1\nrun 0\n"),
    ("is of the potential", LEARN.replace("committee", "three") + FIX + "run 0\n")]
subprocess.run([make_potential, str(at / "three.safetensors"), "4", "1", "0", "3", "Si", "O"], check=True)
for text, body in expect_learn:
    assert text in error_of(run(2, script(body))), text
if not plugin:  # a LAMMPS with exceptions ends in another way
    (at / "labels.in").write_text("pair_style nosuch\n")
    error_of_labels = run(2, script(LEARN + FIX.replace("/learned", "/wrong") + "run 10\n"))
    assert error_of_labels.returncode != 0 and "nosuch" in (at / "wrong" / "label.log").read_text(), error_of_labels.stdout
shutil.rmtree(at / "learned")

START0 = BOX + MASSES + STYLE + THERMO
expect("the potential does not know the species 'C', expected one of Si, O", error(2, script(START0.replace("Si O", "Si C") + "run 0\n")))
expect("si_o.safetensors has the cutoff 4, pair_style sar says 5", error(2, script(START0.replace("sar 4.0", "sar 5.0") + "run 0\n")))
expect("none.safetensors", error(3, script(START0.replace("si_o", "none") + "run 0\n")))
expect("a species or NULL for each of 2 atom types", error(2, script(START0.replace("Si O", "Si") + "run 0\n")))
expect("takes a cutoff and deviation N", error(2, script(START0.replace("sar 4.0", "sar 4.0 1") + "run 0\n")))
expect("needs atoms with ids", error(2, script(START0 + "run 0\n", "atom_modify id no\n").replace("compute ", "# ").replace("thermo_", "# ")))
expect("expected coordinates of at most 1e+09", error(3, script(START0 + "neigh_modify delay 1000 every 1000\ngroup five id 5\nfix wrong five addforce 1e308 0 0\nrun 50\n")))
expect("takes a cutoff and deviation N", error(2, script(START0.replace("sar 4.0", "sar deviation 0") + "run 0\n")))
EXCLUDES = "neigh_modify exclude leaves out pairs of atoms that the potential sees"
expect(EXCLUDES, error(2, script(START0 + "neigh_modify exclude type 1 2\nrun 0\n")))
expect(EXCLUDES, error(2, script(START0 + "group odd id 1:64:2\nrun 0\nneigh_modify exclude group odd all\nrun 0\n")))
expect("neigh_modify include leaves out pairs", error(2, script(START0 + "group odd id 1:64:2\natom_modify first odd\nneigh_modify include odd\nrun 0\n")))
expect("special_bonds lj 0 0 0 leaves out pairs of bonded atoms, expected special_bonds lj 1 1 1", error(2, bonded(BONDS)))
expect("pair style sar in units real, expected units metal", error(2, script(START0 + "run 0\n").replace("units metal", "units real")))
expect("a neighbor list with the atoms ", error(2, script(PRESS + "create_atoms 2 single 0 0 0 units box\nrun 0\n")))
used_up = error(3, script(START.replace("create 1000 4928", "create 1e5 4928") + "neigh_modify delay 50 every 50 check no\nrun 50\n"))
expect("and half of the skin is 0.25, so that ghosts are missing: expected neigh_modify every 1 delay 0 check yes, a larger skin", used_up)
lost = script(START.replace("create 1000 4928", "create 3e7 4928") + "neigh_modify delay 50 every 50 check no\nthermo 100\nrun 200\n")
expect("ERROR", error(3, lost))
print("passed")
