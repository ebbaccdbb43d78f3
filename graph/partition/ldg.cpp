// SPDX-License-Identifier: MIT

// A pass reads the list of neighbors of every node of the slice once. For a node: O(neighbors) to count
// them by part, O(parts among them) for the scores, and O(parts) if none of these has room. Random reads:
// the parts of the neighbors, 4 bytes each.
//
// A batch ends with an all_reduce of the loads (16 bytes per part and load, and 8 more if a part is
// overfilled) and with 8 bytes for each move and rank that has a copy of the node.
#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/graph/partition/ldg.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// Builds the lists in two passes over the edges. Both send each edge to the owners of its two ends. The
// first pass counts neighbors and collects the ids of remote nodes; the second one writes the neighbors at
// the offsets that follow from the counts. Received edges are never stored.

namespace {

constexpr Index chunk_size = Index{1} << 18;  // edges per exchange

/// A node of the receiver's slice and the other end of one of its edges.
struct Half {
  std::uint32_t node;
  std::uint32_t other;
};

/// The owner in PartitionBook::even, computed without a search.
class EvenSlices {
 public:
  EvenSlices(Index num_nodes, int ranks)
      : size_(static_cast<std::uint32_t>(num_nodes / ranks)),
        longer_(static_cast<std::uint32_t>(num_nodes % ranks)),
        end_of_longer_(longer_ * (size_ + 1)) {}

  [[nodiscard]] std::uint32_t owner(std::uint32_t node) const noexcept {
    return node < end_of_longer_ ? node / (size_ + 1) : longer_ + (node - end_of_longer_) / size_;
  }
  [[nodiscard]] std::uint32_t begin(std::uint32_t rank) const noexcept {
    return rank * size_ + std::min(rank, longer_);
  }

 private:
  std::uint32_t size_;  // size of the shorter slices
  std::uint32_t longer_;
  std::uint32_t end_of_longer_;
};

/// Sends edges to the owner of one of their ends, in chunks.
class HalfEdges {
 public:
  HalfEdges(const Communicator& comm, Index num_nodes, const EdgeList& edges)
      : comm_(comm),
        edges_(edges),
        slices_(num_nodes, comm.size()),
        chunks_(comm.all_reduce((edges.size() + chunk_size - 1) / chunk_size, ReduceOp::max)) {}

  /// Calls take(half, is_in_edge) for each edge and each of its ends that belongs to this rank.
  template <class Take>
  void for_each(const Take& take) {
    for (Index c = 0; c < chunks_; ++c) {
      const Index begin = std::min(edges_.size(), c * chunk_size);
      const Index end = std::min(edges_.size(), begin + chunk_size);
      for (const Half& half : exchange(edges_.dst, edges_.src, begin, end)) take(half, true);
      for (const Half& half : exchange(edges_.src, edges_.dst, begin, end)) take(half, false);
    }
  }

 private:
  Array<Half> exchange(const Array<Index>& nodes, const Array<Index>& others, Index begin, Index end) {
    owners_.resize(end - begin);
    halves_.resize(end - begin);
    for (Index e = begin; e < end; ++e) {
      const auto node = static_cast<std::uint32_t>(nodes[e]);
      const std::uint32_t owner = slices_.owner(node);
      owners_[e - begin] = static_cast<std::int32_t>(owner);
      halves_[e - begin] = {node - slices_.begin(owner), static_cast<std::uint32_t>(others[e])};
    }
    return RowRoute(comm_, owners_).forward(std::span<const Half>(halves_));
  }

  const Communicator& comm_;
  const EdgeList& edges_;
  EvenSlices slices_;
  Index chunks_;
  std::vector<std::int32_t> owners_;
  std::vector<Half> halves_;
};

/// Tells the owners of remote nodes which ranks read them. Collective.
void find_copies(const Communicator& comm, const PartitionBook& slices, const Array<Index>& remote,
                 NeighborLists& lists) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<Index> counts(ranks, 0);
  Array<std::uint32_t> wanted;
  wanted.reserve(remote.size());
  lists.remote_ids.reserve(remote.size());
  for (const Index node : remote) {
    const int owner = slices.owner(node);
    ++counts[owner];
    lists.remote_ids.push_back(static_cast<std::uint32_t>(node));
    wanted.push_back(static_cast<std::uint32_t>(node - slices.begin(owner)));
  }
  const Index num_nodes = lists.num_nodes();
  lists.num_values = num_nodes + static_cast<Index>(wanted.size());
  lists.first_of_sender.assign(ranks, num_nodes);
  for (std::size_t p = 1; p < ranks; ++p)
    lists.first_of_sender[p] = lists.first_of_sender[p - 1] + counts[p - 1];

