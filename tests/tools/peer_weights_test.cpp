// SPDX-License-Identifier: MIT

/// Models that DGL and PyG made (tests/data/peer): `train` recognizes their weights and computes their
/// logits.
#include "support/golden_graph.hpp"
#include "support/thrown.hpp"

#include "graph/data/dataset_files.hpp"

#include <sar/autograd/gradcheck.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/safetensors.hpp>
#include <sar/nn/models/layer_stack.hpp>
#include <sar/nn/models/weight_file.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;
using namespace sar::tools;

namespace {

struct PeerModel {
  GoldenGraph part;
  GraphRelations relations;
  LayerStack model;

  PeerModel(const Communicator& comm, const Case& golden, Generator gen = Generator(1))
      : part(golden_graph(comm, golden, {})), model(description_of(golden), comm, gen) {
    model.eval();
    if (!golden.has("etype")) return;
    const auto types = golden.indices("etype");
    Array<std::uint16_t> of_part;
    for (const Index id : part.graph.edge_ids())
      of_part.push_back(static_cast<std::uint16_t>(types[static_cast<std::size_t>(id)]));
    relations.types = EdgeTypes(std::move(of_part));
    relations.norm = part.edge_rows(golden.tensor("norm"));
  }

  static Index count(const Case& golden, const std::string& key) {
    return static_cast<Index>(golden.number(key));
  }
  static ModelDescription description_of(const Case& golden) {
    const bool batch_norm = golden.number("batch_norm") == 1;
    return {.type = golden.arg("model"),
            .in_feats = golden.tensor("in.feat").row_size(),
            .hidden = count(golden, "hidden"),
            .out_feats = count(golden, "num_classes"),
            .layers = count(golden, "layers"),
            .norm = batch_norm ? "batch" : "none",
            .activation = batch_norm ? "relu" : "",
            .dropout = 0.5,
            .heads = count(golden, "heads"),
            .out_heads = count(golden, "out_heads"),
            .residual = golden.arg("residual"),
            .num_bases = count(golden, "num_bases"),
            .num_rels = count(golden, "num_rels")};
  }
  double error(const Case& golden) {
    const Tensor whole = golden.tensor("out");
    const Variable logits =
        model(part.graph, part.src_rows(golden.tensor("in.feat")), std::span(&relations, 1));
    return error_of_part(logits.value(), part.dst_rows(whole), whole);
  }
};

std::string weights_of(const std::string& name) {
  return std::string(SAR_TEST_DATA) + "/" + name + ".safetensors";
}

std::vector<NamedShape> shapes_of(const std::string& path) {
  std::vector<NamedShape> shapes;
  const SafetensorsFile file(path);
  for (const SafetensorsEntry& entry : file.entries()) shapes.push_back({entry.name, entry.shape});
  std::ranges::sort(shapes, {}, &NamedShape::name);
  return shapes;
}

const std::vector<NamedShape> gcn{
    {"layers.0.weight", {8, 8}}, {"layers.0.bias", {8}}, {"layers.1.weight", {8, 8}}, {"layers.1.bias", {8}}};

bool never(const std::string& /*a*/, const std::string& /*b*/) {
  return false;
}

std::string matched(const std::vector<NamedShape>& file, const WeightNames& names = {}) {
  std::string text;
  for (const WeightLink& link : match_weights(file, gcn, names, "file", never).links)
    if (link.model.ends_with("weight")) text += link.file + ">" + link.model + " ";
  return text;
}

}  // namespace

TEST_CASE("logits of models of DGL and PyG, from files with their names, and back") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  REQUIRE(golden_cases("peer").size() == 14);
  for (const std::string& name : golden_cases("peer")) {
    CAPTURE(name);
    const Case golden(name);
    PeerModel peer(comm, golden);
    WeightFile weights(peer.model);
    CHECK_FALSE(weights.load(comm, weights_of(name), {}).empty());
    CHECK(peer.error(golden) < tolerance());

    // the file that is saved has the same names and shapes, and gives the same logits
    const std::string saved = directory.path() + "/saved.safetensors";
    weights.save(comm, saved);
    const auto before = shapes_of(weights_of(name)), after = shapes_of(saved);
    REQUIRE(before.size() == after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      CHECK(before[i].name == after[i].name);
      CHECK(before[i].shape == after[i].shape);
    }
    PeerModel again(comm, golden);
    WeightFile(again.model).load(comm, saved, {});
    CHECK(again.error(golden) < tolerance());
  }
}

TEST_CASE("logits of models of each release of DGL and PyG, from files with their names, and back") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string saved = directory.path() + "/saved.safetensors";
  REQUIRE(golden_cases("versions").size() == 62);
  for (const std::string& name : golden_cases("versions")) {
    CAPTURE(name);
    const Case golden(name);
    const std::string path = weights_of("peer/" + name);
    PeerModel peer(comm, golden);
    WeightFile weights(peer.model);
    (void)weights.load(comm, path, {});
    CHECK(peer.error(golden) < tolerance());
    weights.save(comm, saved);
    const auto names = [](const std::vector<NamedShape>& tensors) {
      std::vector<std::string> of;
      for (const NamedShape& tensor : tensors) of.push_back(tensor.name);
      return of;
    };
    CHECK(names(shapes_of(path)) == names(shapes_of(saved)));
    PeerModel again(comm, golden);
    (void)load_model_weights(comm, saved, again.model);
    CHECK(again.error(golden) < tolerance());
  }
}

