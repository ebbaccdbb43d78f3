/// A picture of nodal fields side by side, as SVG.
#pragma once

#include "mesh.hpp"

#include <mpi.h>

#include <span>
#include <string>
#include <vector>

struct Panel {
  std::string title;
  std::span<const double> values;  ///< a number a node, ghosts included
  double low = 0, high = 1;        ///< the ends of the colour scale
  bool signed_colours = false;     ///< blue - white - red instead of dark - bright
};

/// The text of the picture on rank 0, nothing on the others. The mesh stays where it is: each rank paints its
/// triangles on a canvas of its own, and the canvases are added up. Collective.
std::string draw(MPI_Comm comm, const Mesh& mesh, std::span<const Panel> panels);
