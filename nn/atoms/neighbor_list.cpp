// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/shard/graph_shard.hpp>
#include <sar/nn/atoms/neighbor_bins.hpp>
#include <sar/nn/atoms/neighbor_list.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

Vector3 at(std::span<const double> positions, Index i) {
  const auto k = static_cast<std::size_t>(3 * i);
  return {positions[k], positions[k + 1], positions[k + 2]};
}

/// Returns the cutoff of a list. Throws unless the arguments are valid.
double checked_cutoff(std::span<const double> positions, double cutoff, double margin) {
  require<ShapeError>(positions.size() % 3 == 0, "a neighbor list of ", positions.size(),
                      " coordinates, expected three for each atom");
  require<InputError>(cutoff > 0 && std::isfinite(cutoff), "a neighbor list with a cutoff of ", cutoff,
                      ", expected a positive number");
  require<InputError>(margin >= 0 && std::isfinite(margin), "a neighbor list with a margin of ", margin,
                      ", expected 0 or more");
  return cutoff + margin;
}

Index bin_of(Index bin) {
  return bin;
}
Index bin_of(const BinnedAtom& atom) {
  return atom.bin;
}

/// Sorts pairs by the atoms at one end, and keeps the order of pairs with the same one: a counting sort.
Array<Index> sorted_by(const Array<Index>& ends, Index num_atoms, const Array<Index>& pairs) {
  Array<Index> next(static_cast<std::size_t>(num_atoms + 1), 0), sorted(pairs.size());
  for (const Index atom : ends) ++next[atom + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (const Index pair : pairs) sorted[next[ends[pair]]++] = pair;
  return sorted;
}

/// Returns the order of pairs of the atoms 0, 1, ... by destination, then by source.
Array<Index> order_of(const AtomPairs& pairs, Index num_atoms) {
  const Array<Index> order = consecutive(0, std::ssize(pairs.src));
  return sorted_by(pairs.dst, num_atoms, sorted_by(pairs.src, num_atoms, order));
}

/// Collective. The bins of all ranks: each is kept by a rank that its number chooses, which receives its
/// atoms and the requests for them.
class BinDirectory {
 public:
  BinDirectory(const Communicator& comm, std::span<const BinnedAtom> mine) : comm_(comm) {
    const std::vector<BinnedAtom> sorted = by_keeper(mine);
    kept_ = comm.all_to_all_v(std::span(sorted), counts_).values;
    std::ranges::sort(kept_, {}, &BinnedAtom::bin);
  }

  /// Collective. Returns the atoms in distinct bins.
  [[nodiscard]] Array<BinnedAtom> atoms_in(std::span<const Index> bins) {
    const std::vector<Index> sorted = by_keeper(bins);
    const auto requests = comm_.all_to_all_v(std::span(sorted), counts_);
    std::vector<BinnedAtom> answers;
    std::vector<Index> lengths;
    const Index* request = requests.values.data();
    for (const Index count : requests.counts) {
      const std::size_t before = answers.size();
      for (Index k = 0; k < count; ++k) {
        const auto found = std::ranges::equal_range(kept_, *request++, {}, &BinnedAtom::bin);
        answers.insert(answers.end(), found.begin(), found.end());
      }
      lengths.push_back(static_cast<Index>(answers.size() - before));
    }
    const auto arrived = comm_.all_to_all_v(std::span<const BinnedAtom>(answers), lengths).values;
    Array<BinnedAtom> atoms(arrived.begin(), arrived.end());
    sort_by_bin(atoms);
    return atoms;
  }

 private:
  /// Returns the items sorted by the rank that keeps their bin, and sets counts_.
  template <class T>
  std::vector<T> by_keeper(std::span<const T> items) {
    const auto keeper = [&](const T& item) {
      const auto mixed = static_cast<std::uint64_t>(bin_of(item)) * 0x9E3779B97F4A7C15U;
      return (mixed >> 32) % static_cast<std::uint64_t>(comm_.size());
    };
    counts_.assign(static_cast<std::size_t>(comm_.size()), 0);
    for (const T& item : items) ++counts_[keeper(item)];
    std::vector<T> sorted(items.begin(), items.end());
    std::ranges::stable_sort(sorted, {}, keeper);
    return sorted;
  }

  Communicator comm_;
  std::vector<Index> counts_;
  std::vector<BinnedAtom> kept_;
};

}  // namespace

NeighborList::NeighborList(const Communicator& comm, std::span<const double> positions, const Cell& cell,
                           double cutoff, double margin, const GraphOptions& options)
    : comm_(comm), cutoff_(cutoff), margin_(margin), options_(options) {
  comm.agree([&] {
    built_ = build(positions, cell);
    displacements_ = Tensor::zeros({std::ssize(positions) / 3, 3});
  });
}

