// SPDX-License-Identifier: MIT

/// MACE: harmonics and tensor products of e3nn, energies, forces and virials of mace-torch, derivatives by
/// differences, rotations; for every number of ranks.
#include "graph/data/dataset_files.hpp"
#include "graph/test_graphs.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/comm/reproducible_scope.hpp>
#include <sar/nn/atoms/harmonic_rows.hpp>
#include <sar/nn/atoms/mace.hpp>
#include <sar/nn/atoms/neighbor_list.hpp>
#include <sar/nn/atoms/potential_loss.hpp>
#include <sar/nn/atoms/potentials/potential.hpp>
#include <sar/nn/atoms/radial_table.hpp>
#include <sar/nn/atoms/symmetric_contraction.hpp>
#include <sar/nn/atoms/tensor_product.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/loss.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr bool is_double = sizeof(real) == 8;
const std::vector<std::string> structure_names{"crystal", "molecule", "slab", "thin", "lone"};

/// A structure of a golden case, as a rank has it.
struct Structure {
  const Case& golden;
  std::string name;
  Index begin, end;  ///< atoms of this rank
  NeighborList list;
  std::vector<Index> species;

  Structure(const Communicator& comm, const Case& of, const std::string& called, double cutoff,
            const GraphOptions& options = {})
      : golden(of),
        name(called),
        begin(first(comm.rank(), comm.size())),
        end(first(comm.rank() + 1, comm.size())),
        list(comm, mine(values("positions"), 3), cell(), cutoff, 0, options) {
    const std::vector<Index> all = golden.indices(name + ".species");
    species.assign(all.begin() + begin, all.begin() + end);
  }
  [[nodiscard]] std::vector<double> values(const std::string& array) const {
    return golden.values(name + "." + array);
  }
  [[nodiscard]] Index first(int rank, int size) const {
    return std::ssize(golden.indices(name + ".species")) * rank / size;
  }
  [[nodiscard]] std::vector<double> mine(const std::vector<double>& all, Index width) const {
    return {all.begin() + begin * width, all.begin() + end * width};
  }
  [[nodiscard]] Cell cell() const {
    Cell found;
    const std::vector<double> vectors = values("cell"), periodic = values("periodic");
    for (std::size_t i = 0; i < 9; ++i) found.vectors[i / 3][i % 3] = vectors[i];
    for (std::size_t i = 0; i < 3; ++i) found.periodic[i] = periodic[i] != 0;
    return found;
  }
  [[nodiscard]] PotentialValues evaluate(Potential& potential) const {
    const Tensor& v = list.vectors();
    const std::vector<double> vectors(v.data(), v.data() + v.size());
    return potential(list.graph(), {.species = species, .edge_vectors = vectors});
  }
};

/// With `constant` weights, a kernel sums the messages; otherwise functions of edges do.
Potential golden_potential(const Case& golden, bool constant = false) {
  Generator gen(0);
  Potential potential(ModelDescription::from_json(golden.arg("description")), gen);
  for (const NamedParameter& each : potential.network().named_parameters())
    potential.network().set_parameter(each.name, golden.tensor("param." + each.name));
  for (const NamedParameter& each : potential.network().named_parameters())
    if (constant) potential.network().freeze(each.name);
  potential.network().train(!constant);
  return potential;
}

ModelDescription small() {
  return {.type = "mace",
          .hidden = 3,
          .layers = 2,
          .species = {"H", "O", "Si"},
          .cutoff = 3.5,
          .num_basis = 4,
          .energy_shifts = {1, 2, 3},
          .max_l = 2,
          .density = true,
          .radial_hidden = 5,
          .readout_hidden = 4};
}

