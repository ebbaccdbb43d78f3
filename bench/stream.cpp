// SPDX-License-Identifier: MIT

/// The rate of the memory: STREAM triad with one thread and with all.
#include "bench.hpp"

#include <set>

int main() {
  using namespace sar;
  for (const int threads : std::set<int>{1, num_threads()}) {
    const ThreadLimit limit(threads);
    bench::Triad triad;
    const auto [seconds] = bench::best_seconds(15, triad);
    bench::print({.name = "stream_triad", .seconds = seconds, .rate = triad.bytes() / seconds * 1e-9});
  }
}
