// SPDX-License-Identifier: MIT

/// A training that was interrupted and one that was not have the same curve.
#include "graph/data/dataset_files.hpp"
#include "nn/train/checkpoint_directory.hpp"
#include "nn/train/curve.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

namespace fs = std::filesystem;
using Make = std::function<std::unique_ptr<Optimizer>(const Module&)>;

/// A net in training on a graph of its own.
struct Training {
  Communicator comm;
  NodeData data;
  Graph graph;
  Net net;
  std::unique_ptr<Optimizer> optimizer;

  Training(const Communicator& ranks, PartitionMethod method, const Make& make, std::uint64_t seed = 3)
      : comm(ranks),
        data(make_sbm(ranks, {.nodes = 300, .degree = 6, .classes = 3, .features = 8},
                      {.partition = method, .partition_seed = 5})),
        graph(construct_full_graph(ranks, data)),
        net({8, 16, 16, 3}, 0.5, ranks, seed),
        optimizer(make(net)) {}

  std::vector<double> run(int epochs) {
    std::vector<double> losses;
    for (int epoch = 0; epoch < epochs; ++epoch) losses.push_back(step(net, *optimizer, graph, data, comm));
    return losses;
  }
};

std::unique_ptr<Optimizer> adam(const Module& model) {
  return std::make_unique<Adam>(model.named_parameters(), AdamOptions{.lr = 0.01, .weight_decay = 5e-4});
}
std::unique_ptr<Optimizer> adamw(const Module& model) {
  return std::make_unique<AdamW>(model.named_parameters(), AdamOptions{.lr = 0.01, .weight_decay = 5e-4});
}
std::unique_ptr<Optimizer> sgd(const Module& model) {
  return std::make_unique<SGD>(model.named_parameters(), SGDOptions{.lr = 0.1, .momentum = 0.9});
}

}  // namespace

TEST_CASE("interrupted and resumed, the curve is that of the uninterrupted training") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const double accepted = sizeof(real) == 8 ? 1e-9 : 1e-4;
  int number = 0;
  for (const Make& make : {Make(adam), Make(adamw), Make(sgd)}) {
    CAPTURE(number);
    const std::string place = directory.path() + "/" + std::to_string(number++);
    Training through(comm, PartitionMethod::contiguous, make);
    through.run(4);
    through.optimizer->set_lr(0.7 * through.optimizer->lr());  // as a schedule does
    const Checkpointer checkpoints(comm, place, {.seed = 3});
    checkpoints.save(4, through.net, *through.optimizer, {{"best", "0.25"}});
    const std::vector<double> losses = through.run(6);

    // on the same ranks: bit for bit
    const auto resumed = [&](const Communicator& ranks, PartitionMethod method) {
      Training again(ranks, method, make);
      again.run(1);  // whatever was before is forgotten
      const Checkpointer reader(ranks, place, {.seed = 3});
      const CheckpointInfo info = reader.load(reader.latest(), again.net, *again.optimizer);
      CHECK(info.epoch == 4);
      CHECK(info.extra == std::map<std::string, std::string>{{"best", "0.25"}});
      return again.run(6);
    };
    CHECK(resumed(comm, PartitionMethod::contiguous) == losses);
    // on another partitioning, and each rank alone
    CHECK(largest_difference(resumed(comm, PartitionMethod::random), losses) < accepted);
    CHECK(largest_difference(resumed(Communicator::self(), PartitionMethod::contiguous), losses) < accepted);
  }
}

