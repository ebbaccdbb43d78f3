// SPDX-License-Identifier: MIT
#include "train/atoms/structure_errors.hpp"

#include "formats/atoms/raw_structures.hpp"
#include "formats/text.hpp"
#include "program.hpp"
#include "train/train_progress.hpp"

#include <sar/core/files/file.hpp>
#include <sar/core/text.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace sar::tools {
namespace {

constexpr std::array part_names{"train", "val", "test", "watch"};

const char* name_of(DataPart part) {
  return part_names[static_cast<std::size_t>(part)];
}

/// Sums over the errors of energies per atom, of forces or of stresses.
struct LabelErrors {
  double count = 0, sum = 0, squares = 0;

  void add(double of_count, double of_sum, double of_squares) {
    count += of_count;
    sum += of_sum;
    squares += of_squares;
  }
};

/// Sums of errors over structures.
struct ErrorSums {
  Index structures = 0;
  std::array<LabelErrors, 3> labels;

  void add(const StructureErrors& of) {
    const auto atoms = static_cast<double>(of.atoms);
    ++structures;
    if (const double error = (of.energy - of.label) / atoms; !std::isnan(error))
      labels[0].add(1, std::abs(error), error * error);
    if (of.has_forces) labels[1].add(3 * atoms, of.force_sum, of.force_squares);
    if (of.has_stress) labels[2].add(9, of.stress_sum, of.stress_squares);
  }

  /// The values of atom_metrics, in thousandths; NaN where there are no labels.
  [[nodiscard]] std::array<double, atom_metrics.size()> means() const {
    std::array<double, atom_metrics.size()> means{};
    for (std::size_t k = 0; k < labels.size(); ++k) {
      const auto& [count, sum, squares] = labels[k];
      means[2 * k] = count > 0 ? 1e3 * sum / count : formats::no_label;
      means[2 * k + 1] = count > 0 ? 1e3 * std::sqrt(squares / count) : formats::no_label;
    }
    return means;
  }
};

/// Root of the mean square of the forces' errors, or the error of the energy per atom, by which structures
/// are compared.
double size_of(const StructureErrors& of, bool by_forces) {
  const auto atoms = static_cast<double>(of.atoms);
  return by_forces ? std::sqrt(of.force_squares / (3 * atoms)) : std::abs(of.energy - of.label) / atoms;
}

std::string place_of(const PotentialTask& task, const StructureKinds& kinds, const StructureErrors& of) {
  const std::string& kind = kinds.names[static_cast<std::size_t>(of.kind)];
  return concat(task.files[static_cast<std::size_t>(of.file)].path, ": structure ", of.number,
                kind == "-" ? "" : concat(" (", kind, ")"));
}

void tell_largest(const Communicator& comm, const PotentialTask& task, const StructureKinds& kinds,
                  const std::vector<StructureErrors>& all) {
  constexpr std::size_t most = 3;
  for (std::size_t part = 0; part < part_names.size(); ++part) {
    std::vector<const StructureErrors*> of_part;
    bool by_forces = false;
    for (const StructureErrors& each : all)
      if (each.part == static_cast<DataPart>(part)) by_forces = by_forces || each.has_forces;
    for (const StructureErrors& each : all)
      if (each.part == static_cast<DataPart>(part) && (by_forces ? each.has_forces : !std::isnan(each.label)))
        of_part.push_back(&each);
    std::ranges::stable_sort(of_part, std::greater(),
                             [&](const auto* each) { return size_of(*each, by_forces); });
    std::string text;
    for (std::size_t k = 0; k < std::min(most, of_part.size()); ++k) {
      text += concat(k == 0 ? "" : "; ", place_of(task, kinds, *of_part[k]), " ",
                     formatted("%.1f", 1e3 * size_of(*of_part[k], by_forces)));
    }
    if (of_part.size() > 1)
      say(comm, "largest ", by_forces ? "forces-rmse in meV/A" : "energy errors in meV an atom", ", ",
          part_names[part], ": ", text);
  }
}

/// A value of a CSV file, in quotes where it needs them.
std::string csv(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string{c};
  return quoted + "\"";
}

void write_table(const std::string& path, const PotentialTask& task, const StructureKinds& kinds,
                 const std::vector<StructureErrors>& all) {
  std::string text =
      "file,structure,kind,split,atoms,energy,predicted_energy,forces_mae,forces_rmse,largest_force_error,"
      "stress_mae,energy_deviation,forces_deviation,largest_forces_deviation\n";
  const auto number = [](double x) { return std::isnan(x) ? std::string() : exact_text(x); };
  for (const StructureErrors& each : all) {
    const double components = 3 * static_cast<double>(each.atoms), none = formats::no_label;
    const auto of_forces = [&](double x) { return number(each.has_forces ? x : none); };
    text += concat(
        csv(task.files[static_cast<std::size_t>(each.file)].path), ",", each.number, ",",
        csv(kinds.names[static_cast<std::size_t>(each.kind)]), ",", name_of(each.part), ",", each.atoms, ",",
        number(each.label), ",", number(each.energy), ",", of_forces(each.force_sum / components), ",",
        of_forces(std::sqrt(each.force_squares / components)), ",", of_forces(each.largest_force), ",",
        number(each.has_stress ? each.stress_sum / 9 : none), ",", number(each.energy_deviation), ",",
        number(each.force_deviation), ",", number(each.largest_deviation), "\n");
  }
  write_text(path, text);
}

/// "  liquid  train       300     1.23 ...", with a head.
void print_means(const std::map<std::pair<Index, DataPart>, ErrorSums>& sums, const StructureKinds& kinds) {
  std::size_t width = 4;
  for (const std::string& name : kinds.names) width = std::max(width, printable(name).size());
  std::string head = "errors by kind, in meV an atom, meV/A and meV/A^3:\nkind" +
                     std::string(width - 4, ' ') + "  split  structures";
  for (const Metric metric : atom_metrics) head += "  " + key_of(metric);
  std::cout << head << "\n";
  for (const auto& [key, of] : sums) {
    const std::string name = printable(kinds.names[static_cast<std::size_t>(key.first)]);
    std::array<char, 64> cell{};
    std::snprintf(cell.data(), cell.size(), "  %-5s  %10td", name_of(key.second), of.structures);
    std::string line = name + std::string(width - name.size(), ' ') + cell.data();
    const auto means = of.means();
    for (std::size_t m = 0; m < means.size(); ++m) {
      const auto columns = static_cast<int>(key_of(atom_metrics[m]).size());
      if (std::isnan(means[m]))
        std::snprintf(cell.data(), cell.size(), "  %*s", columns, "-");
      else
        std::snprintf(cell.data(), cell.size(), "  %*.3f", columns, means[m]);
      line += cell.data();
    }
    std::cout << line << "\n";
  }
  std::cout << std::flush;
}

/// The errors of all ranks, in the order of the files. Collective.
std::vector<StructureErrors> gather_errors(const Communicator& comm,
                                           const std::vector<StructureErrors>& mine) {
  std::vector<StructureErrors> all = comm.all_gather(std::span<const StructureErrors>(mine));
  std::ranges::sort(all, {}, [](const StructureErrors& each) { return std::pair(each.file, each.number); });
  return all;
}

}  // namespace

