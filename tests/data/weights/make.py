# SPDX-License-Identifier: MIT

"""Writes the .safetensors files of this directory, byte by byte; independent of the library."""
import json
import math
import struct
import zlib
from pathlib import Path


def write(path, tensors, metadata=None):
    """tensors: name -> (dtype, shape, bytes)."""
    header, offset = {}, 0
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if "header_crc32" in (metadata or {}):  # of the header in which its digits are zeros
        text = text.replace(b'"header_crc32":"00000000"', b'"header_crc32":"%08x"' % zlib.crc32(text))
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


if __name__ == "__main__":
    here = Path(__file__).parent
    values = [1.0, -2.5, 0.15625, 65280.0, 2.0**-20, -0.0]  # 2**-20 is subnormal in float16
    bf16 = [struct.unpack("<I", struct.pack("<f", v))[0] >> 16 for v in values]  # all exact
    write(here / "all_types.safetensors", {
        "f64": ("F64", [2, 3], struct.pack("<6d", *values)),
        "f32": ("F32", [2, 3], struct.pack("<6f", *values)),
        "f16": ("F16", [2, 3], struct.pack("<6e", *values)),
        "bf16": ("BF16", [2, 3], struct.pack("<6H", *bf16)),
        "number": ("F32", [], struct.pack("<f", 0.5)),
        "empty": ("F32", [0, 3], b""),
        "five.dimensions": ("F32", [1, 1, 1, 1, 1], struct.pack("<f", 1)),
        "i64": ("I64", [], struct.pack("<q", -(2**62))),
        "i32": ("I32", [1], struct.pack("<i", -70000)),
        "i16": ("I16", [], struct.pack("<h", -300)),
        "i8": ("I8", [], struct.pack("<b", -3)),
        "u8": ("U8", [], b"\xc8"),
        "bool": ("BOOL", [], b"\x01"),
        "two": ("I64", [2], struct.pack("<2q", 1, 2)),
    }, {"format": "pt", "über": "ä\n\"quoted\""})
    write(here / "not_finite.safetensors", {
        "nan": ("F16", [2], struct.pack("<2e", 1, float("nan"))),
        "infinite": ("BF16", [1], struct.pack("<H", 0x7f80)),
        "large": ("F64", [1], struct.pack("<d", 1e300)),
    })
    # what write_safetensors makes of {"a": [[1, 2.5], [-3, 4]]} and a counter 7, in float32
    data = struct.pack("<q4f", 7, 1, 2.5, -3, 4)
    write(here / "written.safetensors", {"calls": ("I64", [], data[:8]), "a": ("F32", [2, 2], data[8:])},
          {"crc32": "%08x" % zlib.crc32(data), "format": "pt", "header_crc32": "0" * 8})
    # potentials of two species, for programs that cannot write one
    def write_potential(name, shapes, description):
        tensors, k = {}, 0
        for tensor, shape in shapes.items():
            size = math.prod(shape)
            tensors[tensor] = ("F32", shape, struct.pack("<%df" % size, *((7 * (k + i) % 17 - 8) / 8 for i in range(size))))
            k += size
        write(here / name, tensors, {"sar.model": json.dumps({
            "sar_model": 1, "species": ["a", "b"], "cutoff": 4, "num_basis": 2, "hidden": 2, "layers": 1, "energy_shifts": [-1, 2.5]} | description)})

    write_potential("potential.safetensors", {"embedding": [2, 2], "convs.0.interatomic_context_net.0.weight": [2, 2], "convs.0.interatomic_context_net.0.bias": [2],
              "convs.0.interatomic_context_net.2.weight": [6, 2], "convs.0.interatomic_context_net.2.bias": [6],
              "convs.0.filter_net.weight": [6, 2], "convs.0.filter_net.bias": [6], "convs.0.mu_channel_mix.weight": [4, 2],
              "convs.0.intraatomic_context_net.0.weight": [2, 4], "convs.0.intraatomic_context_net.0.bias": [2],
              "convs.0.intraatomic_context_net.2.weight": [6, 2], "convs.0.intraatomic_context_net.2.bias": [6],
              "outnet.0.weight": [1, 2], "outnet.0.bias": [1], "outnet.2.weight": [1, 1], "outnet.2.bias": [1]}, {"type": "painn"})
    write_potential("mace.safetensors", {
        "embedding": [2, 2], "layers.0.contraction": [2, 3, 2], "layers.0.linear_up.0.weight": [2, 2], "layers.0.radial.0.weight": [4, 2],
        "layers.0.radial.1.weight": [4, 4], "layers.0.linear.0.weight": [2, 2], "layers.0.linear.1.weight": [2, 2], "layers.0.skip.0": [2, 2, 2],
        "layers.0.skip.1": [2, 2, 2], "layers.0.product.0.weight": [2, 2], "readout.0.weight": [2, 2], "readout.1.weight": [1, 2]},
        {"type": "mace", "max_l": 1, "hidden_l": 1, "correlation": 2, "radial_hidden": 4, "radial_layers": 1, "readout_hidden": 2, "neighbors": 2})
