// SPDX-License-Identifier: MIT

/// Neighbor lists: the graph of all pairs of atoms within a cutoff.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/memory/transaction.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/sampling/graph_samples.hpp>
#include <sar/nn/atoms/cell.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The graph of one structure, whose atoms are spread over the ranks in any way: an edge u -> v for each
/// image of u within cutoff + margin of v, and so both directions of each pair. If the cell is thinner than
/// the cutoff, several images of an atom are neighbors, its own images among them. Node i of a rank is the
/// i-th atom that it gave. Edges and vectors are the same for every distribution.
///
/// PaiNN takes the list as positions and shifts, which may be of any precision: differences are formed in
/// double.
///
///     d_uv = displacements_u + vectors_uv - displacements_v
///
/// A list with a margin stays valid while atoms move: update() makes a new graph only if an atom has moved by
/// more than half of the margin. Memory of a rank: its atoms, their neighbors and their edges. Copies share
/// the graph.
///
/// @code
/// const std::vector<double> x{0, 0, 1.0 * comm.rank()};  // a chain: one atom on each rank
/// const Cell cell{.vectors = {{{3, 0, 0}, {0, 3, 0}, {0, 0, 1.0 * comm.size()}}},
///                 .periodic = {false, false, true}};
/// NeighborList list(comm, x, cell, /*cutoff=*/1.5, /*margin=*/0.5);
/// Generator gen(0);
/// const PaiNN model({.num_species = 1, .feats = 8, .convs = 1, .cutoff = 1.5}, gen);
/// const std::vector<Index> species{0};
/// const EnergyAndForces found =
///     model.energy_and_forces(list.graph(), species, list.displacements(), list.vectors());
/// list.update(x, cell);  // after each step of the atoms
/// @endcode
class NeighborList {
 public:
  /// Collective. `positions`: x, y, z of each atom of this rank, inside of the cell or not; a rank may have
  /// none. Lengths are in the unit of the positions. Throws InputError on every rank: for positions that are
  /// not finite or beyond 1e9, two atoms at the same place (to a millionth of the cutoff), no atoms at all, a
  /// cutoff that is not positive, a negative margin, periodic cell vectors that are linearly dependent, a
  /// cell of which the cutoff reaches more than 100 images in a direction, and for a cell, cutoff, margin or
  /// options that differ between ranks; ShapeError unless there are three coordinates for each atom.
  NeighborList(const Communicator& comm, std::span<const double> positions, const Cell& cell, double cutoff,
               double margin = 0, const GraphOptions& options = {});

  /// Collective. Takes new positions of the atoms. Makes a new graph, on all ranks, if any atom has moved by
  /// more than half of the margin since the graph was made, not counting translations by periodic cell
  /// vectors, if a rank has another number of atoms, or for another cell. Returns whether it did. Throws as
  /// the constructor.
  bool update(std::span<const double> positions, const Cell& cell);

  [[nodiscard]] const Graph& graph() const noexcept { return built_.get()->graph; }
  /// x_u + t - x_v when the graph was made, [local edges, 3], in the graph's edge order. t is the translation
  /// of the image of u.
  [[nodiscard]] const Tensor& vectors() const noexcept { return built_.get()->vectors; }
  /// How far each atom has moved since then, up to translations: [local atoms, 3].
  [[nodiscard]] const Tensor& displacements() const noexcept { return displacements_.get(); }

 private:
  struct Built {
    Cell cell;
    Array<double> positions;
    Graph graph;
    Tensor vectors;
  };
  [[nodiscard]] std::shared_ptr<const Built> build(std::span<const double> positions, const Cell& cell) const;

  Communicator comm_;
  double cutoff_, margin_;
  GraphOptions options_;
  Recoverable<std::shared_ptr<const Built>> built_;
  Recoverable<Tensor> displacements_;
};

/// Edges from atoms and ghosts to atoms: numbers of positions.
struct GhostEdges {
  std::vector<std::int32_t> src, dst;
};

/// Local. For a host that has ghosts, as LAMMPS: returns all pairs u -> v of positions (3 for each) with a
/// distance below `cutoff` of which v is one of the first `num_owned`. Images are ghosts with positions of
/// their own. They are the edges of a HostGraph in its local form. `ids`: what messages call the positions;
/// empty: their numbers. Throws InputError for positions that are not finite or beyond 1e9, for two atoms at
/// the same place (to a millionth of the cutoff), and for a cutoff that is not positive; ShapeError unless
/// there are three coordinates for each, num_owned is a number of them and there is an id for each or none.
[[nodiscard]] GhostEdges edges_with_ghosts(std::span<const double> positions, Index num_owned, double cutoff,
                                           std::span<const Index> ids = {});

/// A structure that is whole on this rank.
struct SampleStructure {
  Index id = 0;                       ///< number in the dataset
  std::span<const double> positions;  ///< 3 for each atom
  Cell cell;
  std::span<const Index> numbers{};  ///< what messages call the atoms; empty: their places in `positions`
  std::string name{};                ///< what messages call the structure; empty: "structure ID"
};

/// Local. Returns the graphs of structures, with edges as in NeighborList and, as field "vectors" of the
/// edges [edges, 3], x_u + t - x_v. PaiNN takes them as shifts, with positions that are all 0. Throws as
/// NeighborList, with a message that names the structure.
[[nodiscard]] GraphSamples neighbor_samples(std::span<const SampleStructure> structures, double cutoff);

}}  // namespace sar