  const auto asked = comm.all_to_all_v(std::span<const std::uint32_t>(wanted), counts);
  wanted = {};
  Array<Index>& ends = lists.copy_offsets;
  ends.assign(num_nodes + 1, 0);
  for (const std::uint32_t node : asked.values) ++ends[node + 1];
  for (std::size_t i = 1; i < ends.size(); ++i) ends[i] += ends[i - 1];
  lists.copies.resize(asked.values.size());
  Array<Index> next(ends);
  std::size_t at = 0;
  for (std::size_t p = 0; p < ranks; ++p)
    for (Index k = 0; k < asked.counts[p]; ++k)
      lists.copies[next[asked.values[at++]]++] = {static_cast<std::int32_t>(p),
                                                  static_cast<std::uint32_t>(k)};
}

}  // namespace

NeighborLists gather_neighbors(const Communicator& comm, Index num_nodes, const EdgeList& edges) {
  require<InputError>(num_nodes < Index{1} << 32, "the graph has ", num_nodes,
                      " nodes, expected fewer than 2^32");
  const PartitionBook slices = PartitionBook::even(num_nodes, comm.size());
  const auto first = static_cast<std::uint32_t>(slices.begin(comm.rank()));
  const auto count = static_cast<std::size_t>(slices.num_nodes(comm.rank()));
  const auto is_mine = [&](std::uint32_t node) { return node - first < count; };  // node < first wraps around
  HalfEdges halves(comm, num_nodes, edges);

  NeighborLists lists;
  lists.in_degrees.assign(count, 0);
  lists.offsets.assign(count + 1, 0);
  DistinctIds remote(num_nodes);
  halves.for_each([&](const Half& half, bool is_in_edge) {
    lists.in_degrees[half.node] += is_in_edge;
    if (half.other == first + half.node) return;
    ++lists.offsets[half.node + 1];
    if (!is_mine(half.other)) remote.insert(half.other);
  });
  for (std::size_t i = 1; i <= count; ++i) lists.offsets[i] += lists.offsets[i - 1];
  remote.make_numbers();
  find_copies(comm, slices, remote.members(), lists);

  lists.neighbors.resize(lists.offsets.back());
  Array<Index> next(lists.offsets.begin(), lists.offsets.end() - 1);
  halves.for_each([&](const Half& half, bool) {
    if (half.other == first + half.node) return;
    lists.neighbors[next[half.node]++] =
        is_mine(half.other)
            ? half.other - first
            : static_cast<std::uint32_t>(count) + static_cast<std::uint32_t>(remote.number(half.other));
  });
  return lists;
}

namespace {

constexpr std::int32_t nowhere = -1;
constexpr double slack = 1.05;        // capacity of a part relative to the average
constexpr Index min_batches = 128;    // exchanges per pass, if the slices have as many nodes
constexpr Index batches_of_part = 4;  // exchanges per part
constexpr int max_trials = 4;         // extra exchanges after a pass, for waiting nodes
constexpr Index still_moving = 512;   // another pass follows if at least 1/still_moving of the nodes moved

/// What a node adds to the loads of its part: 1 for the node, its in-edges, 1 if it is a training node.
/// Values that are not balanced are 0 for all nodes. The nodes of each type are a separate load.
struct Weights {
  std::array<std::int64_t, 3> values;
  std::size_t type;
};

/// The loads of each part: the state at the last exchange plus this rank's moves since then.
class Loads {
 public:
  /// `totals`: one value per node type, then in-edges and training nodes.
  Loads(const Communicator& comm, int parts, std::span<const std::int64_t> totals)
      : comm_(comm),
        parts_(parts),
        capacity_(totals.size()),
        known_(parts * totals.size(), 0),
        mine_(known_) {
    for (std::size_t c = 0; c < totals.size(); ++c) {
      const double average = static_cast<double>(totals[c]) / parts;
      capacity_[c] = std::max(std::ceil(average), std::floor(slack * average));
    }
  }

