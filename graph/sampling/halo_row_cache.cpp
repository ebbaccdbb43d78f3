// SPDX-License-Identifier: MIT

// A block numbers its halo by itself; its edges name the rows of the whole graph's halo. A kept row has a
// slot of the table of kept rows and stays there as long as it is kept.
#include <sar/comm/halo/halo_exchange.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/graph/construct/layer_graph.hpp>
#include <sar/graph/message/agreement.hpp>
#include <sar/graph/sampling/halo_row_cache.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <limits>
#include <optional>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index rows_per_copy = Index{1} << 10;  // rows
constexpr Index chunk_bytes = Index{1} << 20;    // of kept rows being pulled

/// Values of the block's sources, then those of its halo rows among the halo rows of the whole graph.
std::shared_ptr<const LazyArray> values_with_halo(std::shared_ptr<const LazyArray> of_block,
                                                  std::shared_ptr<const Array<local_index>> of_halo,
                                                  std::shared_ptr<const Array<Index>> halo) {
  return std::make_shared<LazyArray>([=] {
    Array<Index> values = of_block->make();
    for (const Index row : *halo) values.push_back((*of_halo)[row]);
    return values;
  });
}

}  // namespace

HaloRowCache::HaloRowCache(const Graph& graph, const Tensor& rows, Index max_bytes)
    : graph_(graph), rows_(rows) {
  const Communicator& comm = graph_.comm();
  const GraphTopology& topology = graph_.topology();
  const auto table = comm.agree([&] {
    require<InputError>(topology.is_homogeneous(),
                        "rows are kept of a graph of one node type, not of a bipartite graph or a block");
    require<InputError>(max_bytes >= 0, "HaloRowCache: max_bytes is ", max_bytes, ", expected 0 or more");
    require<ShapeError>(rows.defined() && rows.num_rows() == graph_.num_nodes(),
                        "HaloRowCache: the rows have shape ", rows.defined() ? rows.shape() : Shape(),
                        " for ", graph_.num_nodes(), " nodes of this rank");
    comm.require_equal(
        CollectiveCall("HaloRowCache").equal("max_bytes", max_bytes).equal("width", rows.shape()));
    const auto fetch = [&](const Array<Index>& values) {
      return fetch_halo(comm, {values.data(), values.size()}, topology.rounds());
    };
    const auto fetch_degrees = [&](const Array<Index>& degrees) {
      const Array<Index> fetched = fetch(degrees);
      for (const Index degree : fetched)
        require<InputError>(degree <= std::numeric_limits<local_index>::max(),
                            "HaloRowCache: a node has degree ", degree, ", at most 2147483647 are possible");
      return std::make_shared<const Array<local_index>>(fetched.begin(), fetched.end());
    };
    halo_nodes_ = fetch(consecutive(topology.src_book.begin(comm.rank()), graph_.num_nodes()));
    halo_ids_ = fetch(topology.src_ids());
    halo_in_ = fetch_degrees(graph_.in_degrees());
    halo_out_ = fetch_degrees(graph_.out_degrees());
    counts_.assign(halo_ids_.size(), 0);
    slots_.assign(halo_ids_.size(), -1);
    const Index row_bytes = std::max<Index>(rows.row_size() * static_cast<Index>(sizeof(real)), 1);
    kept_ = Tensor({std::min(max_bytes / row_bytes, std::ssize(halo_ids_)), rows.row_size()});
    return std::make_shared<std::optional<DistributedTensor<>>>();
  });
  table->emplace(comm, topology.src_book, rows_);  // not in agree(), where a failure would keep its memory
  table_ = {table, &**table};
}

Array<Index> HaloRowCache::halo_of(const MessageFlowGraph& block) const {
  const GraphShard &of_block = block.topology().remote, &of_whole = graph_.topology().remote;
  Array<Index> halo(static_cast<std::size_t>(of_block.num_src_rows));
  for (Index k = 0; k < of_block.num_edges(); ++k)
    halo[of_block.src[k]] = of_whole.src[block.edge_rows()[of_block.edge(k)] - of_whole.first_edge];
  return halo;
}

void HaloRowCache::count(const MessageFlowGraph& block) {
  for (const Index row : halo_of(block)) ++counts_[row];
}

