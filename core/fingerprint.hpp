/// Recognises values that have changed.
#pragma once

#include <sar/core/tensor.hpp>

#include <cstdint>

namespace sar::inline SAR_PRECISION {

/// A number that stands for the bits of all elements of x. It changes whenever a single element changes, and
/// with a probability of 1 - 2^-64 otherwise. Does not depend on the number of threads. Reads x once: bound
/// by memory.
std::uint64_t fingerprint(const Tensor& x);

}  // namespace sar
