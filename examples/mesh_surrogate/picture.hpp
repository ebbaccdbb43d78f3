// SPDX-License-Identifier: MIT

/// A picture of nodal fields side by side, in SVG format.
#pragma once

#include "mesh.hpp"

#include <mpi.h>

#include <span>
#include <string>
#include <vector>

struct Panel {
  std::string title;
  std::span<const double> values;  ///< one value per node, including ghosts
  double low = 0, high = 1;        ///< ends of the color scale
  bool signed_colours = false;     ///< blue - white - red instead of dark - bright
};

/// Returns the SVG text on rank 0 and an empty string on other ranks. The mesh is not gathered: each rank
/// paints its triangles on its own canvas, and the canvases are combined. Collective.
std::string draw(MPI_Comm comm, const Mesh& mesh, std::span<const Panel> panels);
