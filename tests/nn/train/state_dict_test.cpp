// SPDX-License-Identifier: MIT
#include "graph/data/dataset_files.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/conv/graph_conv.hpp>
#include <sar/nn/conv/hetero_graph_conv.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/modules/norms.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

struct Net : Module {
  ModuleList<Linear> layers;
  DistributedBN1D bn;
  Dropout drop;

  explicit Net(std::uint64_t seed, Index hidden = 4) : Net(seed, hidden, Generator(seed)) {}
  Net(std::uint64_t, Index hidden, Generator gen) : bn(hidden, Communicator::self()), drop(0.5, gen) {
    register_module("layers", layers);
    register_module("bn", bn);
    register_module("drop", drop);
    layers.emplace_back(3, hidden, gen);
    layers.emplace_back(hidden, 2, gen, false);
  }
};

std::vector<std::string> names(const StateDict& state) {
  std::vector<std::string> found;
  for (const NamedBuffer& named : state.tensors) found.push_back(named.name);
  for (const NamedCounter& named : state.counters) found.push_back(named.name);
  return found;
}

bool same(const StateDict& a, const StateDict& b) {
  bool equal = names(a) == names(b);
  for (std::size_t i = 0; equal && i < a.tensors.size(); ++i)
    equal = same_bits(a.tensors[i].tensor, b.tensors[i].tensor);
  for (std::size_t i = 0; equal && i < a.counters.size(); ++i)
    equal = *a.counters[i].value == *b.counters[i].value;
  return equal;
}

/// Everything other than at the start.
void disturb(const Module& module) {
  double next = 0.5;
  for (NamedBuffer& named : state_dict(module).tensors) named.tensor.fill(static_cast<real>(next += 0.25));
  for (const NamedCounter& named : module.named_counters()) named.value->change() += 17;
}

/// The weights of the net as a file, changed by `change`. Collective.
template <class Change>
void write_changed(const Communicator& comm, const std::string& path, const Change& change) {
  const Net net(1);
  StateDict state = state_dict(net);
  change(state);
  save_state_dict(comm, path, state, SafetensorsType::float64);
}

}  // namespace

TEST_CASE("the state dict has the names of torch's") {
  const Net net(1);
  CHECK(names(state_dict(net)) ==
        std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.1.weight", "bn.weight",
                                 "bn.bias", "bn.running_mean", "bn.running_var", "bn.num_batches_tracked"});
  CHECK(net.named_counters().size() == 2);  // and the dropout's calls, which torch has not
}

TEST_CASE("weights that were saved are loaded, on all ranks") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/weights.safetensors";
  const Net from(1);
  disturb(from);
  for (const SafetensorsType type : {SafetensorsType::float16, SafetensorsType::bfloat16,
                                     SafetensorsType::float32, SafetensorsType::float64}) {
    CAPTURE(to_string(type));
    save_weights(comm, path, from, type);
    Net to(2);
    const Variable handle = to.named_parameters()[0].parameter;
    const LoadReport report = load_weights(comm, path, to);
    CHECK(report.missing.empty());
    CHECK(report.unexpected.empty());
    CHECK(same(state_dict(to), state_dict(from)));
    CHECK(handle.value().data()[0] == real(0.75));  // in the memory where they were
    CHECK(*to.named_counters()[1].value == 0);      // the dropout's calls are not weights
  }
  CHECK(thrown_by_all<InputError>(comm, [&] {
          save_weights(comm, directory.path() + "/none/x", from);
        }).find("/none/x: cannot write (No such file or directory)") != std::string::npos);
}

TEST_CASE("weights are saved to the last bit unless a type is asked for") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/weights.safetensors";
  const Net from(1);
  Net to(2);
  save_weights(comm, path, from);
  load_weights(comm, path, to);
  CHECK(same(state_dict(to), state_dict(from)));
}

TEST_CASE("a prefix is taken off") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/x";
  write_changed(comm, path, [](StateDict& state) {
    for (NamedBuffer& named : state.tensors) named.name = "module." + named.name;
    for (NamedCounter& named : state.counters) named.name = "module." + named.name;
  });
  Net to(2);
  load_weights(comm, path, to, {.strip_prefix = "module."});
  CHECK(same(state_dict(to), state_dict(Net(1))));
  const std::string message = thrown_by_all<InputError>(comm, [&] { load_weights(comm, path, to); });
  CHECK(message.find("the file has no 'layers.0.weight', 'layers.0.bias'") != std::string::npos);
  CHECK(message.find("and has 'module.bn.bias'") != std::string::npos);
}

TEST_CASE("names without a partner: an error, or a report") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/x";
  write_changed(comm, path, [](StateDict& state) {
    state.tensors[1].name = "layers.0.offset";
    state.tensors.push_back({"extra", Tensor::full({1}, 1)});
    state.counters.clear();
  });
  Net to(2);
  const std::string message = thrown_by_all<InputError>(comm, [&] { load_weights(comm, path, to); });
  CHECK(message == path +
                       ": the file has no 'layers.0.bias', 'bn.num_batches_tracked', and has 'extra', "
                       "'layers.0.offset', which the model has not, expected the names of the model");
  CHECK(same(state_dict(to), state_dict(Net(2))));

  const LoadReport report = load_weights(comm, path, to, {.strict = false});
  CHECK(report.missing == std::vector<std::string>{"layers.0.bias", "bn.num_batches_tracked"});
  CHECK(report.unexpected == std::vector<std::string>{"extra", "layers.0.offset"});
  const StateDict loaded = state_dict(to), one = state_dict(Net(1)), two = state_dict(Net(2));
  CHECK(same_bits(loaded.tensors[0].tensor, one.tensors[0].tensor));
  CHECK(same_bits(loaded.tensors[1].tensor, two.tensors[1].tensor));
  CHECK(same_bits(loaded.tensors[2].tensor, one.tensors[2].tensor));
}

