// SPDX-License-Identifier: MIT

/// Input widths and features of a layer at the two ends of an edge, given once for both ends or separately.
#pragma once

#include <sar/autograd/variable.hpp>

#include <concepts>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

/// Input widths of a layer: one for both ends, or one for the sources and one for the destinations, each with
/// its own projection.
struct InFeatures {
  Index src, dst;
  bool pair;  ///< given separately for each end

  InFeatures(Index both) : src(both), dst(both), pair(false) {}  // NOLINT: converts by design
  InFeatures(Index of_src, Index of_dst) : src(of_src), dst(of_dst), pair(true) {}
  template <std::convertible_to<Index> S, std::convertible_to<Index> D>
  InFeatures(const std::pair<S, D>& ends) : InFeatures(ends.first, ends.second) {}  // NOLINT
};

/// Input features of a layer: [local sources, ...] for both ends, where the destinations are the first rows
/// of the sources, or a pair of [local sources, ...] and [local destinations, ...].
struct NodeFeatures {
  Variable src, dst;  ///< if dst is undefined, it is the first rows of src

  template <std::convertible_to<Variable> T>
  NodeFeatures(T&& both) : src(std::forward<T>(both)) {}  // NOLINT: converts by design
  NodeFeatures(Variable of_src, Variable of_dst) : src(std::move(of_src)), dst(std::move(of_dst)) {}
  NodeFeatures(const std::pair<Variable, Variable>& ends) : src(ends.first), dst(ends.second) {}  // NOLINT
  [[nodiscard]] bool pair() const { return dst.defined(); }
};

}}  // namespace sar