  /// The number of loads, and the load that weight `c` of a node adds to.
  [[nodiscard]] std::size_t kinds() const { return capacity_.size(); }
  [[nodiscard]] std::size_t kind(const Weights& node, std::size_t c) const {
    return c == 0 ? node.type : kinds() - node.values.size() + c;
  }

  void add(std::int32_t part, const Weights& weights) { change(part, weights, 1); }
  void remove(std::int32_t part, const Weights& weights) { change(part, weights, -1); }

  /// Returns the part's load relative to its capacity, over the loads that this node adds to.
  [[nodiscard]] double load(std::int32_t part, const Weights& node) const { return load(part, node, 0); }
  /// Returns the load with the node in the part. The node does not fit if it exceeds 1.
  [[nodiscard]] double load_with(std::int32_t part, const Weights& node) const { return load(part, node, 1); }
  /// Returns the least loaded part. For equal loads, ranks search from different starting parts, so that they
  /// do not choose the same one.
  [[nodiscard]] std::int32_t least_loaded(const Weights& node) const {
    const Index first = Index{comm_.rank()} * parts_ / comm_.size();
    std::int32_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (Index i = 0; i < parts_; ++i) {
      const auto part = static_cast<std::int32_t>((first + i) % parts_);
      if (const double l = load_with(part, node); l < least) {
        least = l;
        best = part;
      }
    }
    return best;
  }

  /// Exchanges the moves of the ranks. If the ranks together overfill a part, first calls take_back(surplus),
  /// where surplus[p * kinds() + k] is this rank's share of the surplus of part p; take_back subtracts what
  /// it removes. Collective.
  template <class TakeBack>
  void agree(const TakeBack& take_back) {
    Array<std::int64_t> sums = mine_;
    const std::size_t count = sums.size();
    for (std::size_t i = 0; i < count; ++i) sums.push_back(std::max<std::int64_t>(sums[i], 0));
    comm_.all_reduce(std::span<std::int64_t>(sums));
    std::vector<double> surplus(count, 0);
    bool overfilled = false;
    for (std::size_t i = 0; i < count; ++i) {
      const auto gain = static_cast<double>(sums[count + i]);
      const double over = std::min(static_cast<double>(known_[i]) + gain - capacity_[i % kinds()], gain);
      if (over <= 0) continue;
      overfilled = true;
      surplus[i] = over * static_cast<double>(std::max<std::int64_t>(mine_[i], 0)) / gain;
    }
    if (overfilled) {
      take_back(surplus);
      sums = mine_;
      comm_.all_reduce(std::span<std::int64_t>(sums));
    }
    for (std::size_t i = 0; i < count; ++i) known_[i] += sums[i];
    mine_.assign(mine_.size(), 0);
  }

 private:
  [[nodiscard]] double load(std::int32_t part, const Weights& node, int times) const {
    double largest = 0;
    for (std::size_t c = 0; c < node.values.size(); ++c)
      if (node.values[c] > 0) {
        const std::size_t k = kind(node, c), i = part * kinds() + k;
        const std::int64_t sum = known_[i] + mine_[i] + times * node.values[c];
        largest = std::max(largest, static_cast<double>(sum) / capacity_[k]);
      }
    return largest;
  }
  void change(std::int32_t part, const Weights& weights, int times) {
    for (std::size_t c = 0; c < weights.values.size(); ++c)
      mine_[part * kinds() + kind(weights, c)] += times * weights.values[c];
  }

  const Communicator& comm_;
  int parts_;
  std::vector<double> capacity_;
  Array<std::int64_t> known_;  // [parts, kinds]
  Array<std::int64_t> mine_;
};

/// Streams the nodes of this rank's slice in batches, with an exchange of moves after each batch.
class Stream {
 public:
  Stream(const Communicator& comm, Index num_nodes, NeighborLists lists, const AssignmentOptions& options)
      : comm_(comm),
        options_(options),
        lists_(std::move(lists)),
        first_(PartitionBook::even(num_nodes, comm.size()).begin(comm.rank())),
        loads_(comm, options.parts, total_weights()),
        part_of_(static_cast<std::size_t>(lists_.num_values), nowhere),
        neighbors_in_(static_cast<std::size_t>(options.parts), 0),
        changes_(static_cast<std::size_t>(comm.size())) {
    const Index largest_slice = PartitionBook::even(num_nodes, comm.size()).num_nodes(0);
    const Index batches = std::max(min_batches, batches_of_part * options.parts);
    const Index full_size = (largest_slice + batches - 1) / batches;
    for (Index end = 0, size = 1; end < largest_slice; size = std::min(2 * size, full_size))
      batch_ends_.push_back(end += size);
  }

