// SPDX-License-Identifier: MIT

/// For tests of potentials: atoms in a periodic box and their pairs.
#pragma once

#include "graph/test_graphs.hpp"
#include "support/golden_graph.hpp"
#include "support/rows.hpp"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

namespace sar::test {

using Vector = std::array<double, 3>;

inline constexpr double crystal_cutoff = 2;
inline constexpr Vector unit_box{1.75, 3, 2.75};

/// Atoms in a periodic box, and the pairs of atoms and of images of atoms that are closer than a little more
/// than the cutoff. An atom has several images of others, and of itself, around it.
struct Crystal {
  Vector box;
  Tensor x;
  std::vector<Index> species;
  WholeGraph graph;
  Tensor shifts;  ///< of all edges

  Crystal(const Vector& sides, Tensor positions)
      : box(sides), x(std::move(positions)), graph{"crystal", x.num_rows(), x.num_rows(), true, {}, {}} {
    std::vector<double> found;
    for (Index i = 0; i < x.num_rows(); ++i) species.push_back(i % 2);
    for (Index u = 0; u < x.num_rows(); ++u)
      for (Index v = 0; v < x.num_rows(); ++v)
        for (int a = -2; a <= 2; ++a)
          for (int b = -2; b <= 2; ++b)
            for (int c = -2; c <= 2; ++c) {
              const Vector shift{a * box[0], b * box[1], c * box[2]};
              double squares = 0;
              for (std::size_t k = 0; k < 3; ++k)
                squares += std::pow(x.row(u)[k] + shift[k] - x.row(v)[k], 2);
              if (squares == 0 || std::sqrt(squares) > crystal_cutoff + 0.2) continue;
              graph.src.push_back(u);
              graph.dst.push_back(v);
              found.insert(found.end(), shift.begin(), shift.end());
            }
    shifts = to_tensor(found, {static_cast<Index>(graph.src.size()), 3});
  }
};

/// Eight atoms.
inline Crystal unit_crystal() {
  const Random random({.seed = 3});
  Tensor x({8, 3});
  for (Index i = 0; i < x.size(); ++i)
    x.data()[i] = static_cast<real>(unit_box[i % 3] * random.uniform(static_cast<std::uint64_t>(i)));
  return {unit_box, x};
}

/// What a rank has of a crystal.
struct CrystalPart {
  const Crystal& crystal;
  PartitionBook book;
  int rank;
  Graph graph;
  std::vector<Index> species;
  Tensor shifts;

  CrystalPart(const Communicator& comm, const Crystal& whole, const Books& books,
              const GraphOptions& options = {})
      : crystal(whole),
        book(books.src),
        rank(comm.rank()),
        graph(shard(comm, whole.graph, books, options)),
        species(whole.species.begin() + book.begin(rank), whole.species.begin() + book.end(rank)),
        shifts(GoldenGraph::rows(whole.shifts, graph.edge_ids())) {}

  [[nodiscard]] Tensor mine(const Tensor& x) const { return my_rows(x, book, rank); }
};

}  // namespace sar::test
