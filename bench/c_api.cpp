// SPDX-License-Identifier: MIT

/// What a step of training costs by sar.h beside the same step by the library's own classes.
///
///     mpirun -n 2 bench_c_api [nodes width steps threads]      default 1000 64 300 1: nodes of each rank
///
/// Nodes form a ring with edges to the next 8; the network has two layers of SAGE. The two programs take
/// turns. Rank 0 prints a JSON object with the microseconds of a step, of the slowest rank,
///
///     c, cpp                the fastest step
///     c_median, cpp_median  the step in the middle
///     ratio, ratio_median   quotients of these
///
/// and same_losses: whether all losses of the two programs have the same bits. For numbers of instructions,
/// run it under valgrind --tool=callgrind: those of step_by_c and step_by_cpp, with what they call.
#include "bench.hpp"

#include <sar/autograd/tape.hpp>
#include <sar/comm/environment.hpp>
#include <sar/graph/construct/host_graph.hpp>
#include <sar/nn/models/graph_model.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <sar.h>

#include <cmath>
#include <stdexcept>
#include <vector>

namespace sar::bench {
namespace {

constexpr Index num_neighbors = 8;
constexpr std::uint64_t seed = 5;

void check(int status) {
  if (status != SAR_OK) throw std::runtime_error(sar_last_error());
}

/// The nodes and in-edges of a rank, and its rows.
struct Mesh {
  Mesh(const Communicator& comm, Index nodes, Index width) : x({nodes, width}), target({nodes, width}) {
    const Index all = nodes * comm.size();
    for (Index v = nodes * comm.rank(); v < nodes * (comm.rank() + 1); ++v) {
      ids.push_back(v);
      for (Index step = 1; step <= num_neighbors; ++step) {
        src.push_back((v + step) % all);
        dst.push_back(v);
      }
    }
    for (Index i = 0; i < x.size(); ++i) {
      x.data()[i] = static_cast<real>(i % 17) / 17;
      target.data()[i] = static_cast<real>(i % 13) / 13;
    }
  }

  std::vector<std::int64_t> ids, src, dst;
  Tensor x, target;
};

class TrainingByC {
 public:
  TrainingByC(const Mesh& mesh, const ModelDescription& description)
      : x_(array_of(mesh.x)), target_(array_of(mesh.target)) {
    check(sar_comm_world(&comm_));
    check(sar_graph_from_global(comm_, std::ssize(mesh.ids), mesh.ids.data(), std::ssize(mesh.src),
                                mesh.src.data(), mesh.dst.data(), nullptr, nullptr, nullptr, &graph_));
    check(sar_model_create(comm_, description.to_json().c_str(), seed, &model_));
    check(sar_optimizer_create(model_, R"({"optimizer": "adam", "lr": 0.001})", &optimizer_));
  }
  ~TrainingByC() {
    sar_optimizer_free(optimizer_);
    sar_model_free(model_);
    sar_graph_free(graph_);
    sar_comm_free(comm_);
  }
  TrainingByC(const TrainingByC&) = delete;
  TrainingByC& operator=(const TrainingByC&) = delete;

  [[gnu::noinline]] double step_by_c() {
    double loss = 0;
    check(sar_train_step(model_, optimizer_, graph_, nullptr, &x_, nullptr, SAR_LOSS_MSE, &target_, 0,
                         nullptr, &loss));
    return loss;
  }

 private:
  static sar_array array_of(const Tensor& rows) {
    return {const_cast<real*>(rows.data()),
            sar_precision(),
            SAR_NODE_FIELD,
            rows.num_rows(),
            rows.row_size(),
            0,
            {0, 0}};
  }

  sar_array x_, target_;
  sar_comm comm_ = nullptr;
  sar_graph graph_ = nullptr;
  sar_model model_ = nullptr;
  sar_optimizer optimizer_ = nullptr;
};

class TrainingByCpp {
 public:
  TrainingByCpp(const Communicator& comm, const Mesh& mesh, const ModelDescription& description)
      : mesh_(mesh),
        graph_(comm, mesh.ids, {.src = mesh.src, .dst = mesh.dst}),
        gen_(seed),
        model_(description, comm, gen_),
        optimizer_(model_.named_parameters(), {.lr = 0.001}) {}

  [[gnu::noinline]] double step_by_cpp() {
    Tape tape;
    const Variable loss = mse(model_(graph_, mesh_.x), mesh_.target, graph_.comm());
    const double value = loss.value().item();
    tape.backward(loss);
    gather_grads(graph_.comm(), model_);
    optimizer_.step();
    optimizer_.zero_grad();
    return value;
  }

 private:
  const Mesh& mesh_;
  HostGraph graph_;
  Generator gen_;
  GraphModel model_;
  Adam optimizer_;
};

/// The seconds of the slowest rank, of many steps.
struct Times {
  std::vector<double> seconds;

  template <class Work>
  void measure(const Communicator& comm, const Work& work) {
    (void)comm.all_reduce(0.0, ReduceOp::sum);  // the ranks begin together
    const double mine = seconds_of(work);
    seconds.push_back(comm.all_reduce(mine, ReduceOp::max));
  }
  void sort() { std::sort(seconds.begin(), seconds.end()); }
  [[nodiscard]] double fastest() const { return seconds.front() * 1e6; }
  [[nodiscard]] double median() const { return seconds[seconds.size() / 2] * 1e6; }
};

void run(const Communicator& comm, Index nodes, Index width, int steps) {
  const Mesh mesh(comm, nodes, width);
  const ModelDescription description{
      .type = "sage", .in_feats = width, .hidden = width, .out_feats = width, .layers = 2};
  TrainingByC c(mesh, description);
  TrainingByCpp cpp(comm, mesh, description);
  bool same_losses = true;
  Times of_c, of_cpp;
  for (int i = 0; i < steps; ++i) {
    double loss = 0, loss_of_cpp = 0;
    of_c.measure(comm, [&] { loss = c.step_by_c(); });
    of_cpp.measure(comm, [&] { loss_of_cpp = cpp.step_by_cpp(); });
    same_losses = same_losses && loss == loss_of_cpp;
  }
  of_c.sort();
  of_cpp.sort();
  if (comm.rank() > 0) return;
  std::cout << "{\"name\":\"c_api\",\"ranks\":" << comm.size() << ",\"threads\":" << num_threads()
            << ",\"nodes\":" << nodes << ",\"width\":" << width << ",\"steps\":" << steps
            << ",\"c\":" << of_c.fastest() << ",\"cpp\":" << of_cpp.fastest()
            << ",\"c_median\":" << of_c.median() << ",\"cpp_median\":" << of_cpp.median()
            << ",\"ratio\":" << of_c.fastest() / of_cpp.fastest()
            << ",\"ratio_median\":" << of_c.median() / of_cpp.median()
            << ",\"same_losses\":" << (same_losses ? "true" : "false") << "}\n";
}

}  // namespace
}  // namespace sar::bench

int main(int argc, char** argv) {
  const sar::Environment environment;
  const auto argument = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  try {
    const sar::ThreadLimit threads(argument(4, 1));
    sar::bench::run(sar::Communicator::world(), argument(1, 1000), argument(2, 64),
                    std::max(argument(3, 300), 1));
  } catch (const std::exception& error) {
    std::cerr << "bench_c_api: " << error.what() << '\n';
    return 1;
  }
}
