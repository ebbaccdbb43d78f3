// SPDX-License-Identifier: MIT

/// Exchanges of short lists, as the blocks of a mini-batch make them: every rank sends to the next ranks. The
/// reference of all_to_all_v is MPI_Alltoall of the counts and MPI_Alltoallv of the bytes.
///     mpirun -n 16 bench_exchange [neighbors] [bytes]    default 4 256: ranks that each rank sends to, bytes
/// The unit is exchanges a second of the slowest rank.
#include "bench.hpp"

#include <sar/comm/environment.hpp>
#include <sar/comm/rows/row_route.hpp>

#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

using namespace sar;

namespace {

constexpr int repetitions = 15, exchanges = 20;  // of a repetition

/// Runs `exchange` repeatedly on all ranks together and prints the rate, beside that of `reference`.
template <class Exchange, class Reference>
void measure(const Communicator& comm, const std::string& name, const Exchange& exchange,
             const Reference& reference) {
  const auto together = [&](const auto& work) {
    return [&] {
      comm.barrier();
      for (int k = 0; k < exchanges; ++k) work();
      comm.barrier();
    };
  };
  std::array<double, 2> seconds = bench::best_seconds(repetitions, together(exchange), together(reference));
  comm.all_reduce(std::span<double>(seconds), ReduceOp::max);
  if (comm.rank() != 0) return;
  bench::print({.name = name,
                .ranks = comm.size(),
                .seconds = seconds[0] / exchanges,
                .rate = exchanges / seconds[0],
                .unit = "exchanges/s",
                .reference = exchanges / seconds[1]});
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  const Communicator comm = Communicator::world();
  const int size = comm.size(), neighbors = std::min(argc > 1 ? std::atoi(argv[1]) : 4, size - 1);
  const Index bytes = argc > 2 ? std::atoll(argv[2]) : 256;
  std::vector<Index> counts(static_cast<std::size_t>(size), 0);
  for (int k = 1; k <= neighbors; ++k) counts[static_cast<std::size_t>((comm.rank() + k) % size)] = bytes;
  const std::vector<char> values(static_cast<std::size_t>(neighbors * bytes), 'x');

  const auto alltoallv = [&] {
    std::vector<Index> arriving(counts.size());
    MPI_Alltoall(counts.data(), 1, MPI_INT64_T, arriving.data(), 1, MPI_INT64_T, comm.handle());
    const std::vector<int> out(counts.begin(), counts.end()), in(arriving.begin(), arriving.end());
    std::vector<int> out_begin(out.size(), 0), in_begin(in.size(), 0);
    std::exclusive_scan(out.begin(), out.end(), out_begin.begin(), 0);
    std::exclusive_scan(in.begin(), in.end(), in_begin.begin(), 0);
    std::vector<char> received(static_cast<std::size_t>(in_begin.back() + in.back()));
    MPI_Alltoallv(values.data(), out.data(), out_begin.data(), MPI_CHAR, received.data(), in.data(),
                  in_begin.data(), MPI_CHAR, comm.handle());
  };
  comm.agree([&] {
    measure(
        comm, "all_to_all_v", [&] { (void)comm.all_to_all_v(std::span<const char>(values), counts); },
        alltoallv);
    std::vector<std::int32_t> targets;
    for (Index i = 0; i < neighbors * bytes / 8; ++i)
      targets.push_back(static_cast<std::int32_t>((comm.rank() + 1 + i % std::max(neighbors, 1)) % size));
    const std::vector<Index> rows(targets.size(), 1);
    measure(
        comm, "row_route and back",
        [&] {
          const RowRoute route(comm, targets);
          const Array<Index> arrived = route.forward(std::span<const Index>(rows));
          (void)route.back(std::span<const Index>(arrived));
        },
        alltoallv);
  });
}
