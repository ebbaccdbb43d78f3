// SPDX-License-Identifier: MIT

/// A host that uses sessions of MPI 4 and never calls MPI_Init: it trains, reads rows of other ranks and
/// writes traces. With the argument "early", the last rank makes a call less than the others, which throw.
#include <sar/sar.hpp>

#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
namespace {

int failures = 0;

void check(bool condition, const char* what) {
  if (condition) return;
  ++failures;
  std::fprintf(stderr, "failed: %s\n", what);
}

template <class E, class F>
void check_throws(const F& f, const char* what) {
  try {
    f();
  } catch (const E&) {
    return;
  }
  check(false, what);
}

void train(const sar::Communicator& comm) {
  const std::vector<std::int64_t> nodes{comm.rank()}, next{(comm.rank() + 1) % comm.size()};
  const sar::HostGraph graph(comm, nodes, {.src = nodes, .dst = next});
  sar::Generator gen(0);
  sar::SAGEConv conv(2, 2, gen);
  sar::Adam optimizer(conv.named_parameters(), {.lr = 0.1});
  const sar::Tensor x = sar::Tensor::full({1, 2}, 1);
  const std::vector<std::int64_t> labels{0};
  const std::vector<std::uint8_t> all{1};
  double first = 0, last = 0;
  for (int epoch = 0; epoch < 5; ++epoch) {
    sar::Tape tape;
    const sar::Variable loss = sar::cross_entropy(conv(graph, x), labels, all, comm);
    last = static_cast<double>(loss.value().item());
    if (epoch == 0) first = last;
    tape.backward(loss);
    sar::gather_grads(comm, conv);
    optimizer.step();
    optimizer.zero_grad();
  }
  check(last < first, "the loss falls");
}

void use(MPI_Comm of_host) {
  check_throws<sar::CommunicationError>([] { sar::Communicator::world(); }, "there is no MPI_COMM_WORLD");
  check_throws<sar::CommunicationError>([] { sar::Communicator::self(); }, "there is no MPI_COMM_SELF");
  const sar::Communicator comm(of_host);
  train(comm);
  check(sar::default_num_threads(comm) >= 1, "the threads of a rank");
  const sar::Index key = comm.rank();
  const sar::SeedBatches batches(comm, std::span(&key, 1), {.batch_size = 1, .per_rank = true});
  check(batches.num_batches() == 1, "batches of each rank alone");

  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(of_host, comm.rank() % 2, 0, &half);
  {
    const sar::Communicator part(half);
    const sar::DistributedTensor<> of_part(part, sar::PartitionBook::even(4, part.size()), sar::Shape{4, 2});
    const sar::DistributedTensor<> of_all(comm, sar::PartitionBook::even(4, comm.size()), sar::Shape{4, 2});
    const std::vector<sar::Index> ids{3, 0};
    check(of_part.pull(ids).num_rows() == 2 && of_all.pull(ids).num_rows() == 2, "rows of other ranks");
  }
  MPI_Comm_free(&half);

  check_throws<sar::InputError>(
      [&] {
        comm.agree([&] {
          const sar::DistributedTensor<> left_behind(comm, sar::PartitionBook::even(4, comm.size()),
                                                     sar::Shape{4, 2});
          sar::require<sar::InputError>(comm.rank() != comm.size() - 1, "this rank fails");
          comm.barrier();
        });
      },
      "all ranks throw what one throws");
}

int calls(MPI_Comm of_host) {
  const sar::Communicator comm(of_host);
  try {
    for (int i = comm.rank() == comm.size() - 1 ? 1 : 0; i < 3; ++i) comm.barrier();
  } catch (const sar::CommunicationError& error) {
    std::printf("rank %d: %s\n", comm.rank(), error.what());
  }
  return 0;
}

}  // namespace

int main(int argc, char**) {
  // the ranks are children of one process
  const std::string name = "sar_sessions_" + std::to_string(getppid()) + ".json";
  const std::string file = (std::filesystem::temp_directory_path() / name).string();
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "thread_level", "MPI_THREAD_FUNNELED");
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Info_free(&info);
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_create_from_group(group, "sar.test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Group_free(&group);
  if (argc == 1) {
    sar::Trace(sar::Communicator(comm), file + ".2").write();
    setenv("SAR_TRACE", file.c_str(), 1);
  }
  if (argc > 1)
    calls(comm);
  else
    use(comm);
  MPI_Comm_free(&comm);
  check(MPI_Session_finalize(&session) == MPI_SUCCESS, "the session ends");
  int initialized = 1;
  MPI_Initialized(&initialized);
  check(initialized == 0, "the library does not call MPI_Init");
  if (argc == 1 && rank == 0)
    check(std::filesystem::remove(file) && std::filesystem::remove(file + ".2"), "both traces are written");
  return failures == 0 ? 0 : 1;
}
#else
int main() {
  std::puts("this MPI has no sessions");
}
#endif
