// SPDX-License-Identifier: MIT

/// Labels without ZBL beside those of a potential without it; shifts and scales of energies.
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/sampling/graph_samples.hpp>
#include <sar/nn/atoms/neighbor_list.hpp>
#include <sar/nn/atoms/potentials/potential.hpp>
#include <sar/nn/atoms/potentials/potential_labels.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr double no_label = std::numeric_limits<double>::quiet_NaN();

/// Four atoms in a box, and two without one.
GraphSamples near_atoms() {
  const std::vector<double> box{0, 0, 0, 1.1, 0.1, 0, 0.2, 1.2, 0.3, 1.3, 1.2, 1.4},
      pair{0, 0, 0, 0.9, 0, 0.2};
  const Cell cell{.vectors = {{{2.5, 0, 0}, {0, 2.6, 0}, {0.1, 0, 2.7}}}, .periodic = {true, true, true}};
  const std::vector<SampleStructure> structures{{.id = 0, .positions = box, .cell = cell},
                                                {.id = 1, .positions = pair, .cell = {}}};
  GraphSamples samples = neighbor_samples(structures, 1.8);
  for (const Index kind : {0, 1, 0, 1, 1, 0}) samples.nodes.integers["species"].values.push_back(kind);
  return samples;
}

struct Labelled {
  std::vector<StructureLabels> labels;
  Tensor forces;
};

/// What a potential predicts, structure by structure. `volumes`: 0 for those without a cell.
Labelled predicted(const ModelDescription& description, const GraphSamples& samples,
                   const std::vector<double>& volumes) {
  const Communicator self = Communicator::self();
  Generator gen(4);
  Potential potential(description, gen);
  Labelled result{.labels = {}, .forces = Tensor({samples.num_nodes(), 3})};
  for (Index g = 0; g < samples.num_graphs(); ++g) {
    const SampleBatch batch(self, samples.select(std::vector<Index>{g}));
    const Array<Index>& kinds = batch.samples().nodes.integers.at("species").values;
    const PotentialValues at =
        potential(batch.graph(), {.species = {std::vector<Index>(kinds.begin(), kinds.end())},
                                  .positions = Tensor::zeros({batch.graph().num_nodes(), 3}),
                                  .shifts = batch.samples().edges.tensors.at("vectors")});
    StructureLabels& label = result.labels.emplace_back();
    label.energy = at.energy;
    label.volume = volumes[static_cast<std::size_t>(g)];
    for (std::size_t c = 0; label.volume > 0 && c < 9; ++c)
      label.stress[c / 3][c % 3] = -at.virial[c] / label.volume;
    std::ranges::copy(at.forces.values(), result.forces.row(samples.node_begin[g]));
  }
  return result;
}

}  // namespace

TEST_CASE("labels of a potential with ZBL, less the ZBL, are those of its network") {
  const GraphSamples samples = near_atoms();
  const std::vector<double> volumes{2.5 * 2.6 * 2.7, 0};
  ModelDescription description{
      .type = "painn", .hidden = 4, .layers = 2, .species = {"Si", "O"}, .cutoff = 1.8, .num_basis = 5};
  const Labelled network = predicted(description, samples, volumes);
  description.zbl_inner = 0.6;
  description.zbl_outer = 1.6;
  Labelled whole = predicted(description, samples, volumes);
  CHECK(std::abs(whole.labels[0].energy - network.labels[0].energy) > 1);
  subtract_zbl(Zbl(description.species, 0.6, 1.6), samples, whole.labels, whole.forces);
  const auto is_near = [](double a, double b) { return std::abs(a - b) < 2e-4 * (1 + std::abs(b)); };
  for (std::size_t g = 0; g < 2; ++g) {
    CHECK(is_near(whole.labels[g].energy, network.labels[g].energy));
    for (std::size_t c = 0; c < 9; ++c)
      CHECK(is_near(whole.labels[g].stress[c / 3][c % 3], network.labels[g].stress[c / 3][c % 3]));
  }
  for (Index i = 0; i < network.forces.size(); ++i)
    CHECK(is_near(whole.forces.data()[i], network.forces.data()[i]));
  CHECK(thrown<ShapeError>([&] {
          subtract_zbl(Zbl({"Si", "O"}, 0.6, 1.6), samples, std::span(whole.labels).first(1), whole.forces);
        }) ==
        "there are labels of 1 structures and forces of shape [6, 3], expected 2 structures and [6, 3]");
}

