# SPDX-License-Identifier: MIT

"""mesh_surrogate_test.py MPIRUN_SH MPIEXEC RANKS PROGRAM PRECISION: examples/mesh_surrogate as a user runs it, on each number of ranks in
RANKS ("1,2,4"): the same curves, a surrogate that is better than none, files that ParaView reads, wrong options and places."""
import base64
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

mpirun, mpiexec, ranks, program, precision = sys.argv[1:]
# The curves are the same to rounding, which training makes grow, tenfold in a time step at first: in single precision their beginning
# is compared (found: 1e-5 at the fourth loss).
tolerance, compared = (1e-9, None) if precision == "double" else (1e-4, 4)
columns, rows, steps = 24, 12, 5  # of --quick


def run(ranks, *options):
    return subprocess.run([mpirun, mpiexec, ranks, program, "--quick", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=240)


def curves(text):
    lines = [line.split() for line in text.splitlines()]
    losses = [float(line[3]) for line in lines if line[0] == "step"]
    errors = [(float(line[2]), float(line[3])) for line in lines if line[0] == "rollout" and line[1].isdigit()]
    return losses, errors


def array(element):
    """The numbers of a DataArray, written as base64 of its length in bytes and its bytes."""
    assert element.get("format") == "binary"
    raw = base64.b64decode(element.text, validate=True)
    length, = struct.unpack("<Q", raw[:8])
    letter = {"Float64": "d", "Int64": "q", "Int32": "i", "UInt8": "B"}[element.get("type")]
    assert length == len(raw) - 8 and length % struct.calcsize(letter) == 0
    return struct.unpack("<%d%s" % (length // struct.calcsize(letter), letter), raw[8:])


def arrays(parent):
    return {element.get("Name"): array(element) for element in parent}


def names_and_types(parent):
    return [(element.get("Name"), element.get("type"), element.get("NumberOfComponents")) for element in parent]


def check_step(path, number):
    """A .pvtu and its pieces: all nodes, each with one owner and one value, and triangles that cover the domain once."""
    whole = ElementTree.parse(path).getroot()[0]
    pieces = [piece.get("Source") for piece in whole.findall("Piece")]
    assert len(pieces) == number
    nodes, area, triangles = {}, 0, 0
    for rank, name in enumerate(pieces):
        piece = ElementTree.parse(path.parent / name).getroot()[0][0]
        assert names_and_types(piece.find("PointData")) == names_and_types(whole.find("PPointData"))
        assert names_and_types(piece.find("CellData")) == names_and_types(whole.find("PCellData"))
        num_points, num_cells = int(piece.get("NumberOfPoints")), int(piece.get("NumberOfCells"))
        points, = arrays(piece.find("Points")).values()
        cells, data = arrays(piece.find("Cells")), arrays(piece.find("PointData"))
        corners = cells["connectivity"]
        assert len(points) == 3 * num_points and all(len(values) == num_points for values in data.values())
        assert len(corners) == 3 * num_cells and 0 <= min(corners) and max(corners) < num_points
        assert cells["offsets"] == tuple(range(3, 3 * num_cells + 1, 3)) and cells["types"] == (5,) * num_cells
        assert arrays(piece.find("CellData"))["rank"] == (rank,) * num_cells
        for k in range(0, 3 * num_cells, 3):
            (ax, ay), (bx, by), (cx, cy) = (points[3 * c:3 * c + 2] for c in corners[k:k + 3])
            twice = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
            assert twice > 0, "a triangle that is not counterclockwise"
            area += twice / 2
        triangles += num_cells
        for i in range(num_points):
            node = (points[3 * i:3 * i + 3], *(data[key][i] for key in ("owner", "truth", "prediction", "error")))
            assert nodes.setdefault(data["global_id"][i], node) == node, "a ghost that differs from its owner's node"
    assert len(nodes) == columns * rows and triangles == 2 * (columns - 1) * (rows - 1)
    assert abs(area - 2) < 1e-12
    assert {node[1] for node in nodes.values()} == set(range(number))
    assert all(error == prediction - truth for _, _, truth, prediction, error in nodes.values())
    squares = [sum(value ** 2 for value in values) for values in zip(*(node[2:] for node in nodes.values()))]
    return (squares[2] / squares[0]) ** 0.5


scratch = tempfile.TemporaryDirectory()
first = None
for number in ranks.split(","):
    out = Path(scratch.name, number, "new")
    done = run(number, "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    losses, errors = curves(done.stdout)
    assert len(losses) == 21 and len(errors) == steps, done.stdout
    assert all(mine < 0.7 * nothing for mine, nothing in errors), "hardly better than nothing: %s" % errors
    first = first or (losses, errors)
    for a, b in list(zip([*losses, *sum(errors, ())], [*first[0], *sum(first[1], ())]))[:compared]:
        assert abs(a - b) <= tolerance * abs(b), "on %s ranks %.12g, on one %.12g" % (number, a, b)

    series = [file.get("file") for file in ElementTree.parse(out / "rollout.pvd").getroot()[0]]
    assert len(series) == steps + 1
    told = [check_step(out / file, int(number)) for file in series]
    assert told[0] == 0
    for (mine, _), read in zip(errors, told[1:]):
        assert abs(mine - read) < 1e-9, "%.12g printed, %.12g in the files" % (mine, read)
    ElementTree.parse(out / "rollout.svg")
    assert len(list(out.iterdir())) == 2 + len(series) * (1 + int(number)), "a file that nobody names"

occupied = Path(scratch.name, "file")
occupied.touch()
for code, sentence, options in ((2, "--blocks", ["--blocks", "0"]), (2, "--speed", ["--speed", "1"]), (2, "--lr", ["--lr", "fast"]),
                                (1, ", expected a number: try a smaller --lr than 1e+100", ["--lr", "1e100"]),
                                (1, "%s: cannot make the directory" % occupied, ["--out", str(occupied)])):
    done = run(ranks.split(",")[-1], *options)
    text = done.stdout + done.stderr
    assert done.returncode == code and text.count(sentence) == 1, "%s ends with %d: %s" % (options, done.returncode, text)
    assert "rollout" not in done.stdout, "%s: something goes on: %s" % (options, text)
