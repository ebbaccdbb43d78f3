// SPDX-License-Identifier: MIT
#include "train/atoms/structure_checks.hpp"

#include "formats/node_keys.hpp"
#include "program.hpp"
#include "train/atoms/structure_errors.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>

namespace sar::tools {
namespace {

using formats::AtomStructure;

constexpr double inf = std::numeric_limits<double>::infinity();

// ---- differences of energies

/// Adds a pair of structures to the fits, if no atom has moved far.
void add_pair(const AtomStructure& a, const AtomStructure& b, DifferenceFits& fits) {
  constexpr double most_moved = 0.2, most_strain = 0.02, least_strain = 1e-6;
  if (a.elements != b.elements || a.cell.periodic != b.cell.periodic || std::isnan(a.energy) ||
      std::isnan(b.energy))
    return;
  Matrix3 strain{};
  double largest_strain = 0;
  const double volume = a.cell.volume();
  const bool has_cell = volume > 0 && b.cell.volume() > 0;
  if (has_cell && a.cell.vectors != b.cell.vectors) {
    Cell whole = a.cell;
    whole.periodic = {true, true, true};
    const CellBasis basis(whole);
    for (std::size_t j = 0; j < 3;
         ++j) {  // rows of the cells: B = A (1 + e), so that column j of e solves A e = B - A
      Vector3 unit{};
      unit[j] = 1;
      const Vector3 f = basis.coordinates(unit);  // unit = sum_k f_k A_k: the row j of the inverse of A
      for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t k = 0; k < 3; ++k) strain[j][c] += f[k] * b.cell.vectors[k][c];
        strain[j][c] -= j == c ? 1 : 0;
        largest_strain = std::max(largest_strain, std::abs(strain[j][c]));
      }
    }
  }
  if (!(largest_strain < most_strain)) return;
  const bool is_strained = largest_strain > least_strain;
  const CellBasis basis(has_cell ? b.cell : Cell{});
  double by_forces = 0;
  const bool has_forces = !a.forces.empty() && !b.forces.empty();
  for (std::size_t i = 0; i < a.positions.size(); i += 3) {
    Vector3 moved{};
    for (std::size_t c = 0; c < 3; ++c) {
      double carried = a.positions[i + c];
      for (std::size_t j = 0; j < 3; ++j) carried += a.positions[i + j] * strain[j][c];
      moved[c] = b.positions[i + c] - carried;
    }
    moved = basis.without_translation(moved);
    double squares = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      squares += moved[c] * moved[c];
      if (has_forces) by_forces -= 0.5 * (a.forces[i + c] + b.forces[i + c]) * moved[c];
    }
    if (!(squares < most_moved * most_moved)) return;
  }
  const double difference = b.energy - a.energy;
  if (!is_strained) {
    if (has_forces) fits.forces.add(by_forces, difference);
    return;
  }
  double by_stress = 0;
  for (std::size_t j = 0; j < 3; ++j)
    for (std::size_t c = 0; c < 3; ++c)
      by_stress +=
          0.5 * (a.stress[j][c] + b.stress[j][c]) * strain[j][c] * std::sqrt(volume * b.cell.volume());
  if (!std::isnan(by_stress)) fits.stresses.add(by_stress, difference - by_forces);
}

/// Of each file, the first structure behind those of this rank; one without atoms if there is none.
/// Collective.
std::vector<AtomStructure> next_structures(const Communicator& comm, const PotentialTask& task) {
  std::vector<double> mine;
  for (std::size_t f = 0; f < task.files.size(); ++f) {
    if (task.files[f].structures.empty()) continue;
    const AtomStructure& of = task.files[f].structures[0];
    mine.insert(mine.end(), {static_cast<double>(comm.rank()), static_cast<double>(f),
                             static_cast<double>(of.num_atoms()), of.forces.empty() ? 0. : 1., of.energy});
    for (const Matrix3* matrix : {&of.cell.vectors, &of.stress})
      for (const Vector3& row : *matrix) mine.insert(mine.end(), row.begin(), row.end());
    for (const bool wraps : of.cell.periodic) mine.push_back(wraps ? 1 : 0);
    mine.insert(mine.end(), of.elements.begin(), of.elements.end());
    mine.insert(mine.end(), of.positions.begin(), of.positions.end());
    mine.insert(mine.end(), of.forces.begin(), of.forces.end());
  }
  const std::vector<double> all = comm.all_gather(std::span<const double>(mine));
  std::vector<AtomStructure> next(task.files.size());
  for (std::size_t at = 0; at < all.size();) {
    const auto take = [&] { return all[at++]; };
    const double rank = take();
    AtomStructure& of_file = next[static_cast<std::size_t>(take())];
    const auto atoms = static_cast<std::size_t>(take());
    const bool has_forces = take() != 0;
    AtomStructure of;
    of.energy = take();
    for (Matrix3* matrix : {&of.cell.vectors, &of.stress})
      for (Vector3& row : *matrix)
        for (double& x : row) x = take();
    for (bool& wraps : of.cell.periodic) wraps = take() != 0;
    for (std::size_t i = 0; i < atoms; ++i) of.elements.push_back(static_cast<std::uint8_t>(take()));
    for (std::size_t i = 0; i < 3 * atoms; ++i) of.positions.push_back(take());
    for (std::size_t i = 0; has_forces && i < 3 * atoms; ++i) of.forces.push_back(take());
    if (rank > comm.rank() && of_file.elements.empty()) of_file = std::move(of);
  }
  return next;
}

