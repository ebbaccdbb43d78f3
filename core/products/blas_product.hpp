/// Matrix products with the BLAS that the library was built with (SAR_BLAS=ON). For implementation files of
/// core/. It is called from the threads of the library's loops, so the BLAS should be single-threaded.
#pragma once

#include <sar/core/products/product.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Whether blas_product() exists.
#if defined(SAR_HAVE_BLAS)
inline constexpr bool has_blas = true;
#else
inline constexpr bool has_blas = false;
#endif

/// out [a.rows, b.cols] = start + a b, for a depth of at least 1.
void blas_product(const MatrixView& a, const MatrixView& b, const ProductTarget& target);

}}  // namespace sar
