// SPDX-License-Identifier: MIT
#include "train_batches.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace sar::tools {
namespace {

// ---- nodes

/// Of each layer, for each type of edge.
std::vector<std::vector<Index>> fan_outs_of_types(const SampleOptions& s,
                                                  std::span<const EdgeType> edge_types) {
  std::vector<std::vector<Index>> fan_outs;
  for (const Index fan_out : s.fan_outs) fan_outs.emplace_back(edge_types.size(), fan_out);
  for (const auto& [name, of_layers] : s.of_relations) {
    std::size_t type = 0;
    try {
      type = find_edge_type(edge_types, name);
    } catch (const InputError& error) {
      throw InputError(concat("--sample-relation: ", error.what()));
    }
    for (std::size_t l = 0; l < fan_outs.size(); ++l) fan_outs[l][type] = of_layers[l];
  }
  return fan_outs;
}

/// The nodes that the blocks compute. Collective.
Batch batch_of_blocks(std::vector<MessageFlowGraph> blocks, std::span<const GraphRelations> relations) {
  Batch batch;
  batch.set_blocks(std::move(blocks), relations);
  batch.rows = batch.blocks.back().dst_rows();
  return batch;
}

/// A graph of all layers, whose training nodes are the seeds. Collective.
Batch batch_of_graph(MessageFlowGraph graph, const TrainingGraph& g) {
  std::vector<MessageFlowGraph> graphs;
  graphs.push_back(std::move(graph));
  Batch batch = batch_of_blocks(std::move(graphs), g.relations);
  batch.seeds = std::ranges::count_if(
      batch.rows, [&](Index row) { return g.data.train_mask[row] != 0 && g.data.labels[row] >= 0; });
  return batch;
}

std::unique_ptr<BatchSource> cluster_batches(const TrainingGraph& g, const TrainOptions& o) {
  ClusterLoader loader(g.graph, g.clusters,
                       {.clusters_per_batch = o.sample.clusters_per_batch, .seed = o.seed});
  const MaskCounts counts = count_mask(g.data, g.graph.comm(), g.data.train_mask);
  return loaded_batches(std::move(loader), counts.nodes - counts.unlabelled,
                        [&g](ClusterLoader& from) -> BatchPtr {
                          std::optional<ClusterBatch> next = from.next();
                          if (!next) return nullptr;
                          return std::make_shared<const Batch>(batch_of_graph(std::move(next->graph), g));
                        });
}

/// Whether the layers of the network compute sums or means of u times the weight of the edge.
bool adds_weighted_messages(const ModelDescription& m) {
  if (m.type == "gcn") return true;
  if (m.type == "sage") return m.aggregator.empty() || m.aggregator == "mean" || m.aggregator == "gcn";
  return m.type == "gin" && (m.aggregator.empty() || m.aggregator == "sum" || m.aggregator == "mean");
}

/// By what --loss divides the sum over all training nodes: their number, the sum of the class weights of
/// their labels, or the number of their targets. Collective.
double loss_terms(const Communicator& comm, const NodeData& data, std::span<const double> class_weights) {
  // of each class, or of all targets; whole numbers, whose sums do not depend on the ranks
  std::vector<double> counts(std::max<std::size_t>(class_weights.size(), 1), 0);
  for (std::size_t v = 0; v < data.train_mask.size(); ++v) {
    const auto row = static_cast<Index>(v);
    if (data.train_mask[row] == 0 || data.labels[row] < 0) continue;
    if (!data.targets.defined())
      ++counts[class_weights.empty() ? 0 : static_cast<std::size_t>(data.labels[row])];
    else
      for (Index c = 0; c < data.targets.row_size(); ++c)
        counts[0] += std::isnan(data.targets.row(row)[c]) ? 0 : 1;
  }
  comm.all_reduce(std::span<double>(counts));
  if (class_weights.empty()) return counts[0];
  return std::inner_product(counts.begin(), counts.end(), class_weights.begin(), 0.0);
}

/// Messages are divided by the probabilities of their edges where the layers add weighted messages.
std::unique_ptr<BatchSource> saint_batches(const TrainingGraph& g, const TrainOptions& o,
                                           std::span<const double> class_weights) {
  const Sampler sampler = o.sample.sampler;
  SaintLoader loader(g.graph, {.method = sampler == Sampler::saint_node   ? SaintMethod::node
                                         : sampler == Sampler::saint_edge ? SaintMethod::edge
                                                                          : SaintMethod::walk,
                               .draws = o.sample.batch_size,
                               .walk_length = o.sample.walk_length,
                               .batches = o.sample.saint_batches,
                               .coverage = o.sample.saint_coverage,
                               .scale_messages = adds_weighted_messages(o.model),
                               .seed = o.seed});
  const double terms = loss_terms(g.graph.comm(), g.data, class_weights);
  return loaded_batches(std::move(loader), std::nullopt, [&g, terms](SaintLoader& from) -> BatchPtr {
    std::optional<SaintBatch> next = from.next();
    if (!next) return nullptr;
    Batch batch = batch_of_graph(std::move(next->graph), g);
    for (real& weight : next->loss_weights.values())
      weight = static_cast<real>(static_cast<double>(weight) / terms);
    batch.loss_weights = std::move(next->loss_weights);
    return std::make_shared<const Batch>(std::move(batch));
  });
}

std::unique_ptr<BatchSource> sampled_batches(DataLoader loader, const TrainingGraph& g) {
  const Index seeds = loader.num_seeds();
  return loaded_batches(std::move(loader), seeds, [&g](DataLoader& from) -> BatchPtr {
    std::optional<MiniBatch> next = from.next();
    if (!next) return nullptr;
    Batch batch = batch_of_blocks(std::move(next->blocks), g.relations);
    batch.seeds = std::ssize(next->seeds);
    return std::make_shared<const Batch>(std::move(batch));
  });
}

/// Sampled neighbors with --halo-cache-bytes: input rows of the next batch are in flight while a batch is
/// computed.
class CachedBatches : public BatchSource {
 public:
  CachedBatches(DataLoader loader, TrainingGraph& g, Index max_bytes)
      : loader_(std::move(loader)),
        relations_(g.relations),
        cache_(g.graph, g.input->all().value(), max_bytes) {}