// ---- each structure by itself

/// A hash of what a structure is, without labels and keys, in the order of the file and to a millionth.
std::uint64_t geometry_hash(const AtomStructure& of) {
  std::string text;
  const auto add = [&](double x) { text += concat(std::llround(std::clamp(x, -1e9, 1e9) * 1e6), ' '); };
  for (const Vector3& row : of.cell.vectors) std::ranges::for_each(row, add);
  for (const bool wraps : of.cell.periodic) text += wraps ? 'T' : 'F';
  for (const std::size_t i : formats::file_order(of)) {
    text += chemical_symbol(of.elements[i]);
    for (std::size_t c = 0; c < 3; ++c) add(of.positions[3 * i + c]);
  }
  return formats::hash_of(text);
}

/// Sets the energies of structures, an atom, without those of single atoms that fit all of them best.
/// Collective.
void set_energies(const Communicator& comm, const PotentialTask& task, Index num_species,
                  std::vector<StructureFacts>& mine) {
  std::vector<StructureLabels> labels;
  for (Index g = 0; g < std::ssize(mine); ++g) labels.push_back({.energy = task.structure(g).energy});
  const GraphSamples atoms = comm.agree([&] { return task.all_atoms(); });
  const std::vector<std::uint8_t> all(mine.size(), 1);
  const Tensor no_forces = Tensor::full({atoms.num_nodes(), 3}, std::numeric_limits<real>::quiet_NaN());
  const std::vector<double> shifts =
      fit_potential(comm, atoms, labels, no_forces, all, num_species).shifts.energies;
  for (Index g = 0; g < std::ssize(mine) && !shifts.empty(); ++g) {
    const AtomStructure& of = task.structure(g);
    double energy = of.energy;
    for (const std::uint8_t element : of.elements)
      energy -= shifts[static_cast<std::size_t>(task.species_of(element))];
    mine[static_cast<std::size_t>(g)].energy = energy / static_cast<double>(of.num_atoms());
  }
}

// ---- what is found, on one rank

/// Prints how many neighbors atoms have and how near they are, and warns of numbers that a file or a cutoff
/// in another unit has.
void tell_neighbors(const Communicator& comm, const std::string& path, double cutoff,
                    std::span<const StructureFacts> all) {
  constexpr double few = 0.5, many = 500;  // a distance and a number of neighbors, in Angstrom
  Index atoms = 0, edges = 0, most = 0, molecules = 0, without_pair = 0;
  double least = inf;
  for (const StructureFacts& each : all) {
    atoms += each.atoms;
    edges += each.edges;
    most = std::max(most, each.most);
    least = std::min(least, each.least);
    molecules += each.atoms > 1 ? 1 : 0;
    without_pair += each.atoms > 1 && each.edges == 0 ? 1 : 0;
  }
  const double neighbors = static_cast<double>(edges) / static_cast<double>(atoms);
  const std::string found =
      concat(neighbors, " neighbors an atom within the cutoff ", cutoff, ", at most ", most);
  say(comm, path, ": ", found, edges > 0 ? concat(", the least distance is ", least) : "",
      without_pair > 0 ? concat("; ", without_pair, " of ", molecules,
                                " structures of several atoms have no pair within the cutoff")
                       : "");
  const char* const units = ": are the positions or the cutoff in another unit than Angstrom?";
  if (edges == 0 || 2 * without_pair > molecules)
    say(comm, "WARNING: ", path, ": ", edges == 0 ? "no structure has" : "most structures do not have",
        " two atoms within the cutoff ", cutoff, units);
  if (neighbors > many) say(comm, "WARNING: ", path, ": ", found, units);
  if (least < few) say(comm, "WARNING: ", path, ": the least distance of two atoms is ", least, units);
}

