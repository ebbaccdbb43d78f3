// SPDX-License-Identifier: MIT

/// PotentialLearner: steps beside backward_potential_loss and Adam, labels of another potential, checkpoints,
/// refusals.
#include "graph/data/dataset_files.hpp"
#include "nn/train/checkpoint_directory.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/tape.hpp>
#include <sar/comm/reproducible_scope.hpp>
#include <sar/core/error.hpp>
#include <sar/core/random.hpp>
#include <sar/nn/atoms/neighbor_list.hpp>
#include <sar/nn/atoms/potentials/potential.hpp>
#include <sar/nn/atoms/potentials/potential_learner.hpp>
#include <sar/nn/modules/module.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr double near = sizeof(real) == 8 ? 1e-10 : 3e-4;

ModelDescription described(Index committee = 1, double zbl_outer = 0) {
  return {.type = "painn",
          .hidden = 4,
          .layers = 2,
          .species = {"Si", "O"},
          .cutoff = 1.8,
          .num_basis = 5,
          .zbl_inner = zbl_outer / 2,
          .zbl_outer = zbl_outer,
          .committee = committee,
          .energy_shifts = {-7, 3.5},
          .energy_scales = {2, 0.5}};
}

Potential make(const ModelDescription& description, std::uint64_t seed) {
  Generator gen(seed);
  return {description, gen};
}

/// Structure k, of 3 to 6 atoms in a triclinic box, with what a potential says of it; every third has no box.
LabelledStructure labelled(Potential& by, std::uint64_t k) {
  const Random random({.seed = 5, .stream = k});
  LabelledStructure s;
  const std::uint64_t atoms = 3 + k % 4;
  for (std::uint64_t i = 0; i < atoms; ++i) {
    for (std::uint64_t c = 0; c < 3; ++c)
      s.positions.push_back(1.1 * static_cast<double>(i % 2 + c % 2) + static_cast<double>(i * (c + 1) % 3) +
                            0.3 * random.uniform(i, c));
    s.species.push_back(static_cast<Index>((i + k) % 2));
  }
  if (k % 3 != 2)
    s.cell = {.vectors = {{{3.5, 0, 0}, {0.2, 3.6, 0}, {0.1, 0, 3.7}}}, .periodic = {true, true, true}};
  const Communicator self = Communicator::self();
  NeighborList list(self, s.positions, s.cell, by.cutoff());
  const PotentialValues at =
      by(list.graph(),
         {.species = s.species, .positions = Tensor::zeros({s.num_atoms(), 3}), .shifts = list.vectors()});
  s.energy = at.energy;
  for (const real f : at.forces.values()) s.forces.push_back(static_cast<double>(f));
  if (s.cell.volume() > 0) {
    s.stress.emplace();
    for (std::size_t c = 0; c < 9; ++c) (*s.stress)[c / 3][c % 3] = -at.virial[c] / s.cell.volume();
  }
  return s;
}

std::vector<real> weights_of(const Potential& potential) {
  std::vector<real> weights;
  for (const NamedParameter& each : potential.network().named_parameters())
    std::ranges::copy(each.parameter.value().values(), std::back_inserter(weights));
  return weights;
}

double largest_difference(const std::vector<real>& a, const std::vector<real>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

}  // namespace

TEST_CASE("PotentialLearner: labels of the potential itself have no errors and no gradients") {
  const Communicator world = Communicator::world();
  for (const double zbl : {0.0, 1.6}) {
    Potential teacher = make(described(1, zbl), 4), student = make(described(1, zbl), 4);
    PotentialLearner learner(world, student, {.batch_size = 3, .lr = 0});
    for (std::uint64_t k = 0; k < 5; ++k) learner.add(labelled(teacher, k));
    const PotentialErrors before = learner.errors();
    CHECK(before.energy_per_atom < 10 * near);
    CHECK(before.force < 10 * near);
    CHECK(before.stress < 10 * near);
    const PotentialErrors in_steps = learner.train(2);
    CHECK(in_steps.loss < 10 * near);
    CHECK(in_steps.energy_per_atom < 10 * near);
    CHECK(in_steps.force < 10 * near);
    CHECK(in_steps.stress < 10 * near);
    CHECK(weights_of(student) == weights_of(teacher));  // with a rate of 0
    CHECK(learner.num_steps() == 2);
  }
}

