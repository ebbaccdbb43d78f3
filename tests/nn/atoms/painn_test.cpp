// SPDX-License-Identifier: MIT

/// PaiNNConv against plain loops in double precision; energies and forces of PaiNN: differences, rotations,
/// ranks.
#include "graph/test_graphs.hpp"
#include "nn/conv/conv_cases.hpp"
#include "support/effort.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/atoms/painn.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

using Row = std::vector<double>;
using Vector = std::array<double, 3>;

constexpr Index feats = 3, num_basis = 4;
constexpr double cutoff = 2.5;

double silu_of(double x) {
  return x / (1 + std::exp(-x));
}

/// The layer by its formulas, in plain loops.
class Reference {
 public:
  explicit Reference(const Module& module) {
    for (const auto& [name, parameter] : module.named_parameters()) parameters_[name] = parameter.value();
  }

  /// s [nodes][F], v [nodes][F] of vectors, in place.
  void operator()(const WholeGraph& graph, const std::vector<Vector>& x, std::vector<Row>& s,
                  std::vector<std::vector<Vector>>& v) const {
    auto new_s = s;
    auto new_v = v;
    for (std::size_t k = 0; k < graph.src.size(); ++k)
      add_message(x[graph.src[k]], x[graph.dst[k]], s[graph.src[k]], v[graph.src[k]], new_s[graph.dst[k]],
                  new_v[graph.dst[k]]);
    for (std::size_t i = 0; i < s.size(); ++i) update(new_s[i], new_v[i]);
    s = new_s;
    v = new_v;
  }

 private:
  [[nodiscard]] Row linear(const std::string& name, const Row& x) const {
    const Tensor& weight = parameters_.at(name + ".weight");
    Row y(static_cast<std::size_t>(weight.num_rows()));
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (parameters_.contains(name + ".bias")) y[i] = parameters_.at(name + ".bias").data()[i];
      for (std::size_t j = 0; j < x.size(); ++j) y[i] += weight.row(static_cast<Index>(i))[j] * x[j];
    }
    return y;
  }
  [[nodiscard]] Row network(const std::string& name, const Row& x) const {
    Row hidden = linear(name + ".0", x);
    for (double& value : hidden) value = silu_of(value);
    return linear(name + ".2", hidden);
  }
  void add_message(const Vector& from, const Vector& to, const Row& s_u, const std::vector<Vector>& v_u,
                   Row& s, std::vector<Vector>& v) const {
    Vector d{};
    for (std::size_t c = 0; c < 3; ++c) d[c] = from[c] - to[c];
    const double r = std::sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    if (r >= cutoff) return;
    Row basis;
    for (Index k = 1; k <= num_basis; ++k) {
      const double wave = static_cast<double>(k) * std::numbers::pi / cutoff;
      basis.push_back(r > 0 ? std::sin(wave * r) / r : wave);
    }
    if (r > 0)
      for (double& component : d) component /= r;
    const Row phi = network("interatomic_context_net", s_u), filter = linear("filter_net", basis);
    const double share = 0.5 * (std::cos(std::numbers::pi * r / cutoff) + 1);
    for (std::size_t f = 0; f < feats; ++f) {
      const auto channel = [&](std::size_t part) {
        return phi[part * feats + f] * filter[part * feats + f] * share;
      };
      s[f] += channel(0);
      for (std::size_t c = 0; c < 3; ++c) v[f][c] += channel(1) * d[c] + channel(2) * v_u[f][c];
    }
  }
  void update(Row& s, std::vector<Vector>& v) const {
    std::vector<Vector> a(feats), b(feats);
    for (std::size_t c = 0; c < 3; ++c) {
      Row component;
      for (const Vector& vector : v) component.push_back(vector[c]);
      const Row mixed = linear("mu_channel_mix", component);
      for (std::size_t f = 0; f < feats; ++f) {
        a[f][c] = mixed[f];
        b[f][c] = mixed[feats + f];
      }
    }
    Row context = s;
    for (const Vector& vector : a)
      context.push_back(
          std::sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2] + 0.01));
    const Row channels = network("intraatomic_context_net", context);
    for (std::size_t f = 0; f < feats; ++f) {
      const double product = a[f][0] * b[f][0] + a[f][1] * b[f][1] + a[f][2] * b[f][2];
      s[f] += channels[f] + channels[2 * feats + f] * product;
      for (std::size_t c = 0; c < 3; ++c) v[f][c] += channels[feats + f] * b[f][c];
    }
  }

  std::map<std::string, Tensor> parameters_;
};