/// Checks values, tangents and the gradients of both, along random directions. f(x) for x = the inputs, the
/// first ones of which have tangents.
void check_derivatives(const std::function<Variable(const std::vector<Variable>&)>& f,
                       const std::vector<Tensor>& inputs, std::size_t duals) {
  std::vector<Variable> leaves;
  for (const Tensor& each : inputs) leaves.emplace_back(each.clone(), true);
  CHECK(gradcheck(f, leaves, {.directions = 3, .sum_over_ranks = {}}) < (is_double ? 1e-7 : 1e-2));
  for (std::size_t k = 0; k < duals; ++k) leaves.emplace_back(random_tensor(inputs[k].shape(), 50 + k), true);
  const auto with_tangents = [&](const std::vector<Variable>& x) {
    std::vector<Variable> dual(x.begin(), x.begin() + std::ssize(inputs));
    for (std::size_t k = 0; k < duals; ++k) dual[k] = make_dual(x[k], x[inputs.size() + k]);
    const Variable y = f(dual);
    return concat_columns({y.primal(), y.tangent()});
  };
  CHECK(gradcheck(with_tangents, leaves,
                  {.tolerance = is_double ? 1e-6 : 2e-2, .directions = 3, .sum_over_ranks = {}}) < 1);
  // the tangent itself, by differences
  const auto at = [&](double step) {
    std::vector<Variable> moved;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      Tensor x = inputs[k].clone();
      for (Index i = 0; k < duals && i < x.size(); ++i)
        x.data()[i] += static_cast<real>(step) * leaves[inputs.size() + k].value().data()[i];
      moved.emplace_back(x);
    }
    return f(moved).value();
  };
  const double step = is_double ? 1e-5 : 1e-2;
  const Tensor y = with_tangents(leaves).value(), up = at(step), down = at(-step);
  for (Index i = 0; i < up.num_rows(); ++i)
    for (Index j = 0; j < up.row_size(); ++j) {
      const double slope = static_cast<double>(up.row(i)[j] - down.row(i)[j]) / (2 * step);
      CHECK(std::abs(slope - static_cast<double>(y.row(i)[up.row_size() + j])) <
            (is_double ? 1e-6 : 2e-2) * std::max(1.0, std::abs(slope)));
    }
}

}  // namespace

TEST_CASE("MACE: harmonics and tensor products of e3nn") {
  const Case golden("mace/e3nn");
  Tensor back = golden.tensor("vectors").clone();  // rows are those of the opposite vectors
  for (Index i = 0; i < back.size(); ++i) back.data()[i] *= -1;
  const HarmonicFunctions functions{.cutoff = 1, .num_basis = 1};
  const Variable y = slice_columns(harmonic_rows(back, {}, functions), 1, 17);
  CHECK(relative_error(y.value(), golden.tensor("harmonics")) < tolerance());
  // e3nn has rows [degree, channel, component], and products [path, channel, component]
  const auto product = std::make_shared<const TensorProduct>(3, 3, 3);
  const Tensor rows = golden.tensor("rows"), expected = golden.tensor("products");
  Tensor x(rows.shape()), z(expected.shape());
  REQUIRE(expected.row_size() == product->rows * 2);
  for (Index i = 0; i < x.num_rows(); ++i) {
    for (Index l = 0; l < 4; ++l)
      for (Index m = 0; m < 2 * l + 1; ++m)
        for (Index c = 0; c < 2; ++c)
          x.row(i)[(l * l + m) * 2 + c] = rows.row(i)[l * l * 2 + c * (2 * l + 1) + m];
    Index at = 0;
    for (const TensorPath& path : product->paths)
      for (Index c = 0; c < 2; ++c)
        for (Index m = 0; m < 2 * path.l3 + 1; ++m)
          z.row(i)[(path.out + m * path.stride) * 2 + c] = expected.row(i)[at++];
  }
  const Variable found =
      tensor_product_rows(x, golden.tensor("harmonics"), golden.tensor("weights"), product);
  CHECK(relative_error(found.value(), z) < tolerance());
}