TEST_CASE("PotentialLearner: errors are means over what has labels") {
  const Communicator world = Communicator::world();
  Potential teacher = make(described(), 4);
  PotentialLearner learner(world, teacher);
  LabelledStructure first = labelled(teacher, 0), second = labelled(teacher, 1), third = labelled(teacher, 3);
  first.energy += 3 * static_cast<double>(first.num_atoms());
  second.energy = std::numeric_limits<double>::quiet_NaN();
  for (double& f : second.forces) f -= 0.5;
  third.forces.clear();
  (*third.stress)[0][1] += 0.9;
  for (const LabelledStructure& each : {first, second, third}) learner.add(each);
  const auto forces = static_cast<double>(first.forces.size());
  const auto of_second = static_cast<double>(second.forces.size());
  PotentialErrors found = learner.errors();
  CHECK(std::abs(found.energy_per_atom - 1.5) < 10 * near);
  CHECK(std::abs(found.force - 0.5 * of_second / (forces + of_second)) < 10 * near);
  CHECK(std::abs(found.stress - 0.9 / 27) < 10 * near);
  found = learner.errors(1);
  CHECK(std::abs(found.energy_per_atom) < 10 * near);
  CHECK(std::abs(found.force - 0.5) < 10 * near);
}

TEST_CASE("PotentialLearner: a step is one of Adam on the loss of the batch, for every number of ranks") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  Potential teacher = make(described(), 4), student = make(described(), 9);
  const LabelledStructure s = labelled(teacher, 0);
  const std::vector<real> before = weights_of(student);

  Potential other = make(described(), 9);
  NeighborList list(self, s.positions, s.cell, other.cutoff());
  double energy = s.energy;
  for (const Index kind : s.species) energy -= kind == 0 ? -7 : 3.5;
  std::vector<double> stress;
  for (const Vector3& row : *s.stress) stress.insert(stress.end(), row.begin(), row.end());
  const LabelledAtoms atoms{.species = s.species,
                            .positions = Tensor::zeros({s.num_atoms(), 3}),
                            .shifts = list.vectors(),
                            .energies = Tensor::from({1}, std::span<const double>(&energy, 1)),
                            .forces = Tensor::from({s.num_atoms(), 3}, std::span<const double>(s.forces)),
                            .stresses = Tensor::from({1, 3, 3}, std::span<const double>(stress)),
                            .volumes = Tensor::full({1}, static_cast<real>(s.cell.volume()))};
  const PotentialWeights terms{.energy = 2, .forces = 3, .stress = 4};
  const PotentialErrors expected = backward_potential_loss(other.network(), list.graph(), atoms, terms);

  PotentialLearner learner(world, student, {.lr = 1e-3, .weights = terms, .clip_norm = 0});
  learner.add(s);
  const PotentialErrors found = learner.train(1);
  CHECK(std::abs(found.loss - expected.loss) < 10 * near * expected.loss);
  CHECK(std::abs(found.force - expected.force) < 10 * near);
  // The first step of Adam is the rate against the sign of the gradient.
  const std::vector<real> after = weights_of(student);
  std::size_t at = 0, moved = 0;
  for (const NamedParameter& each : other.network().named_parameters()) {
    const Tensor gradient = each.parameter.grad();
    for (Index i = 0; i < each.parameter.value().size(); ++i, ++at) {
      const double slope = gradient.defined() ? static_cast<double>(gradient.data()[i]) : 0;
      const double step = static_cast<double>(after[at]) - static_cast<double>(before[at]);
      if (std::abs(slope) < 1e-3) continue;
      ++moved;
      CHECK(std::abs(step + std::copysign(1e-3, slope)) < 2e-5);
    }
  }
  CHECK(moved > 50);
}

TEST_CASE("PotentialLearner: a committee learns what it did not know, for every number of ranks") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  Potential teacher = make(described(), 4);
  std::vector<std::vector<real>> results;
  for (const Communicator& comm : {world, self}) {
    Potential student = make(described(3), 9);
    PotentialLearner learner(comm, student, {.batch_size = 2, .lr = 0.01, .average = 0.5, .seed = 3});
    for (std::uint64_t k = 0; k < 3; ++k) learner.add(labelled(teacher, k));
    learner.train(4);
    results.push_back(weights_of(student));
    const double before = learner.errors().force;
    const int root = comm.size() - 1;
    learner.add(comm.rank() == root ? labelled(teacher, 3) : LabelledStructure{}, root);
    CHECK(learner.num_structures() == 4);
    CHECK(learner.structure(3).energy == labelled(teacher, 3).energy);
    learner.train(60);
    CHECK(learner.errors().force < 0.6 * before);
    CHECK(learner.num_steps() == 64);
  }
  CHECK(largest_difference(results[0], results[1]) < (sizeof(real) == 8 ? 1e-8 : 5e-3));
}

