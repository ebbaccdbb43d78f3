// SPDX-License-Identifier: MIT

// Training for links, and for labels of edges.
#include "train_edges.hpp"
#include "train_predict.hpp"
#include "train_steps.hpp"

#include <sar/core/memory/index_arrays.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace sar::tools {
namespace {

NegativeOptions negative_options(Index k, std::uint64_t seed, std::shared_ptr<const EdgeSet> known,
                                 const EdgeTask& task) {
  return {.k = k,
          .seed = seed,
          .exclude_self_loops = true,
          .exclude_edges = std::move(known),
          .candidates = task.candidates};
}

constexpr Index chunk_pairs = 1 << 16;  // whose rows are there at a time

/// Each value k times.
Array<Index> repeat(std::span<const Index> values, Index k) {
  Array<Index> repeated;
  for (const Index value : values) repeated.insert(repeated.end(), static_cast<std::size_t>(k), value);
  return repeated;
}

/// Calls take(begin, count) for ranges of at most `chunk` of `size` elements, equally often on every rank.
/// Collective, as is `take`.
template <class Take>
void for_each_chunk_of(const Communicator& comm, Index size, Index chunk, const Take& take) {
  const Index chunks = comm.all_reduce((size + chunk - 1) / chunk, ReduceOp::max);
  for (Index i = 0; i < chunks; ++i) {
    const Index begin = std::min(size, i * chunk);
    take(begin, std::min(chunk, size - begin));
  }
}

/// A part of some values, which may be missing.
std::span<const Index> slice_of(std::span<const Index> values, Index begin, Index count) {
  return values.empty() ? values : values.subspan(begin, count);
}

/// Of some edges: classes, or values [edges, 1].
struct EdgeLabels {
  Array<std::int64_t> classes;
  Tensor values;
};

EdgeLabels labels_of(const TaskEdges& part, std::span<const Index> positions, LabelType type) {
  EdgeLabels of;
  if (type == LabelType::values) {
    of.values = Tensor({std::ssize(positions), Index{1}});
    std::ranges::transform(positions, of.values.data(),
                           [&](Index i) { return static_cast<real>(part.labels[i]); });
  } else {
    for (const Index i : positions) of.classes.push_back(static_cast<std::int64_t>(part.labels[i]));
  }
  return of;
}

RelationEdges edges_of(std::initializer_list<const TaskEdges*> parts) {
  RelationEdges all;
  for (const TaskEdges* part : parts) {
    all.src.insert(all.src.end(), part->src().begin(), part->src().end());
    all.dst.insert(all.dst.end(), part->dst().begin(), part->dst().end());
    all.rels.insert(all.rels.end(), part->types.begin(), part->types.end());
    all.rels.resize(all.src.size(), 0);
  }
  return all;
}

std::unique_ptr<RelationPredictor> make_relation_predictor(PredictorType type, Index num_types, Index width,
                                                           Generator& gen) {
  switch (type) {
    case PredictorType::distmult:
      return std::make_unique<DistMultPredictor>(num_types, width, gen);
    case PredictorType::complex:
      return std::make_unique<ComplExPredictor>(num_types, width, gen);
    case PredictorType::transe:
      return std::make_unique<TransEPredictor>(num_types, width, gen);
    case PredictorType::rotate:
      return std::make_unique<RotatEPredictor>(num_types, width, gen);
    case PredictorType::dot:
    case PredictorType::mlp:
      break;
  }
  return nullptr;
}

/// A network that computes node representations, and a predictor that maps the two ends of a pair to scores.
class EdgeModel : public Module {
 public:
  EdgeModel(const TrainOptions& o, const ModelDescription& network, bool cached, Index num_types,
            Index num_classes, const Communicator& comm, Generator& gen)
      : network_(network, comm, gen, cached) {
    register_module("network", network_);
    if (o.task.type == TaskType::edge || o.task.predictor == PredictorType::mlp) {
      const Index out = o.task.type == TaskType::edge ? num_classes : 1;
      register_module("predictor", mlp_.emplace(network.hidden, gen, MLPPredictorOptions{.out = out}));
    } else if (has_relations(o.task.predictor)) {
      relations_ = make_relation_predictor(o.task.predictor, num_types, network.hidden, gen);
      register_module("predictor", *relations_);
    }
  }