TEST_CASE("what cannot be loaded leaves the model as it was, with the same error on all ranks") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/x";
  Net to(2);
  disturb(to);
  const auto refused = [&](const auto& change) {
    write_changed(comm, path, change);
    const Net before(2);
    disturb(before);
    std::string message = thrown_by_all<InputError>(comm, [&] { load_weights(comm, path, to); });
    CHECK(same(state_dict(to), state_dict(before)));
    return message;
  };
  // the last tensor is wrong: those before it must not have been written
  CHECK(refused([](StateDict& state) {
          state.tensors[6].tensor = Tensor::full({5}, 1);
        }).find("the tensor 'bn.running_var' has shape [5], expected [4]") != std::string::npos);
  CHECK(refused([](StateDict& state) {
          state.tensors[0].tensor = Tensor::full({3, 4}, 1);
        }).find("the tensor 'layers.0.weight' has shape [3, 4], expected [4, 3]") != std::string::npos);
  Recoverable<std::uint64_t> count = 3;
  CHECK(refused([&](StateDict& state) {
          state.tensors.pop_back();
          state.counters.push_back({"bn.running_var", &count});
        }).find("the tensor 'bn.running_var' has dtype I64") != std::string::npos);
  CHECK(refused([](StateDict& state) {
          state.counters.clear();
          state.tensors.push_back({"bn.num_batches_tracked", Tensor::full({1}, 1)});
        }).find("'bn.num_batches_tracked' has dtype F64 and shape [1], expected one integer") !=
        std::string::npos);
  CHECK(thrown_by_all<InputError>(comm, [&] {
          load_weights(comm, path + "none", to);
        }).find("cannot open (No such file or directory)") != std::string::npos);
  if (comm.size() == 1) return;
  Net other(2, comm.rank() == 1 ? 5 : 4);
  CHECK(thrown_by_all<InputError>(comm, [&] {
          load_weights(comm, path, other);
        }).find("rank 1 has other names or shapes than rank 0") != std::string::npos);
}

TEST_CASE("HeteroGraphConv names its layers as DGL does, and reads the names of its relations, too") {
  const Communicator world = Communicator::world();
  const auto make = [](std::uint64_t seed) {
    Generator gen(seed);
    auto conv = std::make_unique<HeteroGraphConv>();
    conv->emplace_back<GraphConv>({"user", "user:rates:item", "item"}, 3, 2, gen);
    conv->emplace_back<GraphConv>({"user", "likes", "item"}, 3, 2, gen);
    conv->emplace_back<GraphConv>({"user's", "user's:rates:item", "item"}, 3, 2, gen);
    return conv;
  };
  const auto first = make(1), second = make(2), third = make(3);
  // names and order of DGL 2.1.0: HeteroGraphConv({("user", "rates", "item"): ..., "likes": ..., ("user's",
  // ...): ...})
  std::vector<std::string> names;
  for (const NamedParameter& each : first->named_parameters()) names.push_back(each.name);
  CHECK(names == std::vector<std::string>{"mods.('user', 'rates', 'item').weight",
                                          "mods.('user', 'rates', 'item').bias", "mods.likes.weight",
                                          "mods.likes.bias", "mods.(\"user's\", 'rates', 'item').weight",
                                          "mods.(\"user's\", 'rates', 'item').bias"});
  const TemporaryDirectory directory(world);
  const std::string path = directory.path() + "/w.safetensors";
  save_weights(world, path, *first);
  load_weights(world, path, *second);
  StateDict old = state_dict(*first);  // as before the names were DGL's
  for (NamedBuffer& each : old.tensors) {
    const std::string last = each.name.substr(each.name.rfind('.'));
    if (each.name.starts_with("mods.('")) each.name = "mods.user:rates:item" + last;
    if (each.name.starts_with("mods.(\"")) each.name = "mods.user's:rates:item" + last;
  }
  save_state_dict(world, path, old, real_type);
  load_weights(world, path, *third);
  for (const auto& other : {second.get(), third.get()})
    for (std::size_t i = 0; i < names.size(); ++i)
      CHECK(same_bits(other->parameters()[i].value(), first->parameters()[i].value()));
}

TEST_CASE("a program's texts travel with the weights") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/texts.safetensors";
  Net net(1), loaded(2);
  const std::map<std::string, std::string> texts{
      {"units", "m/s, Pa"}, {"", "empty"}, {"note", "\"quotes\", \u00fc\nand lines"}, {"none", ""}};
  save_weights(comm, path, net, real_type, texts);
  CHECK(load_metadata(comm, path) == texts);
  load_weights(comm, path, loaded);
  CHECK(same(state_dict(net), state_dict(loaded)));
  save_weights(comm, path, net);
  CHECK(load_metadata(comm, path).empty());
  for (const std::string key : {"format", "crc32", "header_crc32"})
    CHECK(thrown_by_all<InputError>(comm, [&] {
            save_weights(comm, path, net, real_type, {{key, "mine"}});
          }) == path + ": the metadata have the key '" + key + "', expected another one");
  CHECK(thrown_by_all<InputError>(comm, [&] { (void)load_metadata(comm, path + ".absent"); })
            .starts_with(path + ".absent: cannot open"));
  CHECK(load_metadata(comm, path).empty());
}