TEST_CASE("a checkpoint keeps the schedule of the learning rate") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const Checkpointer checkpoints(comm, directory.path() + "/run", {.seed = 3});
  Training through(comm, PartitionMethod::contiguous, adam);
  const CosineAnnealingLROptions cosine{.T_max = 9, .warm_up = LinearLROptions{.total_iters = 2}};
  CosineAnnealingLR schedule(*through.optimizer, cosine);
  const auto run = [](Training& training, LRScheduler& of, int epochs) {
    std::vector<double> losses;
    for (int epoch = 0; epoch < epochs; ++epoch) {
      losses.push_back(training.run(1).front());
      of.step(losses.back());
    }
    losses.push_back(training.optimizer->lr());
    return losses;
  };
  run(through, schedule, 4);
  checkpoints.save(4, through.net, *through.optimizer, schedule, {{"best", "0.25"}});
  const std::vector<double> losses = run(through, schedule, 4);

  Training again(comm, PartitionMethod::contiguous, adam);
  CosineAnnealingLR resumed(*again.optimizer, cosine);
  run(again, resumed, 1);
  const CheckpointInfo info = checkpoints.load(checkpoints.latest(), again.net, *again.optimizer, resumed);
  CHECK(info.epoch == 4);
  CHECK(info.extra == std::map<std::string, std::string>{{"best", "0.25"}});
  CHECK(run(again, resumed, 4) == losses);

  // another schedule, and none: nothing changes
  Training other(comm, PartitionMethod::contiguous, adam);
  StepLR steps(*other.optimizer, {.step_size = 5, .warm_up = {}});
  const Tensor before = other.net.parameters().front().value().clone();
  CHECK(thrown_by_all<InputError>(comm, [&] {
          (void)checkpoints.load(checkpoints.latest(), other.net, *other.optimizer, steps);
        }) == checkpoints.latest() + ": the schedule is CosineAnnealingLR, expected StepLR");
  checkpoints.save(5, other.net, *other.optimizer);
  CHECK(thrown_by_all<InputError>(comm, [&] {
          (void)checkpoints.load(checkpoints.latest(), other.net, *other.optimizer, steps);
        }) == checkpoints.latest() + ": the schedule is none, expected StepLR");
  CHECK(same_bits(other.net.parameters().front().value(), before));
}

TEST_CASE("the last checkpoints are kept, and what a killed run left is removed") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string place = directory.path() + "/deep/run";
  Training training(comm, PartitionMethod::contiguous, sgd);
  {
    const Checkpointer checkpoints(comm, place, {.keep_last = 2});
    CHECK(checkpoints.latest().empty());
    for (const int epoch : {5, 10, 15, 15, 120000000})
      checkpoints.save(epoch, training.net, *training.optimizer);
    CHECK(checkpoints.latest() == place + "/checkpoint-120000000.safetensors");
    CHECK(thrown_by_all<InputError>(comm, [&] { checkpoints.save(20, training.net, *training.optimizer); }) ==
          place +
              ": there is a checkpoint of epoch 120000000, expected none after epoch 20, which is to be "
              "saved");
  }
  on_rank_0(comm, [&] {
    for (const char* name :
         {"checkpoint-00000020.safetensors.tmp123", "notes.tmp1", "checkpoint-7.safetensors"})
      std::ofstream(place + "/" + name) << "x";
  });
  const Checkpointer again(comm, place);
  CHECK(again.latest() == place + "/checkpoint-120000000.safetensors");
  comm.agree([&] {
    CHECK(files(place) == std::set<std::string>{"checkpoint-00000015.safetensors",
                                                "checkpoint-120000000.safetensors",
                                                "checkpoint-7.safetensors", "notes.tmp1"});
  });
  CHECK(thrown_by_all<InputError>(comm, [&] {
          Checkpointer(comm, place, {.keep_last = 0});
        }).find("the number of checkpoints to keep is 0") != std::string::npos);
}

TEST_CASE("another process that saves in the same directory is refused by name, one that reads is not") {
  const Communicator comm = Communicator::world();
  if (comm.size() < 2) return;
  const TemporaryDirectory directory(comm);
  const std::string place = directory.path();
  Training training(comm, PartitionMethod::contiguous, adam);
  std::string message;
  {
    const Checkpointer checkpoints(comm, place);
    checkpoints.save(1, training.net, *training.optimizer);
    const Checkpointer twin = checkpoints;  // of the same run
    twin.save(2, training.net, *training.optimizer);
    const Checkpointer alone(Communicator::self(), place);
    CHECK(alone.latest() == place + "/checkpoint-00000002.safetensors");
    if (comm.rank() == 1) message = thrown<InputError>([&] { alone.lock(); });
    comm.barrier();
  }
  comm.barrier();
  if (comm.rank() == 1) {
    CHECK(message.starts_with(place + ": another run uses the directory (host "));
    CHECK(message.find(", process ") != std::string::npos);
    CHECK(message.ends_with(" UTC), expected one that no other run uses"));
  }
  comm.agree([&] {
    CHECK(!fs::exists(place + "/lock"));
    comm.barrier();
    if (comm.rank() == 1) Checkpointer(Communicator::self(), place).lock();  // free again
  });
}