TEST_CASE("PotentialLearner: reproducible, the bits do not depend on the ranks") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  Potential teacher = make(described(), 4);
  std::vector<std::vector<real>> results;
  for (const Communicator& comm : {world, self}) {
    const ReproducibleScope scope(comm);
    Potential student = make(described(2), 9);
    GraphOptions graph;
    graph.reproducible = true;
    PotentialLearner learner(comm, student, {.batch_size = 3, .lr = 0.01, .graph = graph});
    for (std::uint64_t k = 0; k < 4; ++k) learner.add(labelled(teacher, k));
    learner.train(3);
    results.push_back(weights_of(student));
  }
  CHECK(results[0] == results[1]);
}

TEST_CASE("PotentialLearner: a run that was stopped goes on from its checkpoint with the same bits") {
  const Communicator world = Communicator::world();
  const TemporaryDirectory directory(world);
  Potential teacher = make(described(1, 1.6), 4);
  const auto options = [&](const std::string& name) {
    const std::string path = name.empty() ? "" : directory.path() + "/" + name;
    return LearnerOptions{.batch_size = 2, .lr = 0.01, .seed = 7, .directory = path};
  };
  Potential whole = make(described(2, 1.6), 9);
  PotentialLearner unbroken(world, whole, options(""));
  LabelledStructure partly = labelled(teacher, 2);
  partly.energy = std::numeric_limits<double>::quiet_NaN();
  const auto begin = [&](PotentialLearner& learner) {
    for (std::uint64_t k = 0; k < 3; ++k) learner.add(k == 2 ? partly : labelled(teacher, k));
    learner.train(5);
  };
  const auto go_on = [&](PotentialLearner& learner) {
    learner.add(labelled(teacher, 4));
    learner.train(5);
  };
  begin(unbroken);
  go_on(unbroken);
  {
    Potential stopped = make(described(2, 1.6), 9);
    PotentialLearner learner(world, stopped, options("run"));
    begin(learner);
    learner.add(labelled(teacher, 0));  // is not trained on, and so not in the checkpoint
  }
  Potential resumed = make(described(2, 1.6), 10);
  PotentialLearner learner(world, resumed, options("run"));
  CHECK(learner.num_structures() == 3);
  CHECK(learner.num_steps() == 5);
  CHECK(learner.structure(1).stress == labelled(teacher, 1).stress);
  CHECK(std::isnan(learner.structure(2).energy));
  go_on(learner);
  CHECK(weights_of(resumed) == weights_of(whole));

  // a call without steps has seen its structures
  std::vector<std::vector<real>> results;
  for (const bool stops : {false, true}) {
    const std::string name = stops ? "stops" : "goes_on";
    Potential student = make(described(2, 1.6), 9), again = make(described(2, 1.6), 10);
    std::optional<PotentialLearner> of_run(std::in_place, world, student, options(name));
    begin(*of_run);
    of_run->add(labelled(teacher, 4));
    of_run->train(0);
    if (stops) of_run.emplace(world, again, options(name));
    of_run->train(3);
    results.push_back(weights_of(stops ? again : student));
  }
  CHECK(results[0] == results[1]);

  LearnerOptions still = options("run");  // the rate is that of the options
  still.lr = still.average = 0;
  PotentialLearner at_rest(world, resumed, still);
  at_rest.train(1);
  const std::vector<real> weights = weights_of(resumed);
  at_rest.train(2);
  CHECK(weights_of(resumed) == weights);

  Potential other = make(described(2), 9);
  CHECK(thrown_by_all<InputError>(world, [&] {
          PotentialLearner refused(world, other, options("run"));
        }).find(".safetensors: is of the potential {") != std::string::npos);
  LearnerOptions reseeded = options("run");
  reseeded.seed = 8;
  CHECK(thrown_by_all<InputError>(world, [&] {
          PotentialLearner refused(world, resumed, reseeded);
        }).find("seed is 7, expected 8") != std::string::npos);
}

