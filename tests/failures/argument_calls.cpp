// SPDX-License-Identifier: MIT
#include "failures/argument_calls.hpp"

namespace sar::test {
namespace {

std::span<const std::int64_t> labels_of(const Scene& s) {
  static const std::vector<std::int64_t> labels(scene_nodes, 1);
  return std::span(labels).first(static_cast<std::size_t>(s.graph.num_nodes()));
}

std::span<const std::uint8_t> mask_of(const Scene& s) {
  static const std::vector<std::uint8_t> mask(scene_nodes, 1);
  return std::span(mask).first(static_cast<std::size_t>(s.graph.num_nodes()));
}

Tensor rows_of(const Scene& s, Index width) {
  return Tensor::full({s.graph.num_nodes(), width}, real(0.5));
}

void add_losses(ArgumentCalls& calls, const Communicator& comm) {
  const std::string header = "nn/train/loss.hpp ", links = "nn/models/link_predictor.hpp ";
  const Values<Index> shape{"shape", 3, 2}, classes{"number of classes", 3, 2};
  add(
      calls, comm, header + "cross_entropy",
      [](Scene& s, Index width) { (void)cross_entropy(rows_of(s, width), labels_of(s), mask_of(s), s.comm); },
      classes);
  add(
      calls, comm, header + "accuracy",
      [](Scene& s, Index width) { (void)accuracy(rows_of(s, width), labels_of(s), mask_of(s), s.comm); },
      classes);
  add(
      calls, comm, header + "cross_entropy, with options",
      [](Scene& s, double smoothing, std::size_t count, double weight) {
        const std::vector<double> weights(count, weight);
        (void)cross_entropy(rows_of(s, 3), labels_of(s), mask_of(s), s.comm,
                            CrossEntropyOptions{.class_weights = weights, .label_smoothing = smoothing});
      },
      Values<double>{"label_smoothing", 0, 0.1}, Values<std::size_t>{"number of class weights", 3, 0},
      Values<double>{"class weight", 1, 2});
  add(
      calls, comm, header + "cross_entropy, with row weights",
      [](Scene& s, bool has) {
        const std::vector<real> weights(labels_of(s).size(), 1);
        CrossEntropyOptions options;
        if (has) options.row_weights = weights;
        (void)cross_entropy(rows_of(s, 3), labels_of(s), mask_of(s), s.comm, options);
      },
      Values<bool>{"row weights", false, true});
  add(
      calls, comm, header + "balanced_class_weights",
      [](Scene& s, Index width) { (void)balanced_class_weights(labels_of(s), mask_of(s), width, s.comm); },
      classes);
  add(
      calls, comm, header + "bce_with_logits",
      [](Scene& s, Index width) { (void)bce_with_logits(rows_of(s, width), rows_of(s, width), s.comm); },
      shape);
  add(
      calls, comm, header + "mse",
      [](Scene& s, Index width) { (void)mse(rows_of(s, width), rows_of(s, width), s.comm); }, shape);
  add(
      calls, comm, header + "l1",
      [](Scene& s, Index width) { (void)l1(rows_of(s, width), rows_of(s, width), s.comm); }, shape);
  add(
      calls, comm, header + "huber",
      [](Scene& s, double delta, Index width) {
        (void)huber(rows_of(s, width), rows_of(s, width), s.comm, delta);
      },
      Values<double>{"delta", 1, 1 + 1e-15}, shape);
  add(
      calls, comm, links + "link_margin",
      [](Scene& s, double margin) { (void)link_margin(rows_of(s, 1), rows_of(s, 2), s.comm, margin); },
      Values<double>{"margin", 1, 2});
  add(
      calls, comm, links + "info_nce",
      [](Scene& s, double temperature) { (void)info_nce(rows_of(s, 1), rows_of(s, 2), s.comm, temperature); },
      Values<double>{"temperature", 1, 2});
  add(
      calls, comm, "nn/models/ranking.hpp hits_at_k",
      [](Scene& s, Index k) { (void)hits_at_k(rows_of(s, 1), rows_of(s, 1), k, s.comm); },
      Values<Index>{"K", 1, 2});
  add(
      calls, comm, "nn/models/ranking.hpp rank_metrics",
      [](Scene& s, Index k) {
        const std::vector<Index> ks{1, k};
        (void)rank_metrics({{1, 2.5}, {3}}, ks, s.comm);
      },
      Values<Index>{"K", 3, 10});
  add(
      calls, comm, "nn/models/ranking.hpp filtered_ranks",
      [](Scene& s, Index rels) {
        const DistMultPredictor predictor(rels, scene_width, s.gen);
        const KnownEdges known(s.graph, {{0}, {1}, {1}});
        (void)filtered_ranks(predictor, s.graph, s.x.value(), {{0}, {1}, {1}}, known);
      },
      Values<Index>{"number of relations", 2, 3});
}

/// Metrics of classes and of columns, and losses with a mask.
void add_masked(ArgumentCalls& calls, const Communicator& comm) {
  const Values<Index> shape{"shape", 3, 2}, classes{"number of classes", 3, 2},
      columns{"number of columns", 3, 2};
  const auto add_loss = [&](const char* name, auto loss) {
    add(
        calls, comm, concat("nn/train/loss.hpp ", name),
        [=](Scene& s, Index width) { (void)loss(rows_of(s, width), rows_of(s, width), mask_of(s), s.comm); },
        shape);
  };
  add_loss("bce_with_logits", [](const auto&... of) { return bce_with_logits(of...); });
  add_loss("mse", [](const auto&... of) { return mse(of...); });
  add_loss("l1", [](const auto&... of) { return l1(of...); });
  add_loss("huber", [](const auto&... of) { return huber(of...); });
  const auto add_metric = [&](const std::string& name, auto metric, bool of_classes) {
    add(
        calls, comm, name,
        [=](Scene& s, Index width) {
          (void)metric(rows_of(s, width), Tensor::full({s.graph.num_nodes(), width}, 1), mask_of(s), s.comm);
        },
        columns);
    if constexpr (requires(Scene & s) { metric(s.x.value(), labels_of(s), mask_of(s), s.comm); })
      if (of_classes)
        add(
            calls, comm, name,
            [=](Scene& s, Index width) { (void)metric(rows_of(s, width), labels_of(s), mask_of(s), s.comm); },
            classes);
  };
  const std::string metrics = "nn/train/metrics.hpp ";
  const auto roc = [](const auto& x, const auto& t, const auto& m, const auto& on) {
    return roc_auc(x, t, m, on);
  };
  const auto precision = [](const auto& x, const auto& t, const auto& m, const auto& on) {
    return average_precision(x, t, m, on);
  };
  const auto f1 = [](const auto& x, const auto& t, const auto& m, const auto& on) {
    return f1_score(x, t, m, F1::macro, on);
  };
  add_metric(metrics + "roc_auc", roc, true);
  add_metric(metrics + "average_precision", precision, true);
  add_metric(metrics + "f1_score", f1, true);
  add(
      calls, comm, metrics + "f1_score",
      [](Scene& s, F1 average) { (void)f1_score(rows_of(s, 3), labels_of(s), mask_of(s), average, s.comm); },
      Values<F1>{"average", F1::macro, F1::micro});
  add_metric(metrics + "mean_absolute_error", mean_absolute_error, false);
  add_metric(metrics + "mean_squared_error", mean_squared_error, false);
  add_metric(metrics + "root_mean_squared_error", root_mean_squared_error, false);
  add_metric(metrics + "r2_score", r2_score, false);
  add(
      calls, comm, "nn/train/metrics.hpp metric_of_all_rows",
      [](Scene& s, Index width) {
        (void)metric_of_all_rows(rows_of(s, width), labels_of(s), mask_of(s), s.comm,
                                 [](const Tensor&, std::span<const std::int64_t>) { return 1.0; });
      },
      classes);
}

void add_reductions(ArgumentCalls& calls, const Communicator& comm) {
  const std::string header = "nn/modules/reductions.hpp ";
  const Values<ReduceDim> over{"number of columns", ReduceDim::rows, ReduceDim::all};
  add(
      calls, comm, header + "sum", [](Scene& s, ReduceDim of) { (void)sum(s.x, s.comm, of); }, over);
  add(
      calls, comm, header + "sum_of_groups",
      [](Scene& s, Index groups) {
        const Index rows = s.graph.num_src_nodes();
        (void)sum_of_groups(Variable(Tensor::full({rows, 1}, 1)),
                            RowIds(std::vector<Index>(static_cast<std::size_t>(rows), 1)), groups, s.comm);
      },
      Values<Index>{"number of groups", 2, 3});
  add(
      calls, comm, header + "mean", [](Scene& s, ReduceDim of) { (void)mean(s.x, s.comm, of); }, over);
  add(
      calls, comm, header + "all_reduce",
      [](Scene& s, ReduceOp op, Index rows, Index width) {
        (void)all_reduce(Variable(Tensor::full({rows, width}, 1)), s.comm, op);
      },
      Values<ReduceOp>{"operation", ReduceOp::sum, ReduceOp::max}, Values<Index>{"number of rows", 2, 3},
      Values<Index>{"shape", 2, 3});
}

void add_modules(ArgumentCalls& calls, const Communicator& comm) {
  add(
      calls, comm, "nn/modules/norms.hpp DistributedBN1D",
      [](Scene& s, Index width, double eps, double momentum, bool affine) {
        const BatchNormOptions options{.eps = eps, .momentum = momentum, .affine = affine};
        (void)DistributedBN1D(width, s.comm, options)(rows_of(s, width));
      },
      Values<Index>{"number of features", 3, 2}, Values<double>{"eps", 1e-5, 1e-3},
      Values<double>{"momentum", 0.1, 0.2}, Values<bool>{"affine", true, false});
  add(
      calls, comm, "nn/modules/norms.hpp batch_norm_relu_dropout",
      [](Scene& s, double p, std::uint64_t seed) {
        Generator gen(seed);
        Dropout dropout(p, gen);
        DistributedBN1D norm(3, s.comm);
        (void)batch_norm_relu_dropout(rows_of(s, 3), norm, dropout, s.graph.src_ids());
      },
      Values<double>{"scale of dropout", 0.5, 0.25}, Values<std::uint64_t>{"random key of dropout", 0, 1});
  add(
      calls, comm, "nn/modules/norms.hpp Normalizer::update",
      [](Scene& s, Index width) { Normalizer(width, s.comm).update(rows_of(s, width)); },
      Values<Index>{"number of features", 3, 2});
  add(
      calls, comm, "nn/train/distributed.hpp gather_grads",
      [](Scene& s, bool average) {
        Linear linear(2, 1, s.gen);
        gather_grads(s.comm, linear, average);
      },
      Values<bool>{"average", false, true});
}

std::vector<Index> own_ids(const Scene& s) {
  std::vector<Index> ids;
  for (Index v = s.book.begin(s.comm.rank()); v < s.book.end(s.comm.rank()); ++v) ids.push_back(v);
  return ids;
}

void add_embeddings(ArgumentCalls& calls, const Communicator& comm) {
  add(
      calls, comm, "nn/modules/embedding.hpp DistributedEmbedding",
      [](Scene& s, Index width, double bound, std::uint64_t seed) {
        Generator gen(seed);
        const DistributedEmbedding made("v", s.comm, s.book, own_ids(s), width, gen, bound);
      },
      Values<Index>{"width", 2, 3}, Values<double>{"bound", 1, 0.5}, Values<std::uint64_t>{"seed", 0, 1});
  add(
      calls, comm, "nn/modules/embedding.hpp DistributedEmbedding::operator",
      [](Scene& s, const std::string& name) {
        DistributedEmbedding embedding(name, s.comm, s.book, own_ids(s), 2, s.gen);
        (void)embedding(std::vector<Index>{0});
      },
      Values<std::string>{"embedding", "v", "w"});
  add(
      calls, comm, "nn/modules/embedding.hpp DistributedEmbedding::gradient",
      [](Scene& s, const std::string& name) {
        (void)DistributedEmbedding(name, s.comm, s.book, own_ids(s), 2, s.gen).gradient();
      },
      Values<std::string>{"embedding", "v", "w"});
  add(
      calls, comm, "nn/train/hetero_embedding.hpp HeteroEmbedding",
      [](Scene& s, Index width, std::uint64_t seed) {
        const Graph graph(s.comm, std::vector<NodeTypeSpec>{{.name = "user", .book = s.book}},
                          std::vector<EdgeTypeSpec>{{.type = {"user", "knows", "user"}, .edges = {}}});
        Generator gen(seed);
        const HeteroEmbedding made(graph, {"user"}, width, gen);
      },
      Values<Index>{"width", 2, 3}, Values<std::uint64_t>{"seed", 0, 1});
  const auto step = [](Scene& s, auto make) {
    DistributedEmbedding embedding("v", s.comm, s.book, own_ids(s), 2, s.gen);
    make(embedding)->step();
  };
  const std::string name = "nn/train/optimizer.hpp SparseOptimizer::step";
  add(
      calls, comm, name,
      [=](Scene& s, double lr, double beta1, double beta2, double eps) {
        const SparseAdamOptions options{.lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps};
        step(s, [&](DistributedEmbedding& of) {
          return std::make_unique<SparseAdam>(EmbeddingRefs{of}, options);
        });
      },
      Values<double>{"lr", 0.01, 0.02}, Values<double>{"beta1", 0.9, 0.8}, Values<double>{"beta2", 0.99, 0.9},
      Values<double>{"eps", 1e-8, 1e-6});
  add(
      calls, comm, name,
      [=](Scene& s, bool adagrad) {
        step(s, [&](DistributedEmbedding& of) -> std::unique_ptr<SparseOptimizer> {
          if (adagrad) return std::make_unique<SparseAdagrad>(EmbeddingRefs{of});
          return std::make_unique<SparseSGD>(EmbeddingRefs{of});
        });
      },
      Values<bool>{"kind of the optimizer", false, true});
}

void add_checkpoints(ArgumentCalls& calls, const Communicator& comm, const std::string& directory) {
  add(
      calls, comm, "nn/train/checkpoint.hpp Checkpointer",
      [=](Scene& s, int keep_last, std::uint64_t seed) {
        const Checkpointer made(s.comm, directory, {.keep_last = keep_last, .seed = seed});
      },
      Values<int>{"keep_last", 3, 2}, Values<std::uint64_t>{"seed", 0, 1});
  add(
      calls, comm, "nn/train/checkpoint.hpp Checkpointer::save",
      [=](Scene& s, int epoch, double lr) {
        Linear linear(2, 1, s.gen);
        Adam adam(linear.named_parameters(), {.lr = lr});
        Checkpointer(s.comm, directory).save(epoch, linear, adam);
      },
      Values<int>{"epoch", 1, 2}, Values<double>{"lr", 0.1, 0.2});
  add(
      calls, comm, "nn/train/checkpoint.hpp Checkpointer::load",
      [=](Scene& s, bool adam) {
        Linear linear(2, 1, s.gen);
        Adam made(linear.named_parameters());
        SGD other(linear.named_parameters());
        const Checkpointer saver(s.comm, directory + "/load");
        if (saver.latest().empty()) saver.save(1, linear, made);
        (void)saver.load(saver.latest(), linear, adam ? static_cast<Optimizer&>(made) : other);
      },
      Values<bool>{"kind of the optimizer", true, false});
}

void add_propagation(ArgumentCalls& calls, const Communicator& comm) {
  const Values<HopNorm> norm{"norm", HopNorm::symmetric, HopNorm::mean};
  add(
      calls, comm, "nn/models/propagation.hpp propagate",
      [](Scene& s, HopNorm by) { (void)propagate(s.graph, s.x, by); }, norm);
  add(
      calls, comm, "nn/models/propagation.hpp sign_features",
      [](Scene& s, int hops, HopNorm by) { (void)sign_features(s.graph, s.x.value(), hops, by); },
      Values<int>{"hops", 2, 1}, norm);
  const std::string header = "nn/models/propagation.hpp ";
  add(
      calls, comm, header + "label_propagation",
      [](Scene& s, Index classes, int layers, double alpha, HopNorm by, bool clamp, bool normalize,
         bool reset) {
        const LabelPropagationOptions options{.layers = layers,
                                              .alpha = alpha,
                                              .norm = by,
                                              .clamp = clamp,
                                              .normalize = normalize,
                                              .reset = reset};
        (void)label_propagation(s.graph, labels_of(s), mask_of(s), classes, options);
      },
      Values<Index>{"number of classes", 2, 3}, Values<int>{"layers", 2, 3},
      Values<double>{"alpha", 0.9, 0.8}, norm, Values<bool>{"clamp", true, false},
      Values<bool>{"normalize", false, true}, Values<bool>{"reset", false, true});
  const auto add_correction = [&](const std::string& name, auto compute) {
    add(
        calls, comm, header + name,
        [=](Scene& s, int layers, double alpha, int smoothing, double by, bool autoscale, double scale,
            HopNorm hop) {
          const CorrectAndSmoothOptions options{layers, alpha, smoothing, by, autoscale, scale, hop};
          (void)compute(s.graph, rows_of(s, 2), labels_of(s), mask_of(s), options);
        },
        Values<int>{"correction_layers", 2, 3}, Values<double>{"correction_alpha", 0.9, 0.8},
        Values<int>{"smoothing_layers", 2, 3}, Values<double>{"smoothing_alpha", 0.8, 0.7},
        Values<bool>{"autoscale", true, false}, Values<double>{"scale", 1, 2}, norm);
  };
  add_correction("correct_predictions", correct_predictions);
  add_correction("smooth_predictions", smooth_predictions);
  add_correction("correct_and_smooth", correct_and_smooth);
  add(
      calls, comm, "nn/conv/edge_conv.hpp minimum_image_shifts",
      [](Scene& s, double side) {
        (void)minimum_image_shifts(s.graph, s.x, std::vector<double>{1, side, 1});
      },
      Values<double>{"side of the box", 1, 2});
}

}  // namespace

ArgumentCalls argument_calls(const Communicator& comm, const std::string& directory) {
  ArgumentCalls calls;
  add_losses(calls, comm);
  add_masked(calls, comm);
  add_reductions(calls, comm);
  add_modules(calls, comm);
  add_embeddings(calls, comm);
  add_checkpoints(calls, comm, directory + "/checkpoints");
  add_propagation(calls, comm);
  add_graph_arguments(calls, comm);
  add_data_arguments(calls, comm, directory);
  return calls;
}

}  // namespace sar::test
