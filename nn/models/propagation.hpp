// SPDX-License-Identifier: MIT

/// One hop of a fixed operator over a graph, and what repeats it: SIGN, label propagation,
/// correct-and-smooth.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// How a hop weights the rows of the in-neighbors.
enum class HopNorm {
  symmetric,  ///< S = D_in^-1/2 A D_out^-1/2, as in APPNPConv; degrees count edges and are at least 1
  mean,       ///< D_in^-1 A: mean over the in-edges, 0 without any
};

/// Returns S x for x [local nodes, ...] of a homogeneous graph, in the shape of x. Differentiable.
/// Collective: one update_all. Throws ShapeError on every rank if the number of rows of x does not match, or
/// if sources and destinations of the graph are not the same nodes.
[[nodiscard]] Variable propagate(const Graph& graph, const Variable& x, HopNorm norm = HopNorm::symmetric);
/// Local. Throws ShapeError as propagate().
void require_can_propagate(const Graph& graph, const Variable& x);

// SIGN: propagates the features over several hops once and trains a row-wise network on the result.

/// Returns [x, S x, ..., S^hops x] side by side, for x [local nodes, F]: [local nodes, (hops + 1) F], a
/// constant. Collective: `hops` calls of propagate(). Throws the same exception on every rank: InputError
/// unless hops >= 0, ShapeError as propagate().
[[nodiscard]] Tensor sign_features(const Graph& graph, const Tensor& x, int hops,
                                   HopNorm norm = HopNorm::symmetric);

struct SIGNOptions {
  int hops = 3;
  int layers = 2;  ///< Linear layers of each network
  double dropout = 0.5;
};

/// Frasca et al., arXiv 2004.11198, with the model of DGL's example:
///
///     y = project(dropout(prelu([ff_0(x), ff_1(S x), ..., ff_k(S^k x)])))
///
/// Each ff_i and project is a network of `layers` Linear with a PReLU (one slope, initially 0.25) and dropout
/// between them. Parameters: inception_ffs.I.layers.J.weight, .bias, inception_ffs.I.prelu.weight [1], the
/// same for project, and prelu.weight. Weights are Xavier-uniform with the gain of ReLU, biases zero. Local:
/// a result row depends on one input row only, so that training exchanges no halo rows.
///
/// @code
/// const Tensor hops = sign_features(graph, data.features, 2);  // once: [x, S x, S S x]
/// SIGN net(64, 32, 4, gen, {.hops = 2, .layers = 2});
/// const Variable y = net(hops, graph.src_ids());
/// @endcode
class SIGN : public Module {
 public:
  /// Throws InputError unless the widths and `layers` are positive, hops >= 0 and 0 <= dropout < 1.
  SIGN(Index in_feats, Index hidden, Index out_feats, Generator& gen, const SIGNOptions& options = {});

  /// x [n, (hops + 1) in_feats] from sign_features() -> [n, out_feats]. row_ids: the original ids of the
  /// rows, which key the dropout. Throws ShapeError for another width.
  [[nodiscard]] Variable operator()(const Variable& x, const RowIds& row_ids);

 private:
  class PReLU : public Module {
   public:
    PReLU();
    [[nodiscard]] Variable operator()(const Variable& x) const;

   private:
    Variable weight_;
  };
  class FeedForward : public Module {
   public:
    FeedForward(Index in, Index hidden, Index out, Generator& gen, const SIGNOptions& options);
    [[nodiscard]] Variable operator()(Variable x, const RowIds& row_ids);

   private:
    ModuleList<Linear> layers_;
    PReLU prelu_;
    Dropout dropout_;
  };

  Index in_feats_;
  Dropout dropout_;
  PReLU prelu_;
  ModuleList<FeedForward> inception_ffs_;
  FeedForward project_;
};

// Label propagation, and correction and smoothing of predictions with it. These methods use known labels and
// the graph and have no parameters.
//
// Labels [local nodes] are class numbers; labels outside the mask are ignored, and rows with label -1 count
// as outside. Every function is collective, with one update_all of rows of num_classes values per hop. The
// graph is homogeneous, and results are constants that do not depend on the number of ranks, up to rounding.
// Throws the same exception on every rank: ShapeError if shapes do not match, InputError for a label in the
// mask that is not a class, a negative number of layers, or alpha outside [0, 1].

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
/// CorrectAndSmooth, which divides by in-degrees at both ends: the same where each edge has its reverse.
/// y [local nodes, C] are the predicted probabilities. The error E_0 is the one-hot label minus y in the mask
/// and 0 elsewhere. With autoscale:
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
