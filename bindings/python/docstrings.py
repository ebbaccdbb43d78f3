# SPDX-License-Identifier: MIT

"""docstrings.py OUTPUT HEADER...: writes the comments of the classes of C++ headers as pairs {name, text} of string literals, without
their examples in C++."""
import pathlib
import re
import sys


def comments(header):
    lines = []
    for line in header.read_text().splitlines():
        if line.startswith("///"):
            lines.append(line[4:])
            continue
        found = re.match(r"(?:class|struct) (\w+)[^;]*$", line)
        if found and lines:
            yield found[1], re.sub(r"\n*@code.*?@endcode", "", "\n".join(lines), flags=re.S)
        if not line.startswith("template"):
            lines = []


output, *headers = map(pathlib.Path, sys.argv[1:])
output.write_text("".join(f'{{"{name}", R"text({text})text"}},\n' for header in headers for name, text in comments(header)))
