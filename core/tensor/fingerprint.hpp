// SPDX-License-Identifier: MIT

/// Detects whether the values of a tensor have changed.
#pragma once

#include <sar/core/tensor/typed_rows.hpp>

#include <cstdint>

namespace sar { inline namespace SAR_PRECISION {

/// Returns a 64-bit hash of the bits of all elements of x. The hash always changes if a single element
/// changes, and with probability 1 - 2^-64 otherwise. It does not depend on the number of threads. Reads x
/// once; bound by memory bandwidth.
std::uint64_t fingerprint(const TypedRows& x);
}}  // namespace sar