std::vector<Vector> vectors_of(const Tensor& x) {
  std::vector<Vector> vectors;
  for (Index i = 0; i < x.num_rows(); ++i) vectors.push_back({x.row(i)[0], x.row(i)[1], x.row(i)[2]});
  return vectors;
}

/// Atoms at random, and the pairs of them that are closer than a little more than the cutoff.
struct Molecule {
  Tensor x;
  std::vector<Index> species;
  WholeGraph graph;

  explicit Molecule(Index num_atoms, double margin = 0.4) : x({num_atoms, 3}) {
    const Random random({.seed = 3});
    for (Index i = 0; i < num_atoms; ++i) {
      species.push_back(i % 3);
      for (Index j = 0; j < 3; ++j)
        x.row(i)[j] = static_cast<real>(
            4 * random.uniform(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(j)));
    }
    graph = {"molecule", num_atoms, num_atoms, true, {}, {}};
    const auto at = vectors_of(x);
    for (Index u = 0; u < num_atoms; ++u)
      for (Index v = 0; v < num_atoms; ++v) {
        const double distance = std::hypot(at[u][0] - at[v][0], at[u][1] - at[v][1], at[u][2] - at[v][2]);
        if (u == v || distance > cutoff + margin) continue;
        graph.src.push_back(u);
        graph.dst.push_back(v);
      }
  }
};

/// What a rank has of a molecule.
struct Part {
  Graph graph;
  PartitionBook book;
  int rank;
  std::vector<Index> species;

  Part(const Communicator& comm, const Molecule& molecule, const Books& books,
       const GraphOptions& options = {})
      : graph(shard(comm, molecule.graph, books, options)),
        book(books.src),
        rank(comm.rank()),
        species(molecule.species.begin() + book.begin(rank), molecule.species.begin() + book.end(rank)) {}

  [[nodiscard]] Tensor mine(const Tensor& x) const { return my_rows(x, book, rank); }
  /// The rows of all ranks on every rank.
  [[nodiscard]] Tensor all(const Tensor& rows) const {
    Tensor whole = Tensor::zeros({book.num_nodes(), rows.row_size()});
    std::copy_n(rows.data(), rows.size(), whole.row(book.begin(rank)));
    return sum_over_ranks(graph.comm(), whole);
  }
  [[nodiscard]] EnergyAndForces operator()(const PaiNN& model, const Tensor& x) const {
    EnergyAndForces result = model.energy_and_forces(graph, species, mine(x));
    result.forces = all(result.forces);
    return result;
  }
};

PaiNN make_model() {
  Generator gen(4);
  return PaiNN({.num_species = 3, .feats = 4, .convs = 2, .cutoff = cutoff, .num_basis = 5}, gen);
}

/// A rotation by a random unit quaternion.
std::array<Vector, 3> rotation(std::uint64_t seed) {
  const Random random({.seed = seed});
  std::array<double, 4> q{};
  double squares = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    q[i] = random.normal(i);
    squares += q[i] * q[i];
  }
  for (double& value : q) value /= std::sqrt(squares);
  const auto [w, a, b, c] = q;
  return {{{1 - 2 * (b * b + c * c), 2 * (a * b - c * w), 2 * (a * c + b * w)},
           {2 * (a * b + c * w), 1 - 2 * (a * a + c * c), 2 * (b * c - a * w)},
           {2 * (a * c - b * w), 2 * (b * c + a * w), 1 - 2 * (a * a + b * b)}}};
}

Tensor turned(const Tensor& x, const std::array<Vector, 3>& by) {
  Tensor result(x.shape());
  for (Index i = 0; i < x.num_rows(); ++i)
    for (std::size_t c = 0; c < 3; ++c) {
      double sum = 0;
      for (std::size_t k = 0; k < 3; ++k) sum += by[c][k] * static_cast<double>(x.row(i)[k]);
      result.row(i)[c] = static_cast<real>(sum);
    }
  return result;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (Index i = 0; i < a.size(); ++i)
    largest =
        std::max(largest, std::abs(static_cast<double>(a.data()[i]) - static_cast<double>(b.data()[i])));
  return largest;
}

}  // namespace