/// Up to three examples, "structure 7 (12.1), structure 9 (8)", of the largest `size` first, and how many
/// there are.
template <class Size>
std::string examples(std::vector<const StructureFacts*> found, const Size& size) {
  constexpr std::size_t most = 3;
  std::ranges::stable_sort(found, std::greater(),
                           [&](const StructureFacts* each) { return std::abs(size(*each)); });
  std::string text;
  for (std::size_t k = 0; k < std::min(most, found.size()); ++k) {
    text += concat(k == 0 ? "" : ", ", "structure ", found[k]->number, " (",
                   formatted("%.4g", size(*found[k])), ")");
  }
  return text + (found.size() > most ? ", ..." : "");
}

double median(std::vector<double> values) {
  if (values.empty()) return formats::no_label;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// How many times too large labels in another unit are.
struct UnitFactor {
  double factor;
  const char* meaning;
};
constexpr UnitFactor units_of_forces[] = {{-1, "they may be gradients, not forces"},
                                          {1 / 27.2114, "energies or forces may be in hartree"},
                                          {27.2114, "energies or forces may be in hartree"},
                                          {1 / 51.4221, "forces may be in hartree/bohr"},
                                          {51.4221, "energies may be in hartree"},
                                          {1 / 25.7110, "forces may be in rydberg/bohr"},
                                          {0.529177, "positions or forces may be in bohr"},
                                          {1.889726, "positions or forces may be in bohr"},
                                          {23.0605, "forces may be in kcal/mol/A"},
                                          {1 / 23.0605, "energies may be in kcal/mol"},
                                          {96.4853, "forces may be in kJ/mol/A"},
                                          {1 / 96.4853, "energies may be in kJ/mol"},
                                          {10, "positions may be in nm"},
                                          {0.1, "positions or forces may be in nm"}};
constexpr UnitFactor units_of_stresses[] = {{-1, "they have the sign of a pressure"},
                                            {160.2177, "they may be in GPa"},
                                            {-160.2177, "they may be pressures in GPa"},
                                            {1602.177, "they may be in kbar"},
                                            {-1602.177, "they may be pressures in kbar"},
                                            {1602177, "they may be in bar"},
                                            {-1602177, "they may be pressures in bar"},
                                            {1 / 27.2114, "energies or stresses may be in hartree"},
                                            {27.2114, "energies or stresses may be in hartree"}};

/// Returns what is wrong with labels by differences of energies; empty: nothing, or too little is known.
std::string wrong_labels(const DifferenceFit& fit, const char* what, std::span<const UnitFactor> units) {
  constexpr double least_pairs = 3, least_share = 0.8, tolerance = 0.3;
  if (fit.pairs < least_pairs || fit.xx == 0 || fit.yy == 0) return "";
  const double slope = fit.xy / fit.xx, share = fit.xy * fit.xy / (fit.xx * fit.yy), factor = 1 / slope;
  if (share < least_share || std::abs(factor - 1) < tolerance) return "";
  std::string meaning;
  for (const UnitFactor& unit : units)
    if (std::abs(factor / unit.factor - 1) < tolerance / 2) meaning = concat(": ", unit.meaning);
  return concat(what, " are ", formatted("%.3g", factor), " times what energies say, by ", fit.pairs,
                " pairs of successive structures", meaning);
}

/// All findings, a sentence each with the file.
std::vector<std::string> findings(const PotentialTask& task, const std::vector<StructureFacts>& all,
                                  const std::vector<DifferenceFits>& fits) {
  std::vector<std::string> found;
  const auto path = [&](Index file) { return task.files[static_cast<std::size_t>(file)].path; };
  std::map<std::uint64_t, const StructureFacts*> first;
  std::map<std::pair<Index, Index>, std::vector<std::pair<Index, Index>>>
      repeated;  // of two files: pairs of structures
  for (const StructureFacts& each : all) {
    const auto [at, is_new] = first.emplace(each.hash, &each);
    if (!is_new) repeated[{each.file, at->second->file}].emplace_back(each.number, at->second->number);
  }
  for (const auto& [files, pairs] : repeated) {
    std::string text;
    for (std::size_t k = 0; k < std::min<std::size_t>(3, pairs.size()); ++k)
      text += concat(k == 0 ? "" : ", ", pairs[k].first, " is ", pairs[k].second);
    found.push_back(
        concat(path(files.first), ": ", pairs.size(), pairs.size() == 1 ? " structure is" : " structures are",
               files.first == files.second ? " repeated" : concat(" in ", path(files.second), ", too"),
               ": structure ", text, pairs.size() > 3 ? ", ..." : ""));
  }
  constexpr double factor = 20;  // of the usual size
  std::vector<double> energies, forces;
  for (const StructureFacts& each : all) {
    if (!std::isnan(each.energy) && each.edges > 0) energies.push_back(each.energy);
    if (each.largest_force > 0) forces.push_back(each.largest_force);
  }
  const double middle = median(energies), usual_force = median(forces);
  for (double& x : energies) x = std::abs(x - middle);
  const double spread = std::max(median(energies), 0.015);
  for (std::size_t f = 0; f < task.files.size(); ++f) {
    const std::string& name = task.files[f].path;
    const auto those = [&](const auto& is_one) {
      std::vector<const StructureFacts*> some;
      for (const StructureFacts& each : all)
        if (each.file == static_cast<Index>(f) && is_one(each)) some.push_back(&each);
      return some;
    };
    const auto say = [&](const std::vector<const StructureFacts*>& some, const std::string& what,
                         const auto& size) {
      if (!some.empty())
        found.push_back(concat(name, ": ", some.size(), some.size() == 1 ? " structure " : " structures ",
                               what, ": ", examples(some, size)));
    };
    say(those([&](const StructureFacts& x) {
          return x.edges > 0 && std::abs(x.energy - middle) > factor * spread;
        }),
        concat("with energies far from the others, whose median deviation is ", spread, " eV an atom"),
        [&](const StructureFacts& x) { return x.energy - middle; });
    say(those([&](const StructureFacts& x) { return x.largest_force > factor * usual_force; }),
        concat("with forces far above the others, of which half are below ", usual_force, " eV/A"),
        [](const StructureFacts& x) { return x.largest_force; });
    say(those([](const StructureFacts& x) { return x.net_force > 0.1 && x.net_force > 0.02 * x.all_forces; }),
        "with forces whose sum is not 0, in eV/A", [](const StructureFacts& x) { return x.net_force; });
    say(those([](const StructureFacts& x) { return x.lonely > 0 && x.edges > 0; }),
        "with atoms that have no neighbor",
        [](const StructureFacts& x) { return static_cast<double>(x.lonely); });
    for (const std::string& wrong : {wrong_labels(fits[f].forces, "forces", units_of_forces),
                                     wrong_labels(fits[f].stresses, "stresses", units_of_stresses)})
      if (!wrong.empty()) found.push_back(concat(name, ": ", wrong));
  }
  return found;
}

/// Prints what a file has, for --describe.
void describe_file(const Communicator& comm, const std::string& path, std::span<const StructureFacts> of,
                   const DifferenceFits& fits) {
  Index atoms = 0, edges = 0, fewest = std::numeric_limits<Index>::max(), most = 0, lonely = 0;
  Index least_atoms = fewest, most_atoms = 0;
  const StructureFacts *nearest = of.data(), *strongest = nullptr;
  double energies = 0, mean = 0, squares = 0, least_energy = inf, most_energy = -inf;
  for (const StructureFacts& each : of) {
    atoms += each.atoms;
    edges += each.edges;
    least_atoms = std::min(least_atoms, each.atoms);
    most_atoms = std::max(most_atoms, each.atoms);
    fewest = std::min(fewest, each.fewest);
    most = std::max(most, each.most);
    lonely += each.lonely;
    if (each.least < nearest->least) nearest = &each;
    if (!std::isnan(each.largest_force) &&
        (strongest == nullptr || each.largest_force > strongest->largest_force))
      strongest = &each;
    if (std::isnan(each.energy)) continue;
    energies += 1;
    mean += each.energy;
    squares += each.energy * each.energy;
    least_energy = std::min(least_energy, each.energy);
    most_energy = std::max(most_energy, each.energy);
  }
  const auto row = [&](const char* name, const auto&... parts) {
    say(comm, "  ", name, std::string(12 - std::string(name).size(), ' '), parts...);
  };
  say(comm, path);
  row("structures", of.size(), ", of ", least_atoms, " to ", most_atoms, " atoms, ", atoms, " together");
  row("neighbors", static_cast<double>(edges) / static_cast<double>(std::max<Index>(atoms, 1)), " an atom, ",
      fewest, " to ", most, "; ", lonely, " atoms have none");
  if (nearest->least < inf)
    row("distances", "at least ", nearest->least, " A, in structure ", nearest->number);
  if (energies > 0) {
    mean /= energies;
    row("energies", energies, " structures; without those of single atoms ", least_energy, " to ",
        most_energy, " eV an atom, deviation ", std::sqrt(std::max(0.0, squares / energies - mean * mean)));
  }
  if (strongest != nullptr)
    row("forces", "at most ", strongest->largest_force, " eV/A, in structure ", strongest->number);
  const auto compared = [&](const char* name, const DifferenceFit& fit) {
    if (fit.pairs > 0 && fit.xx > 0)
      row(name, "energies of ", fit.pairs, " successive pairs change by ", fit.xy / fit.xx, " times what ",
          name, " say");
  };
  compared("forces", fits.forces);
  compared("stresses", fits.stresses);
}

}  // namespace

