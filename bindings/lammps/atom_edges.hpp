/// Pairs of atoms of a rank and of ghosts around it that are near each other.
#pragma once

#include <cstdint>
#include <vector>

namespace sar::lammps {

/// The pairs, source -> destination, as positions in the list of atoms.
struct AtomEdges {
  std::vector<std::int32_t> src, dst;
};

/// Returns all pairs of the atoms in `atoms`, numbers of rows of x [.., 3], with a distance below `reach`
/// whose destination is one of the first `num_owned`. Linked cells: time and memory are linear in the number
/// of atoms and pairs. Throws InputError for a position that is not finite.
AtomEdges find_atom_edges(const double* const* x, const std::vector<int>& atoms, int num_owned, double reach);

}  // namespace sar::lammps
