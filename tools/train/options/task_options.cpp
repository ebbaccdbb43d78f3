// SPDX-License-Identifier: MIT

// The rows of the groups Links and Potentials of atoms: options of single tasks.
#include "option_table.hpp"

#include <sar/nn/models/model_description.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sar::tools {
namespace {

void read_shares(const std::string& text, TaskOptions& o) {
  const auto [first, second] = split_at(text, ',');
  const auto valid = to_signed_number<double>(first), test = to_signed_number<double>(second);
  if (!valid || !test || !(*valid >= 0) || !(*test >= 0) || !(*valid + *test < 1))
    refuse_value("--split-edges", text, "two shares of 0 or more, together less than 1, such as 0.05,0.10");
  o.valid = *valid;
  o.test = *test;
  o.has_shares = true;
}

/// Sources that are no numbers.
const Choices<EnergySource> energy_sources{
    {"fit", EnergySource::fit}, {"keep", EnergySource::keep}, {"isolated", EnergySource::isolated}};

/// "fit", "keep", "isolated", or "Cu=-3.5,O=1".
void read_shifts(const std::string& text, PotentialOptions& o) {
  o.given_shifts.clear();
  const auto named = std::ranges::find(energy_sources, text, &std::pair<std::string, EnergySource>::first);
  o.shifts = named == energy_sources.end() ? EnergySource::given : named->second;
  if (o.shifts != EnergySource::given) return;
  o.given_shifts = read_named_numbers(
      "--energy-shifts", text, [](double x) { return std::isfinite(x); },
      "fit, keep, isolated, or energies of single atoms of different species, such as Cu=-3.5,O=1");
}

/// "fit", "keep", or a number.
void read_scale(const std::string& text, PotentialOptions& o) {
  const auto number = to_signed_number<double>(text);
  if (text != "fit" && text != "keep" && (!number || !(*number > 0) || !std::isfinite(*number)))
    refuse_value("--energy-scale", text, "fit, keep, or a number above 0");
  o.scale = text == "fit" ? EnergySource::fit : text == "keep" ? EnergySource::keep : EnergySource::given;
  o.given_scale = number.value_or(0);
}

/// "Ge,Cu=Ag": Cu begins as Ag.
void read_new_species(const std::string& text, PotentialOptions& o) {
  const char* expected = "different species, such as Ge, or Cu=Ag, which begins as Ag";
  o.new_species.clear();
  for (const std::string& each : read_names("--new-species", text, expected)) {
    const auto [name, like] = split_at(each, '=');
    const NewSpecies species{name, like};
    const bool is_repeated = std::ranges::count(o.new_species, species.name, &NewSpecies::name) > 0;
    if (species.name.empty() || is_repeated || (name.size() < each.size() && like.empty()))
      refuse_value("--new-species", text, expected);
    o.new_species.push_back(species);
  }
}

std::string text_of_new_species(const PotentialOptions& o) {
  return joined(o.new_species, [](const NewSpecies& each) {
    return each.like.empty() ? each.name : concat(each.name, "=", each.like);
  });
}

/// "61:100,10,1;81:1000,10,1": from these epochs on, weights of energies, forces and stresses.
void read_stages(const std::string& text, PotentialOptions& o) {
  const char* expected =
      "epochs of 2 or more, one after another, each with the weights of energies, forces and stresses from "
      "then on, such as 61:100,10,1 or 61:100,10,1;81:1000,10,1";
  o.stages.clear();
  for (const std::string& stage : split_text(text, ';')) {
    const auto [first, of_terms] = split_at(stage, ':');
    const auto epoch = to_signed_number<int>(first);
    const std::vector<double> weights = read_numbers<double>(
        "--stages", of_terms, [](double x) { return x >= 0 && std::isfinite(x); }, expected);
    if (!epoch || *epoch <= (o.stages.empty() ? 1 : o.stages.back().epoch) || weights.size() != 3 ||
        weights[0] + weights[1] + weights[2] == 0)
      refuse_value("--stages", text, expected);
    o.stages.push_back({*epoch, weights[0], weights[1], weights[2]});
  }
}

std::string text_of_stages(const PotentialOptions& o) {
  const auto text = [](const WeightStage& each) {
    return concat(each.epoch, ":", each.energy, ",", each.forces, ",", each.stress);
  };
  return joined(o.stages, text, ";");
}

void add_fine_tuning_options(OptionTable& t, PotentialOptions& o) {
  t.parsed("--energy-shifts", read_shifts, o, "SOURCE|NAME=E,...",
           "energies of single atoms: fit, keep, isolated, or given ones")
      .as_text([&o] {
        return o.shifts == EnergySource::given ? list_text(o.given_shifts)
                                               : name_in(energy_sources, o.shifts);
      });
  t.parsed("--energy-scale", read_scale, o, "fit|keep|X",
           "scale of the network's energies: of the training forces, or a given one")
      .as_text([&o] {
        return o.scale == EnergySource::given ? concat(o.given_scale) : name_in(energy_sources, o.scale);
      });
  t.parsed("--new-species", read_new_species, o, "NAME[=LIKE],...",
           "species beside those of --init-weights, which may begin as one of them")
      .as_text([&o] { return text_of_new_species(o); });
}

/// The layer of mace-torch that the first one is; later layers have a residual connection.
std::vector<std::pair<const char*, std::pair<bool, bool>>> first_layers() {
  return {{"RealAgnosticResidualInteractionBlock", {true, false}},
          {"RealAgnosticInteractionBlock", {false, false}},
          {"RealAgnosticDensityResidualInteractionBlock", {true, true}},
          {"RealAgnosticDensityInteractionBlock", {false, true}}};
}

/// Reads the widths of the hidden layers of the radial network, which are equal.
void read_radial_network(const std::string& text, ModelDescription& m) {
  const std::string expected = "equal widths of the hidden layers, such as 64,64,64";
  const std::vector<Index> widths = read_numbers<Index>(
      "--radial-mlp", text, [](Index width) { return 1 <= width && width <= 4096; }, expected);
  if (std::ranges::count(widths, widths[0]) != std::ssize(widths) || widths.size() > 64)
    refuse_value("--radial-mlp", text, expected);
  m.radial_hidden = widths[0];
  m.radial_layers = std::ssize(widths);
}

void add_mace_options(OptionTable& t, ModelDescription& m) {
  t.number("--max-ell", m.max_l, "mace: degree of the spherical harmonics and of the messages", 0, 3)
      .for_models_with("max_l", m);
  t.number("--hidden-ell", m.hidden_l, "mace: degree of the rows between layers, max_L of mace-torch", 0, 3)
      .for_models_with("hidden_l", m);
  t.number("--correlation", m.correlation, "mace: neighbors in a product", 1, 3)
      .for_models_with("correlation", m);
  t.number("--num-cutoff-basis", m.cutoff_power, "mace: power p of the polynomial cutoff function", 2, 64)
      .for_models_with("cutoff_power", m);
  t.parsed("--radial-mlp", read_radial_network, m, "N,N,...",
           "mace: widths of the hidden layers of the radial network")
      .default_text("64,64,64")
      .for_models_with("radial_hidden", m)
      .as_text([&m] {
        return list_text(std::vector<Index>(static_cast<std::size_t>(m.radial_layers), m.radial_hidden));
      });
  t.number("--mlp-width", m.readout_hidden, "mace: width of the last readout, MLP_irreps of mace-torch", 1,
           4096)
      .for_models_with("readout_hidden", m);
  t.parsed(
       "--interaction-first",
       [&m](const std::string& text) {
         std::vector<std::string> names;
         for (const auto& [name, value] : first_layers()) {
           names.emplace_back(name);
           if (text == name) std::tie(m.residual_first, m.density) = value;
         }
         if (std::ranges::find(names, text) == names.end())
           refuse_value("--interaction-first", text, joined(names));
       },
       "NAME", "mace: first layer, by its name in mace-torch")
      .default_text(first_layers()[0].first)
      .for_models_with("residual_first", m)
      .default_for(TaskType::potential,
                   [&m] { std::tie(m.residual_first, m.density) = first_layers()[0].second; })
      .as_text([&m] {
        for (const auto& [name, value] : first_layers())
          if (value == std::pair(m.residual_first, m.density)) return std::string(name);
        return std::string();
      });
  t.choice("--distance-transform", m.distance_transform, named(ModelDescription::distance_transforms),
           "mace: what the radial functions read in place of the distance")
      .for_models_with("distance_transform", m);
  t.number("--pair-repulsion", m.zbl_power,
           "mace: power p of the ZBL repulsion within covalent radii; 0: none", 0, 64)
      .for_models_with("zbl_power", m);
}

}  // namespace