TEST_CASE("MACE: energies, forces and virials of mace-torch, for every number of ranks") {
  const Communicator world = Communicator::world();
  for (const char* shape : {"mace/medium", "mace/density", "mace/large", "mace/scalars"}) {
    const Case golden(shape);
    Potential trained = golden_potential(golden), constant = golden_potential(golden, true);
    for (const std::string& name : structure_names)
      for (int way = 0; way < 3; ++way) {
        Potential& potential = way == 0 ? trained : constant;
        CAPTURE(shape);
        CAPTURE(name);
        GraphOptions options;
        options.reproducible = way == 2;
        const double list_cutoff = (way == 1 ? 1.2 : 1) * potential.cutoff();  // with edges that are 0
        const Structure s(world, golden, name, list_cutoff, options);
        const PotentialValues found = s.evaluate(potential);
        double energy = 0;
        for (const double each : s.values("energies")) energy += each;
        CHECK(std::abs(found.energy - energy) < (is_double ? 1e-10 : 1e-5) * std::max(1.0, std::abs(energy)));
        const std::vector<double> energies = s.mine(s.values("energies"), 1),
                                  forces = s.mine(s.values("forces"), 3);
        for (std::size_t i = 0; i < energies.size(); ++i)
          CHECK(std::abs(found.energies[i] - energies[i]) <
                (is_double ? 1e-10 : 1e-5) * std::max(1.0, std::abs(energies[i])));
        double largest = 1;
        for (const double each : s.values("forces")) largest = std::max(largest, std::abs(each));
        for (std::size_t i = 0; i < forces.size(); ++i)
          CHECK(std::abs(static_cast<double>(found.forces.data()[i]) - forces[i]) <
                (is_double ? 1e-9 : 1e-5) * largest);
        if (!s.cell().periodic[0]) continue;
        const std::vector<double> virial = s.values("virial");
        for (std::size_t k = 0; k < 9; ++k)
          CHECK(std::abs(found.virial[k] - virial[k]) < (is_double ? 1e-9 : 1e-4) * 5 * largest);
      }
  }
}

TEST_CASE("MACE: the same bits for every number of ranks with reproducible sums") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  const Case golden("mace/medium");
  Potential potential = golden_potential(golden, true);
  GraphOptions options;
  options.reproducible = true;
  const Structure whole(self, golden, "crystal", potential.cutoff(), options),
      part(world, golden, "crystal", potential.cutoff(), options);
  const PotentialValues one = whole.evaluate(potential), all = part.evaluate(potential);
  for (Index i = 0; i < all.forces.size(); ++i)
    CHECK(all.forces.data()[i] == one.forces.data()[part.begin * 3 + i]);
  for (std::size_t i = 0; i < all.energies.size(); ++i)
    CHECK(all.energies[i] == one.energies[static_cast<std::size_t>(part.begin) + i]);
}

TEST_CASE("MACE: derivatives of rows of edges, products and contractions by differences") {
  const Tensor d = random_tensor({7, 3}, 1), radii = Tensor::full({7, 1}, real{1.5});
  for (const DistanceTransform transform :
       {DistanceTransform::none, DistanceTransform::agnesi, DistanceTransform::soft}) {
    const HarmonicFunctions functions{.cutoff = 6, .num_basis = 4, .transform = transform};
    check_derivatives([&](const std::vector<Variable>& x) { return harmonic_rows(x[0], radii, functions); },
                      {d}, 1);
  }
  const Index feats = 18;  // vectors of channels, and a rest
  const auto product = std::make_shared<const TensorProduct>(1, 3, 3);
  check_derivatives(
      [&](const std::vector<Variable>& x) { return tensor_product_rows(x[0], x[1], x[2], product); },
      {random_tensor({5, 4 * feats}, 2), random_tensor({5, 16}, 3),
       random_tensor({5, std::ssize(product->paths) * feats}, 4)},
      3);
  const auto basis = std::make_shared<const SymmetricBasis>(2, 1, 3);
  const std::vector<Index> species{1, 0, 1, 1, 0};
  check_derivatives(
      [&](const std::vector<Variable>& x) { return symmetric_contraction(x[0], x[1], species, basis); },
      {random_tensor({5, 9 * feats}, 5), random_tensor({3, basis->paths, feats}, 6)}, 1);
}