TEST_CASE("PotentialLearner: refused calls change nothing") {
  const Communicator world = Communicator::world();
  Potential student = make(described(), 9);
  const std::vector<real> before = weights_of(student);
  PotentialLearner learner(world, student, {.lr = 1e30, .clip_norm = 0});
  using S = LabelledStructure;
  const auto check = [&](const std::string& text, auto change) {
    S changed = labelled(student, 0);
    change(changed);
    const std::string found = thrown_by_all<Error>(world, [&] { learner.add(changed); });
    CHECK_MESSAGE(found.find(text) != std::string::npos, found);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  check("structure of 3 atoms has 8 numbers", [](S& s) { s.positions.pop_back(); });
  check("and 8 of forces", [](S& s) { s.forces.pop_back(); });
  check("species 2, expected a number from 0 to 1", [](S& s) { s.species[1] = 2; });
  check("the coordinate nan", [&](S& s) { s.positions[4] = nan; });
  check("the force nan", [&](S& s) { s.forces[4] = nan; });
  check("the energy inf", [&](S& s) { s.energy = 1 / 0.0; });
  check("stress that is not finite", [&](S& s) { (*s.stress)[1][1] = nan; });
  check("a cell that is not finite", [&](S& s) { s.cell.vectors[1][2] = nan; });
  check("a stress and no volume", [](S& s) { s.cell = {}; });
  check("no energy, no forces", [&](S& s) {
    s.energy = nan;
    s.forces.clear();
    s.stress.reset();
  });
  check("has no atoms", [](S& s) { s = {}; });
  check("at the same place", [](S& s) { std::copy_n(s.positions.begin(), 3, s.positions.begin() + 3); });
  CHECK(thrown_by_all<InputError>(world, [&] {
          learner.add(labelled(student, 0), world.size());
        }).find("is to give a structure, expected 0 to ") != std::string::npos);
  CHECK(learner.num_structures() == 0);
  const std::string none = thrown_by_all<InputError>(world, [&] { learner.train(1); });
  CHECK(none.find("no structures") != std::string::npos);
  learner.add(labelled(student, 0));
  LabelledStructure far = labelled(student, 1);
  far.energy += 5;
  learner.add(far);
  CHECK(thrown_by_all<InputError>(world, [&] { learner.train(-1); }).find("-1 steps") != std::string::npos);
  CHECK(thrown_by_all<InputError>(world, [&] {
          static_cast<void>(learner.errors(3));
        }).find("number 3 on, expected a number from 0 to 2") != std::string::npos);
  CHECK(thrown_by_all<InputError>(world, [&] { learner.train(9); }).find("a smaller lr (1e+30) may help") !=
        std::string::npos);
  CHECK(weights_of(student) == before);
  CHECK(learner.num_steps() == 0);
  CHECK(thrown_by_all<InputError>(world, [&] {
          PotentialLearner refused(world, student, {.batch_size = 0});
        }).find("0 structures, expected 1 or more") != std::string::npos);
}

TEST_CASE("PotentialLearner: what is new is trained on first") {
  const Communicator world = Communicator::world();
  Potential teacher = make(described(), 4), student = make(described(), 4);
  PotentialLearner learner(world, student, {.batch_size = 1, .lr = 0});
  for (std::uint64_t k = 0; k < 8; ++k) learner.add(labelled(teacher, k));
  CHECK(learner.train(8).loss < 10 * near);
  for (int again = 0; again < 3; ++again) {
    LabelledStructure far = labelled(teacher, 8);
    far.energy += 50;
    learner.add(far);
    CHECK(learner.train(1).loss > 1);
  }
}

TEST_CASE("head_to_train: each structure is left out by one head, and trains the others") {
  std::set<Index> left_out;
  for (Index structure = 0; structure < 40; ++structure) {
    std::set<Index> trained;
    for (Index epoch = 0; epoch < 40; ++epoch) trained.insert(head_to_train(1, structure, epoch, 4));
    REQUIRE(trained.size() == 3);
    for (Index head = 0; head < 4; ++head)
      if (!trained.contains(head)) left_out.insert(head);
  }
  CHECK(left_out.size() == 4);
}