TEST_CASE("shifts and scales of training structures that have labels, on any number of ranks") {
  const Communicator world = Communicator::world();
  // four structures a rank: two with all labels, one that is not trained on, and one without labels
  GraphSamples samples;
  std::vector<StructureLabels> labels;
  for (Index s = 0; s < 4; ++s) {
    const Index of_first = world.rank() + 1 + s, of_second = 1 + 2 * s;
    samples.add(4 * world.rank() + s, of_first + of_second, {}, {});
    IntegerRows& species = samples.nodes.integers["species"];
    species.values.insert(species.values.end(), static_cast<std::size_t>(of_first), 0);
    species.values.insert(species.values.end(), static_cast<std::size_t>(of_second), 1);
    const double energy = 3.0 * static_cast<double>(of_first) - 7.0 * static_cast<double>(of_second);
    labels.push_back({.energy = s == 3 ? no_label : s == 2 ? 100 : energy});
  }
  Tensor forces({samples.num_nodes(), 3});
  for (Index i = 0; i < samples.num_nodes(); ++i)
    for (Index c = 0; c < 3; ++c)
      forces.row(i)[c] =
          i >= samples.node_begin[3] ? static_cast<real>(no_label) : static_cast<real>(c == 0 ? 1 : 2);
  const std::vector<std::uint8_t> trained{1, 1, 0, 1}, none{0, 0, 0, 0};
  const PotentialFit fit = fit_potential(world, samples, labels, forces, trained, 2);
  REQUIRE(fit.shifts.energies.size() == 2);
  CHECK(std::abs(fit.shifts.energies[0] - 3) < 1e-8);
  CHECK(std::abs(fit.shifts.energies[1] + 7) < 1e-8);
  CHECK(fit.shifts.undetermined.empty());
  CHECK(std::abs(fit.energy_scale - 3) < 1e-6);

  const PotentialFit with_given =
      fit_potential(world, samples, labels, forces, trained, 2, std::vector{no_label, -5.});
  CHECK(with_given.shifts.energies[1] == -5);
  CHECK(with_given.shifts.undetermined.empty());
  const auto squares = [&](double b) {  // of the energies per atom, which the fit makes smallest
    double sum = 0;
    for (Index s = 0; s < 2; ++s) {
      const double of_first = static_cast<double>(world.rank() + 1 + s),
                   of_second = static_cast<double>(1 + 2 * s);
      sum += std::pow(((3 - b) * of_first - 2 * of_second) / (of_first + of_second), 2);
    }
    return world.all_reduce(sum);
  };
  const double best = with_given.shifts.energies[0];
  CHECK(squares(best) < squares(best + 1e-3));
  CHECK(squares(best) < squares(best - 1e-3));
  CHECK(fit_potential(world, samples, labels, forces, trained, 2, std::vector{1., 2.}).shifts.energies ==
        std::vector{1., 2.});
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)fit_potential(world, samples, labels, forces, trained, 2, std::vector{1.});
        }) == "energy shifts of 2 species got 1 that are given, expected one for each");

  const PotentialFit of_none = fit_potential(world, samples, labels, forces, none, 2);
  CHECK(of_none.shifts.energies.empty());
  CHECK(of_none.energy_scale == 1);
  CHECK(thrown_by_all<InputError>(world, [&] {
          (void)fit_potential(world, samples, labels, forces, trained, 1);
        }) == "a structure has an atom of species 1, and there are 1");
  CHECK(thrown_by_all<InputError>(world, [&] {
          GraphSamples wrong = samples;
          if (world.rank() + 1 == world.size()) wrong.nodes.integers["species"].values[0] = -1;
          (void)fit_potential(world, wrong, labels, forces, trained, 2);
        }).ends_with("an atom is of species -1, expected 0 or more"));
  CHECK(thrown_by_all<InputError>(world, [&] {
          GraphSamples without = samples;
          without.nodes.integers.clear();
          (void)fit_potential(world, without, labels, forces, trained, 2);
        }) == "the structures have no field 'species' with one number for each atom");
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          const bool last = world.rank() + 1 == world.size();
          (void)fit_potential(world, samples, labels, forces, std::span(trained).first(last ? 3 : 4), 2);
        }) == "there are 3 flags for 4 structures, expected one for each");
}