TEST_CASE("MACE: energies are invariant under rotations and reflections, and forces rotate") {
  const Communicator self = Communicator::self();
  Generator gen(3);
  Potential potential(small(), gen);
  const double c = std::cos(0.7), s = std::sin(0.7);
  // a rotation about z, then about x, with a reflection
  const std::array<std::array<double, 3>, 3> turn{{{c, -s, 0}, {c * s, c * c, -s}, {-s * s, -s * c, -c}}};
  const std::vector<double> x{0, 0, 0, 1.1, 0.2, 0.1, -0.3, 1.2, 0.4, 0.5, -0.8, 1.3, 1.7, 1.1, -0.6};
  const auto turned = [&](const auto* v, std::size_t k) {
    return turn[k][0] * static_cast<double>(v[0]) + turn[k][1] * static_cast<double>(v[1]) +
           turn[k][2] * static_cast<double>(v[2]);
  };
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = turned(x.data() + i / 3 * 3, i % 3);
  const std::vector<Index> species{0, 1, 2, 1, 0};
  const auto evaluate = [&](const std::vector<double>& at) {
    const NeighborList list(self, at, Cell(), 3.5);
    return potential(list.graph(),
                     {.species = species, .positions = list.displacements(), .shifts = list.vectors()});
  };
  const PotentialValues a = evaluate(x), b = evaluate(y);
  CHECK(std::abs(a.energy - b.energy) < 100 * tolerance());
  for (Index i = 0; i < 5; ++i)
    for (std::size_t k = 0; k < 3; ++k)
      CHECK(std::abs(static_cast<double>(b.forces.row(i)[k]) - turned(a.forces.row(i), k)) <
            100 * tolerance());
}

TEST_CASE("MACE: gradients of a loss of energies and forces by differences, for every number of ranks") {
  const Communicator world = Communicator::world();
  const Case golden("mace/medium");
  Generator gen(5);
  ModelDescription described = small();
  described.committee = 2;
  Potential potential(described, gen);
  PotentialNetwork& network = potential.network();
  const Structure s(world, golden, "crystal", 3.5);
  const LabelledAtoms atoms{.species = s.species,
                            .positions = s.list.displacements(),
                            .shifts = s.list.vectors(),
                            .energies = Tensor::full({1}, -3),
                            .forces = random_tensor({s.end - s.begin, 3}, 7),
                            .stresses = Tensor::zeros({1, 3, 3}),
                            .volumes = Tensor::full({1}, 50)};
  const auto loss = [&] { return backward_potential_loss(network, s.list.graph(), atoms).loss; };
  (void)loss();
  gather_grads(world, network);
  std::vector<Tensor> gradients;
  double slope = 0;
  for (Variable each : network.parameters()) {
    REQUIRE(each.grad().defined());
    gradients.push_back(each.grad().clone());
    const Tensor direction = random_tensor(each.shape(), 9 + gradients.size());
    for (Index i = 0; i < direction.size(); ++i)
      slope += static_cast<double>(direction.data()[i]) * static_cast<double>(gradients.back().data()[i]);
  }
  const double step = is_double ? 1e-5 : 2e-3;
  const auto moved = [&](double by) {
    std::size_t number = 0;
    for (Variable each : network.parameters()) {
      const Tensor direction = random_tensor(each.shape(), 10 + number++);
      for (Index i = 0; i < direction.size(); ++i)
        each.value().data()[i] += static_cast<real>(by) * direction.data()[i];
      each.zero_grad();
    }
    return loss();
  };
  const double up = moved(step), down = moved(-2 * step), difference = (up - down) / (2 * step);
  CHECK(std::abs(slope - difference) < (is_double ? 1e-5 : 5e-2) * std::max(1.0, std::abs(difference)));
}

TEST_CASE("MACE: gradients of weights by the kernel of sums of messages are those of functions of edges") {
  const Communicator world = Communicator::world();
  for (const char* shape : {"mace/medium", "mace/density"})
    for (const bool with_forces : {true, false}) {
      CAPTURE(shape);
      CAPTURE(with_forces);
      const Case golden(shape);
      const auto gradients = [&](bool functions) {
        Potential potential = golden_potential(golden);
        GraphOptions options;
        options.reproducible = functions;
        const Structure s(world, golden, "crystal", 1.1 * potential.cutoff(), options);
        const Tensor labels = random_tensor({std::ssize(golden.indices("crystal.species")), 3}, 7);
        LabelledAtoms atoms{.species = s.species,
                            .positions = s.list.displacements(),
                            .shifts = s.list.vectors(),
                            .energies = Tensor::full({1}, -3)};
        if (with_forces) {
          atoms.forces = labels.slice_rows(s.begin, s.end).clone();
          atoms.stresses = Tensor::zeros({1, 3, 3});
          atoms.volumes = Tensor::full({1}, 50);
        }
        (void)backward_potential_loss(potential.network(), s.list.graph(), atoms);
        gather_grads(world, potential.network());
        std::vector<Tensor> found;
        for (const Variable& each : potential.network().parameters()) found.push_back(each.grad().clone());
        return found;
      };
      const std::vector<Tensor> kernel = gradients(false), functions = gradients(true);
      for (std::size_t k = 0; k < kernel.size(); ++k) {
        CAPTURE(k);
        CHECK(relative_error(kernel[k], functions[k]) < (is_double ? 1e-10 : 1e-4));
      }
    }
}