std::vector<DifferenceFits> compare_differences(const Communicator& comm, const PotentialTask& task) {
  return comm.agree([&] {
    const std::vector<AtomStructure> next = next_structures(comm, task);
    std::vector<DifferenceFits> fits(task.files.size());
    for (std::size_t f = 0; f < task.files.size(); ++f) {
      const std::vector<AtomStructure>& structures = task.files[f].structures;
      for (std::size_t s = 0; s < structures.size(); ++s)
        add_pair(structures[s], s + 1 < structures.size() ? structures[s + 1] : next[f], fits[f]);
    }
    static_assert(sizeof(DifferenceFits) == 8 * sizeof(double));
    comm.all_reduce(std::span<double>(&fits[0].forces.xx, 8 * fits.size()));
    return fits;
  });
}

StructureFacts facts_of(const PotentialTask& task, Index structure, const GraphSamples& graph) {
  const auto [file, place] = task.place(structure);
  const AtomStructure& of = task.files[file].structures[place];
  StructureFacts facts{.file = static_cast<Index>(file),
                       .number = task.files[file].first + static_cast<Index>(place),
                       .atoms = of.num_atoms(),
                       .edges = graph.num_edges(),
                       .hash = geometry_hash(of)};
  std::vector<Index> neighbors(static_cast<std::size_t>(facts.atoms), 0);
  const Tensor& vectors = graph.edges.tensors.at("vectors");
  for (Index k = 0; k < graph.num_edges(); ++k) {
    ++neighbors[static_cast<std::size_t>(graph.dst[k])];
    const real* const d = vectors.row(k);
    facts.least = std::min(facts.least, std::hypot(static_cast<double>(d[0]), static_cast<double>(d[1]),
                                                   static_cast<double>(d[2])));
  }
  if (!neighbors.empty())
    std::tie(facts.fewest, facts.most) = std::pair(std::ranges::min(neighbors), std::ranges::max(neighbors));
  facts.lonely = facts.atoms > 1 ? std::ranges::count(neighbors, Index{0}) : 0;
  Vector3 net{};
  for (std::size_t i = 0; i < of.forces.size(); i += 3) {
    const double length = std::hypot(of.forces[i], of.forces[i + 1], of.forces[i + 2]);
    facts.largest_force = std::fmax(facts.largest_force, length);
    facts.all_forces += length;
    for (std::size_t c = 0; c < 3; ++c) net[c] += of.forces[i + c];
  }
  facts.net_force = std::hypot(net[0], net[1], net[2]);
  return facts;
}

void check_structures(const Communicator& comm, const PotentialTask& task, std::vector<StructureFacts> facts,
                      const std::vector<DifferenceFits>& fits, const TrainOptions& o) {
  if (!fits.empty()) set_energies(comm, task, std::ssize(o.model.species), facts);
  std::vector<StructureFacts> all = comm.all_gather(std::span<const StructureFacts>(facts));
  std::ranges::sort(all, {}, [](const StructureFacts& each) { return std::pair(each.file, each.number); });
  if (comm.rank() != 0) return;
  tell_neighbors(comm, o.dataset, o.model.cutoff, all);
  if (fits.empty()) return;
  for (std::size_t f = 0; o.describe && f < task.files.size(); ++f) {
    const auto [begin, end] = std::ranges::equal_range(all, static_cast<Index>(f), {}, &StructureFacts::file);
    if (begin != end) describe_file(comm, task.files[f].path, {begin, end}, fits[f]);
  }
  for (const std::string& each : findings(task, all, fits)) say(comm, "WARNING: ", each);
}

}  // namespace sar::tools
