// SPDX-License-Identifier: MIT

/// Networks in files: they come back as they were, and what cannot be read is the same error on every rank.
#include "graph/data/dataset_files.hpp"
#include "support/damage.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/core/error.hpp>
#include <sar/core/files/safetensors.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/nn/models/graph_model.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

struct Files {
  Communicator comm = Communicator::world();
  TemporaryDirectory directory{comm};
  std::string path = directory.path() + "/model.safetensors", json = directory.path() + "/model.json";

  void write_text(const std::string& file, const std::string& text) const {
    if (comm.rank() == 0) write_bytes(file, text);
    comm.barrier();
  }
  /// The weights of a network, with another description in the metadata.
  void save_as(const GraphModel& model, const std::string& description) const {
    save_weights(comm, path, model, real_type, {{model_key, description}});
  }
  [[nodiscard]] std::string error_of(const std::string& file) const {
    return thrown_by_all<InputError>(comm, [&] { (void)load_model(comm, file); });
  }
};

std::unique_ptr<GraphModel> model_of(const ModelDescription& description, const Communicator& comm) {
  Generator gen(3);
  return std::make_unique<GraphModel>(description, comm, gen);
}

void check_same_weights(const Module& a, const Module& b) {
  const StateDict of_a = state_dict(a), of_b = state_dict(b);
  REQUIRE(of_a.tensors.size() == of_b.tensors.size());
  for (std::size_t i = 0; i < of_a.tensors.size(); ++i) {
    CHECK(of_a.tensors[i].name == of_b.tensors[i].name);
    CHECK(same_bits(of_a.tensors[i].tensor, of_b.tensors[i].tensor));
  }
}

const ModelDescription small{.type = "sage", .in_feats = 4, .hidden = 6, .out_feats = 2, .layers = 2};

}  // namespace

TEST_CASE("a network of each type comes back with its description and its weights, to the bit") {
  const Files files;
  for (const std::string& type : ModelDescription::types()) {
    CAPTURE(type);
    const auto model = model_of({.type = type,
                                 .in_feats = 4,
                                 .hidden = 8,
                                 .out_feats = 2,
                                 .norm = "batch",
                                 .edge_feats = type == "mesh_graph_net" ? 3 : 0,
                                 .normalize = true,
                                 .weights = "elsewhere"},
                                files.comm);
    save_model(files.comm, files.path, *model);
    const auto again = load_model(files.comm, files.path);
    ModelDescription expected = model->description();
    expected.weights.clear();
    CHECK(again->description().to_json() == expected.to_json());
    CHECK_FALSE(again->is_training());
    check_same_weights(*model, *again);
  }
}

TEST_CASE("a description in a file of its own names the file of the weights, relative to it") {
  const Files files;
  const auto model = model_of(small, files.comm);
  save_weights(files.comm, files.path, *model);
  ModelDescription description = small;
  description.weights = "model.safetensors";
  files.write_text(files.json, description.to_json());
  check_same_weights(*model, *load_model(files.comm, files.json));
  files.write_text(files.json, small.to_json());
  CHECK(files.error_of(files.json) ==
        files.json + " has no key 'weights', expected one that names the file of the weights");
  description.weights = "nothing.safetensors";
  files.write_text(files.json, description.to_json());
  CHECK(files.error_of(files.json).find("nothing.safetensors") != std::string::npos);
  files.write_text(files.json, "{\"sar_model\": 3}");
  CHECK(files.error_of(files.json) ==
        files.json + ".sar_model is 3, expected 1, the version of the format that this library reads");
  CHECK(files.error_of(files.directory.path() + "/none.json").find("none.json") != std::string::npos);
}

