/// Label propagation, and the correction and smoothing of predictions with it: results of known labels and
/// the graph, without parameters.
///
/// Labels [local nodes] are classes; those outside the mask may be anything. Every function is collective,
/// with one update_all of rows of the number of classes for a hop, and the same for every number of ranks, to
/// rounding. A graph is homogeneous; results are constants. Throws, the same on every rank, ShapeError when
/// shapes do not fit, InputError for a label in the mask that is no class, a number of layers below 0, and
/// alpha outside [0, 1].
#pragma once

#include <sar/nn/propagation.hpp>

#include <cstdint>
#include <span>

namespace sar::inline SAR_PRECISION {

struct LabelPropagationOptions {
  int layers = 10;
  double alpha = 0.9;
  HopNorm norm = HopNorm::symmetric;
  bool clamp = true;       ///< to [0, 1] after each layer
  bool normalize = false;  ///< rows to sum 1 after each layer, unless they are 0
  bool reset = false;      ///< known labels to themselves after each layer
};

/// Zhu and Ghahramani, CMU-CALD-02-107; as dgl.nn.LabelPropagation: Y_layers of
///
///     Y_0 = one-hot labels in the mask, 0 elsewhere        Y_{i+1} = alpha S Y_i + (1 - alpha) Y_0
///
/// [local nodes, num_classes].
[[nodiscard]] Tensor label_propagation(const GraphShardManager& graph, std::span<const std::int64_t> labels,
                                       std::span<const std::uint8_t> mask, Index num_classes,
                                       const LabelPropagationOptions& options = {});

struct CorrectAndSmoothOptions {
  int correction_layers = 50;
  double correction_alpha = 0.9;
  int smoothing_layers = 50;
  double smoothing_alpha = 0.8;
  /// Scales the propagated error of each node to the mean error of the known nodes; otherwise known errors
  /// are kept in each layer, and the result is scaled by `scale`.
  bool autoscale = true;
  double scale = 1;
  HopNorm norm = HopNorm::symmetric;
};

/// Huang et al., arXiv 2010.13993; as the steps of PyG's CorrectAndSmooth. y [local nodes, C]: the predicted
/// probabilities. The error E_0 is the one-hot label minus y in the mask and 0 elsewhere. With autoscale,
///
///     E_{i+1} = clamp(alpha S E_i + (1 - alpha) E_0, -1, 1)
///
///     y'_v = y_v + s_v E_v
///
///     s_v = (mean over the mask of |E_0|_1) / |E_v|_1, or 1 where that is above 1000
///
/// and without
///
///     E_{i+1} = alpha S E_i + (1 - alpha) E_0 with the rows of E_0 in the mask        y' = y + scale E
///
/// Throws InputError, too, when autoscale finds no known label on any rank.
[[nodiscard]] Tensor correct_predictions(const GraphShardManager& graph, const Tensor& y,
                                         std::span<const std::int64_t> labels,
                                         std::span<const std::uint8_t> mask,
                                         const CorrectAndSmoothOptions& options = {});

/// The second step: label propagation, clamped, from Y_0 = the one-hot labels in the mask and y elsewhere.
[[nodiscard]] Tensor smooth_predictions(const GraphShardManager& graph, const Tensor& y,
                                        std::span<const std::int64_t> labels,
                                        std::span<const std::uint8_t> mask,
                                        const CorrectAndSmoothOptions& options = {});

/// Both steps.
[[nodiscard]] Tensor correct_and_smooth(const GraphShardManager& graph, const Tensor& y,
                                        std::span<const std::int64_t> labels,
                                        std::span<const std::uint8_t> mask,
                                        const CorrectAndSmoothOptions& options = {});

}  // namespace sar
