// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/models/propagation.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

Tensor inverse_roots(const Array<Index>& degrees) {
  return degree_column(degrees, [](double degree) { return 1 / std::sqrt(std::max(degree, 1.0)); });
}

}  // namespace

void require_can_propagate(const Graph& graph, const Variable& x) {
  require<ShapeError>(graph.is_block() && graph.num_global_src_nodes() == graph.num_global_dst_nodes(),
                      "propagate needs a graph whose sources and destinations are the same nodes; this one "
                      "goes from ",
                      graph.num_global_src_nodes(), " to ", graph.num_global_dst_nodes(), " nodes");
  require_num_rows(x, graph.num_src_nodes(), "propagate, rows");
}

Variable propagate(const Graph& graph, const Variable& x, HopNorm norm) {
  return graph.comm().agree([&] {
    require_can_propagate(graph, x);
    const CallScope compared(graph.comm(), CollectiveCall("propagate").equal("norm", norm));
    if (norm == HopNorm::mean) return graph.update_all(fn::copy_u(x), fn::mean);
    const Variable scaled = scale_rows(x, inverse_roots(graph.out_degrees()));
    return scale_rows(graph.update_all(fn::copy_u(scaled), fn::sum), inverse_roots(graph.in_degrees()));
  });
}

Tensor sign_features(const Graph& graph, const Tensor& x, int hops, HopNorm norm) {
  return graph.comm().agree([&] {
    require<InputError>(hops >= 0, "sign_features: ", hops, " hops, expected 0 or more");
    require_can_propagate(graph, x);
    const CallScope compared(graph.comm(),
                             CollectiveCall("sign_features").equal("hops", hops).equal("norm", norm));
    const NoTape constant;
    const Index width = x.row_size();
    Tensor features({x.num_rows(), (hops + 1) * width});
    Variable hop = x;
    for (Index i = 0; i <= hops; ++i) {
      if (i > 0) hop = propagate(graph, hop, norm);
      const Tensor& rows = hop.value();
      parallel_for_each(rows.num_rows(), 256,
                        [&](Index v) { std::copy_n(rows.row(v), width, features.row(v) + i * width); });
    }
    return features;
  });
}

SIGN::PReLU::PReLU() {
  register_parameter("weight", weight_, Tensor::full({1}, static_cast<real>(0.25)));
}

Variable SIGN::PReLU::operator()(const Variable& x) const {
  const Variable positive = relu(x);
  return positive + weight_ * (x - positive);  // the derivative at 0 is the weight, as in PyTorch
}

SIGN::FeedForward::FeedForward(Index in, Index hidden, Index out, Generator& gen, const SIGNOptions& options)
    : dropout_(options.dropout, gen) {
  require<InputError>(options.layers >= 1, "SIGN with ", options.layers, " layers, expected 1 or more");
  register_module("layers", layers_);
  for (int i = 0; i < options.layers; ++i) {
    const Linear& layer =
        layers_.emplace_back(i == 0 ? in : hidden, i + 1 == options.layers ? out : hidden, gen);
    start_weight(layer, init::xavier_uniform(layer.weight().shape(), init::relu_gain, gen.next_stream()));
    Variable(layer.bias()).value().fill(0);
  }
  if (options.layers > 1) register_module("prelu", prelu_);
  register_module("dropout", dropout_);
}

Variable SIGN::FeedForward::operator()(Variable x, const RowIds& row_ids) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    x = layers_[i](x);
    if (i + 1 < layers_.size()) x = dropout_(prelu_(x), row_ids);
  }
  return x;
}

SIGN::SIGN(Index in_feats, Index hidden, Index out_feats, Generator& gen, const SIGNOptions& options)
    : in_feats_(in_feats),
      dropout_(options.dropout, gen),
      project_((std::max(options.hops, 0) + 1) * hidden, hidden, out_feats, gen, options) {
  require<InputError>(options.hops >= 0, "SIGN with ", options.hops, " hops, expected 0 or more");
  register_module("dropout", dropout_);
  register_module("prelu", prelu_);
  register_module("inception_ffs", inception_ffs_);
  register_module("project", project_);
  for (int i = 0; i <= options.hops; ++i) inception_ffs_.emplace_back(in_feats, hidden, hidden, gen, options);
}

Variable SIGN::operator()(const Variable& x, const RowIds& row_ids) {
  const Transaction transaction;
  const auto hops = static_cast<Index>(inception_ffs_.size());
  require_rows(x, x.num_rows(), hops * in_feats_, "SIGN, features");
  std::vector<Variable> hidden;
  for (Index i = 0; i < hops; ++i)
    hidden.push_back(inception_ffs_[static_cast<std::size_t>(i)](
        slice_columns(x, i * in_feats_, (i + 1) * in_feats_), row_ids));
  return project_(dropout_(prelu_(concat_columns(hidden)), row_ids), row_ids);
}

