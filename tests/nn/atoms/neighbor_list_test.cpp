// SPDX-License-Identifier: MIT

/// Neighbor lists against a loop over all pairs and images, for all kinds of cells and distributions; PaiNN
/// on them; lists that are kept while atoms move; errors.
#include "support/effort.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/sampling/graph_samples.hpp>
#include <sar/nn/atoms/neighbor_list.hpp>
#include <sar/nn/atoms/painn.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr double cutoff = 2;
constexpr double inf = std::numeric_limits<double>::infinity();

double tolerance() {
  return sizeof(real) == 8 ? 1e-12 : 3e-6;
}

struct Crystal {
  std::string name;
  Cell cell;
  std::vector<double> x;

  [[nodiscard]] Index num_atoms() const { return std::ssize(x) / 3; }
  [[nodiscard]] std::span<const double> part(const PartitionBook& book, int rank) const {
    return std::span(x).subspan(static_cast<std::size_t>(3 * book.begin(rank)),
                                static_cast<std::size_t>(3 * book.num_nodes(rank)));
  }
};

/// Atoms at random in and around the cell.
Crystal random_crystal(const std::string& name, Index atoms, const Matrix3& vectors,
                       const std::array<bool, 3>& periodic) {
  Crystal crystal{name, {.vectors = vectors, .periodic = periodic}, {}};
  const Random random({.seed = 3, .stream = name.size()});
  for (Index i = 0; i < atoms; ++i) {
    Vector3 f;
    for (std::size_t k = 0; k < 3; ++k)
      f[k] = (periodic[k] ? 3 : 1) * random.uniform(static_cast<std::uint64_t>(i), k) - 1;
    for (std::size_t j = 0; j < 3; ++j)
      crystal.x.push_back(f[0] * vectors[0][j] + f[1] * vectors[1][j] + f[2] * vectors[2][j]);
  }
  return crystal;
}

const Matrix3 triclinic{{{5, 0.3, 0}, {-2.1, 4.5, 0.2}, {1.7, -1.5, 6}}};

std::vector<Crystal> crystals() {
  std::vector<Crystal> all{
      random_crystal("cubic", 60, {{{7, 0, 0}, {0, 7, 0}, {0, 0, 7}}}, {true, true, true}),
      random_crystal("triclinic", 40, triclinic, {true, true, true}),
      random_crystal("thin", 5, {{{0.9, 0, 0}, {0.3, 1.1, 0}, {0, 0.2, 4}}}, {true, true, true}),
      random_crystal("one atom", 1, {{{1.5, 0, 0}, {0, 1.6, 0}, {0, 0, 1.7}}}, {true, true, true}),
      random_crystal("long", 30, {{{1.2, 0, 0}, {0, 40, 0}, {0, 0, 1.9}}}, {true, true, false})};
  for (int bits = 0; bits < 7; ++bits)
    all.push_back(random_crystal("partly " + std::to_string(bits), 30, triclinic,
                                 {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0}));
  all.push_back(all.back());
  all.back().cell = {};
  all.back().name = "isolated";
  return all;
}

/// u, v and x_u + t - x_v.
using Edge = std::array<double, 5>;

/// All pairs of all images, by a loop.
std::vector<Edge> loop_over_images(const Crystal& crystal) {
  const int most = std::ranges::count(crystal.cell.periodic, true) == 3 && crystal.num_atoms() > 10 ? 4 : 8;
  std::vector<Edge> edges;
  const auto limit = [&](std::size_t k) { return crystal.cell.periodic[k] ? most : 0; };
  for (int a = -limit(0); a <= limit(0); ++a)
    for (int b = -limit(1); b <= limit(1); ++b)
      for (int c = -limit(2); c <= limit(2); ++c)
        for (Index u = 0; u < crystal.num_atoms(); ++u)
          for (Index v = 0; v < crystal.num_atoms(); ++v) {
            if (u == v && a == 0 && b == 0 && c == 0) continue;
            double d[3];
            for (std::size_t j = 0; j < 3; ++j)
              d[j] = crystal.x[static_cast<std::size_t>(3 * u) + j] -
                     crystal.x[static_cast<std::size_t>(3 * v) + j] + a * crystal.cell.vectors[0][j] +
                     b * crystal.cell.vectors[1][j] + c * crystal.cell.vectors[2][j];
            if (std::hypot(d[0], d[1], d[2]) < cutoff)
              edges.push_back({static_cast<double>(u), static_cast<double>(v), d[0], d[1], d[2]});
          }
  return edges;
}

