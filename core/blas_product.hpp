/// Products by the BLAS that the library was built with (SAR_BLAS=ON), for implementation files of core/. It
/// is called from the threads of the library's loops and should use one thread itself.
#pragma once

#include <sar/core/product.hpp>

namespace sar::inline SAR_PRECISION {

/// Whether blas_product is there.
#if defined(SAR_HAVE_BLAS)
inline constexpr bool has_blas = true;
#else
inline constexpr bool has_blas = false;
#endif

/// out [a.rows, b.cols] = start + a b, for a depth of at least 1
void blas_product(const MatrixView& a, const MatrixView& b, const ProductTarget& target);

}  // namespace sar
