// SPDX-License-Identifier: MIT

/// GraphOptions: how message passing goes over the halo of a graph, and in which precision.
#pragma once

#include <sar/comm/halo/halo_format.hpp>
#include <sar/core/numbers.hpp>
#include <sar/core/text.hpp>

#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// How message passing divides the halo into stages, and which halo rows it keeps for the backward pass.
/// Results of all modes are the same up to rounding. Must be the same on every rank.
enum class HaloMode {
  rematerialize,  ///< stage after stage; source rows are dropped, and fetched again where the gradient needs
                  ///< them
  sequential,     ///< stage after stage; source rows that the gradient needs are kept
  one_shot,       ///< all halo rows as one stage; rows kept as in sequential
};

inline constexpr EnumName<HaloMode> halo_mode_names[] = {{HaloMode::rematerialize, "rematerialize"},
                                                         {HaloMode::sequential, "sequential"},
                                                         {HaloMode::one_shot, "one_shot"}};
static_assert(are_in_order(halo_mode_names));
[[nodiscard]] constexpr const char* to_string(HaloMode mode) noexcept {
  return name_in(halo_mode_names, mode);
}

/// The same on every rank.
///
/// @code
/// graph.set_options({.mode = HaloMode::sequential, .halo_format = HaloFormat::bf16});
/// @endcode
struct GraphOptions {
  HaloMode mode = HaloMode::rematerialize;
  /// Stages of halo rows in flight while one is used; at least 1. Each costs one buffer.
  int pipeline_depth = 1;
  /// A stage holds at most so many bytes of halo rows, but at least one row. 0: a quarter of the rows of the
  /// rank that owns most (an eighth in a backward pass that also fetches rows), but at least 1 MiB. In mode
  /// one_shot the only stage of source rows holds all of them.
  Index max_halo_bytes = 0;
  /// Number of edges in a chunk of a user-defined message; at least 1.
  Index edge_chunk = Index{1} << 12;
  /// One thread at a time calls the function of a user-defined message, which may then change what it
  /// captures. The results are the same.
  bool serial_messages = false;
  /// The bits of results do not depend on the number of ranks, the partition, the mode and the stages: sums
  /// over edges are exact (ExactSum) and rounded once. They cost 16 bytes per number of the result, and in
  /// the backward pass per number of u, on several ranks. Messages by type, and built-in ones but sums and
  /// means of copy_u, copy_e and u_mul_e, are computed as user-defined messages, in chunks; attention keeps a
  /// number per edge and head. In a ReproducibleScope, a user-defined message that computes with captured
  /// variables alone is refused. Sums over nodes (gradients of parameters, norms) need a ReproducibleScope
  /// beside it (comm/reproducible_scope.hpp).
  bool reproducible = false;
  /// The format of source rows and their gradients in messages (halo_format.hpp), for update_all, apply_edges
  /// and attention, in training and inference. Degrees, the maxima and sums of edge_softmax, pulled rows and
  /// integers are always sent exactly. Formats other than exact cannot be combined with reproducible.
  HaloFormat halo_format = HaloFormat::exact;

  bool operator==(const GraphOptions&) const = default;
  /// How sums over edges are added.
  [[nodiscard]] Accumulator accumulator() const noexcept {
    return reproducible ? Accumulator::exact : Accumulator::rounded;
  }
};

/// Returns the names of the halo formats that go with the precision and the other options.
[[nodiscard]] inline std::vector<std::string> allowed_halo_formats(const GraphOptions& options) {
  std::vector<std::string> names;
  for (const HaloFormatTraits& traits : halo_format_traits)
    if ((traits.in_double || sizeof(real) < sizeof(double)) && (traits.reproducible || !options.reproducible))
      names.emplace_back(traits.name);
  return names;
}

/// Calls f(name, field) for each field of GraphOptions, or of const GraphOptions.
template <class Options, class F>
void for_each_field(Options& options, const F& f) {
  f("mode", options.mode);
  f("pipeline_depth", options.pipeline_depth);
  f("max_halo_bytes", options.max_halo_bytes);
  f("edge_chunk", options.edge_chunk);
  f("serial_messages", options.serial_messages);
  f("reproducible", options.reproducible);
  f("halo_format", options.halo_format);
}

}}  // namespace sar