  [[nodiscard]] Index num_batches() const override { return loader_.num_batches(); }
  [[nodiscard]] std::optional<Index> num_seeds() const override { return loader_.num_seeds(); }

  // The rows that the first epoch reads are counted before it, those of the others in the epoch before.
  void start_epoch(std::uint64_t epoch, Index first_batch) override {
    ahead_.reset();
    is_ahead_ = false;
    if (!std::exchange(is_counted_, true)) {
      loader_.start_epoch(epoch);
      while (const std::optional<MiniBatch> batch = loader_.next()) cache_.count(batch->blocks.front());
    }
    cache_.keep_hottest();
    loader_.start_epoch(epoch, first_batch);
  }

  [[nodiscard]] BatchPtr next() override {
    if (!is_ahead_) load_ahead();
    if (!ahead_) return nullptr;
    Ahead now = std::move(*ahead_);
    CachedInput input = now.input.finish();
    load_ahead();
    const Index pulled = cache_.rows_pulled() - std::exchange(rows_pulled_, cache_.rows_pulled());
    const Index rows = now.batch.blocks.front().num_global_src_nodes();
    now.batch.blocks.front() = std::move(input.block);
    Batch batch = batch_of_blocks(std::move(now.batch.blocks), relations_);
    batch.input = std::move(input.rows);
    batch.seeds = std::ssize(now.batch.seeds);
    batch.input_rows = rows;
    batch.halo_rows = pulled;
    return std::make_shared<const Batch>(std::move(batch));
  }

 private:
  struct Ahead {
    MiniBatch batch;
    HaloRowCache::Pending input;
  };

  void load_ahead() {
    ahead_.reset();
    is_ahead_ = true;
    std::optional<MiniBatch> batch = loader_.next();
    if (!batch) return;
    HaloRowCache::Pending input = cache_.start(batch->blocks.front());
    ahead_.emplace(Ahead{std::move(*batch), std::move(input)});
  }

  DataLoader loader_;
  std::span<const GraphRelations> relations_;
  HaloRowCache cache_;
  std::optional<Ahead> ahead_;
  bool is_ahead_ = false, is_counted_ = false;
  Index rows_pulled_ = 0;  // until the batch before
};

// ---- graph samples

std::unique_ptr<BatchSource> sample_batches(const TrainingGraph& g, std::span<const Index> positions,
                                            const DataLoaderOptions& options) {
  SampleLoader loader(g.graph.comm(), g.samples->samples, positions, options);
  const Index seeds = loader.num_samples();
  return loaded_batches(std::move(loader), seeds, [](SampleLoader& from) -> BatchPtr {
    std::optional<Array<Index>> next = from.next_positions();
    if (!next) return nullptr;
    Batch batch;
    batch.seeds = std::ssize(*next);
    batch.rows = std::move(*next);
    return std::make_shared<const Batch>(std::move(batch));
  });
}

DataLoaderOptions loader_options(const TrainOptions& o) {
  return {.batch_size = o.sample.batch_size,
          .per_rank = o.sample.batch_per_rank,
          .drop_last = o.sample.drop_last,
          .seed = o.seed};
}

/// Of an evaluation.
DataLoaderOptions ordered(const TrainOptions& o) {
  return {.batch_size = o.sample.batch_size, .per_rank = o.sample.batch_per_rank, .shuffle = false};
}

}  // namespace