  [[nodiscard]] LayerStack& network() { return network_; }
  /// The predictor with relations; null for other predictors.
  [[nodiscard]] const RelationPredictor* relations() const noexcept { return relations_.get(); }
  /// Maps the rows of both ends [n, hidden] to scores [n, 1 or classes]; `types` of the pairs: empty means
  /// all 0.
  [[nodiscard]] Variable operator()(const Variable& src, const Variable& dst, Array<Index> types) const {
    if (mlp_) return (*mlp_)(src, dst);
    if (relations_ == nullptr) return dot_(src, dst);
    types.resize(static_cast<std::size_t>(src.num_rows()), 0);
    return (*relations_)(src, dst, std::move(types));
  }

 private:
  LayerStack network_;
  DotPredictor dot_;
  std::optional<MLPPredictor> mlp_;
  std::unique_ptr<RelationPredictor> relations_;
};

class EdgeSteps : public Steps {
 public:
  EdgeSteps(TrainingGraph& g, const TrainOptions& o)
      : Steps(g, o),
        task_(g.edges),
        model_(o, g.model.with_widths(input_.width(), g.model.hidden), keeps_first_sums(), task_.num_types,
               task_.num_classes, comm_, g.gen) {
    if (input_.has_parameters()) model_.network().add_input(input_);
    describe_task();
    if (is_link())
      eval_negatives_.emplace(graph_,
                              negative_options(o.task.eval_negatives, o.seed + 1, task_.of_graph, task_));
    if (o.task.filtered_ranks) known_.emplace(graph_, edges_of({&task_.train, &task_.valid, &task_.test}));
    if (o.epochs == 0) return;
    train_on(o.mfg || !o.sample.fan_outs.empty() ? make_batches() : make_whole_epochs());
  }

  [[nodiscard]] Module& model() override { return model_; }
  [[nodiscard]] std::string description() const override { return description_; }

 protected:
  /// Computes representations on the whole graph.
  [[nodiscard]] std::vector<Scores> scores() override {
    const Variable h = apply(network(), Batch());
    std::vector<Scores> scores(metric_names(o_.task).size());
    if (is_link()) {
      evaluate_links(h, task_.valid, 0, &Scores::val, scores);
      evaluate_links(h, task_.test, 1, &Scores::test, scores);
    } else {
      evaluate_labels(h, task_.train, &Scores::train, scores);
      evaluate_labels(h, task_.valid, &Scores::val, scores);
      evaluate_labels(h, task_.test, &Scores::test, scores);
    }
    return scores;
  }

  void write_predictions() override {
    const Index layer = o_.predict_layer > 0 ? o_.predict_layer : o_.model.layers;
    if (is_link() || o_.predict_layer > 0)
      predict_embeddings(o_, network().after_layer(layer, graph_, input_.all(), g_.relations).value(), graph_,
                         data_, g_.node_types);
    if (!is_link()) {
      const Variable h = apply(network(), Batch());
      predict_edges(comm_, o_, numbers_of(h, task_.all.src(), task_.all.dst(), {}), task_.all.edges.id,
                    task_.ids_are_original);
    }
    if (!o_.predict_pairs.empty()) {
      const Variable h = apply(network(), Batch());
      const GivenPairs& pairs = task_.pairs;
      write_pair_scores(comm_, o_, pairs, numbers_of(h, pairs.src, pairs.dst, pairs.types));
    }
  }

  [[nodiscard]] LayerStack& network() { return model_.network(); }
  [[nodiscard]] Variable loss(const Batch& batch) override {
    const Variable h = apply(network(), batch);
    const TaskEdges& train = task_.train;
    const Array<Index> positions = batch.seeds ? batch.rows : consecutive(0, train.edges.size());
    Array<Index> types;
    if (!train.types.empty())
      for (const Index i : positions) types.push_back(train.types[i]);
    const Variable numbers = model_(batch.positive->src(h), batch.positive->dst(h), types);
    if (is_link()) {
      const Variable against =
          model_(batch.negative->src(h), batch.negative->dst(h), repeat(types, o_.task.negatives));
      if (o_.task.loss == LinkLoss::margin) return link_margin(numbers, against, comm_);
      if (o_.task.loss == LinkLoss::infonce) return info_nce(numbers, against, comm_);
      return link_bce_with_logits(numbers, against, comm_);
    }
    const EdgeLabels labels = labels_of(train, positions, o_.task.labels);
    if (o_.task.labels == LabelType::values) return mse(numbers, labels.values, comm_);
    return cross_entropy(numbers, labels.classes, Array<std::uint8_t>(labels.classes.size(), 1), comm_);
  }