TEST_CASE("PaiNNConv: by the formula, in all modes, with self loops and far edges") {
  const Communicator world = Communicator::world();
  for (const WholeGraph& whole : square_graphs())
    for (const bool with_vectors : {false, true}) {
      const Tensor s = random_values({whole.num_src, feats}, 1);
      const Tensor v = with_vectors ? random_values({whole.num_src, 3, feats}, 2)
                                    : Tensor::zeros({whole.num_src, 3, feats});
      const Tensor x = random_values({whole.num_src, 3}, 3);
      Generator gen(1);
      const PaiNNConv conv(feats, {.cutoff = cutoff, .num_basis = num_basis}, gen);

      std::vector<Row> expected_s;
      std::vector<std::vector<Vector>> expected_v;
      for (Index i = 0; i < whole.num_src; ++i) {
        expected_s.emplace_back(s.row(i), s.row(i) + feats);
        expected_v.emplace_back(feats);
        for (Index c = 0; c < 3; ++c)
          for (Index f = 0; f < feats; ++f) expected_v.back()[f][c] = v.row(i)[c * feats + f];
      }
      const Reference reference(conv);
      reference(whole, vectors_of(x), expected_s, expected_v);
      Tensor whole_s(s.shape()), whole_v(v.shape());
      for (Index i = 0; i < whole.num_src; ++i)
        for (Index f = 0; f < feats; ++f) {
          whole_s.row(i)[f] = static_cast<real>(expected_s[i][f]);
          for (Index c = 0; c < 3; ++c)
            whole_v.row(i)[c * feats + f] = static_cast<real>(expected_v[i][f][c]);
        }
      for (const Books& books : test_books(whole, world.size()))
        for (const GraphOptions& options : graph_ways()) {
          CAPTURE(whole.name);
          CAPTURE(with_vectors);
          const Graph graph = shard(world, whole, books, options);
          const auto mine = [&](const Tensor& rows) { return my_rows(rows, books.src, world.rank()); };
          const PaiNNRows found = conv(
              graph, {.scalars = mine(s), .vectors = with_vectors ? Variable(mine(v)) : Variable()}, mine(x));
          const Index first = books.src.begin(world.rank());
          CHECK(error_of_rows(found.scalars.value(), whole_s, first) < tolerance());
          CHECK(error_of_rows(found.vectors.value(), whole_v, first) < tolerance());
        }
    }
}

TEST_CASE("PaiNNConv: gradients of operands, positions and parameters against differences") {
  if (sizeof(real) < 8) return;  // differences need the digits
  const Communicator world = Communicator::world();
  const WholeGraph whole = random_graph("random", 12, 12, 40, 1);
  const auto check = [&](const Communicator& comm, const Books& books, const GradcheckOptions& options,
                         const GraphOptions& graph_options) {
    const Graph graph = shard(comm, whole, books, graph_options);
    Generator gen(1);
    PaiNNConv conv(2, {.cutoff = cutoff, .num_basis = 3}, gen);
    const auto variable = [&](const Shape& shape, std::uint64_t key) {
      return Variable(my_rows(random_values(shape, key), books.src, comm.rank()), true);
    };
    std::vector<Variable> inputs{variable({12, 2}, 1), variable({12, 3, 2}, 2), variable({12, 3}, 3)};
    for (const Variable& parameter : conv.parameters()) inputs.push_back(parameter);
    CHECK(gradcheck(
              [&](const auto& vars) {
                const PaiNNRows rows = conv(graph, {.scalars = vars[0], .vectors = vars[1]}, vars[2]);
                return concat_columns({rows.scalars, reshape(rows.vectors, {rows.vectors.num_rows(), 6})});
              },
              inputs, options) >= 0);
  };
  if (world.size() == 1 && !sanitized) check(world, test_books(whole, 1)[0], {}, {});  // element by element
  GradcheckOptions options;
  options.directions = 4;
  options.sum_over_ranks = [&](double x) { return world.all_reduce(x); };
  for (const Books& books : test_books(whole, world.size()))
    for (const GraphOptions& graph_options : graph_ways()) check(world, books, options, graph_options);
}