TEST_CASE("a damaged checkpoint is an error that names the complete ones") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  Training training(comm, PartitionMethod::contiguous, adam);
  const Checkpointer checkpoints(comm, directory.path());
  for (const int epoch : {1, 2, 3}) checkpoints.save(epoch, training.net, *training.optimizer);
  const std::string last = checkpoints.latest();
  const auto load = [&] {
    return thrown_by_all<InputError>(comm,
                                     [&] { checkpoints.load(last, training.net, *training.optimizer); });
  };
  CHECK(load() == "nothing");
  on_rank_0(comm, [&] {  // a bit of the last tensor
    std::fstream file(last, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end).put('\x15');
  });
  CHECK(load().find("; complete are: " + directory.path() + "/checkpoint-00000001.safetensors, " +
                    directory.path() + "/checkpoint-00000002.safetensors") != std::string::npos);
  CHECK(load().starts_with(last + ": the data have the checksum"));
  const std::string absent = directory.path() + "/checkpoint-00000009.safetensors";
  CHECK(thrown_by_all<InputError>(comm, [&] {
          checkpoints.load(absent, training.net, *training.optimizer);
        }).starts_with(absent + ": cannot open"));
  on_rank_0(comm, [&] {
    fs::resize_file(last, fs::file_size(last) / 2);
    fs::resize_file(directory.path() + "/checkpoint-00000001.safetensors", 100);
    fs::resize_file(directory.path() + "/checkpoint-00000002.safetensors", 0);
  });
  CHECK(load().starts_with(last + ": the file has"));
  CHECK(load().ends_with("; there is no other complete checkpoint"));
}

TEST_CASE("a checkpoint of something else is an error, and changes nothing") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  Training training(comm, PartitionMethod::contiguous, adam);
  const Checkpointer checkpoints(comm, directory.path(), {.seed = 3});
  checkpoints.save(1, training.net, *training.optimizer);
  const std::string last = checkpoints.latest();
  const auto refused = [&](const Checkpointer& reader, Module& model, Optimizer& optimizer) {
    const Tensor weight = model.named_parameters()[0].parameter.value().clone();
    const double lr = optimizer.lr();
    const std::string message = thrown_by_all<InputError>(comm, [&] { reader.load(last, model, optimizer); });
    CHECK(same_bits(model.named_parameters()[0].parameter.value(), weight));
    CHECK(optimizer.lr() == lr);
    return message;
  };
  const auto with = [&](const Make& make) {
    Training other(comm, PartitionMethod::contiguous, make);
    return refused(checkpoints, other.net, *other.optimizer);
  };
  CHECK(with(adamw) == last + ": optimizer is Adam, expected AdamW");
  CHECK(with(sgd) == last + ": optimizer is Adam, expected SGD");
  Training same(comm, PartitionMethod::contiguous, adam, 4);
  CHECK(refused(Checkpointer(comm, directory.path(), {.seed = 4}), same.net, *same.optimizer) ==
        last + ": seed is 3, expected 4");
  Net wider({8, 17, 16, 3}, 0.5, comm, 3), deeper({8, 16, 16, 16, 3}, 0.5, comm, 3);
  Adam of_wider(wider.named_parameters()), of_deeper(deeper.named_parameters());
  CHECK(refused(checkpoints, wider, of_wider).find("has shape [16, 8], expected [17, 8]") !=
        std::string::npos);
  CHECK(refused(checkpoints, deeper, of_deeper).find("the file has no 'model.convs.3.fc_") !=
        std::string::npos);
  save_weights(comm, directory.path() + "/weights", training.net);
  CHECK(thrown_by_all<InputError>(comm, [&] {
          checkpoints.load(directory.path() + "/weights", training.net, *training.optimizer);
        }).find("the metadata have no 'checkpoint_version', expected a checkpoint") != std::string::npos);
}

