// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/nn/atoms/potentials/potential_labels.hpp>
#include <sar/nn/train/metrics.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// Throws InputError unless the nodes have the field "species" with one number each, of 0 or more.
const Array<Index>& species_of(const GraphSamples& structures) {
  const auto found = structures.nodes.integers.find("species");
  require<InputError>(found != structures.nodes.integers.end() && found->second.columns == 1,
                      "the structures have no field 'species' with one number for each atom");
  for (const Index species : found->second.values)
    require<InputError>(species >= 0, "an atom is of species ", species, ", expected 0 or more");
  return found->second.values;
}

void require_sizes(const GraphSamples& structures, std::size_t labels, const Tensor& forces) {
  const Index count = structures.num_graphs(), atoms = structures.num_nodes();
  require<ShapeError>(static_cast<Index>(labels) == count && forces.shape() == Shape{atoms, 3},
                      "there are labels of ", labels, " structures and forces of shape ", forces.shape(),
                      ", expected ", count, " structures and [", atoms, ", 3]");
}

}  // namespace

void subtract_zbl(const Zbl& zbl, const GraphSamples& structures, std::span<StructureLabels> labels,
                  Tensor& forces) {
  require_sizes(structures, labels.size(), forces);
  const auto found = structures.edges.tensors.find("vectors");
  require<InputError>(found != structures.edges.tensors.end(),
                      "the structures have no field 'vectors' of edges, as neighbor_samples() has it");
  const Tensor& vectors = found->second;
  const Array<Index>& species = species_of(structures);
  for (Index g = 0; g < structures.num_graphs(); ++g) {
    const Index begin = structures.edge_begin[g], end = structures.edge_begin[g + 1];
    const Index first = structures.node_begin[g];
    const Index* const kinds = species.data() + first;
    std::vector<std::array<Index, 2>> of_edges;
    for (Index k = begin; k < end; ++k)
      of_edges.push_back({kinds[structures.src[k]], kinds[structures.dst[k]]});
    const Tensor rows = zbl.edge_rows(vectors.slice_rows(begin, end), of_edges);
    StructureLabels& label = labels[static_cast<std::size_t>(g)];
    for (Index k = begin; k < end; ++k) {
      const real *row = rows.row(k - begin), *d = vectors.row(k);
      label.energy -= row[0];
      for (std::size_t a = 0; a < 3; ++a) {
        forces.row(first + structures.dst[k])[a] -= row[1 + a];
        for (std::size_t b = 0; label.volume > 0 && b < 3; ++b)
          label.stress[a][b] -= 0.5 * d[a] * row[1 + b] / label.volume;
      }
    }
  }
}

// The first rank adds up what all ranks have, in the order of their ids, so that the sums have the same order
// on any number of ranks.
PotentialFit fit_potential(const Communicator& comm, const GraphSamples& structures,
                           std::span<const StructureLabels> labels, const Tensor& forces,
                           std::span<const std::uint8_t> trained, Index num_species,
                           std::span<const double> given) {
  return comm.agree([&] {
    const CallScope scope(comm, CollectiveCall("fit_potential").equal("num_species", num_species));
    require_sizes(structures, labels.size(), forces);
    require<ShapeError>(trained.size() == labels.size(), "there are ", trained.size(), " flags for ",
                        labels.size(), " structures, expected one for each");
    require<InputError>(num_species >= 0, "there are ", num_species, " species");
    const Array<Index>& kinds = species_of(structures);
    const auto species = static_cast<std::size_t>(num_species);
    std::vector<Index> ids;
    std::vector<double> counts, energies;
    std::vector<real> components;
    for (Index g = 0; g < structures.num_graphs(); ++g) {
      if (trained[static_cast<std::size_t>(g)] == 0) continue;
      std::vector<double> of_structure(species, 0);
      for (Index i = structures.node_begin[g]; i < structures.node_begin[g + 1]; ++i) {
        require<InputError>(kinds[i] < num_species, "a structure has an atom of species ", kinds[i],
                            ", and there are ", num_species);
        of_structure[static_cast<std::size_t>(kinds[i])] += 1;
        const real* const force = forces.row(i);
        if (std::none_of(force, force + 3, [](real x) { return std::isnan(x); }))
          components.insert(components.end(), force, force + 3);
      }
      const double energy = labels[static_cast<std::size_t>(g)].energy;
      if (std::isnan(energy)) continue;
      ids.push_back(structures.ids[g]);
      energies.push_back(energy);
      counts.insert(counts.end(), of_structure.begin(), of_structure.end());
    }
    PotentialFit fit;
    ids = comm.all_gather(std::span<const Index>(ids));
    counts = comm.all_gather(std::span<const double>(counts));
    energies = comm.all_gather(std::span<const double>(energies));
    std::vector<std::size_t> order(comm.rank() == 0 ? ids.size() : 0);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t s) { return ids[s]; });
    std::vector<double> sorted_counts, sorted_energies;
    for (const std::size_t s : order) {
      sorted_energies.push_back(energies[s]);
      const auto first = counts.begin() + static_cast<std::ptrdiff_t>(s * species);
      sorted_counts.insert(sorted_counts.end(), first, first + num_species);
    }
    if (!ids.empty())
      fit.shifts = fit_energy_shifts(comm, sorted_counts, sorted_energies, num_species, given);
    const Tensor rows = Tensor::borrow(components, {std::ssize(components), 1});
    const double scale =
        std::sqrt(3.0) * root_mean_squared_error(rows, Tensor::zeros(rows.shape()),
                                                 Array<std::uint8_t>(components.size(), 1), comm);
    if (scale > 0) fit.energy_scale = scale;  // without forces, it is NaN
    return fit;
  });
}
}}  // namespace sar
