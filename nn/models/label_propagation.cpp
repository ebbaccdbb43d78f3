// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/models/label_propagation.hpp>

#include <algorithm>
#include <array>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The nodes with a known label.
struct Known {
  std::span<const std::int64_t> labels;
  std::span<const std::uint8_t> mask;

  /// In the mask, and not unlabelled.
  [[nodiscard]] bool has(Index v) const { return mask[static_cast<std::size_t>(v)] != 0 && label(v) != -1; }
  [[nodiscard]] Index label(Index v) const { return labels[static_cast<std::size_t>(v)]; }
};

/// Calls body(v, row of v) for the rows of `to` with a known label.
template <class Body>
void for_known_rows(Tensor& to, const Known& known, const Body& body) {
  for (Index v = 0; v < to.num_rows(); ++v)
    if (known.has(v)) body(v, to.row(v));
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
  for (real& value : y.values()) value = std::clamp(value, low, real{1});
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
    for (Index j = 0; j < next.size(); ++j) next.data()[j] = share * next.data()[j] + rest * start.data()[j];
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
  for (Index v = 0; v < y.num_rows(); ++v) {
    const double sum = std::max(row_sum(y.row(v), y.row_size()), 1e-12);
    for (Index j = 0; j < y.row_size(); ++j) y.row(v)[j] = static_cast<real>(y.row(v)[j] / sum);
  }
}

/// Returns the mean of |error_v|_1 over the known nodes of all ranks.
double mean_error(const Communicator& comm, Tensor& error, const Known& known) {
  std::array<double, 2> sums{};
  for_known_rows(error, known, [&](Index, const real* row) {
    sums[0] += row_sum(row, error.row_size());
    sums[1] += 1;
  });
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
  for (Index v = 0; v < y.num_rows(); ++v) {
    double scale = options.scale;
    if (options.autoscale) {
      scale = sigma / row_sum(smoothed.row(v), y.row_size());
      if (!(scale <= 1000)) scale = 1;
    }
    for (Index j = 0; j < y.row_size(); ++j)
      result.row(v)[j] += static_cast<real>(scale * smoothed.row(v)[j]);
  }
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
