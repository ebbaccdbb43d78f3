// SPDX-License-Identifier: MIT

/// What every benchmark needs: time repetitions, compare with a reference in the same run, print one JSON
/// object a line.
///
///     const auto [ours, theirs] = best_seconds(9, [&] { kernel(); }, [&] { reference(); });
///     print({.name = "kernel", .seconds = ours, .rate = work / ours, .unit = "GFLOP/s", .reference = work /
///     theirs});
#pragma once

#include <sar/core/tensor/tensor.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/data/generators.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string>
#include <utility>

namespace sar::bench {

/// One measurement. `reference` is the rate to compare with, in the same unit, 0 when there is none.
struct Result {
  std::string name;
  int threads = num_threads();
  int ranks = 1;
  double seconds = 0;
  double rate = 0;
  std::string unit = "GB/s";
  double reference = 0;
};

/// {"name","threads","ranks","seconds","rate","unit","reference","ratio"}: reference and ratio are null
/// without one. Under MPI only one rank should call it.
void print(const Result& result, std::ostream& out = std::cout);

/// Seconds that one call takes.
template <class F>
double seconds_of(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  std::forward<F>(work)();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The fastest of `repetitions` calls of each work, after one call of each to warm up. The works take turns,
/// so that a disturbance of the machine meets all of them and the quotients of the results mean something.
template <class... Works>
std::array<double, sizeof...(Works)> best_seconds(int repetitions, Works&&... works) {
  (works(), ...);
  std::array<double, sizeof...(Works)> best;
  best.fill(std::numeric_limits<double>::infinity());
  for (int r = 0; r < repetitions; ++r) {
    std::size_t w = 0;
    ((best[w] = std::min(best[w], seconds_of(works)), ++w), ...);
  }
  return best;
}

/// The sbm graph of a benchmark: 160000 nodes of degree 28 unless the first two arguments say otherwise.
inline SbmOptions sbm_of_arguments(int argc, char** argv) {
  SbmOptions sbm{.nodes = 160000, .degree = 28, .features = 1};
  if (argc > 1) sbm.nodes = std::atoll(argv[1]);
  if (argc > 2) sbm.degree = std::atof(argv[2]);
  return sbm;
}

/// a = b + s c on the threads of the library's loops (McCalpin's STREAM triad): the rate of the memory, for
/// kernels that are bound by it.
class Triad {
 public:
  /// Three arrays of `array_bytes` each; they should exceed the last-level cache several times.
  explicit Triad(std::size_t array_bytes = std::size_t{1} << 27);
  void operator()();
  /// Bytes that STREAM counts for one call: two arrays read and one written (not the read before the write).
  [[nodiscard]] double bytes() const;

 private:
  Tensor a_, b_, c_;
};

/// GB/s of the triad on num_threads() threads; a call takes about a second.
double triad_rate();

}  // namespace sar::bench
