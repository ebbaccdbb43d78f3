// SPDX-License-Identifier: MIT
#include "train/atoms/potential_steps.hpp"

#include "program.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sar::tools {
namespace {

/// Of each species, over all ranks.
struct SpeciesCounts {
  std::vector<Index> trained;              ///< training structures with a label that have the species
  std::vector<Index> atoms_with_energies;  ///< atoms of training structures with an energy
};

/// Collective.
SpeciesCounts count_species(const Communicator& comm, const TrainingGraph& loaded, Index kinds) {
  SpeciesCounts counts;
  for (std::vector<Index>* of : {&counts.trained, &counts.atoms_with_energies})
    of->assign(static_cast<std::size_t>(kinds), 0);
  const PotentialTask& task = *loaded.potential;
  for (Index g = 0; g < task.sizes->num_graphs(); ++g) {
    if (loaded.data.train_mask[g] == 0 || std::isnan(loaded.data.targets.data()[g])) continue;
    const formats::AtomStructure& atoms = task.structure(g);
    std::set<std::size_t> species;
    for (const std::uint8_t element : atoms.elements) {
      species.insert(static_cast<std::size_t>(task.species_of(element)));
      if (atoms.has_energy())
        ++counts.atoms_with_energies[static_cast<std::size_t>(task.species_of(element))];
    }
    for (const std::size_t k : species) ++counts.trained[k];
  }
  for (std::vector<Index>* of : {&counts.trained, &counts.atoms_with_energies})
    comm.all_reduce(std::span<Index>(*of));
  return counts;
}

/// Refuses a species, from the number `first` on, that only structures have which nobody trains on: its atoms
/// would have any energy. All ranks throw the same.
void require_trained(const TrainingGraph& loaded, const TrainOptions& o,
                     const std::vector<std::string>& species, std::size_t first,
                     const std::vector<Index>& trained) {
  for (std::size_t k = first; k < species.size(); ++k) {
    if (trained[k] > 0) continue;
    const auto file = std::ranges::find_if(loaded.potential->files, [&](const PotentialFile& each) {
      return std::ranges::find(each.species, species[k]) != each.species.end();
    });
    require<InputError>(file != loaded.potential->files.end(), o.dataset,
                        ": no training structure with a label ", "has atoms of ", species[k],
                        ", expected some for --new-species ", species[k]);
    throw InputError(
        concat(file->path, ": has atoms of ", species[k],
               ", which no training structure with a label has, expected such structures among ",
               o.draw_split ? "them (another --split-seed, or more of them)" : concat("those of ", o.dataset),
               ", or a file without ", species[k]));
  }
}

/// Root of the mean square, per atom, of what the energies of the training structures are without those of
/// their atoms. Collective.
double energy_deviation(const Communicator& comm, const TrainingGraph& loaded,
                        std::span<const StructureLabels> labels, const std::vector<double>& shifts) {
  const PotentialTask& task = *loaded.potential;
  double sums[] = {0, 0};
  for (Index g = 0; g < task.sizes->num_graphs(); ++g) {
    double energy = labels[static_cast<std::size_t>(g)].energy;
    if (loaded.data.train_mask[g] == 0 || std::isnan(energy)) continue;
    const formats::AtomStructure& atoms = task.structure(g);
    for (const std::uint8_t element : atoms.elements)
      energy -= shifts[static_cast<std::size_t>(task.species_of(element))];
    sums[0] += std::pow(energy / static_cast<double>(atoms.num_atoms()), 2);
    sums[1] += 1;
  }
  comm.all_reduce(std::span<double>(sums));
  return std::sqrt(sums[0] / sums[1]);
}

/// The mean number of neighbors of the atoms of the training structures, or 1 if they have none. Collective.
double mean_neighbors(const Communicator& comm, const TrainingGraph& loaded) {
  const PotentialTask& task = *loaded.potential;
  Index edges = 0, atoms = 0;
  for (Index g = 0; g < task.sizes->num_graphs(); ++g) {
    if (loaded.data.train_mask[g] == 0) continue;
    edges += task.num_edges[static_cast<std::size_t>(g)];
    atoms += task.sizes->num_nodes(g);
  }
  edges = comm.all_reduce(edges);
  return edges == 0 ? 1 : static_cast<double>(edges) / static_cast<double>(comm.all_reduce(atoms));
}

std::string text_of_shifts(const std::vector<std::string>& species, const std::vector<double>& shifts,
                           const std::vector<Index>& which) {
  std::vector<std::string> each;
  for (const Index k : which)
    each.push_back(concat(species[static_cast<std::size_t>(k)], " ", shifts[static_cast<std::size_t>(k)]));
  return joined(each);
}

/// Warns of energies of atoms that the training structures do not determine.
void warn_of_shifts(const Communicator& comm, const TrainOptions& o, const ModelDescription& d,
                    const EnergyShifts& fitted, const std::vector<Index>& atoms) {
  std::vector<Index> missing, fixed;
  for (const Index k : fitted.undetermined)
    (atoms[static_cast<std::size_t>(k)] > 0 ? fixed : missing).push_back(k);
  const auto names = [&](const std::vector<Index>& which) {
    return joined(which, [&](Index k) { return d.species[static_cast<std::size_t>(k)]; });
  };
  if (!fixed.empty())
    say(comm, "WARNING: ", o.dataset, ": the energies of single atoms of ", names(fixed),
        " cannot be told apart, because the training structures have them in fixed proportions only: ",
        "energy shifts ", text_of_shifts(d.species, fitted.energies, fixed),
        " are the least squares of the least norm. Energies of other proportions mean nothing");
  if (!missing.empty())
    say(comm, "WARNING: ", o.dataset, ": no training structure with an energy has atoms of ", names(missing),
        ": the energy shifts are 0, and energies with these atoms mean nothing");
}

/// The labels of the training structures without what the potential of --init-weights says, to which energies
/// of single atoms are fitted. Of many structures, some, unless `all` are asked for. Collective.
std::vector<StructureLabels> without_prediction(const TrainingGraph& loaded, const TrainOptions& o,
                                                bool all) {
  constexpr Index enough = 500;
  const GraphSamples& samples = *loaded.potential->sizes;
  const auto has_energy = [&](Index g) {
    return loaded.data.train_mask[g] != 0 && loaded.potential->structure(g).has_energy();
  };
  const Index stride = all ? 1 : std::max<Index>(1, loaded.data.book.num_nodes() / enough);
  Array<Index> wanted;
  for (Index g = 0; g < samples.num_graphs(); ++g)
    if (samples.ids[g] % stride == 0 && has_energy(g)) wanted.push_back(g);
  const std::vector<formats::AtomStructure> found =
      predict_structures(loaded, o, *loaded.potential->initial, wanted);
  std::vector<StructureLabels> rest(loaded.potential->labels.size());
  for (const Index g : wanted)
    rest[static_cast<std::size_t>(g)].energy =
        loaded.potential->structure(g).energy - found[static_cast<std::size_t>(g)].energy;
  return rest;
}

/// The energies of training structures that are one atom without neighbors, for each species; NaN: there is
/// none. All ranks throw the same for two that differ. Collective.
std::vector<double> isolated_energies(const Communicator& comm, const TrainingGraph& loaded,
                                      const std::vector<std::string>& species) {
  const PotentialTask& task = *loaded.potential;
  struct IsolatedAtom {
    Index id, species;
    double energy;
  };
  std::vector<IsolatedAtom> all;
  comm.agree([&] {
    for (Index g = 0; g < task.sizes->num_graphs(); ++g) {
      const double energy = task.labels[static_cast<std::size_t>(g)].energy;
      if (task.sizes->num_nodes(g) != 1 || std::isnan(energy) || loaded.data.train_mask[g] == 0 ||
          task.select(std::span(&g, 1)).num_edges() > 0)
        continue;
      all.push_back({task.sizes->ids[g], task.species_of(task.structure(g).elements[0]), energy});
    }
  });
  all = comm.all_gather(std::span<const IsolatedAtom>(all));
  std::ranges::sort(all, {}, &IsolatedAtom::id);  // the first one counts, on any number of ranks
  std::vector<double> energies(species.size(), formats::no_label);
  constexpr double same = 1e-3;
  for (const IsolatedAtom& atom : all) {
    double& energy = energies[static_cast<std::size_t>(atom.species)];
    require<InputError>(std::isnan(energy) || std::abs(energy - atom.energy) < same,
                        "--energy-shifts isolated: structures of one atom of ",
                        species[static_cast<std::size_t>(atom.species)], " have the energies ", energy,
                        " and ", atom.energy, ", expected one energy");
    if (std::isnan(energy)) energy = atom.energy;
  }
  return energies;
}

/// What is to be fitted, and where the energy of each species comes from.
struct Shifts {
  std::vector<double> given;         ///< NaN: it is fitted
  std::vector<std::string> sources;  ///< "fitted", "kept", ...
};

/// Collective.
Shifts choose_shifts(const Communicator& comm, const TrainingGraph& loaded, const TrainOptions& o,
                     const ModelDescription& d) {
  const PotentialOptions& p = o.task.potential;
  const std::size_t kinds = d.species.size(), known = kinds - p.new_species.size();
  const bool is_kept =
      p.shifts == EnergySource::keep || (p.shifts == EnergySource::automatic && loaded.potential->initial);
  Shifts result{.given = std::vector<double>(kinds, formats::no_label),
                .sources = std::vector<std::string>(kinds, "fitted")};
  const auto set = [&](std::size_t k, double energy, const char* source) {
    result.given[k] = energy;
    result.sources[k] = source;
  };
  for (std::size_t k = 0; is_kept && k < known; ++k) set(k, d.energy_shifts[k], "kept");
  for (const auto& [name, energy] : p.given_shifts) {
    const auto found = std::ranges::find(d.species, name);
    require<InputError>(found != d.species.end(), "--energy-shifts: there are no atoms of ", name,
                        ", expected energies of ", joined(d.species));
    set(static_cast<std::size_t>(found - d.species.begin()), energy, "given");
  }
  if (p.shifts != EnergySource::isolated) return result;
  const std::vector<double> isolated = isolated_energies(comm, loaded, d.species);
  for (std::size_t k = 0; k < kinds; ++k) {
    require<InputError>(!std::isnan(isolated[k]), "--energy-shifts isolated: ", o.dataset,
                        ": no training structure with an energy is a single atom of ", d.species[k],
                        " without neighbors, expected one of each species, or --energy-shifts fit");
    set(k, isolated[k], "of an isolated atom");
  }
  return result;
}

/// Warns if the energies of the training structures have another zero than the potential of --init-weights.
/// `rest`: without what it says; `fitted`: the energies of single atoms that remove most of it. Collective.
void warn_of_other_energies(const Communicator& comm, const TrainOptions& o, const ModelDescription& d,
                            const TrainingGraph& loaded, std::span<const StructureLabels> rest,
                            const EnergyShifts& fitted) {
  constexpr double least = 0.1, factor = 3;  // in eV
  const double before = energy_deviation(comm, loaded, rest, std::vector<double>(d.species.size(), 0));
  const double after = energy_deviation(comm, loaded, rest, fitted.energies);
  if (before < std::max(least, factor * after)) return;
  std::vector<double> energies = d.energy_shifts;
  std::vector<Index> all;
  for (std::size_t k = 0; k < energies.size(); ++k) {
    energies[k] += fitted.energies[k];
    all.push_back(static_cast<Index>(k));
  }
  say(comm, "WARNING: ", o.dataset, ": energies differ by ", before, " eV an atom from those of ",
      o.init_weights, ", whose energies of single atoms (", text_of_shifts(d.species, d.energy_shifts, all),
      ") stay as they are; fitted to ", o.dataset, " (", text_of_shifts(d.species, energies, all),
      ") they leave ", after,
      ". Expected energies with the same zero as those that the potential was trained ",
      "on, or --energy-shifts fit");
}

}  // namespace

