// SPDX-License-Identifier: MIT
#include <sar/comm/collective_call.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/json.hpp>
#include <sar/core/memory/transaction.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/sampling/graph_samples.hpp>
#include <sar/nn/atoms/neighbor_list.hpp>
#include <sar/nn/atoms/potentials/potential_labels.hpp>
#include <sar/nn/atoms/potentials/potential_learner.hpp>
#include <sar/nn/train/checkpoint.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/optimizer.hpp>
#include <sar/nn/train/weight_average.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <ranges>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// A structure, and what the network is trained on: labels without shifts and ZBL.
struct LearnedStructure {
  LabelledStructure given;
  StructureLabels labels;
  Tensor forces;  // [atoms, 3]; NaN: there are none
};
using LearnedPtr = std::shared_ptr<const LearnedStructure>;

namespace {

/// Of all structures as text in a checkpoint, whose file is not read with more.
constexpr std::size_t most_bytes = 90'000'000;

/// Throws unless the shapes and numbers of a structure are as add() says.
void check_structure(const LabelledStructure& s, const ModelDescription& d) {
  const Index atoms = s.num_atoms();
  require<InputError>(atoms > 0, "a structure to learn has no atoms");
  require<ShapeError>(
      std::ssize(s.positions) == 3 * atoms && (s.forces.empty() || std::ssize(s.forces) == 3 * atoms),
      "a structure of ", atoms, " atoms has ", s.positions.size(), " numbers of positions and ",
      s.forces.size(), " of forces, expected 3 for each atom");
  for (const Index kind : s.species)
    require<InputError>(kind >= 0 && kind < std::ssize(d.species), "a structure has an atom of species ",
                        kind, ", expected a number from 0 to ", std::ssize(d.species) - 1);
  const auto is_finite = [](double x) { return std::isfinite(x); };
  for (const auto* numbers : {&s.positions, &s.forces}) {
    const auto bad = std::ranges::find_if_not(*numbers, is_finite);
    require<InputError>(bad == numbers->end(), "a structure has the ",
                        numbers == &s.forces ? "force " : "coordinate ", bad == numbers->end() ? 0 : *bad,
                        ", expected finite numbers");
  }
  require<InputError>(!std::isinf(s.energy), "a structure has the energy ", s.energy);
  for (const Vector3& row : s.cell.vectors)
    require<InputError>(std::ranges::all_of(row, is_finite), "a structure has a cell that is not finite");
  require<InputError>(!std::isnan(s.energy) || !s.forces.empty() || s.stress,
                      "a structure to learn has no energy, no forces and no stress");
  if (!s.stress) return;
  require<InputError>(s.cell.volume() > 0, "a structure has a stress and no volume");
  for (const Vector3& row : *s.stress)
    require<InputError>(std::ranges::all_of(row, is_finite), "a structure has a stress that is not finite");
}

/// Returns the graphs of structures, with "species" and "forces" of their nodes. `first`: number of the
/// first one in the messages and ids.
GraphSamples samples_of(std::span<const LearnedPtr> structures, Index first, double cutoff) {
  std::vector<SampleStructure> places;
  IntegerRows species;
  std::vector<Tensor> forces;
  for (const LearnedPtr& each : structures) {
    places.push_back({.id = first++, .positions = each->given.positions, .cell = each->given.cell});
    species.values.insert(species.values.end(), each->given.species.begin(), each->given.species.end());
  }
  GraphSamples samples = neighbor_samples(places, cutoff);
  Tensor rows({samples.num_nodes(), 3});
  Index row = 0;
  for (const LearnedPtr& each : structures) {
    std::ranges::copy(each->forces.values(), rows.row(row));
    row += each->given.num_atoms();
  }
  samples.nodes.integers["species"] = std::move(species);
  samples.nodes.tensors["forces"] = std::move(rows);
  return samples;
}

/// What the network is to learn of a structure.
LearnedPtr learned(const Potential& potential, const LabelledStructure& given, Index number) {
  const ModelDescription& d = potential.description();
  auto result =
      std::make_shared<LearnedStructure>(LearnedStructure{.given = given, .labels = {}, .forces = {}});
  StructureLabels& labels = result->labels;
  labels.energy = given.energy;
  labels.volume = given.cell.volume();
  for (Vector3& row : labels.stress) row.fill(std::numeric_limits<double>::quiet_NaN());
  if (given.stress) labels.stress = *given.stress;
  for (const Index kind : given.species) labels.energy -= d.energy_shifts[static_cast<std::size_t>(kind)];
  result->forces = Tensor::full({given.num_atoms(), 3}, std::numeric_limits<real>::quiet_NaN());
  std::ranges::transform(given.forces, result->forces.data(), [](double x) { return static_cast<real>(x); });
  const GraphSamples samples = samples_of(std::vector<LearnedPtr>{result}, number, d.cutoff);
  if (potential.zbl()) subtract_zbl(*potential.zbl(), samples, std::span(&result->labels, 1), result->forces);
  return result;
}

OrderedJson json_of(const LabelledStructure& s) {
  OrderedJson json{{"positions", s.positions}, {"species", s.species}};
  json["cell"] = s.cell.vectors;
  json["periodic"] = s.cell.periodic;
  if (!std::isnan(s.energy)) json["energy"] = s.energy;
  json["forces"] = s.forces;
  if (s.stress) json["stress"] = *s.stress;
  return json;
}

LabelledStructure structure_of(const nlohmann::json& json) {
  LabelledStructure s{.positions = json.at("positions"), .species = json.at("species")};
  s.cell.vectors = json.at("cell");
  s.cell.periodic = json.at("periodic");
  if (json.contains("energy")) s.energy = json.at("energy");
  s.forces = json.at("forces").get<std::vector<double>>();
  if (json.contains("stress")) s.stress = json.at("stress").get<Matrix3>();
  return s;
}

/// Structures of a batch, spread over the ranks.
struct LearnerBatch {
  LearnerBatch(const Communicator& comm, const std::vector<LearnedPtr>& all, std::span<const Index> numbers,
               double cutoff, const GraphOptions& options)
      : structures(of(all, numbers)), spread(comm, share(comm, structures, cutoff), options) {}