  /// Starts from an assignment; from now on only nodes of parts above their capacities move. Collective.
  void keep(std::span<const std::int32_t> part_of) {
    keep_ = true;
    for (Index v = 0; v < lists_.num_nodes(); ++v) {
      loads_.add(part_of[v], weights(v));
      moves_.push_back({v, nowhere, part_of[v], true});
      part_of_[v] = part_of[v];
    }
    settle(false);
  }

  /// Streams all nodes once. Returns the number of moved nodes over all ranks.
  Index pass() {
    Index moved = 0;
    Index v = 0;
    for (const Index end : batch_ends_) {
      place_waiting();
      for (; v < std::min(end, lists_.num_nodes()); ++v) place(v);
      moved += settle(true);
    }
    for (int trial = 1; comm_.all_reduce(std::ssize(waiting_)) > 0; ++trial) {
      place_waiting();
      moved += settle(trial < max_trials);
    }
    return comm_.all_reduce(moved);
  }

  Array<std::int32_t> take_result() {
    part_of_.resize(lists_.num_nodes());
    return std::move(part_of_);
  }

 private:
  struct Move {
    Index node;
    std::int32_t from;
    std::int32_t to;
    bool fits;  // within the capacities, as far as this rank knows
  };
  struct Change {
    std::uint32_t position;
    std::int32_t part;
  };

  [[nodiscard]] Weights weights(Index v) const {
    const auto i = static_cast<std::size_t>(v);
    return {{1, options_.balance_edges ? lists_.in_degrees[i] : 0,
             options_.train_mask.empty() ? 0 : options_.train_mask[i] != 0},
            type_of(v)};
  }
  [[nodiscard]] std::size_t type_of(Index v) const {
    const std::span<const Index> first = options_.first_of_type;
    return static_cast<std::size_t>(std::ranges::upper_bound(first, first_ + v) - first.begin()) - 1;
  }

  /// Returns the totals of nodes of each type, in-edges and training nodes. Collective.
  [[nodiscard]] Array<std::int64_t> total_weights() const {
    const std::size_t types = options_.first_of_type.size() - 1;
    Array<std::int64_t> total(types + 2, 0);
    for (Index v = 0; v < lists_.num_nodes(); ++v) {
      const Weights more = weights(v);
      total[more.type] += more.values[0];
      for (std::size_t c = 1; c < more.values.size(); ++c) total[types - 1 + c] += more.values[c];
    }
    comm_.all_reduce(std::span<std::int64_t>(total));
    return total;
  }

  void place_waiting() {
    for (const Index v : std::exchange(waiting_, {})) place(v);
  }

  void place(Index v) {
    const Weights mine = weights(v);
    std::int32_t& part = part_of_[v];
    if (keep_ && loads_.load(part, mine) <= 1) return;
    if (part != nowhere) loads_.remove(part, mine);
    const std::int32_t chosen = choose(v, mine);
    const bool fits = loads_.load_with(chosen, mine) <= 1;
    loads_.add(chosen, mine);
    if (chosen != part) moves_.push_back({v, part, chosen, fits});
    part = chosen;
  }

  /// Ends a batch: takes back moves where the ranks together overfill a part, if that is allowed, and sends
  /// the remaining ones to the other ranks. Returns the number of remaining moves of this rank. Collective.
  Index settle(bool may_take_back) {
    loads_.agree([&](auto& surplus) {
      if (may_take_back && comm_.size() > 1) take_back(surplus);
    });
    for (const Move& move : moves_)
      for (Index k = lists_.copy_offsets[move.node]; k < lists_.copy_offsets[move.node + 1]; ++k) {
        const NeighborLists::Copy& copy = lists_.copies[k];
        changes_[copy.rank].push_back({copy.position, move.to});
      }
    exchange_changes();
    return std::ssize(std::exchange(moves_, {}));
  }