TEST_CASE("MACE: gradients of weights have the same bits for every number of ranks with reproducible sums") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  const Case golden("mace/density");
  GraphOptions options;
  options.reproducible = true;
  const auto gradients = [&](const Communicator& comm) {
    Potential potential = golden_potential(golden);
    const Structure s(comm, golden, "crystal", potential.cutoff(), options);
    const Tensor labels = random_tensor({std::ssize(golden.indices("crystal.species")), 3}, 7);
    const LabelledAtoms atoms{.species = s.species,
                              .positions = s.list.displacements(),
                              .shifts = s.list.vectors(),
                              .energies = Tensor::full({1}, -3),
                              .forces = labels.slice_rows(s.begin, s.end).clone(),
                              .stresses = Tensor::zeros({1, 3, 3}),
                              .volumes = Tensor::full({1}, 50)};
    const ReproducibleScope scope(comm);
    (void)backward_potential_loss(potential.network(), s.list.graph(), atoms);
    gather_grads(comm, potential.network());
    std::vector<Tensor> found;
    for (const Variable& each : potential.network().parameters()) found.push_back(each.grad().clone());
    return found;
  };
  const std::vector<Tensor> one = gradients(self), all = gradients(world);
  for (std::size_t k = 0; k < one.size(); ++k) CHECK(same_bits(one[k], all[k]));
}

TEST_CASE("MACE: initial weights are normal numbers times the factors of the learning rate") {
  ModelDescription described = small();
  described.hidden = 96;
  described.neighbors = 7;
  described.density = false;
  Generator gen(5);
  Potential potential(described, gen);
  const auto deviation = [](const Variable& x) {
    double squares = 0;
    for (const real each : x.value().values())
      squares += static_cast<double>(each) * static_cast<double>(each);
    return std::sqrt(squares / static_cast<double>(x.value().size()));
  };
  const std::map<std::string, double> factors =
      potential.network().lr_factors({{"layers.1", 0.5}, {"layers.1.radial.0", 2}});
  CHECK(factors.at("embedding") == doctest::Approx(1 / std::sqrt(3.0)));
  CHECK(factors.at("layers.0.linear.2.weight") == doctest::Approx(1 / std::sqrt(96.0) / 7));
  CHECK(factors.at("layers.1.linear.0.weight") == doctest::Approx(0.5 / std::sqrt(2 * 96.0) / 7));
  CHECK(factors.at("layers.1.radial.0.weight") == doctest::Approx(2 / std::sqrt(4.0)));
  CHECK(factors.at("layers.0.skip.1") == doctest::Approx(1 / std::sqrt(3 * 96.0)));
  CHECK_FALSE(factors.contains("layers.0.contraction"));
  for (const NamedParameter& each : potential.network().named_parameters()) {
    CAPTURE(each.name);
    const double expected = potential.network().lr_factor(each.name);
    if (!each.name.ends_with("contraction") && each.parameter.value().size() > 1000)
      CHECK(deviation(each.parameter) == doctest::Approx(expected).epsilon(0.1));
  }
  // Of the paths to scalars, the first is x_0, of one coupling; x_0 x_0 is one of 3 couplings of degree 2,
  // and x_0 x_1 x_1 has 3 couplings of 11 of degree 3.
  const SymmetricBasis basis(2, 1, 3);
  REQUIRE(basis.blocks[0].all_couplings == 1);
  REQUIRE(basis.blocks[2].all_couplings == 3);
  for (const NamedParameter& each : potential.network().named_parameters()) {
    if (each.name != "layers.0.contraction") continue;
    const auto of_path = [&](Index path) {
      double squares = 0;
      for (Index s = 0; s < 3; ++s)
        for (Index j = 0; j < 96; ++j)
          squares += std::pow(static_cast<double>(each.parameter.value().row(s)[path * 96 + j]), 2);
      return std::sqrt(squares / (3 * 96));
    };
    CHECK(of_path(0) == doctest::Approx(1).epsilon(0.15));
    CHECK(of_path(1) == doctest::Approx(1 / 3.0).epsilon(0.15));
    CHECK(of_path(5) == doctest::Approx(1 / std::sqrt(3.0) / 11).epsilon(0.15));
  }
}

