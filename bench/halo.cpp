// SPDX-License-Identifier: MIT

/// Halo exchange beside plain MPI_Isend and MPI_Irecv of the same bytes between the same ranks. A rate is
/// what one rank sends, which is also what it receives, over the time of the slowest rank; packing and adding
/// are part of it. Rows that travel as bfloat16 or int8 are counted with the bytes that they have in memory.
///
///     mpirun -n 2 bench_halo [rows width]        default 80000 256: rows that each rank reads of each other
///     one
#include "bench.hpp"

#include <sar/comm/environment.hpp>
#include <sar/comm/halo/halo_exchange.hpp>
#include <sar/core/random.hpp>

#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

namespace sar::bench {
namespace {

constexpr int repetitions = 15;

/// Every rank reads `rows` rows of every other one, spread at random over its `owned` rows.
HaloRounds make_rounds(const Communicator& comm, Index owned, Index rows) {
  const Random random({.seed = 1});
  std::vector<HaloRound> rounds;
  for (int r = 1; r < comm.size(); ++r) {
    HaloRound round{(comm.rank() + r) % comm.size(), (comm.rank() - r + comm.size()) % comm.size(), {}, rows};
    for (Index row = 0; std::ssize(round.send_rows) < rows; ++row) {
      const Index wanted = rows - std::ssize(round.send_rows);
      if (random.uniform(static_cast<std::uint64_t>(row)) * static_cast<double>(owned - row) <
          static_cast<double>(wanted))
        round.send_rows.push_back(static_cast<std::int32_t>(row));
    }
    rounds.push_back(std::move(round));
  }
  number_halo_rows(comm, rounds);
  return std::make_shared<const std::vector<HaloRound>>(std::move(rounds));
}

/// One message to and from each peer, in the same rounds.
void plain_messages(const Communicator& comm, const HaloRounds& rounds, const Tensor& out, Tensor& in) {
  for (const HaloRound& round : *rounds) {
    MPI_Request requests[2];
    MPI_Irecv(in.data(), static_cast<int>(in.bytes()), MPI_BYTE, round.owner, 0, comm.handle(), &requests[0]);
    MPI_Isend(out.data(), static_cast<int>(out.bytes()), MPI_BYTE, round.reader, 0, comm.handle(),
              &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
}

void fetch(const Communicator& comm, const HaloRounds& rounds, const Tensor& owned,
           const WireFormatPtr& wire) {
  const HaloPlan plan = plan_halo(rounds, (owned.num_rows() + 7) / 8, 1, wire);
  HaloFetch exchange(comm, owned, plan);
  while (exchange.next()) {
  }
  exchange.finish();
}

void push(const Communicator& comm, const HaloRounds& rounds, const Tensor& gradients, Tensor& sum,
          const WireFormatPtr& wire) {
  const HaloPlan plan = plan_halo(rounds, (sum.num_rows() + 31) / 32, 4, wire);
  HaloPush exchange(comm, sum.shape(), plan);
  for (const HaloStage& stage : plan.halo) exchange.send(gradients.slice_rows(0, stage.size()), sum);
  exchange.finish(sum);
}

void run(const Communicator& comm, Index rows, Index width) {
  const Tensor halo = Tensor::full({rows, width}, 1);
  Tensor received = Tensor::zeros({rows, width});
  const double gigabytes = 1e-9 * static_cast<double>(halo.bytes()) * (comm.size() - 1);
  const auto together = [&](auto&& work) {
    return [&comm, work] {
      comm.barrier();
      work();
      comm.barrier();
    };
  };

  struct Spread {
    const char* suffix;
    Index owned;
  };
  struct Format {
    const char* suffix;
    WireFormatPtr wire;
  };
  for (const Spread& spread :
       {Spread{"", rows + rows / 32},  // as on a random partition: a few rows are not read
        Spread{"_scattered", rows + rows / 2}, Spread{"_contiguous", rows}}) {
    const HaloRounds rounds = make_rounds(comm, spread.owned, rows);
    const Tensor owned = Tensor::full({spread.owned, width}, 1);
    Tensor sum = Tensor::zeros({spread.owned, width});
    Array<Index> ids(spread.owned);
    std::iota(ids.begin(), ids.end(), Index{0});
    const auto int8 =
        make_int8_format(width, {.key = Random({.seed = 2}).key(), .owned_ids = {ids.data(), ids.size()}});
    for (const Format& format :
         {Format{"", stored_format(NumberType::reals)}, Format{"_bf16", stored_format(NumberType::bfloat16)},
          Format{"_int8", int8}}) {
      const auto [plain, fetched, pushed] =
          best_seconds(repetitions, together([&] { plain_messages(comm, rounds, halo, received); }),
                       together([&] { fetch(comm, rounds, owned, format.wire); }),
                       together([&] { push(comm, rounds, halo, sum, format.wire); }));
      if (comm.rank() != 0) continue;
      const auto report = [&, reference = gigabytes / plain,
                           suffix = std::string(spread.suffix) + format.suffix](const char* name,
                                                                                double seconds) {
        print({.name = name + suffix,
               .ranks = comm.size(),
               .seconds = seconds,
               .rate = gigabytes / seconds,
               .reference = reference});
      };
      report("halo_fetch", fetched);
      report("halo_push", pushed);
    }
  }
}

}  // namespace
}  // namespace sar::bench

int main(int argc, char** argv) {
  const sar::Environment environment(argc, argv);
  const sar::Communicator world = sar::Communicator::world();
  const sar::ThreadLimit limit(sar::default_num_threads(world));
  if (argc > 2)
    sar::bench::run(world, std::atol(argv[1]), std::atol(argv[2]));
  else
    sar::bench::run(world, 80000, 256);
}