 private:
  [[nodiscard]] bool is_link() const { return o_.task.type == TaskType::link; }
  /// With --mfg, an epoch is a batch of all edges, on all their in-edges.
  [[nodiscard]] std::unique_ptr<BatchSource> make_batches() const {
    const Index edges = comm_.all_reduce(task_.train.edges.size());
    const auto layers = static_cast<std::size_t>(o_.model.layers);
    const DataLoaderOptions batches{.batch_size = o_.mfg ? edges : o_.sample.batch_size,
                                    .per_rank = o_.sample.batch_per_rank,
                                    .drop_last = o_.sample.drop_last,
                                    .seed = o_.seed};
    EdgeDataLoader loader(
        o_.mfg ? NeighborSampler(graph_, std::vector<Index>(layers, -1), {.seed = o_.seed})
               : make_sampler(g_, o_, o_.seed),
        task_.train.edges,
        EdgeDataLoaderOptions{
            .batches = batches,
            .exclude = o_.mfg ? ExcludeEdges::none : o_.task.exclude,
            .types = task_.edge_types.empty() ? EdgeTypes() : g_.relations.front().types,
            .excluded_types = task_.edge_types,
            .negatives = is_link() ? o_.task.negatives_from : Negatives::none,
            .negative = negative_options(o_.task.negatives, o_.seed, task_.of_messages, task_)});
    require_batches(comm_, o_, loader.num_batches(), task_.train.edges.size(), "training edges");
    const Index seeds = loader.num_edges();
    return loaded_batches(std::move(loader), seeds, [this](EdgeDataLoader& from) -> BatchPtr {
      std::optional<EdgeMiniBatch> next = from.next();
      if (!next) return nullptr;
      Batch batch;
      batch.set_blocks(std::move(next->blocks), g_.relations);
      batch.rows.assign(next->positions.begin(), next->positions.end());
      batch.positive = std::move(next->positive);
      batch.negative = std::move(next->negative);
      batch.seeds = std::ssize(batch.rows);
      return std::make_shared<const Batch>(std::move(batch));
    });
  }

  /// Negatives are those of the epoch.
  [[nodiscard]] std::unique_ptr<BatchSource> make_whole_epochs() const {
    Batch all;
    all.positive.emplace(comm_, data_.book, task_.train.src(), task_.train.dst(), graph_.options());
    std::optional<NegativeSampler> negatives;
    if (is_link())
      negatives.emplace(graph_, negative_options(o_.task.negatives, o_.seed, task_.of_messages, task_));
    return std::make_unique<WholeEpochs>(
        [this, all = std::move(all), negatives = std::move(negatives)](std::uint64_t epoch) {
          auto batch = std::make_shared<Batch>(all);
          if (!negatives) return batch;
          const NodePairList drawn = draw(*negatives, task_.train.src(), task_.train.edges.id, epoch);
          batch->negative.emplace(comm_, data_.book, drawn.src, drawn.dst, graph_.options());
          return batch;
        });
  }

  void describe_task() {
    Index sizes[] = {task_.train.edges.size(), task_.valid.edges.size(), task_.test.edges.size()};
    comm_.all_reduce(std::span<Index>(sizes));
    const TaskOptions& t = o_.task;
    const std::string predictor =
        is_link() ? concat(name_in(predictor_types, t.predictor), ", loss ", name_in(link_losses, t.loss),
                           ", ", t.negatives, " negatives, which join ", task_.candidates->describe())
                  : concat("mlp, ", t.labels == LabelType::classes ? concat(task_.num_classes, " classes")
                                                                   : std::string("values"));
    description_ = concat(describe_layers(model_.network().description()), "; ", name_of(t.type),
                          o_.relation.empty() ? "" : " of ", o_.relation, ": ", sizes[0], " training, ",
                          sizes[1], " validation and ", sizes[2], " test edges, predictor ", predictor);
    const Index unlabelled = task_.train.unlabelled + task_.valid.unlabelled + task_.test.unlabelled;
    if (unlabelled > 0)
      description_ += concat("; edges without a label, left out: ", task_.train.unlabelled, ", ",
                             task_.valid.unlabelled, " and ", task_.test.unlabelled, " of these");
  }

  /// Collective. Returns the scores of pairs of any nodes, computed in batches of limited size.
  [[nodiscard]] Tensor numbers_of(const Variable& h, std::span<const Index> src, std::span<const Index> dst,
                                  std::span<const Index> types) const {
    const Index width = is_link() ? 1 : task_.num_classes, pairs = std::ssize(src);
    Tensor numbers({pairs, width});
    for_each_chunk_of(comm_, pairs, chunk_pairs, [&](Index begin, Index count) {
      const NodePairs some(comm_, data_.book, slice_of(src, begin, count), slice_of(dst, begin, count),
                           graph_.options());
      const std::span<const Index> of_types = slice_of(types, begin, count);
      const Tensor values =
          model_(some.src(h), some.dst(h), Array<Index>(of_types.begin(), of_types.end())).value();
      if (count > 0) std::copy_n(values.data(), values.size(), numbers.row(begin));
    });
    return numbers;
  }

