// SPDX-License-Identifier: MIT
#include "graph/data/dataset_files.hpp"
#include "nn/train/curve.hpp"
#include "support/thrown.hpp"

#include <sar/nn/train/weight_average.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

/// The weights and buffers of a module.
std::vector<real> numbers_of(const Module& module) {
  std::vector<real> all;
  for (const NamedBuffer& named : state_dict(module).tensors)
    all.insert(all.end(), named.tensor.values().begin(), named.tensor.values().end());
  return all;
}

void change(const Module& module, real value) {
  for (const NamedBuffer& named : state_dict(module).tensors) Tensor(named.tensor).fill(value);
}

}  // namespace

TEST_CASE("the best epoch is the first with the best value, and its weights come back") {
  const Communicator comm = Communicator::world();
  const Net net({3, 4, 2}, 0.5, comm, 1);
  BestEpoch best(net);
  CHECK(best.epoch() == 0);
  CHECK(!best.update(1, no_value));
  best.restore_weights();  // nothing to restore
  const double values[] = {0.5, 0.7, 0.7, no_value, 0.6};
  std::vector<real> of_best;
  for (int epoch = 2; epoch <= 6; ++epoch) {
    change(net, static_cast<real>(epoch));
    const bool better = best.update(epoch, values[epoch - 2]);
    CHECK(better == (epoch <= 3));
    if (better) of_best = numbers_of(net);
  }
  CHECK(best.epoch() == 3);
  CHECK(best.value() == 0.7);
  CHECK(best.epochs_since(6) == 3);
  CHECK(numbers_of(net) != of_best);
  best.restore_weights();
  CHECK(numbers_of(net) == of_best);

  // what is called back is no best epoch
  change(net, 7);
  CHECK_THROWS_AS(comm.agree([&] {
    CHECK(best.update(7, 0.9));
    throw InputError("called back");
  }),
                  InputError);
  CHECK(best.epoch() == 3);
  CHECK(best.value() == 0.7);
  best.restore_weights();
  CHECK(numbers_of(net) == of_best);

  BestEpoch smallest(net, {.larger_is_better = false, .keep_weights = false});
  CHECK(smallest.update(1, -0.5));
  CHECK(!smallest.update(2, 0.5));
  CHECK(smallest.update(3, -1));
  CHECK(smallest.weights().tensors.empty());
}

TEST_CASE("a checkpoint keeps the weights of the best epoch, and a resumed search goes on from them") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const Net net({3, 4, 2}, 0.5, comm, 1);
  Net other({3, 4, 2}, 0.5, comm, 2);
  Adam optimizer(net.named_parameters()), of_other(other.named_parameters());
  BestEpoch best(net), resumed(other);
  Checkpointer saver(comm, directory.path());
  saver.add_state("best.", best.weights());
  change(net, 5);
  CHECK(best.update(4, 0.25));
  change(net, 6);
  saver.save(9, net, optimizer, {{"value", "0.25"}});

  Checkpointer reader(comm, directory.path());
  const std::string path = reader.latest();
  CHECK(reader.info(path, of_other).extra.at("value") == "0.25");
  CHECK(test::thrown_by_all<InputError>(comm, [&] {
          (void)reader.load(path, other, of_other);
        }).find("best.") != std::string::npos);  // tensors that nobody asks for
  reader.add_state("best.", resumed.weights());
  const CheckpointInfo info = reader.load(path, other, of_other);
  resumed.resume(4, 0.25);
  CHECK(info.epoch == 9);
  CHECK(numbers_of(other) == numbers_of(net));
  CHECK(!resumed.update(10, 0.2));
  resumed.restore_weights();
  change(net, 5);
  CHECK(numbers_of(other) == numbers_of(net));
}
