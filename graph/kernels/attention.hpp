/// Fused attention on one shard: softmax over the in-edges of a node of a score, times the sources' values.
///
///     forward     s_e,h = score of edge e = (u, v);  online softmax: with m the largest score so far,
///                 z = sum exp(s - m),  out[v, h] = sum f_e,h exp(s - m) value[u, h],  both rescaled when m
///                 grows; at the end out /= z                      f = dropout's factor * edge weight
///     backward    alpha = exp(s - m - log z);  dalpha = f <g[v, h], value[u, h]>;
///                 ds = alpha (dalpha - D_v), D_v = <g[v, h], out[v, h]>;  dvalue[u, h] += f alpha g[v, h];
///                 df = alpha <g, value>
///
/// additive     GAT (gat_attention.cpp). The value is x.
///
///                  s = leaky_relu(el[u, h] + dst[v, h] + type_term[r, h]),    el[u, h] = <attn[h], x[u, h]>
///
///              The last term only where edges have types r.
///              The backward pass goes over the transpose: x_u and its gradient stay in registers while rows of
///              g pass by. ds is needed by destination, too: it is written, edge after edge, for a block of
///              source rows with about six edges a destination; then every destination gathers what belongs to it,
///              while it is still in the cache.
///
/// additive_v2, dot    GATv2, dot product and AGNN (pair_attention.cpp). The value is x, or for dot with
///              `separate_value` the second part of the source's row.
///
///                  additive_v2    s = <attn[h], leaky_relu(x[u, h] + dst[v, h])>
///                  dot            s = c <x[u, h], dst[v, h]>
///                                 c = scale, divided by |x[u, h]| (at least 1e-12) when `unit_sources`
///
///              Scores need rows of both ends. The backward pass goes over the transpose: rows of dst and of g pass
///              by, and x_u and its gradient stay at hand. For the gradients by destination it writes c ds to where
///              the edge lies in the order of destinations, for a block of source rows with at most 16 edges a
///              destination. Those of dot add rows of x up. Those of additive_v2 need no row, but the sign of each
///              column of x + dst: a bit, written beside ds.
///
/// Edges are worked on in batches of up to 64, also of several rows: scores, maxima, exponentials of all,
/// then the rows, each requested a batch ahead by the last loop that reads rows of its table; all heads of an
/// edge at once. Between batches the result is that of the edges so far, divided by their sum, so that no
/// pass over it follows. Traffic per edge: additive a row of x forward and a row of g backward, as copy_u,
/// and besides a few numbers per head: el and el, four of the destination (a line of cache), ds twice (and
/// its place, 4 bytes). The others a row of x forward; backward rows of dst and of g, ds twice, and a row of
/// x for dot, 4 bytes of signs for 32 columns twice for additive_v2. Time, forward and backward, of 4 heads x
/// 32 to copy_u sum of width 128 on an EPYC with AVX-512: additive 1.9 (forward 1.5 to 1.65), additive_v2 3.5
/// to 3.6 (1.5 to 1.6), dot 3.2 to 3.4 (1.3 to 1.4; bench/attention.cpp, one thread). The rows gathered,
/// three and four where copy_u gathers two, would allow 1.5 and 2: the rest is computation (signs, dot
/// products by heads), which overlaps with memory only in the loop that requests rows. With rows in the cache
/// an edge takes 19 and 28 ns (additive), 24 and 71 (additive_v2), 20 and 60 (dot), where copy_u takes 7, and
/// 22 to 24 from memory.
///
/// Within a stage, or a block of sources in the backward pass, up to 1,024 terms are added in `real`, sums of
/// these in double precision; stages and blocks are added in `real`. A row with more edges is divided into
/// parts, which run in parallel, each with a softmax of its own (long_rows.hpp). The backward pass of
/// additive adds its gradients in `real` throughout.
#pragma once

#include <sar/core/dropout.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/shard/shard_kernel.hpp>

#include <cstdint>
#include <memory>

namespace sar::inline SAR_PRECISION {

/// The result, and what the backward pass reads besides.
struct AttentionResult {
  Tensor out;      ///< [destinations, heads, dim]
  Tensor max;      ///< [destinations, heads]
  Tensor log_sum;  ///< [destinations, heads]; the sum itself before finish()
};

struct AttentionOperands {
  Index heads = 1;
  Index dim = 0;                      ///< columns of a head of the result
  Index key_dim = 0;                  ///< columns of a head of x; dim unless the value is separate
  bool separate_value = false;        ///< source rows are [heads * key_dim + heads * dim]
  const real* attn = nullptr;         ///< [heads, key_dim]; not for dot
  const real* dst = nullptr;          ///< additive: [destinations, heads]; others: [.., key_dim], too
  real slope = 0;                     ///< of leaky_relu
  real scale = 1;                     ///< dot
  bool unit_sources = false;          ///< dot
  const real* edge_weight = nullptr;  ///< per local edge; null: 1
  const DropoutMask* mask = nullptr;  ///< null: no dropout
  const Index* edge_ids = nullptr;    ///< global ids per local edge, for the mask
  const real* bias = nullptr;         ///< [heads, dim], added to the result; null: none
  const real* type_term = nullptr;    ///< additive: [num_types, heads]; null: none
  Index num_types = 0;
  const std::uint16_t* types = nullptr;  ///< with type_term: per local edge
  AttentionResult* result = nullptr;  ///< written by the forward pass, read and emptied by begin_backward()
  const real* grad_out = nullptr;     ///< backward: as result->out
  real* grad_dst = nullptr;           ///< backward: as dst, added to; null: not wanted
  double* grad_attn = nullptr;        ///< backward: as attn, added to; null: not wanted
  real* grad_edge_weight = nullptr;   ///< backward: per local edge, overwritten; null: not wanted
  double* grad_type_term = nullptr;   ///< backward: as type_term, added to; null: not wanted
};

// The kernels, by score.
std::unique_ptr<ShardKernel> make_gat_kernel(const AttentionOperands& operands);
std::unique_ptr<ShardKernel> make_gatv2_kernel(const AttentionOperands& operands);
std::unique_ptr<ShardKernel> make_dot_kernel(const AttentionOperands& operands);

}  // namespace sar::inline SAR_PRECISION