ModelDescription describe_potential(const Communicator& comm, const TrainingGraph& loaded,
                                    const TrainOptions& o) {
  const PotentialOptions& p = o.task.potential;
  const PotentialTask& task = *loaded.potential;
  const bool is_given = task.initial != nullptr;
  ModelDescription d = o.model;
  const auto kinds = static_cast<Index>(d.species.size());
  const SpeciesCounts counts = count_species(comm, loaded, kinds);
  if (o.epochs > 0)
    require_trained(loaded, o, d.species, is_given ? d.species.size() - p.new_species.size() : 0,
                    counts.trained);
  if (!is_given && d.type == "mace" && !d.density) d.neighbors = mean_neighbors(comm, loaded);
  if (!task.trains_on(&formats::AtomDataset::has_energies)) return d;
  const Shifts chosen = choose_shifts(comm, loaded, o, d);
  const GraphSamples atoms = comm.agree([&] { return task.all_atoms(); });
  const auto fit = [&](std::span<const StructureLabels> labels, std::span<const double> given) {
    return fit_potential(comm, atoms, labels, atoms.nodes.tensors.at("forces"), loaded.data.train_mask, kinds,
                         given);
  };
  if (!is_given) {
    const auto [shifts, scale] = fit(task.labels, chosen.given);
    require<InputError>(!shifts.energies.empty(), o.dataset,
                        ": no training structure has an energy, expected one at least");
    warn_of_shifts(comm, o, d, shifts, counts.atoms_with_energies);
    d.energy_shifts = shifts.energies;
    d.energy_scales.assign(d.species.size(), p.scale == EnergySource::given ? p.given_scale : scale);
  } else {
    const bool fits = std::ranges::any_of(chosen.given, [](double b) { return std::isnan(b); });
    const std::vector<StructureLabels> rest = without_prediction(loaded, o, fits);
    const auto [other, scale] = fit(rest, {});
    if (!other.energies.empty() && p.shifts == EnergySource::automatic && !fits)
      warn_of_other_energies(comm, o, d, loaded, rest, other);
    std::vector<double> given = chosen.given;  // what is added to the energies of the file
    for (std::size_t k = 0; k < given.size(); ++k) given[k] -= d.energy_shifts[k];
    const EnergyShifts added = fit(rest, given).shifts;
    for (std::size_t k = 0; k < d.energy_shifts.size(); ++k) {
      if (!std::isnan(chosen.given[k]))
        d.energy_shifts[k] = chosen.given[k];
      else if (!added.energies.empty())
        d.energy_shifts[k] += added.energies[k];
    }
    if (fits) warn_of_shifts(comm, o, d, {d.energy_shifts, added.undetermined}, counts.atoms_with_energies);
    if (p.scale == EnergySource::fit || p.scale == EnergySource::given)
      d.energy_scales.assign(d.species.size(), p.scale == EnergySource::fit ? scale : p.given_scale);
    if (o.epochs > 0 && p.scale != EnergySource::fit && p.scale != EnergySource::given)
      say(comm, o.init_weights, ": the scale of energies is kept");
  }
  if (!is_given && p.shifts == EnergySource::automatic) return d;
  std::vector<std::string> each;
  for (std::size_t k = 0; k < d.species.size(); ++k)
    each.push_back(concat(d.species[k], " ", d.energy_shifts[k], " (", chosen.sources[k], ")"));
  if (o.epochs > 0) say(comm, o.dataset, ": energies of single atoms: ", joined(each));
  return d;
}