TEST_CASE("PaiNN: forces are the differences of energies, and the same for every number of ranks") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  const Molecule molecule(14);
  const PaiNN model = make_model();
  const EnergyAndForces one = Part(self, molecule, test_books(molecule.graph, 1)[0])(model, molecule.x);
  for (const Books& books : test_books(molecule.graph, world.size()))
    for (const GraphOptions& options : graph_ways()) {
      const EnergyAndForces found = Part(world, molecule, books, options)(model, molecule.x);
      CHECK(std::abs(found.energy - one.energy) < tolerance() * std::abs(one.energy));
      CHECK(error_of_part(found.forces, one.forces, one.forces) < 10 * tolerance());
    }
  if (sizeof(real) < 8) return;  // differences need the digits
  const Part part(world, molecule, test_books(molecule.graph, world.size()).back());
  Tensor x = molecule.x.clone();
  const double step = 1e-4;
  double largest = 0;
  for (Index i = 0; i < x.size(); i += sanitized ? 5 : 1) {
    const auto energy_at = [&](double moved) {
      x.data()[i] = molecule.x.data()[i] + static_cast<real>(moved);
      const auto value =
          static_cast<double>(model.energy(part.graph, part.species, part.mine(x)).value().item());
      x.data()[i] = molecule.x.data()[i];
      return value;
    };
    const double force = -(energy_at(step) - energy_at(-step)) / (2 * step);
    CHECK(std::abs(force - static_cast<double>(one.forces.data()[i])) < 1e-6);
    largest = std::max(largest, std::abs(force));
  }
  CHECK(largest > 1e-2);
}

TEST_CASE("PaiNN: energies do not change and forces turn when atoms are turned and moved") {
  if (sizeof(real) < 8) return;  // 1e-10
  const Communicator world = Communicator::world();
  const Molecule molecule(14);
  const PaiNN model = make_model();
  const Part part(world, molecule, test_books(molecule.graph, world.size())[0]);
  const EnergyAndForces before = part(model, molecule.x);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const auto by = rotation(seed);
    Tensor x = turned(molecule.x, by);
    for (Index i = 0; i < x.size(); ++i) x.data()[i] += static_cast<real>(i % 3) - static_cast<real>(seed);
    const EnergyAndForces after = part(model, x);
    CHECK(std::abs(after.energy - before.energy) < 1e-10);
    CHECK(largest_difference(after.forces, turned(before.forces, by)) < 1e-10);
  }
  Vector total{};
  for (Index i = 0; i < before.forces.size(); ++i)
    total[i % 3] += static_cast<double>(before.forces.data()[i]);
  for (const double component : total) CHECK(std::abs(component) < 1e-10);
}

TEST_CASE("PaiNN: edges beyond the cutoff count nothing, self loops are numbers") {
  const Communicator world = Communicator::world();
  const PaiNN model = make_model();
  const Molecule near(14, 0), far(14, 1e9);
  REQUIRE(far.graph.src.size() == 14 * 13);
  REQUIRE(near.graph.src.size() < 14 * 13);
  const Books books = test_books(near.graph, world.size())[0];
  const EnergyAndForces a = Part(world, near, books)(model, near.x);
  const EnergyAndForces b = Part(world, far, books)(model, far.x);
  CHECK(std::abs(a.energy - b.energy) < tolerance() * std::abs(a.energy));
  CHECK(error_of_part(b.forces, a.forces, a.forces) < 10 * tolerance());

  Molecule loops = near;
  for (Index i = 0; i < 14; ++i) {
    loops.graph.src.push_back(i);
    loops.graph.dst.push_back(i);
  }
  const EnergyAndForces c = Part(world, loops, books)(model, loops.x);
  CHECK(std::isfinite(c.energy));
  CHECK(std::abs(c.energy - a.energy) > 1e-6);
  for (const real value : c.forces.values()) CHECK(std::isfinite(value));
}

TEST_CASE("PaiNN: gradients of parameters are those of one rank; energies can be learned") {
  const Communicator world = Communicator::world(), self = Communicator::self();
  const Molecule molecule(14);
  const auto squared_error = [&](const PaiNN& model, const Part& part) {
    const Variable error = model.energy(part.graph, part.species, part.mine(molecule.x)) - real(-2.5);
    return error * error;
  };
  const auto gradients = [&](const Communicator& comm, PaiNN& model, const Books& books) {
    const Part part(comm, molecule, books);
    Tape tape;
    tape.backward(squared_error(model, part));
    gather_grads(comm, model);
    std::vector<Tensor> found;
    for (const Variable& parameter : model.parameters()) found.push_back(parameter.grad());
    // inference keeps them
    (void)model.energy_and_forces(part.graph, part.species, part.mine(molecule.x));
    for (std::size_t i = 0; i < found.size(); ++i)
      CHECK(error_of_part(model.parameters()[i].grad(), found[i], found[i]) == 0);
    model.zero_grad();
    (void)model.energy_and_forces(part.graph, part.species, part.mine(molecule.x));
    for (const Variable& parameter : model.parameters()) CHECK_FALSE(parameter.grad().defined());
    return found;
  };
  PaiNN model = make_model();
  const std::vector<Tensor> one = gradients(self, model, test_books(molecule.graph, 1)[0]);
  for (const Books& books : test_books(molecule.graph, world.size())) {
    const std::vector<Tensor> found = gradients(world, model, books);
    for (std::size_t i = 0; i < one.size(); ++i)
      CHECK(error_of_part(found[i], one[i], one[i]) < 10 * tolerance());
  }

  const Part part(world, molecule, test_books(molecule.graph, world.size())[0]);
  Adam optimizer(model.named_parameters(), {.lr = 0.01});
  std::vector<double> losses;
  for (int step = 0; step < 20; ++step) {
    Tape tape;
    const Variable loss = squared_error(model, part);
    losses.push_back(static_cast<double>(loss.value().item()));
    tape.backward(loss);
    gather_grads(world, model);
    optimizer.step();
    optimizer.zero_grad();
  }
  CHECK(losses.back() < 0.5 * losses.front());
}