namespace {

/// The nodes with a known label.
struct Known {
  std::span<const std::int64_t> labels;
  std::span<const std::uint8_t> mask;

  /// In the mask, and not unlabelled.
  [[nodiscard]] bool has(Index v) const { return mask[static_cast<std::size_t>(v)] != 0 && label(v) != -1; }
  [[nodiscard]] Index label(Index v) const { return labels[static_cast<std::size_t>(v)]; }
};

constexpr Index element_grain = 1 << 14;

/// Calls body(v, row of v) in parallel for the rows of `of`.
template <class Body>
void for_rows(Tensor& of, const Body& body) {
  parallel_for_each(of.num_rows(), 256, [&](Index v) { body(v, of.row(v)); });
}

/// The same for the rows with a known label.
template <class Body>
void for_known_rows(Tensor& of, const Known& known, const Body& body) {
  for_rows(of, [&](Index v, real* row) {
    if (known.has(v)) body(v, row);
  });
}

Known checked(const Graph& graph, std::span<const std::int64_t> labels, std::span<const std::uint8_t> mask,
              Index num_classes) {
  const auto nodes = static_cast<std::size_t>(graph.num_nodes());
  require<ShapeError>(labels.size() == nodes && mask.size() == nodes, "label propagation: ", labels.size(),
                      " labels and a mask of ", mask.size(), " for ", nodes, " nodes");
  require<InputError>(num_classes >= 1, "label propagation: ", num_classes, " classes, expected 1 or more");
  const Known known{labels, mask};
  for (Index v = 0; v < graph.num_nodes(); ++v)
    require<InputError>(!known.has(v) || (known.label(v) >= 0 && known.label(v) < num_classes),
                        "label propagation: label ", known.label(v), " of row ", v,
                        ", which is in the mask, is not one of the ", num_classes, " classes");
  return known;
}

Known checked(const Graph& graph, const Tensor& y, std::span<const std::int64_t> labels,
              std::span<const std::uint8_t> mask) {
  require<ShapeError>(y.shape().dims() == 2 && y.num_rows() == graph.num_nodes(),
                      "label propagation: predictions have shape ", y.shape(), ", expected [",
                      graph.num_nodes(), ", classes]");
  return checked(graph, labels, mask, y.row_size());
}

/// Copies the one-hot labels into the known rows.
void put_labels(Tensor& to, const Known& known) {
  for_known_rows(to, known, [&](Index v, real* row) {
    std::fill_n(row, to.row_size(), real{0});
    row[known.label(v)] = 1;
  });
}

void clamp_values(Tensor& y, real low) {
  parallel_for(y.size(), element_grain, [=, to = y.data()](Index begin, Index end) {
    for (Index j = begin; j < end; ++j) to[j] = std::clamp(to[j], low, real{1});
  });
}

/// Returns y after `layers` iterations of y <- alpha S y + (1 - alpha) start, each followed by after(y).
template <class After>
Tensor propagate_layers(const Graph& graph, const Tensor& start, int layers, double alpha, HopNorm norm,
                        const After& after) {
  require<InputError>(layers >= 0 && alpha >= 0 && alpha <= 1, "label propagation: ", layers,
                      " layers with alpha ", alpha, ", expected 0 layers or more and a number from 0 to 1");
  require_can_propagate(graph, start);
  const NoTape constant;
  const auto share = static_cast<real>(alpha), rest = static_cast<real>(1 - alpha);
  Tensor y = start.clone();
  for (int i = 0; i < layers; ++i) {
    Tensor next = propagate(graph, y, norm).value();
    parallel_for(next.size(), element_grain,
                 [=, to = next.data(), from = start.data()](Index begin, Index end) {
                   for (Index j = begin; j < end; ++j) to[j] = share * to[j] + rest * from[j];
                 });
    y = next;
    after(y);
  }
  return y;
}

CollectiveCall described(const char* name, const CorrectAndSmoothOptions& options) {
  return CollectiveCall(name)
      .equal("correction_layers", options.correction_layers)
      .equal("correction_alpha", options.correction_alpha)
      .equal("smoothing_layers", options.smoothing_layers)
      .equal("smoothing_alpha", options.smoothing_alpha)
      .equal("autoscale", options.autoscale)
      .equal("scale", options.scale)
      .equal("norm", options.norm);
}

double row_sum(const real* row, Index width) {
  double sum = 0;
  for (Index j = 0; j < width; ++j) sum += std::abs(static_cast<double>(row[j]));
  return sum;
}

void normalize_rows(Tensor& y) {
  for_rows(y, [width = y.row_size()](Index, real* row) {
    const double sum = std::max(row_sum(row, width), 1e-12);
    for (Index j = 0; j < width; ++j) row[j] = static_cast<real>(row[j] / sum);
  });
}

/// Returns the mean of |error_v|_1 over the known nodes of all ranks.
double mean_error(const Communicator& comm, const Tensor& error, const Known& known) {
  std::array<double, 2> sums{};
  for (Index v = 0; v < error.num_rows(); ++v) {  // in their order
    if (!known.has(v)) continue;
    sums[0] += row_sum(error.row(v), error.row_size());
    sums[1] += 1;
  }
  comm.all_reduce(std::span<double>(sums));
  require<InputError>(sums[1] > 0, "correct_predictions: no row of any rank has a known label");
  return sums[0] / sums[1];
}

Tensor corrected(const Graph& graph, const Tensor& y, const Known& known,
                 const CorrectAndSmoothOptions& options) {
  Tensor error = Tensor::zeros(y.shape());
  put_labels(error, known);
  for_known_rows(error, known, [&](Index v, real* row) {
    for (Index j = 0; j < y.row_size(); ++j) row[j] -= y.row(v)[j];
  });
  const double sigma = options.autoscale ? mean_error(graph.comm(), error, known) : 0;
  const auto after = [&](Tensor& e) {
    if (options.autoscale) return clamp_values(e, -1);
    for_known_rows(e, known, [&](Index v, real* row) { std::copy_n(error.row(v), e.row_size(), row); });
  };
  const Tensor smoothed = propagate_layers(graph, error, options.correction_layers, options.correction_alpha,
                                           options.norm, after);
  Tensor result = y.clone();
  for_rows(result, [&, width = y.row_size()](Index v, real* row) {
    double scale = options.scale;
    if (options.autoscale) {
      scale = sigma / row_sum(smoothed.row(v), width);
      if (!(scale <= 1000)) scale = 1;
    }
    const real* change = smoothed.row(v);
    for (Index j = 0; j < width; ++j) row[j] += static_cast<real>(scale * change[j]);
  });
  return result;
}

Tensor smoothed(const Graph& graph, const Tensor& y, const Known& known,
                const CorrectAndSmoothOptions& options) {
  Tensor start = y.clone();
  put_labels(start, known);
  return propagate_layers(graph, start, options.smoothing_layers, options.smoothing_alpha, options.norm,
                          [](Tensor& rows) { clamp_values(rows, 0); });
}

}  // namespace

