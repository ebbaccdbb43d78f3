#include <sar/core/products/blas_product.hpp>

#include <algorithm>

extern "C" {
void sgemm_(const char* op_a, const char* op_b, const int* m, const int* n, const int* k, const float* alpha,
            const float* a, const int* lda, const float* b, const int* ldb, const float* beta, float* c,
            const int* ldc);
void dgemm_(const char* op_a, const char* op_b, const int* m, const int* n, const int* k, const double* alpha,
            const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
            const int* ldc);
}

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// A row-major matrix described as its column-major transpose, which is what the BLAS expects.
struct Operand {
  explicit Operand(const MatrixView& x)
      : op(x.col_step == 1 ? 'N' : 'T'),
        stride(static_cast<int>(x.col_step == 1 ? std::max(x.row_step, x.cols)
                                                : std::max(x.col_step, x.rows))) {}
  char op;
  int stride;
};

}  // namespace

void blas_product(const MatrixView& a, const MatrixView& b, const ProductTarget& target) {
  if (a.rows == 0 || b.cols == 0) return;
  const bool adds = target.start != nullptr;
  if (adds && target.start != target.out)
    for (Index i = 0; i < a.rows; ++i)
      std::copy_n(target.start + i * target.start_stride, b.cols, target.out + i * target.stride);
  const Operand left(a), right(b);
  const auto m = static_cast<int>(b.cols), n = static_cast<int>(a.rows), k = static_cast<int>(a.cols);
  const auto stride = static_cast<int>(std::max(target.stride, b.cols));
  const real one = 1, beta = adds ? 1 : 0;
#if SAR_DOUBLE
  const auto gemm = dgemm_;
#else
  const auto gemm = sgemm_;
#endif
  gemm(&right.op, &left.op, &m, &n, &k, &one, b.data, &right.stride, a.data, &left.stride, &beta, target.out,
       &stride);
}

}}  // namespace sar
