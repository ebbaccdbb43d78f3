// SPDX-License-Identifier: MIT

/// The losses of a small training, one a line, by the library's own classes. losses.c is the same program in
/// C.
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

namespace {

constexpr int num_nodes = 60, num_steps = 20;

sar::Tensor tensor_of(const std::vector<double>& values, sar::Index fields) {
  sar::Tensor result(sar::Shape{std::ssize(values) / fields, fields});
  for (sar::Index i = 0; i < result.size(); ++i)
    result.data()[i] = static_cast<sar::real>(values[static_cast<std::size_t>(i)]);
  return result;
}

void train(const sar::Communicator& comm) {
  std::vector<std::int64_t> ids, src, dst;
  std::vector<double> x, target;
  const int rank = comm.rank(), size = comm.size();
  for (std::int64_t i = rank * num_nodes / size; i < (rank + 1) * num_nodes / size; ++i) {
    ids.push_back(i);
    src.push_back((i + num_nodes - 1) % num_nodes);
    src.push_back((i + 7) % num_nodes);
    dst.insert(dst.end(), 2, i);
    x.push_back(static_cast<double>(7 * i % 11) / 10);
    x.push_back(static_cast<double>(5 * i % 13) / 10);
    target.push_back(static_cast<double>(7 * (i + num_nodes - 1) % 11) / 20);
  }

  const sar::HostGraph graph(comm, ids, sar::GlobalEdges{.src = src, .dst = dst});
  const sar::ModelDescription description{
      .type = "sage", .in_feats = 2, .hidden = 8, .out_feats = 1, .layers = 2};
  sar::Generator gen(5);
  sar::GraphModel model(description, comm, gen);
  sar::Adam optimizer(model.named_parameters(), {.lr = 0.01});
  const sar::Tensor features = tensor_of(x, 2), wanted = tensor_of(target, 1);
  for (int step = 0; step < num_steps; ++step) {
    sar::Tape tape;
    const sar::Variable loss = sar::mse(model(graph, features), wanted, comm);
    const double value = loss.value().item();
    tape.backward(loss);
    sar::gather_grads(comm, model);
    optimizer.step();
    optimizer.zero_grad();
    if (rank == 0) std::printf("%.16e\n", value);
  }
}

}  // namespace

int main() {
  try {
    const sar::Environment environment;
    train(sar::Communicator::world());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "losses: %s\n", error.what());
    return 1;
  }
}