TEST_CASE("a full disk or a place that cannot be written: an error, and the last checkpoint stays") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  Training training(comm, PartitionMethod::contiguous, adam);
  const Checkpointer checkpoints(comm, directory.path(), {.keep_last = 1});
  checkpoints.save(1, training.net, *training.optimizer);

  // files end at 4000 bytes, as on a full disk
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit little{4000, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &little) == 0);
  const std::string message =
      thrown_by_all<InputError>(comm, [&] { checkpoints.save(2, training.net, *training.optimizer); });
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(message == directory.path() + "/checkpoint-00000002.safetensors: cannot write (File too large)");

  training.net.named_parameters()[0].parameter.value().data()[0] = static_cast<real>(NAN);
  CHECK(thrown_by_all<InputError>(comm, [&] {
          checkpoints.save(2, training.net, *training.optimizer);
        }).find("the value nan of 'model.convs.0.") != std::string::npos);
  comm.agree(
      [&] { CHECK(files(directory.path()) == std::set<std::string>{"checkpoint-00000001.safetensors"}); });
  checkpoints.load(checkpoints.latest(), training.net, *training.optimizer);

  on_rank_0(comm, [&] { std::ofstream(directory.path() + "/file") << "x"; });
  CHECK(thrown_by_all<InputError>(comm, [&] { Checkpointer(comm, directory.path() + "/file/run"); }) ==
        directory.path() + "/file/run: Not a directory, expected a directory for checkpoints");
}

TEST_CASE("written beside the training: the state of save(), and an error in the next call") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const auto bytes = [&](const std::string& name) {
    std::ifstream file(directory.path() + "/" + name + "/checkpoint-00000001.safetensors", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  Training training(comm, PartitionMethod::contiguous, adam);
  training.run(2);
  Checkpointer(comm, directory.path() + "/now").save(1, training.net, *training.optimizer, {{"best", "1"}});
  {
    const Checkpointer beside(comm, directory.path() + "/beside", {.beside = true});
    beside.save(1, training.net, *training.optimizer, {{"best", "1"}});
    for (const NamedParameter& each :
         training.net.named_parameters()) {  // before the thread is at its first byte
      Tensor value = each.parameter.value();
      value.fill(7);
    }
    training.run(2);  // changes moments, too
    CHECK(beside.latest() == directory.path() + "/beside/checkpoint-00000001.safetensors");
  }
  {  // another one of the same process leaves what the thread writes
    const Checkpointer writes(comm, directory.path() + "/again", {.beside = true});
    writes.save(1, training.net, *training.optimizer);
    const Checkpointer reads(comm, directory.path() + "/again");
    writes.wait();
    CHECK(reads.latest() == directory.path() + "/again/checkpoint-00000001.safetensors");
  }
  comm.agree([&] {
    CHECK(bytes("now").size() > 4000);
    CHECK(bytes("beside") == bytes("now"));
  });

  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit little{4000, before.rlim_max};
  const Checkpointer full(comm, directory.path() + "/full", {.keep_last = 1, .beside = true});
  full.save(1, training.net, *training.optimizer);
  full.wait();
  full.wait();  // nothing is left to wait for
  REQUIRE(setrlimit(RLIMIT_FSIZE, &little) == 0);
  full.save(2, training.net, *training.optimizer);
  const std::string message = thrown_by_all<InputError>(comm, [&] { full.wait(); });
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(message == directory.path() + "/full/checkpoint-00000002.safetensors: cannot write (File too large)");
  comm.agree([&] {
    CHECK(files(directory.path() + "/full") == std::set<std::string>{"checkpoint-00000001.safetensors"});
  });
  full.save(3, training.net, *training.optimizer);
  CHECK(full.latest() == directory.path() + "/full/checkpoint-00000003.safetensors");
  comm.agree([&] {
    CHECK(files(directory.path() + "/full") == std::set<std::string>{"checkpoint-00000003.safetensors"});
  });
}