  [[nodiscard]] RowIds species() const { return spread.nodes().integers.at("species").values; }
  [[nodiscard]] const Tensor& vectors() const { return spread.edges().tensors.at("vectors"); }

  std::vector<LearnedPtr> structures;
  SpreadBatch spread;

 private:
  static std::vector<LearnedPtr> of(const std::vector<LearnedPtr>& all, std::span<const Index> numbers) {
    std::vector<LearnedPtr> found;
    for (const Index i : numbers) found.push_back(all[static_cast<std::size_t>(i)]);
    return found;
  }
  /// The ranks make the graphs of consecutive structures, so that SpreadBatch numbers them as the batch does.
  static GraphSamples share(const Communicator& comm, std::span<const LearnedPtr> all, double cutoff) {
    const auto count = all.size(), rank = static_cast<std::size_t>(comm.rank());
    const auto size = static_cast<std::size_t>(comm.size());
    const std::size_t begin = count * rank / size, end = count * (rank + 1) / size;
    return samples_of(all.subspan(begin, end - begin), static_cast<Index>(begin), cutoff);
  }
};

}  // namespace

Index head_to_train(std::uint64_t seed, Index structure, Index epoch, Index heads) {
  const auto number = static_cast<std::uint64_t>(structure);
  const auto draw = [](double uniform, Index count) {
    return std::min(static_cast<Index>(uniform * static_cast<double>(count)), count - 1);
  };
  const Random bags({.seed = seed, .stream = RandomStream::committee_bags + 0});
  const Random turns({.seed = seed, .stream = RandomStream::committee_turns + 0});
  const Index left_out = draw(bags.uniform(number), heads);
  const Index turn = draw(turns.uniform(number, static_cast<std::uint64_t>(epoch)), heads - 1);
  return turn < left_out ? turn : turn + 1;
}