StructureKinds::StructureKinds(const Communicator& comm, const PotentialTask& task,
                               const PotentialOptions& o) {
  std::map<std::string, Index> counts;
  std::vector<std::string> mine;
  for (const formats::AtomDataset& file : task.files)
    for (const formats::AtomStructure& each : file.structures) {
      const auto found = each.keys.find(o.kind_key);
      mine.push_back(found == each.keys.end() || found->second.empty() ? "-" : found->second);
      ++counts[mine.back()];
    }
  std::map<std::string, Index> numbers;
  for (const auto& [name, count] : formats::count_names(comm, counts)) {
    numbers[name] = std::ssize(names);
    names.push_back(name);
  }
  for (const std::string& name : mine) of.push_back(numbers.at(name));
  require<InputError>(o.kind_key == PotentialOptions().kind_key || names != std::vector<std::string>{"-"},
                      "--kind-key: no structure has the key ", o.kind_key);
  for (const auto& [name, weight] : o.kind_weights)
    require<InputError>(numbers.contains(name), "--kind-weights: no structure has the kind ", name, " (key ",
                        o.kind_key, "), expected some of ", joined(names));
}

std::vector<std::string> weight_keys() {
  return {"config_weight", "config_energy_weight", "config_forces_weight", "config_stress_weight"};
}

std::array<double, 3> weights_of(const formats::AtomStructure& structure, const PotentialOptions& o,
                                 const std::string& place) {
  const auto number = [&](const std::string& key) {
    const auto found = structure.keys.find(key);
    if (found == structure.keys.end()) return 1.0;
    const std::optional<double> weight = to_signed_number<double>(found->second);
    require<InputError>(weight && *weight >= 0 && std::isfinite(*weight), place, ": ", key, " is '",
                        found->second, "', expected a number of 0 or more");
    return *weight;
  };
  const std::vector<std::string> keys = weight_keys();
  const auto kind = structure.keys.find(o.kind_key);
  const auto of_kind = o.kind_weights.find(kind == structure.keys.end() ? "-" : kind->second);
  const double all = number(keys[0]) * (of_kind == o.kind_weights.end() ? 1 : of_kind->second);
  return {all * number(keys[1]), all * number(keys[2]), all * number(keys[3])};
}