void add_link_options(OptionTable& t, TrainOptions& options) {
  constexpr Index most_negatives = 1 << 20;
  TaskOptions& o = options.task;
  t.group("Links", {TaskType::link}, true);
  t.parsed("--split-edges", read_shares, o, "V,T",
           "link, edge: shares of validation and test edges, without a given split")
      .default_text(concat(o.valid, ',', o.test))
      .for_tasks(pair_tasks)
      .as_text([&o] { return concat(o.valid, ',', o.test); });
  t.choice("--exclude", o.exclude,
           {{"none", ExcludeEdges::none}, {"self", ExcludeEdges::self}, {"reverse", ExcludeEdges::reverse}},
           "link, edge: edges of a sampled batch without messages")
      .for_tasks(network_tasks)
      .read_with("--sample and --task link or edge", [&options] {
        return !has_labelled_rows(options.task.type) && !options.sample.fan_outs.empty();
      });
  t.choice("--predictor", o.predictor, predictor_types, "link: score of a pair");
  t.choice("--link-loss", o.loss, link_losses, "link: loss function");
  t.number("--negatives", o.negatives, "link: negative pairs for each edge", 1, most_negatives);
  t.choice("--negatives-from", o.negatives_from,
           {{"source", Negatives::per_source}, {"global", Negatives::global}},
           "link: negatives keep the source, or join any ends of edges");
  t.number("--eval-negatives", o.eval_negatives,
           "link: negative pairs for each edge in evaluations, without given ones", 1, most_negatives);
  t.number("--hits-k", o.hits_k, "link: K of Hits@K", 1);
  t.flag("--filtered-ranks", o.filtered_ranks,
         "link: ranks both ends of an edge among all nodes, without other true edges")
      .for_tasks(network_tasks)
      .read_with("--task link and --predictor distmult, complex, transe or rotate",
                 [&o] { return o.type == TaskType::link && has_relations(o.predictor); });
  t.choice("--edge-labels", o.labels, {{"classes", LabelType::classes}, {"values", LabelType::values}},
           "edge: what labels are")
      .for_tasks({TaskType::edge});
}