TEST_CASE("RadialTable: the radial network and its derivative at any distance") {
  const HarmonicFunctions functions{.cutoff = 4.5, .num_basis = 8, .max_l = 0, .power = 5};
  std::vector<Tensor> network;
  for (const Shape& shape : {Shape{64, 8}, Shape{64, 64}, Shape{50, 64}})
    network.push_back((Variable(random_tensor(shape, network.size() + 3)) * real{0.1}).value());
  const Tensor density = random_tensor({1, 8}, 9);
  const RadialTable table(functions, network, density);
  CHECK(table.columns() < 40);
  const auto exact = [&](double r) {  // W a(r), and w . b behind it
    std::vector<double> row = radial_functions_at(r, functions), last;
    double root = 0;
    for (std::size_t k = 0; k < row.size(); ++k) root += static_cast<double>(density.data()[k]) * row[k];
    for (std::size_t k = 0; k < network.size(); ++k) {
      std::vector<double> next(static_cast<std::size_t>(network[k].num_rows()), 0);
      for (std::size_t i = 0; i < next.size(); ++i)
        for (std::size_t j = 0; j < row.size(); ++j)
          next[i] += static_cast<double>(network[k].row(static_cast<Index>(i))[j]) * row[j];
      for (double& x : next)
        if (k + 1 < network.size()) x /= 1 + std::exp(-x);
      row = std::move(next);
    }
    row.push_back(root);
    return row;
  };
  std::vector<real> phi(static_cast<std::size_t>(table.columns())), slopes(phi.size());
  const auto from_table = [&](const Tensor& last, const std::vector<real>& functions_at) {
    std::vector<double> row;
    for (Index c = 0; c < last.num_rows(); ++c) {
      double sum = 0;
      for (Index j = 0; j < last.row_size(); ++j)
        sum += static_cast<double>(last.row(c)[j]) *
               static_cast<double>(functions_at[static_cast<std::size_t>(j)]);
      row.push_back(sum);
    }
    row.push_back(static_cast<double>(functions_at.back()));
    return row;
  };
  double largest = 0, largest_slope = 0, error = 0, slope_error = 0;
  for (const double r : {0.02, 0.31, 0.77, 1.0, 1.4063, 2.2, 3.01, 3.99, 4.3, 4.4999}) {
    const double at = static_cast<double>(static_cast<real>(r)), step = 1e-5;
    table.write(static_cast<real>(r), 0, phi.data(), slopes.data());
    const Tensor& last = table.last(table.section_of(static_cast<real>(r)));
    const std::vector<double> value = exact(at), found = from_table(last, phi),
                              slope = from_table(last, slopes), up = exact(at + step),
                              down = exact(at - step);
    for (std::size_t c = 0; c < value.size(); ++c) {
      const double expected = (up[c] - down[c]) / (2 * step);
      largest = std::max(largest, std::abs(value[c]));
      largest_slope = std::max(largest_slope, std::abs(expected));
      error = std::max(error, std::abs(found[c] - value[c]));
      slope_error = std::max(slope_error, std::abs(slope[c] - expected));
    }
  }
  CHECK(error < (sizeof(real) == sizeof(float) ? 1e-6 : 1e-7) * largest);
  CHECK(slope_error < 2e-6 * largest_slope);
  for (const real r : {real{0}, real{4.5}, real{9}}) {
    table.write(r, 0, phi.data(), slopes.data());
    CHECK(std::ranges::all_of(phi, [](real x) { return x == 0; }));
    CHECK(std::ranges::all_of(slopes, [](real x) { return x == 0; }));
  }
  const real none = std::numeric_limits<real>::quiet_NaN();
  CHECK(table.section_of(none) == table.section_of(real{4.4999}));
  table.write(none, 0, phi.data(), slopes.data());
  CHECK(std::ranges::all_of(phi, [](real x) { return std::isnan(x); }));
  CHECK(std::ranges::all_of(slopes, [](real x) { return std::isnan(x); }));
  network[1].fill(0);
  const RadialTable of_zeros(functions, network, {});
  CHECK(of_zeros.columns() == 1);
  of_zeros.write(real{2}, 0, phi.data(), slopes.data());
  CHECK(phi[0] == 0);
  CHECK(slopes[0] == 0);
}

