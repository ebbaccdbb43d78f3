// SPDX-License-Identifier: MIT

/// A metric of a program's own, as a function of the rows of all ranks.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor/tensor.hpp>
#include <sar/core/threads/parallel.hpp>

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Collective. Returns metric(scores [M, C], labels [M]), or metric(scores [M, T], targets [M, T]), of the
/// M rows of all ranks that are in the mask and have a label: a class other than -1, or a target that is
/// not NaN. NaN if there are none.
///
/// The metric is any local function whose value does not depend on the order of the rows. Every rank calls
/// it with all rows, so that memory for them is needed on each rank; a metric of sums or counts needs only
/// Communicator::all_reduce. Throws as accuracy() does for labels outside of the classes, ShapeError if
/// shapes or lengths differ.
double metric_of_all_rows(const Tensor& scores, std::span<const std::int64_t> labels,
                          std::span<const std::uint8_t> mask, const Communicator& comm,
                          FunctionRef<double(const Tensor&, std::span<const std::int64_t>)> metric);
double metric_of_all_rows(const Tensor& scores, const Tensor& targets, std::span<const std::uint8_t> mask,
                          const Communicator& comm, FunctionRef<double(const Tensor&, const Tensor&)> metric);

}}  // namespace sar