  /// Takes back moves, the last one first. A node without a previous part waits for the next batch. A node
  /// that fits nowhere stays. Ranks round their shares at different fractions, so that they do not all round
  /// up or all round down.
  void take_back(std::vector<double>& surplus) {
    const double rounding = (comm_.rank() + 0.5) / comm_.size();
    std::vector<Move> kept;
    for (auto move = moves_.rbegin(); move != moves_.rend(); ++move) {
      const Weights mine = weights(move->node);
      const auto too_much = [&](std::size_t c) -> double& {
        return surplus[move->to * loads_.kinds() + loads_.kind(mine, c)];
      };
      bool helps = false;
      for (std::size_t c = 0; c < mine.values.size(); ++c)
        helps |= mine.values[c] > 0 && too_much(c) > rounding * static_cast<double>(mine.values[c]);
      if (!helps || !move->fits) {
        kept.push_back(*move);
        continue;
      }
      for (std::size_t c = 0; c < mine.values.size(); ++c) too_much(c) -= static_cast<double>(mine.values[c]);
      loads_.remove(move->to, mine);
      part_of_[move->node] = move->from;
      if (move->from == nowhere)
        waiting_.push_back(move->node);
      else
        loads_.add(move->from, mine);
    }
    std::reverse(waiting_.begin(), waiting_.end());
    moves_.assign(kept.rbegin(), kept.rend());
  }

  std::int32_t choose(Index v, const Weights& mine) {
    for (const std::uint32_t u : lists_.of(v)) {
      const std::int32_t part = part_of_[u];
      if (part != nowhere && neighbors_in_[part]++ == 0) candidates_.push_back(part);
    }
    std::int32_t best = nowhere;
    double best_score = 0;
    double best_load = 0;
    for (const std::int32_t part : candidates_) {
      Index& neighbors = neighbors_in_[part];
      const double score = static_cast<double>(neighbors) * (1 - loads_.load(part, mine));
      const double load = loads_.load_with(part, mine);
      neighbors = 0;
      if (load > 1 || score < best_score || (score == best_score && best != nowhere && load >= best_load))
        continue;
      best = part;
      best_score = score;
      best_load = load;
    }
    candidates_.clear();
    return best != nowhere ? best : loads_.least_loaded(mine);
  }

  /// Sends changes to the ranks that hold copies of the nodes. Collective.
  void exchange_changes() {
    std::vector<Change> packed;
    std::vector<Index> counts;
    for (std::vector<Change>& changes : changes_) {
      packed.insert(packed.end(), changes.begin(), changes.end());
      counts.push_back(static_cast<Index>(changes.size()));
      changes.clear();
    }
    const auto received = comm_.all_to_all_v(std::span<const Change>(packed), counts);
    auto change = received.values.begin();
    for (std::size_t p = 0; p < counts.size(); ++p)
      for (Index k = 0; k < received.counts[p]; ++k, ++change)
        part_of_[static_cast<std::size_t>(lists_.first_of_sender[p]) + change->position] = change->part;
  }

  const Communicator& comm_;
  const AssignmentOptions& options_;
  NeighborLists lists_;
  Index first_;  // first node of this rank's slice
  Loads loads_;
  std::vector<Index> batch_ends_;  // the same on all ranks; may exceed the slice
  bool keep_ = false;
  Array<std::int32_t> part_of_;  // by compact index
  std::vector<Index> neighbors_in_;
  std::vector<std::int32_t> candidates_;
  std::vector<Move> moves_;                   // of the current batch
  std::vector<Index> waiting_;                // nodes without a part after the last batch
  std::vector<std::vector<Change>> changes_;  // by rank
};

}  // namespace

Array<std::int32_t> ldg_assignment(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                   const AssignmentOptions& options) {
  Stream stream(comm, num_nodes, gather_neighbors(comm, num_nodes, edges), options);
  for (int pass = 0; pass < options.passes; ++pass)
    if (stream.pass() * still_moving < num_nodes) break;
  return stream.take_result();
}

Array<std::int32_t> balance_by_ldg(const Communicator& comm, Index num_nodes, NeighborLists lists,
                                   const AssignmentOptions& options, std::span<const std::int32_t> part_of) {
  Stream stream(comm, num_nodes, std::move(lists), options);
  stream.keep(part_of);
  for (int pass = 0; pass < options.passes && stream.pass() > 0; ++pass) continue;
  return stream.take_result();
}
}}  // namespace sar
