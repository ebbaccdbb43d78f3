// SPDX-License-Identifier: MIT

/// Products of tall-skinny matrices in each MatmulPrecision, beside the best of Eigen (on blocks of 256 rows)
/// and of a BLAS: the library that SAR_BENCH_BLAS names (its sgemm_ or dgemm_, which should use one thread:
/// OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1). With T threads, the reference gets a T-th of the rows on each.
///
///     bench_matmul [n k m]        default: k and m in 40, 64, 128, 256, 512; n so that a call has 4 GFLOP
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_STACK_ALLOCATION_LIMIT (512 * 1024)  // no page faults for the reference
#include "bench.hpp"

#include <sar/autograd/products.hpp>
#include <sar/core/products/matmul.hpp>
#include <sar/core/threads/mixed_precision.hpp>

#include <Eigen/Core>

#include <dlfcn.h>
#include <cstdlib>
#include <set>
#include <vector>

namespace sar::bench {
namespace {

using Matrix = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<Matrix> rows(Tensor& t, Index begin, Index end) {
  return {t.row(begin), end - begin, t.shape()[1]};
}

Tensor ramp(const Shape& shape) {
  Tensor t(shape);
  for (Index i = 0; i < t.size(); ++i) t.data()[i] = static_cast<real>(i % 1021) / 1021;
  return t;
}

using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const real*, const real*,
                      const int*, const real*, const int*, const real*, real*, const int*);

/// The function of the BLAS for matrices that lie column after column; null: none.
Gemm find_gemm() {
  const char* library = std::getenv("SAR_BENCH_BLAS");
  if (library == nullptr) return nullptr;
  void* handle = dlopen(library, RTLD_NOW);
  void* gemm = handle == nullptr ? nullptr : dlsym(handle, sizeof(real) == 4 ? "sgemm_" : "dgemm_");
  if (gemm == nullptr) {
    std::cerr << "bench_matmul: SAR_BENCH_BLAS: " << dlerror() << '\n';
    std::exit(1);
  }
  return reinterpret_cast<Gemm>(gemm);
}

/// out [n, m] (+)= op(a) op(b), row after row, as the BLAS computes out^T = op(b)^T op(a)^T
struct BlasProduct {
  Gemm gemm;
  char op_a, op_b;  // 'N' or 'T'
  int n, m, k;
  void operator()(const real* a, int a_stride, const real* b, int b_stride, real* out, real beta) const {
    const real one = 1;
    gemm(&op_b, &op_a, &m, &n, &k, &one, b, &b_stride, a, &a_stride, &beta, out, &m);
  }
};

/// One form of product, of tensors that fit: a [n, k], b, out.
struct Case {
  const char* name;
  FunctionRef<void()> ours;
  FunctionRef<void(Index begin, Index end)> eigen, blas;  // for these rows of n
  bool mixed = false;  // rows in bfloat16, in every precision the same product
};

void compare(const Case& c, Index n, Index k, Index m, bool has_blas) {
  constexpr int repetitions = 7;
  const double operations = 2e-9 * static_cast<double>(n * k * m);
  for (const int threads : std::set<int>{1, num_threads()}) {
    const ThreadLimit limit(threads);
    const auto in = [&](MatmulPrecision precision) {
      const MatmulPrecisionScope scope(precision);
      c.ours();
    };
    const auto shared = [&](FunctionRef<void(Index, Index)> body) {
      parallel_for(n, (n + threads - 1) / threads, body);
    };
    const auto seconds = best_seconds(
        repetitions, [&] { in(MatmulPrecision::highest); }, [&] { in(MatmulPrecision::high); },
        [&] { in(MatmulPrecision::medium); }, [&] { shared(c.eigen); },
        [&] { has_blas ? shared(c.blas) : shared(c.eigen); });
    const double reference = operations / std::min(seconds[3], seconds[4]);
    for (const auto precision : {MatmulPrecision::highest, MatmulPrecision::high, MatmulPrecision::medium}) {
      if (c.mixed && precision != MatmulPrecision::medium) continue;
      const double mine = seconds[static_cast<std::size_t>(precision)];
      print({.name = std::string(c.name) + " " + std::to_string(k) + "x" + std::to_string(m) + " " +
                     (c.mixed ? "rows in bfloat16" : to_string(precision)),
             .seconds = mine,
             .rate = operations / mine,
             .unit = "GFLOP/s",
             .reference = reference});
    }
  }
}

void run(Index n, Index k, Index m) {
  static const Gemm gemm = find_gemm();
  Tensor a = ramp({n, k}), b = ramp({k, m}), c = ramp({n, m}), back = ramp({n, k});
  Tensor d = ramp({k, m}), partial = ramp({64, k * m});
  const int ik = static_cast<int>(k), im = static_cast<int>(m);
  const auto blocks = [](Index begin, Index end, FunctionRef<void(Index, Index)> body) {
    for (Index i = begin; i < end; i += 256) body(i, std::min(end, i + 256));
  };
  const auto part = [&](Index begin) { return partial.row(begin * num_threads() / n % 64); };

  const auto nn = [&] { matmul(a, b, c); };
  const auto nn_eigen = [&](Index begin, Index end) {
    blocks(begin, end, [&](Index i, Index j) { rows(c, i, j).noalias() = rows(a, i, j) * rows(b, 0, k); });
  };
  const auto nn_blas = [&](Index begin, Index end) {
    BlasProduct{gemm, 'N', 'N', static_cast<int>(end - begin), im, ik}(a.row(begin), ik, b.data(), im,
                                                                       c.row(begin), 0);
  };
  compare({"matmul", nn, nn_eigen, nn_blas}, n, k, m, gemm != nullptr);
  if (sizeof(real) == 4) {
    const Variable rows_of_a(TypedRows(a, NumberType::bfloat16)), right(b);
    const MixedPrecisionScope mixed;
    compare({"matmul", [&] { (void)matmul(rows_of_a, right); }, nn_eigen, nn_blas, true}, n, k, m,
            gemm != nullptr);
  }

  const auto tn = [&] { matmul_tn(a, c, d); };
  const auto tn_eigen = [&](Index begin, Index end) {
    Eigen::Map<Matrix> sum(part(begin), k, m);
    sum.setZero();
    blocks(begin, end, [&](Index i, Index j) { sum.noalias() += rows(a, i, j).transpose() * rows(c, i, j); });
  };
  const auto tn_blas = [&](Index begin, Index end) {
    BlasProduct{gemm, 'T', 'N', ik, im, static_cast<int>(end - begin)}(a.row(begin), ik, c.row(begin), im,
                                                                       part(begin), 0);
  };
  compare({"matmul_tn", tn, tn_eigen, tn_blas}, n, k, m, gemm != nullptr);
  if (sizeof(real) == 4) {
    const TypedRows left(a, NumberType::bfloat16), right(c, NumberType::bfloat16);
    compare({"matmul_tn", [&] { matmul_tn(left, right, d); }, tn_eigen, tn_blas, true}, n, k, m,
            gemm != nullptr);
  }

  const auto nt = [&] { matmul_nt(c, b, back); };
  const auto nt_eigen = [&](Index begin, Index end) {
    blocks(begin, end,
           [&](Index i, Index j) { rows(back, i, j).noalias() = rows(c, i, j) * rows(b, 0, k).transpose(); });
  };
  const auto nt_blas = [&](Index begin, Index end) {
    BlasProduct{gemm, 'N', 'T', static_cast<int>(end - begin), ik, im}(c.row(begin), im, b.data(), im,
                                                                       back.row(begin), 0);
  };
  compare({"matmul_nt", nt, nt_eigen, nt_blas}, n, k, m, gemm != nullptr);
}

}  // namespace
}  // namespace sar::bench

int main(int argc, char** argv) {
  using sar::bench::run;
  if (argc > 3) {
    run(std::atol(argv[1]), std::atol(argv[2]), std::atol(argv[3]));
    return 0;
  }
  for (const sar::Index k : {40, 64, 128, 256, 512})
    for (const sar::Index m : {40, 64, 128, 256, 512})
      run(std::min<sar::Index>(2000000000 / (k * m), 160000), k, m);
}
