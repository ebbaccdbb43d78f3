// SPDX-License-Identifier: MIT

// The original ids are numbered once, by a sample sort (numbers_of_ids). An epoch then takes no
// communication: for each of n seeds of the rank, its position in the epoch is computed, and the positions
// are sorted, O(n log n). A batch is a range of them, found by binary search.
#include <sar/comm/communicator_alone.hpp>
#include <sar/comm/halo/halo_exchange.hpp>
#include <sar/comm/rows/node_directory.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/construct/edge_exchange.hpp>
#include <sar/graph/construct/layer_graph.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/data_loader.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>

namespace sar { inline namespace SAR_PRECISION {

namespace {

Array<Index> original_ids(const Graph& graph, std::span<const Index> seeds) {
  const GraphTopology& whole = graph.topology();
  Array<Index> ids = rows_of_seeds(whole, seeds);
  for (Index& id : ids) id = whole.dst_ids()[id];
  return ids;
}

}  // namespace

SeedBatches::SeedBatches(const Communicator& comm, std::span<const Index> keys,
                         const DataLoaderOptions& options)
    : options_(options), rank_(comm.rank()) {
  comm.agree([&] {
    Index& size = options_.batch_size;
    require<InputError>(size >= 1, "the batch size is ", size, ", expected 1 or more");
    for (const Index key : keys)
      require<InputError>(key >= 0, "the original id of a seed is ", key, ", expected 0 or more");
    comm.require_equal(CollectiveCall("SeedBatches")
                           .equal("batch size", size)
                           .equal("per_rank", options_.per_rank)
                           .equal("shuffle", options_.shuffle)
                           .equal("drop_last", options_.drop_last)
                           .equal("seed", options_.seed));
    places_ = numbers_of_ids(options_.per_rank ? communicator_alone(comm) : comm, keys);
    total_ = static_cast<Index>(keys.size());
    if (!options_.per_rank) total_ = comm.all_reduce(total_);
    const Index full = total_ / size;
    size = std::min(size, std::max<Index>(comm.all_reduce(total_, ReduceOp::max), 1));  // avoids overflow
    const Index begun = (total_ + size - 1) / size;
    num_batches_ =
        options_.drop_last ? comm.all_reduce(full, ReduceOp::min) : comm.all_reduce(begun, ReduceOp::max);
    num_seeds_ = std::min(total_, num_batches_ * size);
    if (options_.per_rank) num_seeds_ = comm.all_reduce(num_seeds_);
    start_epoch(0);
  });
}

void SeedBatches::start_epoch(std::uint64_t epoch, Index first_batch) {
  require<InputError>(0 <= first_batch && first_batch <= num_batches_, "there is no batch ", first_batch,
                      ", expected ", index_range(num_batches_ + 1));
  const std::uint64_t stream =
      RandomStream::seed_order + (options_.per_rank ? static_cast<std::uint64_t>(rank_) : 0);
  const KeyedBijection place(total_, {.seed = options_.seed, .stream = stream, .step = epoch});
  std::vector<std::pair<Index, Index>> order;
  for (Index i = 0; i < std::ssize(places_); ++i)
    order.emplace_back(options_.shuffle ? place(places_[i]) : places_[i], i);
  std::sort(order.begin(), order.end());
  const Transaction transaction;
  epoch_ = Epoch{epoch, std::make_shared<const std::vector<std::pair<Index, Index>>>(std::move(order))};
  number_ = first_batch;
}

std::optional<std::vector<Index>> SeedBatches::at_hand(const Communicator& comm, const char* call) const {
  comm.require_equal(CollectiveCall(call).equal("epoch", epoch()).equal("batch", number()));
  if (number_ == num_batches_) return std::nullopt;
  const auto& order = *epoch_.get().order;
  const auto first =
      std::lower_bound(order.begin(), order.end(), std::pair(number_ * options_.batch_size, Index{0}));
  std::vector<Index> seeds;
  for (auto seed = first; seed != order.end() && seed->first < (number_ + 1) * options_.batch_size; ++seed)
    seeds.push_back(seed->second);
  return seeds;
}

DataLoader::DataLoader(NeighborSampler sampler, std::span<const Index> seeds,
                       const DataLoaderOptions& options)
    : sampler_(std::move(sampler)),
      seeds_(sampler_.graph().comm().agree([&] { return Array<Index>(seeds.begin(), seeds.end()); })),
      batches_(sampler_.graph().comm(), original_ids(sampler_.graph(), seeds), options) {}

DataLoader::DataLoader(const NeighborSampler& sampler, const NodesByType& seeds,
                       const DataLoaderOptions& options)
    : DataLoader(sampler, sampler.nodes_of(seeds), options) {}

std::optional<MiniBatch> DataLoader::next() {
  const Communicator& comm = sampler_.graph().comm();
  return comm.agree([&]() -> std::optional<MiniBatch> {
    const auto positions = batches_.at_hand(comm, "DataLoader::next");
    if (!positions) return std::nullopt;
    MiniBatch batch{.number = batches_.number(), .seeds = {}, .blocks = {}};
    for (const Index i : *positions) batch.seeds.push_back(seeds_[i]);
    batch.blocks = sampler_.sample_blocks(batch.seeds, batches_.epoch(), {}, batches_.number());
    batches_.advance();
    return batch;
  });
}

// For a batch: draw the negative pairs, find the excluded edges, collect the ends of all pairs at their
// owners, sample the blocks of these nodes, and build the graphs of the pairs. An end is sent to its owner
// (8 bytes), which answers with its number among the seeds of the batch (8 bytes).
//
// An edge to be excluded is sent to the owner of its destination (16 bytes), which searches the sources of
// the destination: O(log(degree)), for a remote source also O(log(halo)).

namespace {

/// Returns the global ids of the halo rows. Collective.
Array<Index> ask_halo_ids(const GraphTopology& graph) {
  const Array<Index> ids = consecutive(graph.src_book.begin(graph.comm.rank()), graph.local.num_src_rows);
  return fetch_halo(graph.comm, ids, graph.rounds());
}

/// Appends the edge rows of a shard from source row u to destination row v.
void add_edges(const GraphShard& shard, Index u, Index v, Array<Index>& found) {
  if (!shard.dst_rows.empty()) {
    const auto row = std::lower_bound(shard.dst_rows.begin(), shard.dst_rows.end(), v);
    if (row == shard.dst_rows.end() || *row != v) return;
    v = row - shard.dst_rows.begin();
  }
  if (shard.num_edges() == 0) return;
  const auto begin = shard.src.begin() + shard.row_begin[v], end = shard.src.begin() + shard.row_begin[v + 1];
  const auto [first, last] = std::equal_range(begin, end, static_cast<local_index>(u));
  for (auto at = first; at != last; ++at) found.push_back(shard.edge(at - shard.src.begin()));
}

/// The nodes that occur in pairs of all ranks, at their owners, and the pairs as indices of these nodes.
struct Ends {
  Array<Index> seeds;    ///< of this rank, ascending global ids
  PartitionBook book;    ///< of the seeds of all ranks
  Array<Index> numbers;  ///< indices in `book` of the nodes that this rank passed
};

/// Collects the ends of pairs at their owners. Collective.
Ends find_ends(const Communicator& comm, const PartitionBook& nodes_book, std::span<const Index> nodes) {
  const RowRoute route(comm, nodes_book.owners(nodes));
  Array<Index> arrived = route.forward(nodes);
  Array<Index> seeds = arrived;
  std::sort(seeds.begin(), seeds.end());
  seeds.erase(std::unique(seeds.begin(), seeds.end()), seeds.end());
  PartitionBook book = gather_book(comm, std::ssize(seeds));
  for (Index& node : arrived)
    node = book.begin(comm.rank()) + (std::lower_bound(seeds.begin(), seeds.end(), node) - seeds.begin());
  return {std::move(seeds), std::move(book), route.back<Index>(arrived)};
}

SeedEdges checked(const Graph& graph, SeedEdges edges) {
  graph.comm().agree([&] {
    const auto length = edges.id.size();
    require<ShapeError>(edges.src.size() == length && edges.dst.size() == length, "seed edges have ",
                        edges.src.size(), " sources, ", edges.dst.size(), " destinations and ", length,
                        " ids");
    for (Index i = 0; i < edges.size(); ++i)
      for (const Index end : {edges.src[i], edges.dst[i]})
        require<InputError>(0 <= end && end < graph.num_global_nodes(), "seed edge ", edges.id[i],
                            " has the end ", end, ", expected a node from 0 to ",
                            graph.num_global_nodes() - 1);
  });
  return edges;
}

}  // namespace

EdgeDataLoader::EdgeDataLoader(NeighborSampler sampler, SeedEdges edges, const EdgeDataLoaderOptions& options)
    : sampler_(std::move(sampler)),
      edges_(checked(sampler_.graph(), std::move(edges))),
      options_(options),
      batches_(sampler_.graph().comm(), edges_.id, options.batches) {
  const Communicator& comm = sampler_.graph().comm();
  comm.agree([&] {
    comm.require_equal(CollectiveCall("EdgeDataLoader")
                           .equal("exclude", options.exclude)
                           .equal("negatives", options.negatives)
                           .equal("number of excluded types", options.excluded_types.size()));
    if (sampler_.graph().num_edges() > 0 && (!options.excluded_types.empty() || options.types.size() > 0))
      options_.types = options.types.checked(sampler_.graph().num_edges(), Index{1} << 16, "EdgeDataLoader");
    if (options.negatives != Negatives::none) negatives_.emplace(sampler_.graph(), options.negative);
    if (options.exclude != ExcludeEdges::none) halo_ids_ = ask_halo_ids(sampler_.graph().topology());
  });
}

Array<Index> EdgeDataLoader::find_excluded(const NodePairList& edges) const {
  const GraphTopology& graph = sampler_.graph().topology();
  const Communicator& comm = graph.comm;
  Array<Index> src = edges.src, dst = edges.dst;
  if (options_.exclude == ExcludeEdges::reverse) {
    src.insert(src.end(), edges.dst.begin(), edges.dst.end());
    dst.insert(dst.end(), edges.src.begin(), edges.src.end());
  }
  const RowRoute route(comm, graph.dst_book.owners(dst));
  src = route.forward<Index>(src);
  dst = route.forward<Index>(dst);
  Array<Index> found;
  for (std::size_t i = 0; i < src.size(); ++i) {
    const Index u = src[i], v = dst[i] - graph.dst_book.begin(comm.rank());
    const int owner = graph.src_book.owner(u);
    if (owner == comm.rank()) {
      add_edges(graph.local, u - graph.src_book.begin(owner), v, found);
      continue;
    }
    const HaloRound& round = round_from(graph.rounds(), graph.comm.rank(), owner);
    const auto first = halo_ids_.begin() + round.first, last = first + round.recv_rows;
    const auto row = std::lower_bound(first, last, u);
    if (row != last && *row == u) add_edges(graph.remote, row - halo_ids_.begin(), v, found);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (!options_.excluded_types.empty())
    std::erase_if(found, [&](Index edge) {
      return std::ranges::count(options_.excluded_types, options_.types.numbers()[edge]) == 0;
    });
  return found;
}

std::optional<EdgeMiniBatch> EdgeDataLoader::next() {
  const Communicator& comm = sampler_.graph().comm();
  return comm.agree([&]() -> std::optional<EdgeMiniBatch> {
    auto positions = batches_.at_hand(comm, "EdgeDataLoader::next");
    if (!positions) return std::nullopt;
    const std::uint64_t epoch = batches_.epoch();
    EdgeMiniBatch batch{batches_.number(), std::move(*positions), {}, {}, {}};
    NodePairList positive;
    Array<Index> ids;
    for (const Index i : batch.positions) {
      positive.src.push_back(edges_.src[i]);
      positive.dst.push_back(edges_.dst[i]);
      ids.push_back(edges_.id[i]);
    }
    NodePairList negative;
    if (options_.negatives == Negatives::per_source)
      negative = negatives_->per_source(positive.src, ids, epoch);
    if (options_.negatives == Negatives::global) negative = negatives_->global_uniform(ids, epoch);
    if (options_.draw) negative = options_.draw(batch.positions, epoch);

    Array<Index> excluded;
    if (options_.exclude != ExcludeEdges::none) excluded = find_excluded(positive);
    Array<Index> nodes;
    for (const Array<Index>* column : {&positive.src, &positive.dst, &negative.src, &negative.dst})
      nodes.insert(nodes.end(), column->begin(), column->end());
    const Ends ends = find_ends(comm, sampler_.graph().topology().dst_book, nodes);
    batch.blocks = sampler_.sample_blocks(ends.seeds, epoch, excluded, batches_.number());

    std::span<const Index> numbers = ends.numbers;
    const auto take = [&](std::size_t count) {
      return std::exchange(numbers, numbers.subspan(count)).first(count);
    };
    const auto pairs = [&](std::size_t count) {
      const std::span<const Index> src = take(count), dst = take(count);
      return NodePairs(comm, ends.book, src, dst, sampler_.graph().options());
    };
    batch.positive.emplace(pairs(positive.src.size()));
    if (options_.negatives != Negatives::none || options_.draw)
      batch.negative.emplace(pairs(negative.src.size()));
    batches_.advance();
    return batch;
  });
}
}}  // namespace sar