  [[nodiscard]] NodePairList draw(const NegativeSampler& sampler, std::span<const Index> src,
                                  std::span<const Index> ids, std::uint64_t epoch) const {
    return o_.task.negatives_from == Negatives::per_source ? sampler.per_source(src, ids, epoch)
                                                           : sampler.global_uniform(ids, epoch);
  }

  /// Collective. Returns the scores of k sampled negatives per edge of `part`, drawn and computed in
  /// batches.
  [[nodiscard]] Tensor numbers_of_drawn(const Variable& h, const TaskEdges& part, std::uint64_t epoch) const {
    const Index k = o_.task.eval_negatives, edges = part.edges.size();
    Tensor numbers({edges * k, Index{1}});
    for_each_chunk_of(comm_, edges, std::max<Index>(1, chunk_pairs / k), [&](Index begin, Index count) {
      const auto some = [&](std::span<const Index> of) { return slice_of(of, begin, count); };
      const NodePairList drawn = draw(*eval_negatives_, some(part.src()), some(part.edges.id), epoch);
      const Tensor values = numbers_of(h, drawn.src, drawn.dst, repeat(some(part.types), k));
      if (count > 0) std::copy_n(values.data(), values.size(), numbers.row(begin * k));
    });
    return numbers;
  }

  /// Negatives are the same in each evaluation; `epoch` tells those of the parts apart.
  void evaluate_links(const Variable& h, const TaskEdges& part, std::uint64_t epoch, double Scores::*score,
                      std::vector<Scores>& scores) const {
    const Index edges = part.edges.size();
    if (comm_.all_reduce(edges) == 0) return;
    const bool given = comm_.all_reduce(part.negatives.size()) > 0;
    const Index k = given ? part.negatives_per_edge : o_.task.eval_negatives;
    const Tensor positive = numbers_of(h, part.src(), part.dst(), part.types);
    const Tensor negative = given
                                ? numbers_of(h, part.negatives.src, part.negatives.dst, repeat(part.types, k))
                                : numbers_of_drawn(h, part, epoch);
    const std::vector<Metric> metrics = metrics_of(o_.task);
    RankMetrics ranks;
    if (known_) ranks = rank_among_all(h, part);
    for (std::size_t i = 0; i < metrics.size(); ++i) {
      double& value = scores[i].*score;
      if (metrics[i] == Metric::roc_auc)
        value = roc_auc(positive, negative, comm_);
      else if (metrics[i] == Metric::average_precision)
        value = average_precision(positive, negative, comm_);
      else if (known_)
        value = metrics[i] == Metric::mrr ? ranks.mrr : ranks.hits.front();
      else if (metrics[i] == Metric::hits)
        value = hits_at_k(positive, negative, o_.task.hits_k, comm_);
      else if (k > 0)
        value = mean_reciprocal_rank(positive, negative.reshape({edges, k}), comm_);
    }
  }

  /// Collective. Returns MRR and Hits@K among all nodes.
  [[nodiscard]] RankMetrics rank_among_all(const Variable& h, const TaskEdges& part) const {
    return rank_metrics(
        filtered_ranks(*model_.relations(), graph_, h.value(), edges_of({&part}), *known_, task_.rows),
        std::vector<Index>{o_.task.hits_k}, comm_);
  }

  void evaluate_labels(const Variable& h, const TaskEdges& part, double Scores::*score,
                       std::vector<Scores>& scores) const {
    const Tensor numbers = numbers_of(h, part.src(), part.dst(), {});
    const EdgeLabels of_part = labels_of(part, consecutive(0, part.edges.size()), o_.task.labels);
    const Labels labels{.type = o_.task.labels, .classes = of_part.classes, .targets = of_part.values};
    const Array<std::uint8_t> mask(part.labels.size(), 1);
    const std::vector<Metric> metrics = metrics_of(o_.task);
    for (std::size_t i = 0; i < metrics.size(); ++i)
      scores[i].*score = value_of(metrics[i], numbers, labels, mask, comm_);
  }

  const EdgeTask& task_;
  EdgeModel model_;
  std::string description_;
  std::optional<NegativeSampler> eval_negatives_;
  std::optional<KnownEdges> known_;  // --filtered-ranks
};

}  // namespace

std::unique_ptr<Steps> make_edge_steps(TrainingGraph& g, const TrainOptions& o) {
  return std::make_unique<EdgeSteps>(g, o);
}

}  // namespace sar::tools
