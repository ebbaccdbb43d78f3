// SPDX-License-Identifier: MIT

/// The structures of --task potential, and their graphs.
#pragma once

#include "formats/atoms/atom_dataset.hpp"

#include <sar/models.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sar::tools {

/// The part of the data that a structure is in.
enum class DataPart { train, val, test, watch, none };

/// A file of structures.
struct PotentialFile : formats::AtomDataset {
  DataPart part = DataPart::train;  ///< of its structures, without a split
};

/// The structures of --task potential, which are the graphs of a SampleTask, too. A rank keeps the atoms of
/// its structures, and edges as far as --graph-memory allows. Edges that are not kept are made whenever a
/// batch selects their structure: they have the same bits.
struct PotentialTask {
  std::vector<PotentialFile> files;    ///< of --dataset, --valid-file, --test-file and --watch-file
  std::shared_ptr<Potential> initial;  ///< of --init-weights, with new species; null: none
  /// What the energy shifts learn of each structure of this rank: its labels without ZBL.
  std::vector<StructureLabels> labels;
  /// Ids and numbers of atoms of the structures of this rank, without edges and fields.
  std::shared_ptr<const GraphSamples> sizes;
  std::vector<Index> num_edges;  ///< of each structure of this rank

  /// Returns whether a training file has such labels, as &formats::AtomDataset::has_forces.
  [[nodiscard]] bool trains_on(bool formats::AtomDataset::*has_labels) const {
    return std::ranges::any_of(
        files, [&](const PotentialFile& file) { return file.part == DataPart::train && file.*has_labels; });
  }
  /// Returns a structure of this rank.
  [[nodiscard]] const formats::AtomStructure& structure(Index structure) const {
    const auto [file, number] = place(structure);
    return files[file].structures[number];
  }
  /// Returns the file of a structure of this rank, and its place among the structures of the rank there.
  [[nodiscard]] std::pair<std::size_t, std::size_t> place(Index structure) const {
    std::size_t file = 0;
    while (structure >= std::ssize(files[file].structures)) structure -= std::ssize(files[file++].structures);
    return {file, static_cast<std::size_t>(structure)};
  }

  /// Local. Makes the graph of each structure of the files once, for a potential with this description.
  /// Calls visit(structure, graph) and sets labels and sizes. Keeps the edges of the first structures, up to
  /// so many bytes. Throws InputError as neighbor_samples(), and for a species that the potential does not
  /// know.
  void make_graphs(const ModelDescription& model, Index kept_bytes,
                   FunctionRef<void(Index, const GraphSamples&)> visit);
  /// Local. Returns the graphs of structures of this rank, in this order: neighbor_samples(), with the number
  /// of each atom's species as field "species" of the nodes, and as field "forces" what the network learns:
  /// the labels without ZBL, NaN where there are none.
  [[nodiscard]] GraphSamples select(std::span<const Index> structures) const;
  /// Local. Returns the same of all structures of this rank without edges.
  [[nodiscard]] GraphSamples all_atoms() const;
  /// Returns the number of an element among the species of the potential.
  [[nodiscard]] Index species_of(std::uint8_t element) const { return species_[element]; }

 private:
  struct Edges {
    Array<local_index> src, dst;
    Tensor vectors;

    [[nodiscard]] Index bytes() const;
  };
  [[nodiscard]] Edges make_edges(Index structure) const;
  [[nodiscard]] GraphSamples atoms_of(std::span<const Index> structures) const;
  [[nodiscard]] GraphSamples with_edges(GraphSamples atoms, std::span<const Edges* const> edges,
                                        std::span<StructureLabels> labels_of) const;

  double cutoff_ = 0;
  std::optional<Zbl> zbl_;
  std::array<Index, 256> species_{};  // by atomic number; -1: none
  std::vector<Edges> kept_;           // of the first structures
};

}  // namespace sar::tools