TEST_CASE("RadialTable: with a distance transform, of several sums of radii") {
  const HarmonicFunctions functions{
      .cutoff = 4.5, .num_basis = 8, .max_l = 0, .transform = DistanceTransform::agnesi};
  std::vector<Tensor> network;
  for (const Shape& shape : {Shape{32, 8}, Shape{32, 32}, Shape{20, 32}})
    network.push_back((Variable(random_tensor(shape, network.size() + 3)) * real{0.2}).value());
  const std::vector<real> radii{real{0.62}, real{1.42}, real{2.9}, real{4.4}};
  const RadialTable table(functions, network, {}, radii);
  std::vector<real> phi(static_cast<std::size_t>(table.columns())), slopes(phi.size());
  double largest = 0, error = 0;
  for (Index number = 0; number < 4; ++number) {
    const real sum = radii[static_cast<std::size_t>(number)];
    for (const real rounded : {real{1}, real{1.003}, real{0.997}})  // as a halo row in 8 bits has them
      CHECK(table.number_of(rounded * sum) == number);
    for (const double r : {0.31, 1.0, 1.4063, 2.2, 3.01, 3.99, 4.4999}) {
      std::vector<double> row = radial_functions_at(r, functions, static_cast<double>(sum));
      for (std::size_t k = 0; k < network.size(); ++k) {
        std::vector<double> next(static_cast<std::size_t>(network[k].num_rows()), 0);
        for (std::size_t i = 0; i < next.size(); ++i)
          for (std::size_t j = 0; j < row.size(); ++j)
            next[i] += static_cast<double>(network[k].row(static_cast<Index>(i))[j]) * row[j];
        for (double& x : next)
          if (k + 1 < network.size()) x /= 1 + std::exp(-x);
        row = std::move(next);
      }
      table.write(static_cast<real>(r), number, phi.data(), slopes.data());
      const Tensor& last = table.last(table.section_of(static_cast<real>(r)));
      for (Index c = 0; c < last.num_rows(); ++c) {
        double found = 0;
        for (Index j = 0; j < last.row_size(); ++j)
          found +=
              static_cast<double>(last.row(c)[j]) * static_cast<double>(phi[static_cast<std::size_t>(j)]);
        largest = std::max(largest, std::abs(row[static_cast<std::size_t>(c)]));
        error = std::max(error, std::abs(found - row[static_cast<std::size_t>(c)]));
      }
    }
  }
  CHECK(error < 1e-6 * largest);
}

TEST_CASE("MACE: constant weights that change have other energies at once") {
  const Communicator world = Communicator::world();
  const Case golden("mace/medium");
  Potential trained = golden_potential(golden), constant = golden_potential(golden, true);
  const Structure s(world, golden, structure_names[0], constant.cutoff(), {});
  const double before = s.evaluate(constant).energy;
  for (Potential* const each : {&trained, &constant})
    for (const NamedParameter& of : each->network().named_parameters())
      if (of.name.ends_with(".radial.1.weight"))
        each->network().set_parameter(of.name, (Variable(of.parameter.value()) * real{4}).value());
  const double after = s.evaluate(constant).energy;
  CHECK(std::abs(after - before) > 1e-3);
  CHECK(std::abs(after - s.evaluate(trained).energy) < (is_double ? 1e-10 : 1e-5) * std::abs(after));
}

