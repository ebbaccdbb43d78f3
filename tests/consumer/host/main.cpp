// SPDX-License-Identifier: MIT

// A ring of points, some on each rank, whose solver averages neighbors; a layer learns the same.
#include <sar/sar.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

namespace {

constexpr std::int64_t points_of_rank = 50;

/// Whether the loss has become a tenth.
bool learns(const sar::Communicator& comm) {
  const std::int64_t points = points_of_rank * comm.size(), first = points_of_rank * comm.rank();
  std::vector<std::int64_t> ids, src, dst;
  std::vector<float> state, next;
  const auto wave = [](std::int64_t point) {
    return static_cast<float>(std::sin(static_cast<double>(point)));
  };
  for (std::int64_t point = first; point < first + points_of_rank; ++point) {
    const std::int64_t left = (point + points - 1) % points, right = (point + 1) % points;
    ids.push_back(point);
    src.insert(src.end(), {left, right});
    dst.insert(dst.end(), {point, point});
    state.push_back(wave(point));
    next.push_back((wave(left) + wave(right)) / 2);
  }
  const sar::HostGraph graph(comm, ids, {.src = src, .dst = dst});
  const sar::Tensor x = sar::Tensor::from({graph.num_nodes(), 1}, state);
  const sar::Tensor y = sar::Tensor::from({graph.num_nodes(), 1}, next);
  sar::Generator generator(0);
  sar::SAGEConv conv(1, 1, generator);
  sar::Adam optimizer(conv.named_parameters(), {.lr = 0.05});
  double first_loss = 0, last_loss = 0;
  for (int step = 0; step < 200; ++step) {
    sar::Tape tape;
    const sar::Variable loss = mse(conv(graph, x), y, comm);
    tape.backward(loss);
    gather_grads(comm, conv);
    optimizer.step();
    optimizer.zero_grad();
    last_loss = static_cast<double>(loss.value().item());
    if (step == 0) first_loss = last_loss;
  }
  return last_loss < first_loss / 10;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const sar::Environment environment(argc, argv);
    if (learns(sar::Communicator::world())) return 0;
    std::fprintf(stderr, "the layer has not learned\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}