/// The edges of all ranks, sorted.
std::vector<Edge> edges_of(const Graph& graph, const Tensor& vectors) {
  Tensor column({graph.num_nodes(), 1});
  for (Index i = 0; i < column.size(); ++i) column.data()[i] = static_cast<real>(graph.src_ids()[i]);
  const Variable ids(column);
  const Tensor src = graph.apply_edges([&](const EdgeBatch& batch) { return batch.src(ids); }).value();
  const Tensor dst = graph.apply_edges([&](const EdgeBatch& batch) { return batch.dst(ids); }).value();
  std::vector<Edge> edges;
  for (Index k = 0; k < graph.num_edges(); ++k)
    edges.push_back({src.data()[k], dst.data()[k], vectors.row(k)[0], vectors.row(k)[1], vectors.row(k)[2]});
  edges = graph.comm().all_gather(std::span<const Edge>(edges));
  std::ranges::sort(edges);
  return edges;
}

/// The number of edges that are in one list only.
Index num_different(const std::vector<Edge>& found, std::vector<Edge> expected) {
  std::ranges::sort(expected);
  Index missing = 0;
  for (const Edge& edge : found) {
    const auto begin = std::ranges::lower_bound(expected, Edge{edge[0], edge[1], -inf, -inf, -inf});
    const auto same = std::find_if(begin, expected.end(), [&](const Edge& other) {
      return edge[0] == other[0] && edge[1] == other[1] &&
             std::hypot(edge[2] - other[2], edge[3] - other[3], edge[4] - other[4]) < 1e-5;
    });
    if (same == expected.end())
      ++missing;
    else
      expected.erase(same);
  }
  return missing + std::ssize(expected);
}

PaiNN make_model() {
  Generator gen(4);
  return PaiNN({.num_species = 1, .feats = 4, .convs = 2, .cutoff = cutoff, .num_basis = 5}, gen);
}

EnergyAndForces energy_of(const NeighborList& list, const PaiNN& model) {
  const RowIds species(std::vector<Index>(static_cast<std::size_t>(list.graph().num_nodes()), 0));
  return model.energy_and_forces(list.graph(), species, list.displacements(), list.vectors());
}

}  // namespace

TEST_CASE("neighbor list: the pairs of a loop over all images, with the same bits for every distribution") {
  const Communicator world = Communicator::world();
  for (const Crystal& crystal : crystals()) {
    CAPTURE(crystal.name);
    const NeighborList one(Communicator::self(), crystal.x, crystal.cell, cutoff);
    const std::vector<Edge> expected = edges_of(one.graph(), one.vectors());
    CHECK(num_different(expected, loop_over_images(crystal)) == 0);
    CHECK(!expected.empty());
    for (const PartitionBook& book : row_splits(crystal.num_atoms(), world.size())) {
      const NeighborList list(world, crystal.part(book, world.rank()), crystal.cell, cutoff);
      CHECK(edges_of(list.graph(), list.vectors()) == expected);
    }
    const std::vector<SampleStructure> structures{{.id = 0, .positions = crystal.x, .cell = crystal.cell}};
    const SampleBatch batch(Communicator::self(), neighbor_samples(structures, cutoff));
    CHECK(num_different(edges_of(batch.graph(), batch.samples().edges.tensors.at("vectors")), expected) == 0);
  }
}

TEST_CASE("neighbor list: edges of a host with ghosts are all pairs that end at its own atoms") {
  for (const Index owned : {0, 1, 25, 40}) {
    const std::vector<double> x = random_crystal("host", 40, triclinic, {false, false, false}).x;
    std::vector<std::pair<Index, Index>> expected, found;
    for (Index v = 0; v < owned; ++v)
      for (Index u = 0; u < 40; ++u) {
        double squares = 0;
        for (std::size_t c = 0; c < 3; ++c) {
          const double d = x[static_cast<std::size_t>(3 * u) + c] - x[static_cast<std::size_t>(3 * v) + c];
          squares += d * d;
        }
        if (u != v && squares < cutoff * cutoff) expected.emplace_back(v, u);
      }
    const GhostEdges edges = edges_with_ghosts(x, owned, cutoff);
    for (std::size_t k = 0; k < edges.src.size(); ++k) found.emplace_back(edges.dst[k], edges.src[k]);
    std::ranges::sort(found);
    CHECK(found == expected);
    CHECK(expected.empty() == (owned == 0));
  }
  CHECK(edges_with_ghosts({}, 0, cutoff).src.empty());
  const std::vector<double> far{0, 0, 0, 1e9, 0, 0, 1, 0, 0};
  CHECK(edges_with_ghosts(far, 3, cutoff).src.size() == 2);
  CHECK_THROWS_AS((void)edges_with_ghosts(far, 4, cutoff), ShapeError);
  CHECK_THROWS_AS((void)edges_with_ghosts(far, 3, 0), InputError);
  CHECK_THROWS_AS((void)edges_with_ghosts(std::vector<double>{0, inf, 0}, 1, cutoff), InputError);
}

