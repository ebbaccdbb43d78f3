# SPDX-License-Identifier: MIT

"""pack.py REFERENCE [OUT]

Packs the reference vectors (REFERENCE/<group>/<case>/*.npy and args.txt, see the README there) into OUT/<group>.safetensors, one file for each
group; OUT is this directory unless given. The array <case>/<array>.npy becomes the tensor "<case>/<array>", bytes and type unchanged; the line
key=value of <case>/args.txt becomes the metadata "<case>/<key>"."""
import json
import struct
import sys
import zlib
from pathlib import Path

import numpy as np

TYPES = {"<f8": "F64", "<i8": "I64", "|b1": "BOOL"}


def pack(group, path):
    metadata, arrays = {}, {}
    for case in sorted(entry for entry in group.iterdir() if entry.is_dir()):
        for line in (case / "args.txt").read_text().splitlines():
            key, value = line.split("=", 1)
            metadata[f"{case.name}/{key}"] = value
        for file in sorted(case.glob("*.npy")):
            arrays[f"{case.name}/{file.stem}"] = np.load(file)
    header, data = {}, bytearray()
    for name, array in sorted(arrays.items(), key=lambda item: -item[1].itemsize):  # stable; keeps all elements aligned
        begin = len(data)
        data += array.tobytes()
        header[name] = {"dtype": TYPES[array.dtype.str], "shape": array.shape, "data_offsets": [begin, len(data)]}
    metadata["crc32"] = "%08x" % zlib.crc32(data)
    text = json.dumps({"__metadata__": metadata, **header}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    reference = Path(sys.argv[1])
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent
    out.mkdir(parents=True, exist_ok=True)
    for group in sorted(entry for entry in reference.iterdir() if entry.is_dir()):
        pack(group, out / (group.name + ".safetensors"))
