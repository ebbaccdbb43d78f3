// SPDX-License-Identifier: MIT

/// Label propagation, and correction and smoothing of predictions with it. These methods use known labels and
/// the graph and have no parameters.
///
/// Labels [local nodes] are class numbers; labels outside the mask are ignored, and rows with label -1 count
/// as outside. Every function is collective, with one update_all of rows of num_classes values per hop. The
/// graph is homogeneous, and results are constants that do not depend on the number of ranks, up to rounding.
/// Throws the same exception on every rank: ShapeError if shapes do not match, InputError for a label in the
/// mask that is not a class, a negative number of layers, or alpha outside [0, 1].
#pragma once

#include <sar/nn/models/propagation.hpp>

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

struct LabelPropagationOptions {
  int layers = 10;
  double alpha = 0.9;
  HopNorm norm = HopNorm::symmetric;
  bool clamp = true;       ///< clamp to [0, 1] after each layer
  bool normalize = false;  ///< scale rows to sum 1 after each layer, except zero rows
  bool reset = false;      ///< reset known labels after each layer
};

/// Zhu and Ghahramani, CMU-CALD-02-107; equivalent to dgl.nn.LabelPropagation. Returns Y_layers [local nodes,
/// num_classes] of
///
///     Y_0 = one-hot labels in the mask, 0 elsewhere
///
///     Y_{i+1} = alpha S Y_i + (1 - alpha) Y_0
[[nodiscard]] Tensor label_propagation(const Graph& graph, std::span<const std::int64_t> labels,
                                       std::span<const std::uint8_t> mask, Index num_classes,
                                       const LabelPropagationOptions& options = {});

struct CorrectAndSmoothOptions {
  int correction_layers = 50;
  double correction_alpha = 0.9;
  int smoothing_layers = 50;
  double smoothing_alpha = 0.8;
  /// If true, scales the propagated error of each node to the mean error of the known nodes. Otherwise known
  /// errors are reset in each layer, and the result is scaled by `scale`.
  bool autoscale = true;
  double scale = 1;
  HopNorm norm = HopNorm::symmetric;
};

/// Corrects predictions by propagating their errors: Huang et al., arXiv 2010.13993, as PyG's
/// CorrectAndSmooth. y [local nodes, C] are the predicted probabilities. The error E_0 is the one-hot label
/// minus y in the mask and 0 elsewhere. With autoscale:
///
///     E_{i+1} = clamp(alpha S E_i + (1 - alpha) E_0, -1, 1)
///
///     y'_v = y_v + s_v E_v
///
///     s_v = (mean over the mask of |E_0|_1) / |E_v|_1, or 1 where that is above 1000
///
/// Without autoscale, the rows in the mask are reset to those of E_0 in each layer:
///
///     E_{i+1} = alpha S E_i + (1 - alpha) E_0
///
///     y' = y + scale E
///
/// Also throws InputError if autoscale finds no known label on any rank.
[[nodiscard]] Tensor correct_predictions(const Graph& graph, const Tensor& y,
                                         std::span<const std::int64_t> labels,
                                         std::span<const std::uint8_t> mask,
                                         const CorrectAndSmoothOptions& options = {});

/// Smooths predictions by clamped label propagation from Y_0 = the one-hot labels in the mask and y
/// elsewhere.
[[nodiscard]] Tensor smooth_predictions(const Graph& graph, const Tensor& y,
                                        std::span<const std::int64_t> labels,
                                        std::span<const std::uint8_t> mask,
                                        const CorrectAndSmoothOptions& options = {});

/// Applies correct_predictions() and then smooth_predictions().
[[nodiscard]] Tensor correct_and_smooth(const Graph& graph, const Tensor& y,
                                        std::span<const std::int64_t> labels,
                                        std::span<const std::uint8_t> mask,
                                        const CorrectAndSmoothOptions& options = {});
}}  // namespace sar