TEST_CASE("neighbor list: translated atoms and an equivalent cell have the energy and the forces of PaiNN") {
  const Communicator world = Communicator::world();
  const PaiNN model = make_model();
  for (const Crystal& crystal : crystals()) {
    if (std::ranges::count(crystal.cell.periodic, true) < 3) continue;
    CAPTURE(crystal.name);
    const EnergyAndForces expected =
        energy_of(NeighborList(Communicator::self(), crystal.x, crystal.cell, cutoff), model);
    Crystal moved = crystal, turned = crystal;
    for (Index i = 0; i < crystal.num_atoms(); i += 3)
      for (std::size_t j = 0; j < 3; ++j)
        moved.x[static_cast<std::size_t>(3 * i) + j] +=
            2 * crystal.cell.vectors[0][j] - 5 * crystal.cell.vectors[2][j];
    for (std::size_t j = 0; j < 3; ++j) {
      turned.cell.vectors[1][j] += crystal.cell.vectors[0][j];
      turned.cell.vectors[2][j] -= 2 * crystal.cell.vectors[1][j];
    }
    for (const Crystal& other : {crystal, moved, turned})
      for (const PartitionBook& book : row_splits(crystal.num_atoms(), world.size())) {
        const EnergyAndForces found = energy_of(
            NeighborList(world, other.part(book, world.rank()), other.cell, cutoff, /*margin=*/0.4), model);
        CHECK(std::abs(found.energy - expected.energy) < tolerance() * std::abs(expected.energy));
        CHECK(error_of_rows(found.forces, expected.forces, book.begin(world.rank())) < 20 * tolerance());
      }
  }
}

TEST_CASE("neighbor list: a margin keeps the graph while atoms move; all ranks decide alike") {
  const Communicator world = Communicator::world();
  const PaiNN model = make_model();
  const Crystal crystal = crystals()[1];
  for (const PartitionBook& book : row_splits(crystal.num_atoms(), world.size())) {
    NeighborList list(world, crystal.part(book, world.rank()), crystal.cell, cutoff, /*margin=*/0.6);
    const auto update = [&](const Crystal& to) {
      const bool rebuilt = list.update(to.part(book, world.rank()), to.cell);
      CHECK(world.all_equal(rebuilt ? 1 : 0));
      const NeighborList made(world, to.part(book, world.rank()), to.cell, cutoff);
      const EnergyAndForces expected = energy_of(made, model), found = energy_of(list, model);
      CHECK(std::abs(found.energy - expected.energy) < tolerance() * std::abs(expected.energy));
      CHECK(error_of_part(found.forces, expected.forces, expected.forces) < 30 * tolerance());
      return rebuilt;
    };
    Crystal moving = crystal;
    CHECK(!update(moving));
    const Random random({.seed = 2});
    for (std::size_t i = 0; i < moving.x.size(); ++i) moving.x[i] += 0.17 * (2 * random.uniform(i) - 1);
    CHECK(!update(moving));
    for (std::size_t j = 0; j < 3; ++j) moving.x[9 + j] += moving.cell.vectors[1][j];
    CHECK(!update(moving));
    moving.x[15] = crystal.x[15] + 0.301;
    moving.x[16] = crystal.x[16];
    moving.x[17] = crystal.x[17];
    CHECK(update(moving));
    CHECK(!update(moving));
    moving.cell.vectors[0][0] += 1e-3;
    CHECK(update(moving));
    Crystal fewer = moving;
    fewer.x.resize(fewer.x.size() - 3);
    const PartitionBook fewer_book = PartitionBook::even(fewer.num_atoms(), world.size());
    CHECK(list.update(fewer.part(fewer_book, world.rank()), fewer.cell));

    // refused: everything is as before
    const Index edges = list.graph().num_edges();
    const bool last = world.rank() == world.size() - 1;
    std::vector<double> wrong(fewer.part(fewer_book, world.rank()).begin(),
                              fewer.part(fewer_book, world.rank()).end());
    if (last) wrong[1] = std::nan("");
    CHECK(thrown_by_all<InputError>(world, [&] {
            list.update(wrong, fewer.cell);
          }).starts_with("a neighbor list with atom 0 at ("));
    CHECK(list.graph().num_edges() == edges);
    CHECK(!list.update(fewer.part(fewer_book, world.rank()), fewer.cell));
  }
}

