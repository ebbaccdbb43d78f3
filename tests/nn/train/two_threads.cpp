// SPDX-License-Identifier: MIT

/// A host whose two threads use the library at the same time, each on its own communicator, at
/// MPI_THREAD_MULTIPLE: each computes the bits that it computes alone.
#include "graph/test_graphs.hpp"
#include "support/rows.hpp"

#include <mpi.h>
#include <sar/models.hpp>

#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr Index num_nodes = 60, in_feats = 5, hidden = 8, out_feats = 3;
constexpr int epochs = 3;

/// Two layers for mini-batches.
struct Sampled : Module {
  explicit Sampled(const Communicator& comm, Generator& gen)
      : first(in_feats, hidden, gen), norm(hidden, comm), dropout(0.3, gen), second(hidden, out_feats, gen) {
    register_module("first", first);
    register_module("norm", norm);
    register_module("dropout", dropout);
    register_module("second", second);
  }
  Variable operator()(const LayerGraphs& graphs, const Variable& x) {
    return second(graphs[1],
                  batch_norm_relu_dropout(first(graphs[0], x), norm, dropout, graphs[0].dst_ids()));
  }
  SAGEConv first;
  DistributedBN1D norm;
  Dropout dropout;
  SAGEConv second;
};

/// What a host does with one communicator: trainings, predictions, distributed tensors and failures.
class Work {
 public:
  Work(MPI_Comm of_host, const std::string& type, std::uint64_t seed)
      : comm_(of_host),
        book_(PartitionBook::even(num_nodes, comm_.size())),
        graph_(renamed_shard(comm_, random_graph("threads", num_nodes, num_nodes, 400, seed), book_)),
        gen_(seed),
        net_({.type = type,
              .in_feats = in_feats,
              .hidden = hidden,
              .out_feats = out_feats,
              .norm = "batch",
              .dropout = 0.3},
             comm_, gen_),
        sampled_(comm_, gen_),
        predict_(net_, graph_),
        x_(my_rows(random_values(Shape{num_nodes, in_feats}, seed), book_, comm_.rank())),
        y_(my_rows(random_values(Shape{num_nodes, out_feats}, seed + 1), book_, comm_.rank())) {}

  /// Losses and predictions.
  std::vector<double> numbers() {
    Adam adam(net_.named_parameters(), {.lr = 0.01}), adam_of_sampled(sampled_.named_parameters());
    std::vector<Index> mine;
    for (Index v = book_.begin(comm_.rank()); v < book_.end(comm_.rank()); ++v) mine.push_back(v);
    DataLoader loader(NeighborSampler(graph_, {3, 2}, {.seed = 1}), mine, {.batch_size = 25});
    for (int epoch = 0; epoch < epochs; ++epoch) {
      step(net_, adam, [&] { return mse(net_(graph_, x_), y_, comm_); });
      loader.start_epoch(static_cast<std::uint64_t>(epoch));
      while (const auto batch = loader.next())
        step(sampled_, adam_of_sampled, [&] {
          const Variable rows = deferred_gather_rows(x_, batch->blocks.front().src_rows());
          return mse(sampled_(batch->blocks, rows), gather_rows(y_, batch->blocks.back().dst_rows()), comm_);
        });
      Tensor out({graph_.num_nodes(), out_feats});
      predict_(x_, {}, out);
      take(out.values());
      pull(out);
      fail(out);
    }
    return numbers_;
  }

 private:
  template <class Loss>
  void step(Module& module, Adam& adam, const Loss& loss_of) {
    Tape tape;
    const Variable loss = loss_of();
    tape.backward(loss);
    gather_grads(comm_, module);
    adam.step();
    adam.zero_grad();
    take(loss.value().values());
  }
  void take(std::span<const real> values) { numbers_.insert(numbers_.end(), values.begin(), values.end()); }

  void pull(const Tensor& rows) {
    const std::vector<Index> ids{num_nodes - 1, 0, num_nodes / 2};
    const int tensors = comm_.size() == 1 ? 300 : 3;  // windows of several ranks take their time
    for (int i = 0; i < tensors; ++i) take(DistributedTensor<>(comm_, book_, rows).pull(ids).values());
  }
  /// A wrong shape on the last rank, and a distributed tensor that a failing rank leaves behind.
  void fail(Tensor& out) {
    const bool last = comm_.rank() == comm_.size() - 1;
    try {
      predict_(last ? out : x_, {}, out);
      numbers_.push_back(-1);
    } catch (const ShapeError& error) {
      numbers_.push_back(static_cast<double>(std::string(error.what()).size()));
    }
    try {
      comm_.agree([&] {
        const DistributedTensor<> left(comm_, book_, out);
        require<InputError>(!last, "this rank fails");
        comm_.barrier();
      });
      numbers_.push_back(-1);
    } catch (const InputError& error) {
      numbers_.push_back(static_cast<double>(std::string(error.what()).size()));
    }
  }

  Communicator comm_;
  PartitionBook book_;
  Graph graph_;
  Generator gen_;
  GraphModel net_;
  Sampled sampled_;
  Predictor predict_;
  Tensor x_, y_;
  std::vector<double> numbers_;
};

using Computed = std::array<std::vector<double>, 2>;

void work(MPI_Comm comm, int thread, Computed& numbers) {
  try {
    numbers[thread] = Work(comm, thread == 0 ? "sage" : "gat", 7 + 4 * thread).numbers();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "thread %d: %s\n", thread, error.what());
    numbers[thread].clear();
  }
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  const ThreadLimit two_threads(2);
  MPI_Comm comms[2];
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  bool good = level == MPI_THREAD_MULTIPLE;
  std::vector<Computed> runs;
  for (int run = 0; good && run < 3; ++run) {  // the first one makes the first communicators of the program
    Computed& numbers = runs.emplace_back();
    std::thread other([&] { work(comms[1], 1, numbers); });
    work(comms[0], 0, numbers);
    other.join();
  }
  Computed alone;
  for (const int thread : {0, 1}) work(comms[thread], thread, alone);
  for (const Computed& numbers : runs)
    for (const int thread : {0, 1}) {
      if (!alone[thread].empty() && numbers[thread] == alone[thread]) continue;
      good = false;
      std::fprintf(stderr, "failed: thread %d computes other numbers than alone\n", thread);
    }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  MPI_Finalize();
  if (!good) std::fprintf(stderr, "failed: level %d\n", level);
  return good ? 0 : 1;
}