void add_potential_options(OptionTable& t, TrainOptions& options) {
  constexpr double most = 1e30;
  PotentialOptions& o = options.task.potential;
  ModelDescription& m = options.model;
  t.group("Potentials of atoms", {TaskType::potential}, false);
  t.paths("--valid-file", o.valid_files, "FILE ...", "validation structures, in files as --dataset");
  t.paths("--test-file", o.test_files, "FILE ...", "test structures");
  t.paths("--watch-file", o.watch_files, "FILE ...",
          "structures whose errors are watched, such as those of --init-weights");
  t.path("--save-learner", o.learner, "DIR",
         "the potential and its training structures, to learn on in LAMMPS, C, C++ or Python")
      .excludes({"--describe"});
  t.number("--graph-memory", o.graph_memory,
           "bytes of edges that a rank keeps; others are made in each batch");
  t.group("Potentials of atoms", {TaskType::potential}, true);
  const auto key = [&](const char* name, std::string& value, const char* help) {
    t.text(name, value, "KEY", help).as_text([&value] { return value.empty() ? "found" : value; });
  };
  key("--energy-key", o.keys.energy, "key of the energies, where a file has several; none: no energies");
  key("--forces-key", o.keys.forces, "column of the forces; none: no forces");
  key("--stress-key", o.keys.stress, "key of the stresses or virials; none: no stresses");
  t.number("--cutoff", m.cutoff, "distance up to which atoms interact, in the unit of the positions", 0,
           most);
  t.number("--num-basis", m.num_basis, "radial basis functions; mace: 8", 1, 1 << 16)
      .default_for(TaskType::potential, [&m] { m.num_basis = m.type == "mace" ? 8 : m.num_basis; });
  t.choice("--radial-basis", m.radial_basis, named(ModelDescription::radial_bases), "radial basis functions");
  t.choice("--cutoff-function", m.cutoff_function, named(ModelDescription::cutoff_functions),
           "how messages vanish at the cutoff");
  add_mace_options(t, m);
  t.number("--zbl-inner", m.zbl_inner, "ZBL repulsion is switched off from this distance on", 0, most);
  t.number("--zbl-outer", m.zbl_outer, "ZBL repulsion vanishes at this distance; 0: no ZBL", 0, most);
  t.number("--committee", m.committee,
           "heads that are trained on other structures each: deviations of predictions", 1, 64);
  add_fine_tuning_options(t, o);
  t.text("--kind-key", o.kind_key, "KEY", "key of the kind of a structure, by which errors are listed")
      .unrecorded();
  t.parsed(
       "--kind-weights",
       [&o](const std::string& text) {
         o.kind_weights = read_named_numbers(
             "--kind-weights", text, [](double x) { return x >= 0 && x < most; },
             "different kinds of structures with weights of 0 or more, such as liquid=2,surface=0.5");
       },
       "KIND=X,...", "weights of kinds of structures in the loss; of others: 1")
      .as_text([&o] { return o.kind_weights.empty() ? "" : o.kind_key + ": " + list_text(o.kind_weights); });
  t.number("--huber-delta", o.huber_delta, "errors above it count linearly in the loss; 0: as squares", 0,
           most);
  t.choice("--energy-error", o.energy_error,
           {{"per-atom", EnergyError::per_atom},
            {"per-root", EnergyError::per_root},
            {"total", EnergyError::total}},
           "divisor of errors of energies in the loss");
  t.parsed("--stages", read_stages, o, "EPOCH:E,F,S;...",
           "other weights of energies, forces and stresses from an epoch on")
      .as_text([&o] { return text_of_stages(o); });
  t.number("--energy-weight", o.energy_weight, "weight of energies per atom in the loss", 0, most);
  t.number("--forces-weight", o.forces_weight, "weight of forces in the loss", 0, most);
  t.number("--stress-weight", o.stress_weight, "weight of stresses in the loss", 0, most);
}

}  // namespace sar::tools
