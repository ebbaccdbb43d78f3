// SPDX-License-Identifier: MIT

/// Rows of a DistributedTensor beside plain MPI, on 2 ranks or more. Each rank wants `rows` rows, spread
/// evenly over the other ranks. A rate is what one rank gets, over the time of the slowest rank; finding
/// owners, packing and adding are part of it.
///
/// pull: MPI_Get from each other rank of as many rows that lie together; pull_contiguous wants just those,
/// pull_scattered every third row in a mixed order.
///
/// pull_all and push_add (with its barrier): MPI_Isend and MPI_Irecv of the same bytes between all ranks.
///
///     mpirun -n 2 bench_pull [rows width]        default 80000 256
#include "bench.hpp"

#include <sar/comm/environment.hpp>
#include <sar/comm/rows/distributed_tensor.hpp>

#include <mpi.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace sar::bench {
namespace {

constexpr int repetitions = 9;

/// The window and the messages of a program that calls MPI itself.
class Plain {
 public:
  Plain(const Communicator& comm, Tensor mine, Index rows_of_each, Index width)
      : comm_(comm), mine_(std::move(mine)), bytes_(static_cast<int>(rows_of_each * width * sizeof(real))) {
    received_ = Tensor::zeros({rows_of_each * (comm.size() - 1), width});
    MPI_Win_create(mine_.data(), static_cast<MPI_Aint>(mine_.bytes()), 1, MPI_INFO_NULL, comm.handle(),
                   &window_);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
  }
  ~Plain() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

  void get() {
    for (int r = 1; r < comm_.size(); ++r)
      MPI_Get(into(r), bytes_, MPI_BYTE, (comm_.rank() + r) % comm_.size(), 0, bytes_, MPI_BYTE, window_);
    MPI_Win_flush_all(window_);
  }
  void exchange() {
    std::vector<MPI_Request> requests;
    for (int r = 1; r < comm_.size(); ++r) {
      MPI_Irecv(into(r), bytes_, MPI_BYTE, (comm_.rank() - r + comm_.size()) % comm_.size(), 0,
                comm_.handle(), &requests.emplace_back());
      MPI_Isend(mine_.data(), bytes_, MPI_BYTE, (comm_.rank() + r) % comm_.size(), 0, comm_.handle(),
                &requests.emplace_back());
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }

 private:
  std::byte* into(int r) { return reinterpret_cast<std::byte*>(received_.data()) + Index{bytes_} * (r - 1); }

  Communicator comm_;
  Tensor mine_, received_;
  int bytes_;
  MPI_Win window_ = MPI_WIN_NULL;
};

void run(const Communicator& comm, Index rows, Index width) {
  const Index others = comm.size() - 1, of_each = rows / others, owned = 3 * of_each;
  const PartitionBook book = PartitionBook::even(owned * comm.size(), comm.size());
  const Tensor mine = Tensor::full({owned, width}, 1);
  const DistributedTensor<> tensor(comm, book, mine.clone());
  std::vector<Index> contiguous, scattered;
  for (Index r = 1; r <= others; ++r) {
    const Index first = book.begin(static_cast<int>((comm.rank() + r) % comm.size()));
    for (Index i = 0; i < of_each; ++i) {
      contiguous.push_back(first + i);
      scattered.push_back(first + 3 * ((i * 7919) % of_each));
    }
  }
  const Tensor pushed = Tensor::full({std::ssize(scattered), width}, 1);
  Plain plain(comm, mine, of_each, width);
  const auto together = [&](auto&& work) {
    return [&comm, work] {
      comm.barrier();
      work();
      comm.barrier();
    };
  };
  const auto [get, pull_contiguous, pull_scattered, exchange, pull_all, push_add] = best_seconds(
      repetitions, together([&] { plain.get(); }), together([&] { (void)tensor.pull(contiguous); }),
      together([&] { (void)tensor.pull(scattered); }), together([&] { plain.exchange(); }),
      together([&] { (void)tensor.pull_all(scattered); }), together([&] {
        tensor.push_add(scattered, pushed);
        tensor.barrier();
      }));
  if (comm.rank() != 0) return;
  const double gigabytes = 1e-9 * static_cast<double>(of_each * others * width) * sizeof(real);
  const auto report = [&](const char* name, double seconds, double reference) {
    print({.name = name,
           .ranks = comm.size(),
           .seconds = seconds,
           .rate = gigabytes / seconds,
           .reference = gigabytes / reference});
  };
  report("pull_contiguous", pull_contiguous, get);
  report("pull_scattered", pull_scattered, get);
  report("pull_all", pull_all, exchange);
  report("push_add", push_add, exchange);
}

}  // namespace
}  // namespace sar::bench

int main(int argc, char** argv) {
  const sar::Environment environment(argc, argv);
  const sar::Communicator world = sar::Communicator::world();
  const sar::ThreadLimit limit(sar::default_num_threads(world));
  if (world.size() < 2) {
    std::cerr << "bench_pull compares ranks: start it with mpirun -n 2 or more\n";
    return 2;
  }
  if (argc > 2)
    sar::bench::run(world, std::atol(argv[1]), std::atol(argv[2]));
  else
    sar::bench::run(world, 80000, 256);
}
