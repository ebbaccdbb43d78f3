# SPDX-License-Identifier: MIT

"""docstrings.py OUTPUT EXAMPLES EXAMPLES_OUTPUT HEADER...: writes the comments of the classes of C++ headers as pairs {name, text} of
string literals, without their examples in C++; and the examples in Python of a file, which stand below [name]."""
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


def examples(source):
    parts = re.split(r"^\[([A-Za-z]\w*)\]\n", source.read_text(), flags=re.M)[1:]
    for name, text in zip(parts[::2], parts[1::2]):
        yield name, "".join(f"    {line}\n" for line in text.strip().splitlines())


def write(output, pairs):
    output.write_text("".join(f'{{"{name}", R"text({text})text"}},\n' for name, text in pairs))


output, example_source, example_output, *headers = map(pathlib.Path, sys.argv[1:])
write(output, (pair for header in headers for pair in comments(header)))
write(example_output, examples(example_source))
