#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""picture.py heat.vtu PICTURE.png: draws the solver, the surrogate and their difference on the mesh (needs matplotlib)."""
import io
import struct
import sys
import xml.etree.ElementTree as ElementTree

FORMATS = {"Float64": "d", "Float32": "f", "Int64": "q", "Int32": "i", "UInt8": "B"}


def read_vtu(path):
    """Returns the pieces of a VTU file of PETSc, each a dict from the names of its arrays to their numbers."""
    with open(path, "rb") as file:
        content = file.read()
    begin = content.index(b"<AppendedData")
    data = content.index(b"_", content.index(b">", begin)) + 1
    root = ElementTree.fromstring(content[:begin].decode() + "</VTKFile>")
    wide = root.get("header_type") == "UInt64"
    pieces = []
    for piece in root.iter("Piece"):
        arrays = {}
        for array in piece.iter("DataArray"):
            at = data + int(array.get("offset"))
            size, = struct.unpack_from("<Q" if wide else "<I", content, at)
            letter = FORMATS[array.get("type")]
            number = size // struct.calcsize(letter)
            arrays[array.get("Name")] = struct.unpack_from("<%d%s" % (number, letter), content, at + (8 if wide else 4))
        pieces.append(arrays)
    return pieces


def nodes_and_triangles(pieces):
    """Returns x and y of all corners, triangles of them, and the fields at the corners. Corners that several ranks have are repeated."""
    x, y, triangles, fields = [], [], [], {"solver": [], "surrogate": [], "difference": []}
    for piece in pieces:
        first, corners = len(x), piece["connectivity"]
        x += piece["Position"][0::3]
        y += piece["Position"][1::3]
        triangles += [[first + c for c in corners[k:k + 3]] for k in range(0, len(corners), 3)]
        for field, values in fields.items():
            name, = (name for name in piece if name.startswith(field))
            values += piece[name]
    return x, y, triangles, fields


def main():
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.tri import Triangulation
    from PIL import Image

    x, y, triangles, fields = nodes_and_triangles(read_vtu(sys.argv[1]))
    mesh = Triangulation(x, y, triangles)
    figure, axes = pyplot.subplots(1, 3, figsize=(9.6, 3.4), constrained_layout=True)
    top = max(fields["solver"])
    scale = max(map(abs, fields["difference"]))
    for axis, (name, values) in zip(axes, fields.items()):
        colours = dict(cmap="RdBu_r", vmin=-scale, vmax=scale) if name == "difference" else dict(cmap="inferno", vmin=0, vmax=top)
        drawn = axis.tripcolor(mesh, values, shading="gouraud", **colours)
        if name == "solver":
            axis.triplot(mesh, color="white", linewidth=0.15)
        axis.set_title(name)
        axis.set_aspect("equal")
        axis.margins(0)
        axis.set_xticks([])
        axis.set_yticks([])
        figure.colorbar(drawn, ax=axis, shrink=0.75)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=90)
    Image.open(drawn).convert("RGB").quantize(256).save(sys.argv[2], optimize=True)


if __name__ == "__main__":
    main()
