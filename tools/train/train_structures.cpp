// SPDX-License-Identifier: MIT
#include "train_structures.hpp"

#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/nn/atoms/potentials/potential.hpp>

#include <limits>
#include <string>

namespace sar::tools {

Index PotentialTask::Edges::bytes() const {
  return static_cast<Index>((src.size() + dst.size()) * sizeof(local_index) + vectors.bytes());
}

void PotentialTask::make_graphs(const ModelDescription& model, Index kept_bytes,
                                FunctionRef<void(Index, const GraphSamples&)> visit) {
  cutoff_ = model.cutoff;
  zbl_ = make_zbl(model);
  species_.fill(-1);
  for (std::size_t k = 0; k < model.species.size(); ++k)
    species_[static_cast<std::size_t>(atomic_number(model.species[k]))] = static_cast<Index>(k);
  auto structures = std::make_shared<GraphSamples>();
  Index first = 0;
  for (const formats::AtomDataset& file : files) {
    for (const std::string& name : file.species)
      require<InputError>(std::ranges::find(model.species, name) != model.species.end(), file.path,
                          ": has an atom of ", name, ", which the potential does not know, expected ",
                          joined(model.species), ", or --new-species");
    for (std::size_t s = 0; s < file.structures.size(); ++s) {
      const formats::AtomStructure& atoms = file.structures[s];
      structures->add(first + file.first + static_cast<Index>(s), atoms.num_atoms(), {}, {});
      labels.push_back({atoms.energy, atoms.cell.volume(), atoms.stress});
    }
    first += file.count;
  }
  sizes = structures;
  bool keeps = true;
  for (Index s = 0; s < sizes->num_graphs(); ++s) {
    Edges edges = make_edges(s);
    const Edges* const of_one[] = {&edges};
    visit(s, with_edges(atoms_of(std::span(&s, 1)), of_one,
                        std::span(labels).subspan(static_cast<std::size_t>(s), 1)));
    kept_bytes -= edges.bytes();
    keeps = keeps && kept_bytes >= 0;
    if (keeps) kept_.push_back(std::move(edges));
  }
}

PotentialTask::Edges PotentialTask::make_edges(Index structure) const {
  const auto [file, place_in_file] = place(structure);
  const formats::AtomDataset& of = files[file];
  const formats::AtomStructure& atoms = of.structures[place_in_file];
  const std::vector<Index> numbers(atoms.numbers.begin(), atoms.numbers.end());
  const SampleStructure sample{
      .id = 0,
      .positions = atoms.positions,
      .cell = atoms.cell,
      .numbers = numbers,
      .name =
          concat(of.path, ": structure ", of.first + static_cast<Index>(place_in_file), " (counted from 0)")};
  GraphSamples graph = neighbor_samples(std::span(&sample, 1), cutoff_);
  graph.src.shrink_to_fit();
  graph.dst.shrink_to_fit();
  return {std::move(graph.src), std::move(graph.dst), graph.edges.tensors.at("vectors")};
}

GraphSamples PotentialTask::atoms_of(std::span<const Index> structures) const {
  GraphSamples atoms = sizes->select(structures);
  IntegerRows species;
  Tensor forces = Tensor::full({atoms.num_nodes(), 3}, std::numeric_limits<real>::quiet_NaN());
  for (std::size_t k = 0; k < structures.size(); ++k) {
    const formats::AtomStructure& of = structure(structures[k]);
    for (const std::uint8_t element : of.elements) species.values.push_back(species_of(element));
    std::ranges::transform(of.forces, forces.row(atoms.node_begin[static_cast<Index>(k)]),
                           [](double x) { return static_cast<real>(x); });
  }
  atoms.nodes.integers["species"] = std::move(species);
  atoms.nodes.tensors["forces"] = std::move(forces);
  return atoms;
}

GraphSamples PotentialTask::with_edges(GraphSamples atoms, std::span<const Edges* const> edges,
                                       std::span<StructureLabels> labels_of) const {
  for (std::size_t k = 0; k < edges.size(); ++k)
    atoms.edge_begin[static_cast<Index>(k) + 1] =
        atoms.edge_begin[static_cast<Index>(k)] + std::ssize(edges[k]->src);
  atoms.src.reserve(static_cast<std::size_t>(atoms.num_edges()));
  atoms.dst.reserve(static_cast<std::size_t>(atoms.num_edges()));
  Tensor vectors({atoms.num_edges(), 3});
  real* to = vectors.data();
  for (const Edges* each : edges) {
    atoms.src.insert(atoms.src.end(), each->src.begin(), each->src.end());
    atoms.dst.insert(atoms.dst.end(), each->dst.begin(), each->dst.end());
    to = std::copy_n(each->vectors.data(), each->vectors.size(), to);
  }
  atoms.edges.tensors["vectors"] = std::move(vectors);
  if (zbl_) subtract_zbl(*zbl_, atoms, labels_of, atoms.nodes.tensors.at("forces"));
  return atoms;
}

GraphSamples PotentialTask::select(std::span<const Index> structures) const {
  std::vector<Edges> made;
  made.reserve(structures.size());  // pointers stay valid
  std::vector<const Edges*> edges;
  for (const Index s : structures)
    edges.push_back(s < std::ssize(kept_) ? &kept_[static_cast<std::size_t>(s)]
                                          : &made.emplace_back(make_edges(s)));
  std::vector<StructureLabels> unused(structures.size());
  return with_edges(atoms_of(structures), edges, unused);
}

GraphSamples PotentialTask::all_atoms() const {
  const Array<Index> all = consecutive(0, sizes->num_graphs());
  GraphSamples atoms = atoms_of(all);
  Tensor& forces = atoms.nodes.tensors.at("forces");
  for (std::size_t s = 0; zbl_ && s < all.size(); ++s) {
    const Tensor learned = select(std::span(&all[s], 1)).nodes.tensors.at("forces");
    std::ranges::copy(learned.values(), forces.row(atoms.node_begin[static_cast<Index>(s)]));
  }
  return atoms;
}

}  // namespace sar::tools
