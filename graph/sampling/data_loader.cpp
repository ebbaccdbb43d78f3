// SPDX-License-Identifier: MIT

// The original ids are numbered once, by a sample sort (numbers_of_ids). An epoch then takes no
// communication: for each of n seeds of the rank, its position in the epoch is computed, and the positions
// are sorted, O(n log n). A batch is a range of them, found by binary search.
#include <sar/comm/communicator_alone.hpp>
#include <sar/comm/rows/node_directory.hpp>
#include <sar/core/error.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/construct/layer_graph.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/data_loader.hpp>

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

}}  // namespace sar