TEST_CASE("MACE: positions on a graph whose halo rows are rounded are refused, whatever is differentiated") {
  const Communicator world = Communicator::world();
  WholeGraph whole{"all pairs", 12, 12, true, {}, {}};
  for (Index i = 0; i < 144; ++i)
    if (i / 12 != i % 12) {
      whole.src.push_back(i / 12);
      whole.dst.push_back(i % 12);
    }
  const Books books = test_books(whole, world.size()).front();
  const Graph graph = shard(world, whole, books, {.halo_format = HaloFormat::bf16});
  const Tensor x = my_rows(random_tensor({12, 3}, 1), books.dst, world.rank());
  Generator gen(1);
  MACEOptions options;
  options.num_species = 1;
  options.feats = 4;
  options.functions.max_l = 1;
  options.radial_feats = 8;
  MACE net(options, gen);
  const RowIds species(Array<Index>(static_cast<std::size_t>(x.num_rows()), 0));
  for (const bool wanted : {false, true}) {
    Tape tape;
    const Variable positions = make_dual(Variable(x, wanted), Variable(Tensor::full(x.shape(), 1)));
    const std::string text =
        thrown_by_all<InputError>(world, [&] { (void)net.head_energies(graph, species, positions); });
    CAPTURE(text);
    CHECK(text.find("positions of atoms on a graph whose halo rows are rounded") != std::string::npos);
  }
}

TEST_CASE("MACE: files, more species, wrong descriptions") {
  const Communicator world = Communicator::world();
  const Case golden("mace/density");
  Potential potential = golden_potential(golden, true);
  const TemporaryDirectory directory(world);
  const std::string path = directory.path() + "/mace.safetensors";
  save_potential(world, path, potential);
  const std::unique_ptr<Potential> loaded = load_potential(world, path);
  CHECK(loaded->description().to_json() == potential.description().to_json());
  CHECK(loaded->description().zbl_power == 5);
  CHECK(loaded->description().zbl_scale == potential.description().zbl_scale);
  CHECK(loaded->description().covalent_radii == potential.description().covalent_radii);
  const Structure s(world, golden, "thin", potential.cutoff());
  for (const std::string& name : structure_names) {
    const Structure each(world, golden, name, potential.cutoff());
    const PotentialValues found = each.evaluate(*loaded), wanted = each.evaluate(potential);
    CHECK(found.energy == wanted.energy);
    CHECK(same_bits(found.forces, wanted.forces));
  }

  Generator gen(3);
  Potential before(small(), gen);
  const std::vector<NewSpecies> added{{.name = "Ge", .like = "Si"}};
  const std::unique_ptr<Potential> after = with_species(before, added, gen);
  CHECK(same_bits(s.evaluate(*after).forces, s.evaluate(before).forces));
  Potential trained = golden_potential(golden);  // of a transform and ZBL
  const std::unique_ptr<Potential> with_radii = with_species(trained, added, gen);
  CHECK(with_radii->description().covalent_radii.back() == doctest::Approx(1.2));
  CHECK(same_bits(s.evaluate(*with_radii).forces, s.evaluate(trained).forces));

  const auto error_of = [&](const auto& change) {
    ModelDescription d = small();
    change(d);
    return thrown<InputError>([&] { static_cast<void>(d.checked()); });
  };
  CHECK(error_of([](ModelDescription& d) { d.hidden_l = 3; }) ==
        "the description.hidden_l is 3, expected a number up to .max_l, 2");
  CHECK(error_of([](ModelDescription& d) { d.correlation = 4; }) ==
        "the description.correlation is 4, expected a whole number from 1 to 3");
  CHECK(error_of([](ModelDescription& d) { d.distance_transform = "tanh"; }) ==
        "the description.distance_transform is 'tanh', expected none, agnesi or soft");
  CHECK(error_of([](ModelDescription& d) { d.distance_transform = "soft"; }) ==
        "the description.covalent_radii has 0 numbers, expected one for each of 3 species");
}
