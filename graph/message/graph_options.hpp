/// GraphOptions: how message passing goes over the halo of a graph, and in which precision.
#pragma once

#include <sar/comm/halo/halo_format.hpp>
#include <sar/core/memory/memory.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// In which stages message passing takes the halo, and what it keeps. Results agree to rounding. The same on
/// every rank.
enum class HaloMode {
  rematerialize,  ///< stage after stage; source rows are dropped, and fetched again where the gradient needs
                  ///< them
  sequential,     ///< stage after stage; source rows that the gradient needs are kept
  one_shot,       ///< all halo rows as one stage; rows kept as in sequential
};

/// The same on every rank.
struct GraphOptions {
  HaloMode mode = HaloMode::rematerialize;
  /// Stages of halo rows in flight while one is used; at least 1. Each costs one buffer.
  int pipeline_depth = 1;
  /// A stage holds at most so many bytes of halo rows, but at least one row. 0: a quarter of the rows of the
  /// rank that owns most, but at least 1 MiB. In mode one_shot the only stage of source rows holds all of
  /// them.
  Index max_halo_bytes = 0;
  /// A user-defined message is computed for so many edges at a time; at least 1.
  Index edge_block = Index{1} << 12;
  /// One thread at a time calls the function of a user-defined message, which may then change what it
  /// captures. The results are the same.
  bool serial_messages = false;
  /// Sums and means of copy_u, copy_e and u * e with a number e are added in double precision, over all
  /// stages and ranks, and rounded once; so are the gradients of u. A result then depends on the number of
  /// ranks in rare roundings only. Costs twice the bytes of the gradients that travel, and 8 bytes a value of
  /// the result (of u, in the backward pass) during the operation. Without effect in double precision.
  bool aggregate_in_double = false;
  /// What rows of sources and their gradients are rounded to while they travel (halo_format.hpp): of
  /// update_all, apply_edges and attention, in training and without a tape. Degrees, the extremes and sums of
  /// edge_softmax, pulled rows and everything that is not a real number travel exactly. Other than exact not
  /// together with aggregate_in_double.
  HaloFormat halo_format = HaloFormat::exact;
};

}}  // namespace sar