struct PotentialLearner::State {
  State(const Communicator& on, Potential& used, LearnerOptions o)
      : comm(on),
        potential(used),
        options(std::move(o)),
        trained(trainable(used)),
        optimizer(trained->network().named_parameters(),
                  {.lr = options.lr, .lr_factors = trained->network().lr_factors()}),
        average(trained->network(), options.average) {
    require<InputError>(options.batch_size > 0, "a step of a learner has ", options.batch_size,
                        " structures, expected 1 or more");
    for (const double weight : {options.weights.energy, options.weights.forces, options.weights.stress})
      require<InputError>(weight >= 0 && std::isfinite(weight),
                          "a term of the loss of a learner has the weight ", weight,
                          ", expected a number of 0 or more");
    require<InputError>(options.clip_norm >= 0, "the norm of gradients is limited to ", options.clip_norm,
                        ", expected 0 or more");
  }

  static std::unique_ptr<Potential> trainable(const Potential& potential) {
    Generator gen(0);
    return with_species(potential, {}, gen);
  }

  /// The numbers of the structures in the order of an epoch.
  [[nodiscard]] std::vector<Index> order_of(Index number) const {
    const Random random({options.seed, RandomStream::seed_order + 0, static_cast<std::uint64_t>(number)});
    std::vector<Index> order(structures.get().size());
    std::iota(order.begin(), order.end(), Index{0});
    std::ranges::sort(order, {},
                      [&](Index i) { return std::pair(random.bits(static_cast<std::uint64_t>(i)), i); });
    return order;
  }

  [[nodiscard]] LabelledAtoms labels_of(const LearnerBatch& batch, std::span<const Index> numbers) const {
    std::vector<double> energies, volumes, stresses;
    std::vector<Index> heads;
    bool has_forces = false, has_stresses = false;
    for (std::size_t s = 0; s < batch.structures.size(); ++s) {
      const LearnedStructure& each = *batch.structures[s];
      energies.push_back(each.labels.energy);
      volumes.push_back(each.labels.volume > 0 ? each.labels.volume : 1);
      for (const Vector3& row : each.labels.stress) stresses.insert(stresses.end(), row.begin(), row.end());
      has_forces = has_forces || !each.given.forces.empty();
      has_stresses = has_stresses || each.given.stress;
      if (potential.committee() > 1)
        heads.push_back(head_to_train(options.seed, numbers[s], epoch, potential.committee()));
    }
    const Index count = std::ssize(energies);
    LabelledAtoms labels{.species = batch.species(),
                         .positions = Tensor::zeros({batch.spread.graph().num_nodes(), 3}),
                         .shifts = batch.vectors(),
                         .structures = batch.spread.graph_of_nodes(),
                         .energies = Tensor::from({count}, std::span<const double>(energies))};
    labels.heads = std::move(heads);
    if (has_forces) labels.forces = batch.spread.nodes().tensors.at("forces");
    if (!has_stresses) return labels;
    labels.stresses = Tensor::from({count, 3, 3}, std::span<const double>(stresses));
    labels.volumes = Tensor::from({count}, std::span<const double>(volumes));
    return labels;
  }

  PotentialErrors step(std::span<const Index> numbers) {
    const LearnerBatch batch(comm, structures, numbers, potential.cutoff(), options.graph);
    PotentialNetwork& network = trained->network();
    const PotentialErrors errors =
        backward_potential_loss(network, batch.spread.graph(), labels_of(batch, numbers), options.weights);
    require<InputError>(std::isfinite(errors.loss), "the loss of a learner is ", errors.loss, " after ",
                        steps.get(), " steps, expected a finite number: a smaller lr (", options.lr,
                        ") may help");
    gather_grads(comm, network);
    if (options.clip_norm > 0) clip_grad_norm(network, options.clip_norm);
    optimizer.step();
    optimizer.zero_grad();
    average.update();
    ++steps.change();
    return errors;
  }

  /// Gives the averages of the weights to the potential.
  void publish() {
    for (const NamedParameter& each : trained->network().named_parameters())
      require<InputError>(
          std::ranges::all_of(each.parameter.value().values(), [](real x) { return std::isfinite(x); }),
          "weights of a learner are not finite after ", steps.get(), " steps: a smaller lr may help");
    average.exchange();
    for (const NamedParameter& each : trained->network().named_parameters())
      potential.network().set_parameter(each.name, each.parameter.value());
    average.exchange();
  }