Tensor label_propagation(const Graph& graph, std::span<const std::int64_t> labels,
                         std::span<const std::uint8_t> mask, Index num_classes,
                         const LabelPropagationOptions& options) {
  return graph.comm().agree([&] {
    const Known known = checked(graph, labels, mask, num_classes);
    const CallScope compared(graph.comm(), CollectiveCall("label_propagation")
                                               .equal("number of classes", num_classes)
                                               .equal("layers", options.layers)
                                               .equal("alpha", options.alpha)
                                               .equal("norm", options.norm)
                                               .equal("clamp", options.clamp)
                                               .equal("normalize", options.normalize)
                                               .equal("reset", options.reset));
    Tensor start = Tensor::zeros({graph.num_nodes(), num_classes});
    put_labels(start, known);
    return propagate_layers(graph, start, options.layers, options.alpha, options.norm, [&](Tensor& y) {
      if (options.clamp) clamp_values(y, 0);
      if (options.normalize) normalize_rows(y);
      if (options.reset) put_labels(y, known);
    });
  });
}

Tensor correct_predictions(const Graph& graph, const Tensor& y, std::span<const std::int64_t> labels,
                           std::span<const std::uint8_t> mask, const CorrectAndSmoothOptions& options) {
  return graph.comm().agree([&] {
    const Known known = checked(graph, y, labels, mask);
    const CallScope compared(graph.comm(), described("correct_predictions", options));
    return corrected(graph, y, known, options);
  });
}

Tensor smooth_predictions(const Graph& graph, const Tensor& y, std::span<const std::int64_t> labels,
                          std::span<const std::uint8_t> mask, const CorrectAndSmoothOptions& options) {
  return graph.comm().agree([&] {
    const Known known = checked(graph, y, labels, mask);
    const CallScope compared(graph.comm(), described("smooth_predictions", options));
    return smoothed(graph, y, known, options);
  });
}

Tensor correct_and_smooth(const Graph& graph, const Tensor& y, std::span<const std::int64_t> labels,
                          std::span<const std::uint8_t> mask, const CorrectAndSmoothOptions& options) {
  return graph.comm().agree([&] {
    const Known known = checked(graph, y, labels, mask);
    const CallScope compared(graph.comm(), described("correct_and_smooth", options));
    return smoothed(graph, corrected(graph, y, known, options), known, options);
  });
}
}}  // namespace sar