void HaloRowCache::keep_hottest() {
  const Communicator& comm = graph_.comm();
  comm.agree([&] {
    const Index slots = kept_.num_rows();
    std::vector<Index> hottest;
    for (Index row = 0; row < std::ssize(counts_); ++row)
      if (counts_[row] > 0) hottest.push_back(row);
    const auto is_hotter = [&](Index a, Index b) {
      return counts_[a] != counts_[b] ? counts_[a] > counts_[b] : a < b;
    };
    if (std::ssize(hottest) > slots) {
      std::nth_element(hottest.begin(), hottest.begin() + slots, hottest.end(), is_hotter);
      hottest.resize(static_cast<std::size_t>(slots));
    }
    std::sort(hottest.begin(), hottest.end());
    std::vector<Index> free_slots, wanted;
    std::vector<bool> is_used(static_cast<std::size_t>(slots), false);
    for (const Index row : hottest)
      if (slots_[row] >= 0)
        is_used[static_cast<std::size_t>(slots_[row])] = true;
      else
        wanted.push_back(row);
    for (Index slot = 0; slot < slots; ++slot)
      if (!is_used[static_cast<std::size_t>(slot)]) free_slots.push_back(slot);
    // from here on a failure leaves fewer rows kept, and no wrong ones
    for (local_index& slot : slots_)
      if (slot >= 0 && !is_used[static_cast<std::size_t>(slot)]) slot = -1;
    std::ranges::fill(counts_, 0);
    kept_rows_ = std::ssize(hottest) - std::ssize(wanted);

    const Index width = kept_.row_size();
    const Index of_chunk =
        std::max<Index>(chunk_bytes / std::max<Index>(width * static_cast<Index>(sizeof(real)), 1), 1);
    const Index chunks = comm.all_reduce((std::ssize(wanted) + of_chunk - 1) / of_chunk, ReduceOp::max);
    for (Index c = 0; c < chunks; ++c) {
      const Index first = std::min(c * of_chunk, std::ssize(wanted));
      const Index last = std::min(first + of_chunk, std::ssize(wanted));
      std::vector<Index> ids;
      for (Index i = first; i < last; ++i) ids.push_back(halo_nodes_[wanted[static_cast<std::size_t>(i)]]);
      const Tensor pulled = table_->pull_all(ids);
      for (Index i = first; i < last; ++i) {
        const Index slot = free_slots[static_cast<std::size_t>(i)];
        std::copy_n(pulled.data() + (i - first) * width, width, kept_.data() + slot * width);
        slots_[wanted[static_cast<std::size_t>(i)]] = static_cast<local_index>(slot);
        ++kept_rows_;
      }
      pulled_ += last - first;
    }
  });
}

MessageFlowGraph HaloRowCache::holding_halo(const MessageFlowGraph& block, Array<Index> halo_rows) const {
  const ShardedGraph& of_block = *block.shards();
  Array<Index> ids = block.src_ids();
  for (const Index row : halo_rows) ids.push_back(halo_ids_[row]);
  const auto halo = std::make_shared<const Array<Index>>(std::move(halo_rows));
  const DegreeCache& degrees = of_block.degrees;
  auto held = std::make_shared<ShardedGraph>(
      of_block.topology, KnownDegrees{.in = degrees.in,
                                      .out = values_with_halo(degrees.out, halo_out_, halo),
                                      .src_in = values_with_halo(degrees.src_in, halo_in_, halo)});
  held->travelling = block.shards();
  held->shared_src_ids = std::make_shared<const Array<Index>>(std::move(ids));
  held->edge_norms = of_block.edge_norms;
  return {LayerGraph{std::move(held), block.src_rows(), block.edge_rows()}, block.dst_rows(),
          block.options()};
}

HaloRowCache::Pending HaloRowCache::start(const MessageFlowGraph& block) {
  const TraceScope scope("input rows", TraceKind::compute);
  return graph_.comm().agree([&] {
    Array<Index> halo = halo_of(block);
    const Index local = std::ssize(block.src_rows()), width = rows_.row_size();
    Tensor rows({local + std::ssize(halo), width});
    real* const to = rows.data();
    const auto copy = [&](const real* from, Index i) { std::copy_n(from, width, to + i * width); };
    parallel_for_each(local, rows_per_copy,
                      [&](Index i) { copy(std::as_const(rows_).row(block.src_rows()[i]), i); });
    std::vector<Index> missing, places;
    for (Index i = 0; i < std::ssize(halo); ++i) {
      if (slots_[halo[i]] >= 0) {
        copy(std::as_const(kept_).row(slots_[halo[i]]), local + i);
        continue;
      }
      missing.push_back(halo_nodes_[halo[i]]);
      places.push_back(local + i);
    }
    Array<Index> counted = halo;
    Pending pending({holding_halo(block, std::move(halo)), std::move(rows)});
    pending.places_ = std::move(places);
    pending.pulled_ = table_->start_pull(missing);
    for (const Index row : counted) ++counts_[row];
    pulled_ += std::ssize(missing);
    return pending;
  });
}

CachedInput HaloRowCache::Pending::finish() {
  const Tensor pulled = pulled_.finish();
  const Index width = input_.rows.row_size();
  real* const to = input_.rows.data();
  for (std::size_t i = 0; i < places_.size(); ++i)
    std::copy_n(pulled.data() + static_cast<Index>(i) * width, width, to + places_[i] * width);
  return std::move(input_);
}

}}  // namespace sar
