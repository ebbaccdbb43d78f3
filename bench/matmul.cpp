/// Products of tall-skinny matrices beside Eigen's best rate on one thread: over the whole operands, and over
/// blocks of 128 to 1024 rows (which is often faster). The reference of a run with T threads is that rate, so
/// that the ratio is a speedup.
///
///     bench_matmul [n k m]        default 160000 256 256
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_STACK_ALLOCATION_LIMIT (512 * 1024)  // no page faults for the reference
#include "bench.hpp"

#include <sar/core/matmul.hpp>

#include <Eigen/Core>

#include <cstdlib>
#include <set>

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

void compare(const char* name, double operations, FunctionRef<void()> ours,
             FunctionRef<void(Index block)> eigen, Index n) {
  constexpr int repetitions = 9;
  for (const int threads : std::set<int>{1, num_threads()}) {
    const ThreadLimit limit(threads);
    const auto best = best_seconds(
        repetitions, ours, [&] { eigen(n); }, [&] { eigen(128); }, [&] { eigen(256); }, [&] { eigen(512); },
        [&] { eigen(1024); });
    const double theirs = *std::min_element(best.begin() + 1, best.end());
    print({.name = name,
           .seconds = best[0],
           .rate = operations / best[0],
           .unit = "GFLOP/s",
           .reference = operations / theirs});
  }
}

void run(Index n, Index k, Index m) {
  const double operations = 2e-9 * static_cast<double>(n * k * m);
  Tensor a = ramp({n, k}), b = ramp({k, m}), c = ramp({n, m}), d = ramp({k, m});

  compare(
      "matmul", operations, [&] { matmul(a, b, c); },
      [&](Index block) {
        for (Index i = 0; i < n; i += block) {
          const Index end = std::min(n, i + block);
          rows(c, i, end).noalias() = rows(a, i, end) * rows(b, 0, k);
        }
      },
      n);
  compare(
      "matmul_tn", operations, [&] { matmul_tn(a, c, d); },
      [&](Index block) {
        rows(d, 0, k).setZero();
        for (Index i = 0; i < n; i += block) {
          const Index end = std::min(n, i + block);
          rows(d, 0, k).noalias() += rows(a, i, end).transpose() * rows(c, i, end);
        }
      },
      n);
  compare(
      "matmul_nt", operations, [&] { matmul_nt(c, b, a); },
      [&](Index block) {
        for (Index i = 0; i < n; i += block) {
          const Index end = std::min(n, i + block);
          rows(a, i, end).noalias() = rows(c, i, end) * rows(b, 0, k).transpose();
        }
      },
      n);
}

}  // namespace
}  // namespace sar::bench

int main(int argc, char** argv) {
  if (argc > 3)
    sar::bench::run(std::atol(argv[1]), std::atol(argv[2]), std::atol(argv[3]));
  else
    sar::bench::run(160000, 256, 256);
}
