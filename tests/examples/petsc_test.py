# SPDX-License-Identifier: MIT

"""petsc_test.py MPIRUN_SH MPIEXEC RANKS PROGRAM PRECISION: examples/hosts/petsc as a user runs it, on each number of ranks in RANKS ("1,2,4"):
the same meshes and losses, a surrogate that is better than none, a file that ParaView reads, wrong options and places."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples/hosts/petsc"))
from picture import nodes_and_triangles, read_vtu  # noqa: E402

mpirun, mpiexec, ranks, program, precision = sys.argv[1:]
# As in mesh_surrogate_test.py: rounding grows in a training, so in single precision the beginning is compared.
tolerance, compared = (1e-8, None) if precision == "double" else (1e-4, 3)
steps = 5  # of --quick


def run(ranks, *options):
    return subprocess.run([mpirun, mpiexec, ranks, program, "-quick", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=240, env={**os.environ, "PETSC_OPTIONS": ""})


def curves(text):
    lines = [line.split() for line in text.splitlines()]
    meshes = [line[2:6] for line in lines if line and line[0] == "mesh"]
    losses = [float(line[3]) for line in lines if line and line[0] == "time"]
    errors = [(float(line[2]), float(line[3])) for line in lines if line and line[0] == "rollout"]
    return meshes, losses, errors


def check_file(path, number, meshes, error):
    pieces = read_vtu(path)
    assert len(pieces) == number
    x, y, triangles, fields = nodes_and_triangles(pieces)
    nodes, area = {}, 0
    for k, place in enumerate(zip(x, y)):
        node = tuple(values[k] for values in fields.values())
        assert nodes.setdefault(place, node) == node, "a corner that ranks have with different values"
    for a, b, c in triangles:
        area += abs((x[b] - x[a]) * (y[c] - y[a]) - (x[c] - x[a]) * (y[b] - y[a])) / 2
    assert abs(area - 1) < 1e-12, "the triangles cover %.12g of 1" % area
    assert len(nodes) == int(meshes[-1][0]), "%d nodes in the file: %s" % (len(nodes), meshes)
    assert all(difference == surrogate - solver for solver, surrogate, difference in nodes.values())
    squares = [sum(value ** 2 for value in values) for values in zip(*nodes.values())]
    assert abs((squares[2] / squares[0]) ** 0.5 - error) < 1e-9


scratch = tempfile.TemporaryDirectory()
first = None
for number in ranks.split(","):
    out = Path(scratch.name, number, "new")
    done = run(number, "-out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "", done.stderr
    meshes, losses, errors = curves(done.stdout)
    assert len(meshes) == 2 and int(meshes[0][0]) == 81 < int(meshes[1][0]), meshes
    assert len(losses) == 23 and len(errors) == steps, done.stdout
    assert all(mine < 0.7 * nothing for mine, nothing in errors), "hardly better than nothing: %s" % errors
    first = first or (meshes, losses, errors)
    assert meshes == first[0], "on %s ranks %s, on one %s" % (number, meshes, first[0])
    for a, b in list(zip([*losses, *sum(errors, ())], [*first[1], *sum(first[2], ())]))[:compared]:
        assert abs(a - b) <= tolerance * abs(b), "on %s ranks %.12g, on one %.12g" % (number, a, b)
    check_file(out / "heat.vtu", int(number), meshes, errors[-1][0])

occupied = Path(scratch.name, "file")
occupied.touch()
for sentence, options in (("-cells 1: expected at least 2", ["-cells", "1"]), ("-share 1.5: expected a number between 0 and 1", ["-share", "1.5"]),
                          ("-lr 0: expected more than 0", ["-lr", "0"]), ("four", ["-blocks", "four"]),
                          ("try a smaller -lr than 1e+100", ["-lr", "1e100"]),
                          ("%s: cannot make the directory" % occupied, ["-out", str(occupied)])):
    done = run(ranks.split(",")[-1], *options)
    text = done.stdout + done.stderr
    assert done.returncode == 1 and text.count(sentence) == 1, "%s ends with %d: %s" % (options, done.returncode, text)
    assert "rollout" not in done.stdout, "%s: something goes on: %s" % (options, text)