TEST_CASE("gradients of attention with residual connections and several heads in the last layer") {
  const Communicator comm = Communicator::world();
  for (const std::string name : {"peer/gat_dgl", "peer/gat_residual_pyg", "peer/gatv2_dgl"}) {
    CAPTURE(name);
    const Case golden(name);
    PeerModel peer(comm, golden);
    WeightFile(peer.model).load(comm, weights_of(name), {});
    std::vector<Variable> inputs{Variable(peer.part.src_rows(golden.tensor("in.feat")), true)};
    for (const Variable& parameter : peer.model.parameters()) inputs.push_back(parameter);
    const auto logits = [&](const std::vector<Variable>& in) { return peer.model(peer.part.graph, in[0]); };
    CHECK_NOTHROW(gradcheck(logits, inputs, {.directions = 3, .sum_over_ranks = [&](double value) {
                                               return comm.all_reduce(value, ReduceOp::sum);
                                             }}));
  }
}

TEST_CASE("layers of equal shapes are taken in the order of their numbers") {
  const std::string expected = "conv2.weight>layers.0.weight conv10.weight>layers.1.weight ";
  CHECK(
      matched(
          {{"conv10.weight", {8, 8}}, {"conv10.bias", {8}}, {"conv2.weight", {8, 8}}, {"conv2.bias", {8}}}) ==
      expected);
  CHECK(matched({{"net.0.lin.weight", {8, 8}},
                 {"net.0.bias", {8}},
                 {"net.1.lin.weight", {8, 8}},
                 {"net.1.bias", {8}}}) ==
        "net.0.lin.weight>layers.0.weight net.1.lin.weight>layers.1.weight ");
}

TEST_CASE("names that the user gives, and names that cannot be told") {
  const std::vector<NamedShape> file{
      {"begin.weight", {8, 8}}, {"begin.bias", {8}}, {"end.weight", {8, 8}}, {"end.bias", {8}}};
  CHECK(thrown<InputError>([&] { matched(file); }) ==
        "file: 'layers.0' of the model could be 'begin' or 'end' of the file, expected a rename (--rename "
        "begin=layers.0 or end=layers.0) or names to ignore (--drop-weights 'end.*')");
  const std::string expected = "begin.weight>layers.0.weight end.weight>layers.1.weight ";
  CHECK(matched(file, {.rename = {{"begin", "layers.0"}, {"end", "layers.1"}}}) == expected);
  CHECK(matched(file, {.rename = {{"end", "layers.1"}}}) ==
        "end.weight>layers.1.weight begin.weight>layers.0.weight ");
  std::vector<NamedShape> wrapped = file;
  for (NamedShape& each : wrapped) each.name = "ema." + each.name;
  CHECK(matched(wrapped, {.strip_prefix = "ema.", .rename = {{"begin", "layers.0"}, {"end", "layers.1"}}}) ==
        "ema.begin.weight>layers.0.weight ema.end.weight>layers.1.weight ");
  CHECK(thrown<InputError>([&] {
          matched(wrapped, {.rename = {{"begin", "layers.0"}}});
        }) == "file: no name in the file is or begins with 'begin', expected one to rename to 'layers.0'");
  CHECK(thrown<InputError>([&] {
          matched(file, {.rename = {{"begin", "layers.0"}, {"end", "layers.0"}}});
        }) ==
        "file: 'begin.weight' and 'end.weight' are both called 'layers.0.weight' now, expected names "
        "that differ");
  CHECK(
      thrown<InputError>([&] {
        matched({file[0], file[1], {"conv.w", {3}}});
      }) ==
      "file: the model has no place for 'conv.w' [3] of the file, and the file has nothing for "
      "'layers.1.weight' [8, 8], 'layers.1.bias' [8] of the model, expected the names and shapes of the "
      "model, or names to change (--rename FROM=TO, --strip-prefix TEXT), to ignore (--drop-weights GLOB) or "
      "to leave at their initial values (--missing-weights GLOB)");
}

TEST_CASE("a damaged file leaves the model as it was, on all ranks") {
  const Communicator comm = Communicator::world();
  const Case golden("peer/gat_pyg");
  PeerModel peer(comm, golden);
  WeightFile weights(peer.model);
  const Tensor before = peer.model.parameters()[0].value().clone();
  CHECK(thrown_by_all<InputError>(comm, [&] {
          weights.load(comm, weights_of("peer/gcn_pyg"), {});
        }).find("the file has nothing for 'layers.0.attn_l' [1, 2, 3]") != std::string::npos);
  CHECK(same_bits(peer.model.parameters()[0].value(), before));
}
