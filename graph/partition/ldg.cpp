#include <sar/comm/rows/partition_book.hpp>
#include <sar/graph/partition/ldg.hpp>
#include <sar/graph/partition/neighbor_lists.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr std::int32_t nowhere = -1;
constexpr double slack = 1.05;       // capacity of a part, relative to the average
constexpr Index max_batches = 128;   // exchanges in a pass
constexpr Index still_moving = 512;  // another pass if one node in so many has moved

/// What a node adds to the load of its part: itself, its in-edges, itself if it is a training node. What is
/// not balanced is 0 for all nodes.
using Weights = std::array<std::int64_t, 3>;

/// The load of each part.
class Loads {
 public:
  Loads(const Communicator& comm, int parts, const Weights& totals)
      : comm_(comm), known_(static_cast<std::size_t>(parts), Weights{}), assumed_(known_) {
    for (std::size_t c = 0; c < totals.size(); ++c) {
      const double average = static_cast<double>(totals[c]) / parts;
      capacity_[c] = std::max(std::ceil(average), std::floor(slack * average));
    }
  }

  void add(std::int32_t part, const Weights& weights) { change(part, weights, comm_.size()); }
  void remove(std::int32_t part, const Weights& weights) { change(part, weights, -comm_.size()); }

  /// The part's load relative to its capacity, in what a node of these weights adds to.
  [[nodiscard]] double load(std::int32_t part, const Weights& node) const { return load(part, node, 0); }
  /// The same with the node in the part. Above 1, the node does not fit.
  [[nodiscard]] double load_with(std::int32_t part, const Weights& node) const {
    return load(part, node, comm_.size());
  }
  [[nodiscard]] std::int32_t least_loaded(const Weights& node) const {
    std::int32_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::int32_t part = 0; part < static_cast<std::int32_t>(assumed_.size()); ++part)
      if (const double l = load_with(part, node); l < least) {
        least = l;
        best = part;
      }
    return best;
  }
  /// Replaces what this rank assumed of the others by what they did. Collective.
  void agree() {
    std::vector<std::int64_t> changes;
    for (std::size_t p = 0; p < known_.size(); ++p)
      for (std::size_t c = 0; c < capacity_.size(); ++c)
        changes.push_back((assumed_[p][c] - known_[p][c]) / comm_.size());
    comm_.all_reduce(std::span<std::int64_t>(changes));
    for (std::size_t i = 0; i < changes.size(); ++i)
      known_[i / capacity_.size()][i % capacity_.size()] += changes[i];
    assumed_ = known_;
  }

 private:
  [[nodiscard]] double load(std::int32_t part, const Weights& node, int times) const {
    const Weights& now = assumed_[part];
    double largest = 0;
    for (std::size_t c = 0; c < now.size(); ++c)
      if (node[c] > 0)
        largest = std::max(largest, static_cast<double>(now[c] + times * node[c]) / capacity_[c]);
    return largest;
  }
  void change(std::int32_t part, const Weights& weights, int times) {
    for (std::size_t c = 0; c < weights.size(); ++c) assumed_[part][c] += times * weights[c];
  }

  const Communicator& comm_;
  std::array<double, 3> capacity_{};
  std::vector<Weights> known_;    // at the last exchange of changes
  std::vector<Weights> assumed_;  // now, if every rank has done since then what this one has
};

class Stream {
 public:
  Stream(const Communicator& comm, Index num_nodes, const EdgeList& edges, const AssignmentOptions& options)
      : comm_(comm),
        options_(options),
        lists_(gather_neighbors(comm, num_nodes, edges)),
        loads_(comm, options.parts, total_weights()),
        part_of_(static_cast<std::size_t>(lists_.num_values), nowhere),
        neighbors_in_(static_cast<std::size_t>(options.parts), 0),
        changes_(static_cast<std::size_t>(comm.size())) {
    const Index largest_slice = PartitionBook::even(num_nodes, comm.size()).num_nodes(0);
    const Index batches = std::clamp<Index>(largest_slice, 1, max_batches);
    batches_ = PartitionBook::even(lists_.num_nodes(), static_cast<int>(batches));
  }

  /// Streams all nodes once; how many moved, of all ranks.
  Index pass() {
    Index moved = 0;
    for (int b = 0; b < batches_.num_parts(); ++b) {
      for (Index v = batches_.begin(b); v < batches_.end(b); ++v) moved += place(v);
      exchange_changes();
      loads_.agree();
    }
    return comm_.all_reduce(moved);
  }

  Array<std::int32_t> take_result() {
    part_of_.resize(lists_.num_nodes());
    return std::move(part_of_);
  }

 private:
  struct Change {
    std::uint32_t position;
    std::int32_t part;
  };

  [[nodiscard]] Weights weights(Index v) const {
    const auto i = static_cast<std::size_t>(v);
    return {1, options_.balance_edges ? lists_.in_degrees[i] : 0,
            options_.train_mask.empty() ? 0 : options_.train_mask[i] != 0};
  }

  [[nodiscard]] Weights total_weights() const {
    Weights total{};
    for (Index v = 0; v < lists_.num_nodes(); ++v) {
      const Weights more = weights(v);
      for (std::size_t c = 0; c < total.size(); ++c) total[c] += more[c];
    }
    comm_.all_reduce(std::span<std::int64_t>(total));
    return total;
  }

  /// Whether v moved.
  bool place(Index v) {
    const Weights mine = weights(v);
    std::int32_t& part = part_of_[v];
    if (part != nowhere) loads_.remove(part, mine);
    const std::int32_t chosen = choose(v, mine);
    loads_.add(chosen, mine);
    if (chosen == part) return false;
    part = chosen;
    const auto i = static_cast<std::size_t>(v);
    for (Index k = lists_.copy_offsets[i]; k < lists_.copy_offsets[i + 1]; ++k) {
      const NeighborLists::Copy& copy = lists_.copies[k];
      changes_[copy.rank].push_back({copy.position, chosen});
    }
    return true;
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

  /// Tells the ranks that hold copies. Collective.
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
  Loads loads_;
  PartitionBook batches_;
  Array<std::int32_t> part_of_;  // by compact number
  std::vector<Index> neighbors_in_;
  std::vector<std::int32_t> candidates_;
  std::vector<std::vector<Change>> changes_;  // by rank
};

}  // namespace

Array<std::int32_t> ldg_assignment(const Communicator& comm, Index num_nodes, const EdgeList& edges,
                                   const AssignmentOptions& options) {
  Stream stream(comm, num_nodes, edges, options);
  for (int pass = 0; pass < options.passes; ++pass)
    if (stream.pass() * still_moving < num_nodes) break;
  return stream.take_result();
}

}  // namespace sar
