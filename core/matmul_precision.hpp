/// How exactly products of matrices are computed in single precision: matmul, linear layers, gather_mm, and
/// their backward passes. As torch.set_float32_matmul_precision.
///
///     highest   each factor has its 24 bits; the default
///     high      each factor is a sum of two bfloat16 numbers, x = h + l, and a product
///               h_a h_b + l_a h_b + h_a l_b: relative error of a product at most 3 / 2^16
///     medium    each factor is rounded to bfloat16: relative error of a product at most 1 / 2^7
///
/// Sums are always taken in single precision. `high` and `medium` are for processors that multiply bfloat16
/// numbers themselves, in AMX tiles or, for `medium`, with AVX512-BF16. Elsewhere they give the same numbers,
/// up to the rounding of the sums, and take longer than `highest`. The bounds are for factors between 1e-35
/// and 3.3e38 in size: the instructions take numbers below 2^-126 for zero, and larger ones round to
/// infinity. An infinite factor of `high` gives NaN. A library of double precision accepts all three and
/// always computes in double precision.
#pragma once

#include <sar/config.hpp>

#include <string_view>

namespace sar::inline SAR_PRECISION {

enum class MatmulPrecision { highest, high, medium };

/// For the products of this process from now on. Each rank has its own setting, which all should set alike.
void set_matmul_precision(MatmulPrecision precision) noexcept;
/// "highest", "high" or "medium". Throws InputError for another word.
void set_matmul_precision(std::string_view name);

[[nodiscard]] MatmulPrecision matmul_precision() noexcept;

/// "high"
[[nodiscard]] const char* to_string(MatmulPrecision precision) noexcept;

}  // namespace sar