  void save() {
    OrderedJson all = OrderedJson::array();
    for (const LearnedPtr& each : structures.get()) all.push_back(json_of(each->given));
    checkpoints->save(static_cast<int>(epoch.get()), trained->network(), optimizer,
                      {{"potential", potential.description().to_json()},
                       {"structures", all.dump()},
                       {"steps", std::to_string(steps.get())}});
  }

  /// Goes on from the latest checkpoint of the directory, if there is one.
  void resume() {
    checkpoints.emplace(comm, options.directory, CheckpointerOptions{.keep_last = 2, .seed = options.seed});
    checkpoints->add_state("average.", average.state());
    const std::string path = checkpoints->latest();
    if (path.empty()) return;
    const std::map<std::string, std::string> extra = checkpoints->info(path, optimizer).extra;
    const auto text = [&](const char* key) {
      const auto found = extra.find(key);
      require<InputError>(found != extra.end(), path, ": has no '", key,
                          "', expected a checkpoint of a learner");
      return found->second;
    };
    const std::string expected = potential.description().to_json();
    require<InputError>(text("potential") == expected, path, ": is of the potential ", text("potential"),
                        ", expected ", expected);
    std::vector<LearnedPtr> found;
    bytes = text("structures").size();
    const JsonValue all =
        JsonValue::parse(text("structures"), path + ": the structures", "a list", "structures");
    for (const JsonValue& each : all.list()) {
      const LabelledStructure structure = structure_of(each.json());
      check_structure(structure, potential.description());
      found.push_back(learned(potential, structure, std::ssize(found)));
    }
    known = std::ssize(found);
    epoch = checkpoints->load(path, trained->network(), optimizer).epoch;
    optimizer.set_lr(options.lr);  // not that of before
    structures = std::move(found);
    steps = std::stoll(text("steps"));
    publish();
  }

  Communicator comm;
  Potential& potential;
  LearnerOptions options;
  std::unique_ptr<Potential> trained;
  Adam optimizer;
  WeightAverage average;
  std::optional<Checkpointer> checkpoints;
  Recoverable<std::vector<LearnedPtr>> structures;
  Recoverable<Index> known = Index{0};                    // structures that a call of train() has seen
  Recoverable<std::size_t> bytes = std::size_t{0};        // of their text
  Recoverable<Index> steps = Index{0}, epoch = Index{0};  // epochs that have begun, of all calls of train()
};

PotentialLearner::PotentialLearner(const Communicator& comm, Potential& potential, LearnerOptions options) {
  comm.agree([&] {
    const PotentialWeights& w = options.weights;
    comm.require_equal(CollectiveCall("PotentialLearner")
                           .equal("batch_size", options.batch_size)
                           .equal("lr", options.lr)
                           .equal("weight of energies", w.energy)
                           .equal("weight of forces", w.forces)
                           .equal("weight of stresses", w.stress)
                           .equal("energy_error", w.energy_error)
                           .equal("huber_delta", w.huber_delta)
                           .equal("clip_norm", options.clip_norm)
                           .equal("average", options.average)
                           .equal("seed", options.seed)
                           .equal("directory", options.directory));
    require<InputError>(!potential.has_members(),
                        "PotentialLearner of a committee of potentials, expected a ",
                        "potential with one network, such as one of train --committee H");
    state_ = std::make_unique<State>(comm, potential, std::move(options));
    if (!state_->options.directory.empty()) state_->resume();
  });
}

PotentialLearner::~PotentialLearner() = default;

void PotentialLearner::add(const LabelledStructure& structure, int root) {
  State& s = *state_;
  s.comm.agree([&] {
    require<InputError>(root >= 0 && root < s.comm.size(), "rank ", root,
                        " is to give a structure, expected 0 to ", s.comm.size() - 1);
    const CallScope scope(s.comm, CollectiveCall("PotentialLearner::add").equal("root", root));
    const bool gives = s.comm.rank() == root;
    if (gives) check_structure(structure, s.potential.description());
    const std::string text = s.comm.broadcast(gives ? json_of(structure).dump() : "", root);
    const std::size_t bytes = s.bytes + text.size();
    require<InputError>(!s.checkpoints || bytes <= most_bytes, s.options.directory, ": ",
                        num_structures() + 1, " structures take ", bytes,
                        " bytes in a checkpoint, expected at most ", most_bytes);
    LearnedPtr added = learned(s.potential, structure_of(nlohmann::json::parse(text)), num_structures());
    s.structures.change().push_back(std::move(added));
    s.bytes = bytes;
  });
}