TEST_CASE("weights of other programs are recognized, and names that the caller gives") {
  const Files files;
  const auto model =
      model_of({.type = "gcn", .in_feats = 3, .hidden = 5, .out_feats = 2, .layers = 2}, files.comm);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : state_dict(*model).tensors) {
    const std::string layer = name.starts_with("layers.0") ? "conv1" : "conv2";
    if (name.ends_with("bias")) {
      tensors.push_back({layer + ".bias", tensor});
      continue;
    }
    Tensor turned({tensor.shape()[1], tensor.shape()[0]});
    for (Index i = 0; i < turned.num_rows(); ++i)
      for (Index j = 0; j < turned.row_size(); ++j) turned.row(i)[j] = tensor.row(j)[i];
    tensors.push_back({layer + ".lin.weight", turned});
  }
  if (files.comm.rank() == 0)
    write_safetensors(files.path, tensors, {}, real_type, {{model_key, model->description().to_json()}});
  files.comm.barrier();
  check_same_weights(*model, *load_model(files.comm, files.path));
  check_same_weights(*model, *load_model(files.comm, files.path, {.rename = {{"conv1", "layers.0"}}}));
  CHECK(thrown_by_all<InputError>(
            files.comm,
            [&] {
              (void)load_model(files.comm, files.path, {.rename = {{"conv7", "layers.0"}}});
            }) ==
        files.path + ": no name in the file is or begins with 'conv7', expected one to rename to 'layers.0'");
}

TEST_CASE("a description of a network that is much larger than the file is refused before it is made") {
  const Files files;
  const auto model = model_of(small, files.comm);
  const auto refuses = [&](const std::string& description) {
    files.save_as(*model, description);
    const Index before = peak_bytes();
    CHECK(files.error_of(files.path).find(" numbers, expected at least ") != std::string::npos);
    CHECK(peak_bytes() - before < Index{1} << 20);
  };
  ModelDescription large = small;
  large.hidden = 20000;
  large.layers = 40;
  for (const char* type : {"sage", "gcn", "gat", "gatv2", "gin"}) {
    large.type = type;
    refuses(large.to_json());
  }
  refuses(ModelDescription{.type = "sage", .in_feats = 1 << 24, .hidden = 64, .out_feats = 2}.to_json());
  refuses(ModelDescription{.type = "sage",
                           .in_feats = 4,
                           .hidden = 20000,
                           .out_feats = 2,
                           .layers = 1,
                           .readout = "mean",
                           .head_layers = 40}
              .to_json());
  refuses(ModelDescription{.type = "mesh_graph_net",
                           .in_feats = 4,
                           .hidden = 2000,
                           .out_feats = 2,
                           .layers = 1,
                           .edge_feats = 3,
                           .mlp_layers = 500}
              .to_json());
}

TEST_CASE("files that are no network, or not this one, are the same error on all ranks") {
  const Files files;
  const auto model = model_of(small, files.comm);
  CHECK(files.error_of(files.directory.path() + "/none.safetensors").find("none.safetensors") !=
        std::string::npos);
  save_weights(files.comm, files.path, *model);
  CHECK(
      files.error_of(files.path)
          .starts_with(files.path + ": the metadata have no key 'sar.model', expected the description of a"));
  files.save_as(*model, "nonsense");
  CHECK(files.error_of(files.path) ==
        files.path + ": sar.model is no JSON at its byte 2, expected the description of a network");
  files.save_as(*model, R"({"sar_model": 2})");
  CHECK(files.error_of(files.path) ==
        files.path +
            ": sar.model.sar_model is 2, expected 1, the version of the format that this library reads");
  ModelDescription wider = small;
  wider.hidden = 7;
  files.save_as(*model, wider.to_json());
  const std::string shapes = files.error_of(files.path);
  CHECK(shapes.find("convs.0.fc_neigh.weight") != std::string::npos);
  CHECK(shapes.find("[6, 4]") != std::string::npos);
  CHECK(shapes.find("[7, 4]") != std::string::npos);
  ModelDescription deeper = small;
  deeper.layers = 3;
  files.save_as(*model, deeper.to_json());
  CHECK(files.error_of(files.path).find("the file has nothing for 'convs.1.fc_neigh.weight' [6, 6]") !=
        std::string::npos);

  save_model(files.comm, files.path, *model);
  const auto size = static_cast<std::size_t>(SafetensorsFile(files.path).entries().back().offset);
  files.comm.barrier();
  if (files.comm.rank() == 0) patch_byte(files.path, size, 'x');
  files.comm.barrier();
  CHECK(files.error_of(files.path).find(files.path) != std::string::npos);
  CHECK(load_metadata(files.comm, files.path).contains(model_key));
}
