// SPDX-License-Identifier: MIT

// What a header of the Python package of LAMMPS names of a library that it does not install.
#pragma once

class json;
