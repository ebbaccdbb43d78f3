// SPDX-License-Identifier: MIT

/// Kernels of messages of scalars and vectors.
#pragma once

#include <sar/core/tensor/tensor.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// The operands of messages with F channels.
struct VectorMessageRows {
  const Tensor& phi;        ///< [n, 3 F]
  const Tensor& filter;     ///< [n, 3 F]
  const Tensor& direction;  ///< d [n, 3]
  const Tensor& vectors;    ///< v [n, 3, F], or undefined: 0
  bool scalars = true;      ///< false: 0 in place of a
};

/// With (a, b, g) = phi * filter: out [n, 4 F] has a, then b d_k + g v_k for the three components k. Reads
/// the operands and writes out once, row by row.
void vector_messages(const VectorMessageRows& of, Tensor& out);

/// The gradients, each overwritten if it is defined. Reads the operands and `grad` once for each call.
struct VectorMessageGradients {
  Tensor phi, filter, direction, vectors;
};
void vector_messages_backward(const VectorMessageRows& of, const Tensor& grad, VectorMessageGradients& to);

/// Sums of messages over the edges of a chunk, without a row for each message. Edge e of the chunk has row e
/// of the filter and of the direction. A source row has phi [3 F], with `vectors` v [3, F] behind it, and
/// with `tangents` those of phi and v behind both. Then messages, filter and direction have tangents, too.
struct VectorMessageChunk {
  Index feats = 0;
  bool vectors = false, tangents = false;
  const real* sources = nullptr;
  Index source_stride = 0;
  real *filter = nullptr, *filter_tangent = nullptr;  ///< [edges, filter_size()]
  const real *direction = nullptr, *direction_tangent = nullptr;
  Index direction_stride = 0;  ///< of both

  /// The groups of edges of one row: group i belongs to row rows[i] and has the edges groups[i] .. groups[i +
  /// 1] - 1.
  const std::int32_t *rows = nullptr, *groups = nullptr;
  Index num_groups = 0;
  const std::int32_t* others = nullptr;  ///< the row at the other end of each edge

  /// Without vectors, filters have the columns of a and b only.
  [[nodiscard]] Index filter_size() const noexcept { return (vectors ? 3 : 2) * feats; }
  [[nodiscard]] Index message_size() const noexcept { return (tangents ? 8 : 4) * feats; }
};

/// Groups of destinations, which are rows of out; `others` are source rows. out[rows[i]] += the sum of the
/// messages of group i, and behind it that of their tangents. Single-threaded. Channels, then edges: sums
/// stay in registers. Bytes moved: a source row and a filter row for each edge.
void add_vector_message_sums(const VectorMessageChunk& of, real* out);

/// Groups of sources; `others` are rows of grad, the gradient of the sums. Overwrites the filter with its
/// gradient, writes those of the directions [edges, 3], if they are not null, and adds those of the sources
/// to grad_sources, which has their rows and stride; columns behind phi and v stay as they are.
/// Single-threaded. Channels, then edges: the source row and its gradient stay in registers. Bytes moved: a
/// row of grad, and a filter row read and written, for each edge.
void vector_message_gradients(const VectorMessageChunk& of, const real* grad, real* grad_sources,
                              real* grad_direction, real* grad_direction_tangent);
}}  // namespace sar
