/// Built-in messages and reductions, under DGL's names: graph.update_all(fn::copy_u(h), fn::mean).
///
/// u is a row of the source, e of the edge, v of the destination.
#pragma once

#include <sar/autograd/variable.hpp>

#include <utility>

namespace sar {

/// How the messages that arrive at a node are combined; a node without in-edges gets 0.
enum class Reduce { sum, mean, max, min };

/// What travels along an edge.
struct Message {
  enum class Kind { copy_u, u_mul_e };
  Kind kind = Kind::copy_u;
  Variable u;  ///< [local source nodes, ...]
  Variable e;  ///< [local edges] or [local edges, 1]: one scalar per edge, in the graph's edge order
};

namespace fn {

/// m = u
inline Message copy_u(Variable u) {
  return {Message::Kind::copy_u, std::move(u), {}};
}
/// m = u * e with one scalar per edge
inline Message u_mul_e(Variable u, Variable e) {
  return {Message::Kind::u_mul_e, std::move(u), std::move(e)};
}

inline constexpr Reduce sum = Reduce::sum;
inline constexpr Reduce max =
    Reduce::max;  ///< of equal messages that of the smallest edge id takes the gradient
inline constexpr Reduce min = Reduce::min;
inline constexpr Reduce mean = Reduce::mean;  ///< divides by the in-degree over all shards

}  // namespace fn
}  // namespace sar
