# SPDX-License-Identifier: MIT

"""The options of the project's CMakeLists.txt, and the values that they may have."""
import os
import re


def cmake_options(tree):
    with open(os.path.join(tree, "CMakeLists.txt")) as file:
        cmake = file.read()
    options = {name: ("ON", "OFF") for name in re.findall(r"^option\((\w+)", cmake, re.M)}
    options["CMAKE_POSITION_INDEPENDENT_CODE"] = ("ON", "OFF")
    for name, values in re.findall(r"^sar_choice\((\w+) ((?:\w+ )*?)(?:DEFAULT|DOC) ", cmake, re.M):
        options[name] = tuple(values.split())
    return options