PotentialErrors PotentialLearner::train(Index steps) {
  State& s = *state_;
  return s.comm.agree([&] {
    s.comm.require_equal(CollectiveCall("PotentialLearner::train").equal("steps", steps));
    require<InputError>(steps >= 0, "a learner is to make ", steps, " steps, expected 0 or more");
    require<InputError>(num_structures() > 0, "a learner has no structures to train on");
    PotentialErrors mean;
    std::vector<Index> order;
    for (Index done = 0; done < steps; ++done) {
      if (order.empty()) {
        order = s.order_of(++s.epoch.change());
        if (done == 0)  // new structures first
          std::ranges::stable_partition(order, [&](Index i) { return i >= s.known; });
        std::ranges::reverse(order);  // batches are taken from its end
      }
      const Index count = std::min(s.options.batch_size, std::ssize(order));
      const std::vector<Index> numbers(order.end() - count, order.end());
      order.resize(order.size() - static_cast<std::size_t>(count));
      const PotentialErrors errors = s.step(numbers);
      const double share = 1 / static_cast<double>(steps);
      mean.loss += share * errors.loss;
      mean.energy_per_atom += share * errors.energy_per_atom;
      mean.force += share * errors.force;
      mean.stress += share * errors.stress;
    }
    if (steps > 0) s.publish();
    s.known = num_structures();
    if (s.checkpoints) s.save();
    return mean;
  });
}

PotentialErrors PotentialLearner::errors(Index first) {
  State& s = *state_;
  return s.comm.agree([&] {
    s.comm.require_equal(CollectiveCall("PotentialLearner::errors").equal("first", first));
    require<InputError>(first >= 0 && first <= num_structures(), "errors of structures from number ", first,
                        " on, expected a number from 0 to ", num_structures());
    std::array<double, 6> sums{};  // of errors of energies, forces and stresses, and their numbers
    const auto add = [&](std::size_t kind, double error) {
      sums[2 * kind] += std::abs(error);
      sums[2 * kind + 1] += 1;
    };
    for (Index i = first; i < num_structures(); ++i) {
      const LearnerBatch batch(s.comm, s.structures, std::array{i}, s.potential.cutoff(), s.options.graph);
      const LabelledStructure& label = batch.structures[0]->given;
      const PotentialValues found = s.potential(
          batch.spread.graph(), {.species = batch.species(),
                                 .positions = Tensor::zeros({batch.spread.graph().num_nodes(), 3}),
                                 .shifts = batch.vectors()});
      const Tensor forces =
          batch.spread.to_samples(found.forces);  // whole, on the rank that has the structure
      const double volume = label.cell.volume();
      if (forces.num_rows() == 0) continue;
      if (!std::isnan(label.energy))
        add(0, (found.energy - label.energy) / static_cast<double>(label.num_atoms()));
      for (std::size_t k = 0; k < label.forces.size(); ++k)
        add(1, static_cast<double>(forces.data()[k]) - label.forces[k]);
      for (std::size_t c = 0; label.stress && c < 9; ++c)
        add(2, -found.virial[c] / volume - (*label.stress)[c / 3][c % 3]);
    }
    s.comm.all_reduce(std::span<double>(sums));
    const auto mean = [&](std::size_t kind) {
      return sums[2 * kind + 1] > 0 ? sums[2 * kind] / sums[2 * kind + 1] : 0;
    };
    return PotentialErrors{.loss = 0, .energy_per_atom = mean(0), .force = mean(1), .stress = mean(2)};
  });
}

Index PotentialLearner::num_structures() const noexcept {
  return std::ssize(state_->structures.get());
}

const LabelledStructure& PotentialLearner::structure(Index i) const {
  require<InputError>(i >= 0 && i < num_structures(), "structure ", i, " of a learner that has ",
                      num_structures());
  return state_->structures.get()[static_cast<std::size_t>(i)]->given;
}

Index PotentialLearner::num_steps() const noexcept {
  return state_->steps;
}
}}  // namespace sar