bool NeighborList::update(std::span<const double> positions, const Cell& cell) {
  return comm_.agree([&] {
    (void)checked_cutoff(positions, cutoff_, margin_);
    const CallScope scope(comm_, CollectiveCall("NeighborList::update").equal(cell));
    const CellBasis basis(cell);
    (void)range_of(basis, positions);
    const Built& built = *built_.get();
    Tensor moved({std::ssize(positions) / 3, 3});
    double farthest = std::numeric_limits<double>::infinity();
    if (cell == built.cell && positions.size() == built.positions.size()) {
      farthest = 0;
      for (Index i = 0; i < moved.num_rows(); ++i) {
        const Vector3 now = at(positions, i), before = at(built.positions, i);
        const Vector3 d =
            basis.without_translation({now[0] - before[0], now[1] - before[1], now[2] - before[2]});
        std::ranges::transform(d, moved.row(i), [](double x) { return static_cast<real>(x); });
        farthest = std::max(farthest, std::hypot(d[0], d[1], d[2]));
      }
    }
    const bool rebuild = comm_.all_reduce(farthest, ReduceOp::max) > margin_ / 2;
    if (rebuild) {
      built_ = build(positions, cell);
      moved = Tensor::zeros(moved.shape());
    }
    displacements_ = moved;
    return rebuild;
  });
}

std::shared_ptr<const NeighborList::Built> NeighborList::build(std::span<const double> positions,
                                                               const Cell& cell) const {
  const double reach = checked_cutoff(positions, cutoff_, margin_);
  const CallScope scope(comm_, CollectiveCall("NeighborList")
                                   .equal("cutoff", cutoff_)
                                   .equal("margin", margin_)
                                   .equal(cell)
                                   .equal(options_));
  const CellBasis basis(cell);
  CoordinateRange range = range_of(basis, positions);
  comm_.all_reduce(std::span<double>(range.min), ReduceOp::min);
  comm_.all_reduce(std::span<double>(range.max), ReduceOp::max);
  const PartitionBook book = gather_book(comm_, std::ssize(positions) / 3);
  require<InputError>(book.num_nodes() > 0, "a neighbor list of no atoms, expected at least one on any rank");
  const BinGrid grid(basis, reach, range);

  const Array<BinnedAtom> mine = placed(grid, positions, book.begin(comm_.rank()));
  std::vector<Index> bins;
  for (const Index bin : bins_of(mine))
    grid.each_neighbor(bin, [&](Index other, const Vector3&) { bins.push_back(other); });
  std::ranges::sort(bins);
  bins.erase(std::ranges::unique(bins).begin(), bins.end());
  const Array<BinnedAtom> sources = BinDirectory(comm_, mine).atoms_in(bins);
  AtomPairs pairs = find_pairs(grid, sources, mine);
  require_apart(grid, pairs);

  const Index first = gather_book(comm_, std::ssize(pairs.src)).begin(comm_.rank());
  EdgeList edges{.src = std::move(pairs.src), .dst = std::move(pairs.dst), .id = {}, .weight = {}};
  edges.id = consecutive(first, edges.size());
  const Graph graph(comm_, book, book, std::move(edges), /*is_block=*/true, options_);
  Tensor vectors({graph.num_edges(), 3});
  for (Index k = 0; k < vectors.num_rows(); ++k)
    for (Index j = 0; j < 3; ++j)
      vectors.row(k)[j] = static_cast<real>(pairs.vectors[3 * (graph.edge_ids()[k] - first) + j]);
  return std::make_shared<const Built>(
      Built{cell, Array<double>(positions.begin(), positions.end()), graph, std::move(vectors)});
}

GhostEdges edges_with_ghosts(std::span<const double> positions, Index num_owned, double cutoff,
                             std::span<const Index> ids) {
  require<ShapeError>(num_owned >= 0 && 3 * num_owned <= std::ssize(positions), "edges of ", num_owned,
                      " atoms among ", positions.size() / 3, " positions");
  require<ShapeError>(ids.empty() || 3 * ids.size() == positions.size(), "edges of atoms with ", ids.size(),
                      " ids for ", positions.size() / 3, " positions");
  const CellBasis space{Cell{}};
  const AtomNames names{ids};
  const BinGrid grid(space, checked_cutoff(positions, cutoff, 0), range_of(space, positions, names));
  const auto owned = positions.first(static_cast<std::size_t>(3 * num_owned));
  const AtomPairs pairs = find_pairs(grid, placed(grid, positions), placed(grid, owned));
  require_apart(grid, pairs, names);
  return {.src = {pairs.src.begin(), pairs.src.end()}, .dst = {pairs.dst.begin(), pairs.dst.end()}};
}

GraphSamples neighbor_samples(std::span<const SampleStructure> structures, double cutoff) {
  GraphSamples samples;
  Array<real> vectors;
  for (const auto& [id, positions, cell, numbers, name] : structures) {
    try {
      const CellBasis basis(cell);
      const AtomNames names{numbers};
      const BinGrid grid(basis, checked_cutoff(positions, cutoff, 0), range_of(basis, positions, names));
      const Array<BinnedAtom> atoms = placed(grid, positions);
      const AtomPairs pairs = find_pairs(grid, atoms, atoms);
      require_apart(grid, pairs, names);
      Array<Index> src, dst;
      for (const Index k : order_of(pairs, std::ssize(atoms))) {
        src.push_back(pairs.src[k]);
        dst.push_back(pairs.dst[k]);
        for (Index j = 0; j < 3; ++j) vectors.push_back(static_cast<real>(pairs.vectors[3 * k + j]));
      }
      samples.add(id, std::ssize(atoms), src, dst);
    } catch (const InputError& error) {
      throw InputError(concat(name.empty() ? concat("structure ", id) : name, ": ", error.what()));
    }
  }
  samples.edges.tensors["vectors"] = Tensor::from({samples.num_edges(), 3}, std::span<const real>(vectors));
  return samples;
}

}}  // namespace sar