TEST_CASE("PaiNN: names of parameters, errors") {
  const Communicator world = Communicator::world();
  const Molecule molecule(14);
  const Part part(world, molecule, test_books(molecule.graph, world.size())[0]);
  const PaiNN model = make_model();
  std::map<std::string, Shape> shapes;
  for (const auto& [name, parameter] : model.named_parameters()) shapes.emplace(name, parameter.shape());
  CHECK(shapes.at("embedding") == Shape{3, 4});
  CHECK(shapes.at("convs.1.interatomic_context_net.2.weight") == Shape{12, 4});
  CHECK(shapes.at("convs.0.filter_net.weight") == Shape{12, 5});
  CHECK(shapes.at("convs.0.mu_channel_mix.weight") == Shape{8, 4});
  CHECK_FALSE(shapes.contains("convs.0.mu_channel_mix.bias"));
  CHECK(shapes.at("convs.0.intraatomic_context_net.0.weight") == Shape{4, 8});
  CHECK(shapes.at("outnet.2.weight") == Shape{1, 2});

  Generator gen(1);
  CHECK(thrown<InputError>([&] { PaiNNConv(4, {.cutoff = 0}, gen); }) ==
        "PaiNNConv with the cutoff 0, expected a positive number");
  CHECK_THROWS_AS(PaiNNConv(0, {}, gen), InputError);
  CHECK_THROWS_AS(PaiNNConv(4, {.num_basis = 0}, gen), InputError);
  CHECK(thrown<InputError>([&] { PaiNN({.num_species = 0}, gen); }) ==
        "PaiNN of 0 species with 3 convolutions, expected 1 or more of both");

  const bool last = world.rank() == world.size() - 1;
  const Index n = part.graph.num_nodes();
  std::vector<Index> species = part.species;
  if (last && !species.empty()) species.back() = 3;
  CHECK(thrown_by_all<InputError>(world, [&] {
          (void)model.energy(part.graph, species, part.mine(molecule.x));
        }) == "PaiNN of 3 species got species 3");
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)model.energy_and_forces(part.graph, part.species, Tensor::zeros({n + (last ? 1 : 0), 3}));
        }).starts_with("PaiNNConv, positions have shape ["));
  Molecule half = molecule;  // each pair in one direction
  half.graph.src.clear();
  half.graph.dst.clear();
  for (std::size_t k = 0; k < molecule.graph.src.size(); ++k)
    if (molecule.graph.src[k] < molecule.graph.dst[k]) {
      half.graph.src.push_back(molecule.graph.src[k]);
      half.graph.dst.push_back(molecule.graph.dst[k]);
    }
  const Part half_part(world, half, test_books(half.graph, world.size())[0]);
  CHECK(thrown_by_all<InputError>(world, [&] {
          (void)model.energy(half_part.graph, half_part.species, half_part.mine(half.x));
        }).ends_with("expected all pairs in both directions (a full neighbor list)"));
  const PaiNNConv conv(4, {}, gen);
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)conv(part.graph,
                     {.scalars = Tensor::zeros({n, 4}), .vectors = Tensor::zeros({n, last ? 2 : 3, 4})},
                     Tensor::zeros({n, 3}));
        }).starts_with("PaiNNConv, vectors have shape ["));
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          (void)conv(part.graph, {.scalars = Tensor::zeros({n, last ? 5 : 4}), .vectors = {}},
                     Tensor::zeros({n, 3}));
        }).starts_with("PaiNNConv, scalars have shape ["));
}