void Batch::set_blocks(std::vector<MessageFlowGraph> graphs, std::span<const GraphRelations> of_graph) {
  blocks = std::move(graphs);
  for (const GraphRelations& all : of_graph)
    for (const MessageFlowGraph& block : blocks) relations.push_back(relations_of(block, all));
  input_rows = blocks.front().num_global_src_nodes();
  halo_rows = blocks.front().num_halo_rows();
}

NeighborSampler make_sampler(const TrainingGraph& g, const TrainOptions& o, std::uint64_t seed) {
  const SampleOptions& s = o.sample;
  NeighborSamplerOptions options{.method = s.is_labor() ? NeighborMethod::labor : NeighborMethod::uniform,
                                 .replace = s.replace,
                                 .redraw = s.redraw,
                                 .seed = seed};
  if (s.by_weight) {
    require<InputError>(g.graph.edge_weight().defined(), "--sample-by-weight: the edges have no weights");
    options.prob = g.graph.edge_weight();
  }
  if (g.model.edge_types.empty()) return {g.graph, s.fan_outs, options};
  return {g.graph, fan_outs_of_types(s, g.model.edge_types), g.relations.front().types, options};
}

void require_batches(const Communicator& comm, const TrainOptions& o, Index num_batches, Index seeds_of_rank,
                     const std::string& seeds) {
  const Index all_seeds = comm.all_reduce(seeds_of_rank);
  require<InputError>(num_batches > 0, "--drop-last leaves no batch: there are ", all_seeds, " ", seeds,
                      " on ", comm.size(), " ranks, and the batch size is ", o.sample.batch_size,
                      o.sample.batch_per_rank ? " of each rank" : "");
}

std::unique_ptr<BatchSource> make_node_batches(TrainingGraph& g, const TrainOptions& o,
                                               std::span<const double> class_weights) {
  const Communicator& comm = g.graph.comm();
  if (o.sample.clusters != 0) return cluster_batches(g, o);
  if (o.sample.is_saint()) return saint_batches(g, o, class_weights);
  BatchPtr whole = std::make_shared<const Batch>();
  if (!o.mfg && o.sample.fan_outs.empty())
    return std::make_unique<WholeEpochs>([whole](std::uint64_t) { return whole; });
  const Array<Index> seeds = labelled_nodes(g.data, comm, {g.data.train_mask});
  if (o.mfg) {
    whole = std::make_shared<const Batch>(
        batch_of_blocks(construct_mfgs(g.graph, seeds, static_cast<int>(o.model.layers)), g.relations));
    return std::make_unique<WholeEpochs>([whole](std::uint64_t) { return whole; });
  }
  DataLoader loader(make_sampler(g, o, o.seed), seeds, loader_options(o));
  require_batches(comm, o, loader.num_batches(), std::ssize(seeds), "training nodes");
  if (o.halo_cache_bytes > 0 && comm.size() > 1)
    return std::make_unique<CachedBatches>(std::move(loader), g, o.halo_cache_bytes);
  return sampled_batches(std::move(loader), g);
}

std::unique_ptr<BatchSource> make_evaluated_node_batches(const TrainingGraph& g, const TrainOptions& o) {
  const NodeData& data = g.data;
  return sampled_batches(
      DataLoader(make_sampler(g, o, o.seed + 1),
                 labelled_nodes(data, g.graph.comm(), {data.train_mask, data.val_mask, data.test_mask}),
                 ordered(o)),
      g);
}

std::unique_ptr<BatchSource> make_sample_batches(const TrainingGraph& g, const TrainOptions& o) {
  const Communicator& comm = g.graph.comm();
  Array<Index> training = labelled_nodes(g.data, comm, {g.data.train_mask});
  for (Index& sample : training) sample -= g.data.book.begin(comm.rank());
  std::unique_ptr<BatchSource> batches = sample_batches(g, training, loader_options(o));
  require_batches(comm, o, batches->num_batches(), std::ssize(training), "training " + g.data.item + "s");
  return batches;
}

std::unique_ptr<BatchSource> make_ordered_sample_batches(const TrainingGraph& g, const TrainOptions& o,
                                                         Which which) {
  const NodeData& data = g.data;
  Array<Index> wanted;
  for (Index sample = 0; sample < g.samples->samples->num_graphs(); ++sample)
    if (which == Which::all || data.train_mask[sample] != 0 || data.val_mask[sample] != 0 ||
        data.test_mask[sample] != 0)
      wanted.push_back(sample);
  return make_ordered_sample_batches(g, o, wanted);
}

std::unique_ptr<BatchSource> make_ordered_sample_batches(const TrainingGraph& g, const TrainOptions& o,
                                                         std::span<const Index> positions) {
  return sample_batches(g, positions, ordered(o));
}

}  // namespace sar::tools