Potential start_potential(const ModelDescription& description, Potential* initial, Generator& gen) {
  if (initial != nullptr && initial->has_members()) {
    const ModelDescription& d = initial->description();
    require<InputError>(
        description.energy_shifts == d.energy_shifts && description.energy_scales == d.energy_scales,
        "--energy-shifts or --energy-scale for a committee of potentials, expected keep");
    return std::move(*initial);
  }
  Potential result(description, gen);
  if (initial == nullptr) return result;
  // the network's energies stay as they are if its last layer takes up another scale
  const std::vector<double>&scales = description.energy_scales,
        &before = initial->description().energy_scales;
  const bool is_scaled = scales != before;
  require<InputError>(
      !is_scaled || std::ranges::equal(before, std::vector<double>(before.size(), before[0])),
      "--energy-scale: the potential of --init-weights has a scale for each species, expected ",
      "one for all, or --energy-scale keep");
  for (const NamedParameter& each : initial->network().named_parameters()) {
    Tensor value = each.parameter.value();
    if (is_scaled && initial->network().is_of_last_layer(each.name)) {
      value = value.clone();
      for (real& x : value.values()) x *= static_cast<real>(before[0] / scales[0]);
    }
    result.network().set_parameter(each.name, value);
  }
  return result;
}

}  // namespace sar::tools