DataPart part_of(const TrainingGraph& g, Index structure) {
  if (g.data.train_mask[structure] != 0) return DataPart::train;
  if (g.data.val_mask[structure] != 0) return DataPart::val;
  if (g.data.test_mask[structure] != 0) return DataPart::test;
  const bool is_watched = g.potential->files[g.potential->place(structure).first].part == DataPart::watch;
  return is_watched ? DataPart::watch : DataPart::none;
}

std::vector<StructureErrors> errors_of(const TrainingGraph& g, const StructureKinds& kinds,
                                       const std::vector<formats::AtomStructure>& predicted) {
  const PotentialTask& task = *g.potential;
  std::vector<StructureErrors> all;
  for (Index s = 0; s < std::ssize(predicted); ++s) {
    const DataPart part = part_of(g, s);
    const formats::AtomStructure &label = task.structure(s), &found = predicted[static_cast<std::size_t>(s)];
    if (part == DataPart::none || found.forces.empty()) continue;
    const auto [file, place] = task.place(s);
    StructureErrors& of =
        all.emplace_back(StructureErrors{.file = static_cast<Index>(file),
                                         .number = task.files[file].first + static_cast<Index>(place),
                                         .kind = kinds.of[static_cast<std::size_t>(s)],
                                         .atoms = label.num_atoms(),
                                         .part = part,
                                         .label = label.energy,
                                         .energy = found.energy,
                                         .has_forces = !label.forces.empty(),
                                         .has_stress = label.has_stress()});
    for (std::size_t i = 0; i < label.forces.size(); i += 3) {
      double squares = 0;
      for (std::size_t c = i; c < i + 3; ++c) {
        const double error = found.forces[c] - label.forces[c];
        of.force_sum += std::abs(error);
        squares += error * error;
      }
      of.force_squares += squares;
      of.largest_force = std::max(of.largest_force, std::sqrt(squares));
    }
    of.energy_deviation = found.energy_deviation;
    if (!found.force_deviations.empty()) {
      double squares = 0;
      for (const double x : found.force_deviations) squares += x * x;
      of.force_deviation = std::sqrt(squares / static_cast<double>(of.atoms));
      of.largest_deviation = std::ranges::max(found.force_deviations);
    }
    for (std::size_t c = 0; of.has_stress && c < 9; ++c) {
      const double error = found.stress[c / 3][c % 3] - label.stress[c / 3][c % 3];
      of.stress_sum += std::abs(error);
      of.stress_squares += error * error;
    }
  }
  return all;
}

DeviationFit fit_deviations(const Communicator& comm, const std::vector<StructureErrors>& mine) {
  double sums[] = {0, 0, 0, 0};
  for (const StructureErrors& each : gather_errors(comm, mine)) {
    if (std::isnan(each.energy_deviation)) continue;
    const auto atoms = static_cast<double>(each.atoms);
    if (!std::isnan(each.label)) {
      sums[0] += std::pow((each.energy - each.label) / atoms, 2);
      sums[1] += std::pow(each.energy_deviation / atoms, 2);
    }
    if (each.has_forces) {
      sums[2] += each.force_squares;
      sums[3] += atoms * each.force_deviation * each.force_deviation;
    }
  }
  const auto ratio = [](double errors, double deviations) {
    return errors > 0 && deviations > 0 ? std::sqrt(errors / deviations) : 1;
  };
  return {ratio(sums[0], sums[1]), ratio(sums[2], sums[3])};
}

nlohmann::ordered_json report_errors(const Communicator& comm, const PotentialTask& task,
                                     const StructureKinds& kinds, const std::vector<StructureErrors>& mine,
                                     const std::string& table) {
  const std::vector<StructureErrors> all = gather_errors(comm, mine);
  std::map<std::pair<Index, DataPart>, ErrorSums> sums;
  for (const StructureErrors& each : all) sums[{each.kind, each.part}].add(each);
  auto means = nlohmann::ordered_json::array();
  for (const auto& [key, of] : sums) {
    nlohmann::ordered_json line{{"kind", kinds.names[static_cast<std::size_t>(key.first)]},
                                {"split", name_of(key.second)},
                                {"structures", of.structures}};
    const auto values = of.means();
    for (std::size_t m = 0; m < values.size(); ++m)
      if (!std::isnan(values[m])) line[key_of(atom_metrics[m])] = values[m];
    means.push_back(std::move(line));
  }
  comm.agree([&] {
    if (comm.rank() != 0) return;
    if (kinds.names.size() > 1) print_means(sums, kinds);
    tell_largest(comm, task, kinds, all);
    if (!table.empty()) write_table(table, task, kinds, all);
  });
  return means;
}

}  // namespace sar::tools