TEST_CASE("neighbor list: what is refused, with one error on all ranks") {
  const Communicator world = Communicator::world();
  const Crystal crystal = crystals()[1];
  const PartitionBook book = PartitionBook::even(crystal.num_atoms(), world.size());
  const bool last = world.rank() == world.size() - 1;
  const auto refused = [&](std::vector<double> x, const Cell& cell, double with_cutoff, double margin = 0) {
    return thrown_by_all<InputError>(world,
                                     [&] { const NeighborList list(world, x, cell, with_cutoff, margin); });
  };
  const std::span<const double> part = crystal.part(book, world.rank());
  const std::vector<double> mine(part.begin(), part.end());
  for (const double wrong : {std::nan(""), inf, 2e9}) {
    std::vector<double> x = mine;
    if (last) x[4] = wrong;
    const std::string text = refused(x, crystal.cell, cutoff);
    CHECK(text.starts_with("a neighbor list with atom 1 at ("));
    CHECK(text.ends_with("expected coordinates of at most 1e+09"));
  }
  for (const double wrong : {0., -1., inf, std::nan("")})
    CHECK(refused(mine, crystal.cell, wrong).starts_with("a neighbor list with a cutoff of "));
  CHECK(refused(mine, crystal.cell, cutoff, -0.1) ==
        "a neighbor list with a margin of -0.1, expected 0 or more");
  Cell cell = crystal.cell;
  cell.vectors[2] = cell.vectors[0];
  CHECK(refused(mine, cell, cutoff).starts_with("a cell whose periodic vectors are linearly dependent: (5,"));
  cell.vectors[2] = {};
  CHECK(refused(mine, cell, cutoff).starts_with("a cell whose periodic vectors are linearly dependent: (5,"));
  cell.vectors[2] = {0, inf, 0};
  CHECK(refused(mine, cell, cutoff).starts_with("a cell with the vectors (5,"));
  cell.vectors[2] = {0, 0, 0.001};
  CHECK(refused(mine, cell, cutoff).find("reaches more than 100 images") != std::string::npos);
  CHECK(refused({}, crystal.cell, cutoff) ==
        "a neighbor list of no atoms, expected at least one on any rank");
  if (world.size() > 1) {
    cell = crystal.cell;
    cell.vectors[1][1] += last ? 1 : 0;
    CHECK(refused(mine, cell, cutoff).find("with a different cell on different ranks") != std::string::npos);
    CHECK(refused(mine, crystal.cell, last ? 1 : 2).find("with a different cutoff") != std::string::npos);
  }
  CHECK(thrown_by_all<ShapeError>(world, [&] {
          const NeighborList list(world, std::span(mine).first(last ? 2 : 3), crystal.cell, cutoff);
        }) == "a neighbor list of 2 coordinates, expected three for each atom");
  const std::vector<double> nan{0, 0, std::nan("")};
  const std::vector<SampleStructure> structures{{.id = 3, .positions = nan, .cell = {}}};
  CHECK(thrown<InputError>([&] {
          (void)neighbor_samples(structures, cutoff);
        }).starts_with("structure 3: a neighbor list with atom 0 at (0, 0, nan)"));
}

TEST_CASE("neighbor list: two atoms at the same place are refused by name, also an image and to rounding") {
  const Communicator world = Communicator::world();
  const Cell cell{.vectors = {{{3.1, 0.2, 0}, {0, 4, 0}, {0, 0.3, 5}}}, .periodic = {true, true, true}};
  const std::string refused = " at the same place (their distance is ";
  for (const bool image : {false, true}) {
    // atoms 1 and 4 of five
    std::vector<double> x{0, 0, 0, 0.7, 0.9, 1.1, 1.5, 1, 3, 2.5, 3, 4, 0.7, 0.9, 1.1};
    for (std::size_t k = 0; image && k < 3; ++k) x[12 + k] += cell.vectors[0][k] - 2 * cell.vectors[2][k];
    for (const PartitionBook& book : row_splits(5, world.size())) {
      const auto mine = std::span(x).subspan(static_cast<std::size_t>(3 * book.begin(world.rank())),
                                             static_cast<std::size_t>(3 * book.num_nodes(world.rank())));
      const std::string text =
          thrown_by_all<InputError>(world, [&] { NeighborList(world, mine, cell, cutoff); });
      CHECK((text.starts_with("a neighbor list with the atoms 4 and 1" + refused) ||
             text.starts_with("a neighbor list with the atoms 1 and 4" + refused)));
    }
    const std::vector<Index> numbers{10, 11, 12, 13, 14};
    const std::vector<SampleStructure> structures{
        {.id = 3, .positions = x, .cell = cell, .numbers = numbers, .name = "si.xyz: structure 3"}};
    const std::string text = thrown<InputError>([&] { (void)neighbor_samples(structures, cutoff); });
    CHECK(text.starts_with("si.xyz: structure 3: a neighbor list with the atoms 1"));
    CHECK(text.find(" and 1") != std::string::npos);
    if (image) continue;
    CHECK(thrown<InputError>([&] {
            (void)edges_with_ghosts(x, 2, cutoff, numbers);
          }).starts_with("a neighbor list with the atoms 14 and 11" + refused + "0)"));
    CHECK_THROWS_AS((void)edges_with_ghosts(x, 2, cutoff, std::span(numbers).first(2)), ShapeError);
  }
}
