// SPDX-License-Identifier: MIT
#include "support/thrown.hpp"

#include <doctest/doctest.h>
#include <sar/core/error.hpp>
#include <sar/nn/models/model_description.hpp>

#include <string>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// A description with these keys more.
std::string text_of(const std::string& type, const std::string& more = "") {
  return R"({"sar_model": 1, "type": ")" + type + R"(", "in_feats": 8, "out_feats": 3)" +
         (type == "mesh_graph_net" ? R"(, "edge_feats": 2)" : "") + more + "}";
}

std::string error_of(const std::string& text) {
  return thrown<InputError>([&] { (void)ModelDescription::from_json(text, "x.json"); });
}

}  // namespace

TEST_CASE("a description says what a network is, and the usual for what it leaves out") {
  const ModelDescription d = ModelDescription::from_json(
      text_of("sage", R"(, "hidden": 32, "layers": 2, "norm": "batch", "dropout": 0.25)"));
  CHECK(d.type == "sage");
  CHECK(d.in_feats == 8);
  CHECK(d.hidden == 32);
  CHECK(d.out_feats == 3);
  CHECK(d.layers == 2);
  CHECK(d.norm == "batch");
  CHECK(d.dropout == 0.25);
  CHECK(d.activation == "relu");
  CHECK(d.aggregator == "mean");
  const ModelDescription gat = ModelDescription::from_json(text_of("gat"));
  CHECK(gat.hidden == 64);
  CHECK(gat.layers == 3);
  CHECK(gat.norm == "none");
  CHECK(gat.activation == "elu");
  CHECK(gat.heads == 4);
  CHECK(gat.out_heads == 1);
  CHECK(gat.residual == "none");
  CHECK(ModelDescription::from_json(text_of("gat", R"(, "residual": true)")).residual == "1");
  CHECK(ModelDescription::from_json(text_of("gat", R"(, "residual": false)")).residual == "none");
  CHECK(ModelDescription::from_json(text_of("gat", R"(, "residual": 2)")).residual == "2");
  CHECK(ModelDescription::from_json(text_of("gin")).aggregator == "sum");
  const ModelDescription mesh = ModelDescription::from_json(
      text_of("mesh_graph_net", R"(, "layers": 0, "mlp_layers": 1, "normalize": true)"));
  CHECK(mesh.edge_feats == 2);
  CHECK(mesh.layers == 0);
  CHECK(mesh.mlp_layers == 1);
  CHECK(mesh.normalize);
  CHECK(mesh.activation == "relu");
}

TEST_CASE("every type is written with the keys that it reads, and read again") {
  for (const std::string& type : ModelDescription::types()) {
    CAPTURE(type);
    const std::string text = ModelDescription::from_json(text_of(type)).to_json();
    const ModelDescription again = ModelDescription::from_json(text);
    CHECK(again.type == type);
    CHECK(again.to_json() == text);
    CHECK(text.find("weights") == std::string::npos);
  }
  const ModelDescription gcn = ModelDescription::from_json(text_of("gcn"));
  CHECK(gcn.gcn_norm.empty());  // left to the names of the weights
  CHECK(gcn.checked().gcn_norm == "degrees");
  CHECK(ModelDescription::from_json(text_of("gcn", R"(, "gcn_norm": "weights")")).gcn_norm == "weights");
  ModelDescription d{.type = "gatv2",
                     .in_feats = 5,
                     .hidden = 12,
                     .out_feats = 2,
                     .layers = 4,
                     .norm = "layer",
                     .activation = "silu",
                     .dropout = 0.1,
                     .heads = 3,
                     .out_heads = 2,
                     .attention_dropout = 0.3,
                     .residual = "2",
                     .weights = "w.safetensors"};
  CHECK(d.to_json() ==
        R"({"sar_model":1,"type":"gatv2","in_feats":5,"hidden":12,"out_feats":2,"layers":4,"norm":"layer",)"
        R"("activation":"silu","dropout":0.1,"input_dropout":0.1,"heads":3,"out_heads":2,)"
        R"("attention_dropout":0.3,"residual":2,"jk":"none","pre_linear":false,"weights":"w.safetensors"})");
  CHECK(ModelDescription::from_json(d.to_json()).to_json() == d.to_json());
}

TEST_CASE("residual connections, heads of each layer, and linear layers before and after") {
  const ModelDescription d = ModelDescription::from_json(
      text_of("gat", R"(, "heads": [8, 4, 3], "residual": "linear", "pre_linear": true)"));
  CHECK(d.heads_of_layers == std::vector<Index>{8, 4, 3});
  CHECK(d.jk == "none");
  CHECK(*d.input_dropout == 0);
  const std::vector<LayerSize> sizes = layer_sizes(d);
  REQUIRE(sizes.size() == 3);
  CHECK(sizes[0].in == 64);
  CHECK(sizes[0].heads == 8);
  CHECK(sizes[2].out() == 3);
  CHECK(sizes[2].mean);
  CHECK(describe_layers(d) ==
        "gat: 8 -> 64 (linear) -> 64 (8 heads of 8) + linear -> 64 (4 heads of 16) + linear -> 3 (the mean "
        "of 3 "
        "heads) + linear");
  CHECK(d.to_json().find(R"("heads":[8,4,3],"attention_dropout":0.0,"residual":"linear")") !=
        std::string::npos);
  CHECK(ModelDescription::from_json(d.to_json()).to_json() == d.to_json());

  const auto layers_of = [](const std::string& type, const std::string& more) {
    return describe_layers(ModelDescription::from_json(text_of(type, more)));
  };
  CHECK(layers_of("gat", R"(, "heads": [8, 4, 2], "jk": "cat", "norm": "layer")") ==
        "gat: 8 -> 64 (8 heads of 8) -> 64 (4 heads of 16) -> 64 (2 heads of 32) -> 3 (linear of the cat of "
        "all "
        "layers), layer norm");
  CHECK(layers_of("sage", R"(, "residual": 2)") == "sage: 8 -> 64 -> 64 + identity -> 3 + linear");
  CHECK(layers_of("gatv2", R"(, "residual": true, "heads": 1)") ==
        "gatv2: 8 -> 64 + residual -> 64 + residual -> 3 + residual");
  CHECK(layers_of("gin", R"(, "residual": "identity", "pre_linear": true, "jk": "last")") ==
        "gin: 8 -> 64 (linear) -> 64 + identity -> 64 + identity -> 64 + identity -> 3 (linear)");

  const auto input_dropout = [](const std::string& type, const std::string& more) {
    return *ModelDescription::from_json(text_of(type, R"(, "dropout": 0.5)" + more)).input_dropout;
  };
  CHECK(input_dropout("gcn", "") == 0.5);
  CHECK(input_dropout("sage", "") == 0);
  CHECK(input_dropout("sage", R"(, "input_dropout": 0.25)") == 0.25);
  CHECK(input_dropout("gcn", R"(, "input_dropout": 0)") == 0);
  CHECK(input_dropout("gat", R"(, "jk": "sum")") == 0);
  CHECK(input_dropout("gcn", R"(, "pre_linear": true)") == 0);
}

TEST_CASE("layers that do not fit each other are refused") {
  CHECK(error_of(text_of("gcn", R"(, "residual": "identity")")) ==
        "x.json.residual is 'identity', but layer 1 makes rows of 64 values from rows of 8, expected "
        "'linear', or equal widths, which pre_linear and jk give");
  CHECK(error_of(text_of("gcn", R"(, "residual": "identity", "pre_linear": true)")) ==
        "x.json.residual is 'identity', but layer 3 makes rows of 3 values from rows of 64, expected "
        "'linear', or equal widths, which pre_linear and jk give");
  CHECK(error_of(text_of("gcn", R"(, "residual": "conv")")) ==
        "x.json.residual is 'conv', expected none, identity, linear or the first layer with a residual "
        "connection, 1 to 3");
  CHECK(error_of(text_of("gcn", R"(, "residual": [1])")) ==
        "x.json.residual is array, expected a whole number");
  CHECK(error_of(text_of("gcn", R"(, "jk": "mean")")) ==
        "x.json.jk is 'mean', expected none, last, sum, max or cat");
  CHECK(error_of(text_of("gcn", R"(, "jk": true)")) == "x.json.jk is true, expected a text");
  CHECK(error_of(text_of("gcn", R"(, "pre_linear": 64)")) ==
        "x.json.pre_linear is 64, expected true or false");
  CHECK(error_of(text_of("gcn", R"(, "input_dropout": -0.5)")) ==
        "x.json.input_dropout is -0.5, expected a number from 0 on and below 1");
  CHECK(error_of(text_of("gat", R"(, "heads": [8, 1])")) ==
        "x.json.heads has 2 numbers, expected one for each of the 3 layers");
  CHECK(error_of(text_of("gat", R"(, "heads": [])")) ==
        "x.json.heads has no number, expected one for each layer");
  CHECK(error_of(text_of("gat", R"(, "heads": [8, 0, 1])")) ==
        "x.json.heads is 0, expected a whole number from 1 to 16777216");
  CHECK(error_of(text_of("gat", R"(, "heads": [8, 6, 1])")) ==
        "x.json.hidden is 64, expected a multiple of .heads, 6");
  CHECK(error_of(text_of("gat", R"(, "heads": [8, 8, 3], "jk": "max")")) ==
        "x.json.hidden is 64, expected a multiple of .heads, 3");
  CHECK(error_of(text_of("gat", R"(, "heads": [8, 8, 1], "out_heads": 1)")) ==
        "x.json.out_heads is beside a list of heads, expected the list alone, whose last number says it");
  CHECK(error_of(text_of("gat", R"(, "out_heads": 2, "jk": "last")")) ==
        "x.json.out_heads is 2, expected 1, because with .jk 'last' the last convolution has .heads as the "
        "others, side by side");
  CHECK(error_of(text_of("mesh_graph_net", R"(, "jk": "sum")"))
            .starts_with("x.json has the key 'jk', which a network of type mesh_graph_net has not"));
}

TEST_CASE("errors name the key, what was given and what was expected") {
  CHECK(error_of(R"({"sar_model": 1, "type": "sage", "type": "gcn"})") ==
        "x.json has the name 'type' twice, expected names that differ");
  CHECK(error_of("{") == "x.json is no JSON at its byte 2, expected the description of a network");
  CHECK(error_of("[]") == "x.json is array, expected an object");
  CHECK(error_of("{}") == "x.json has no sar_model, expected one");
  CHECK(error_of(R"({"sar_model": 2, "type": "tree"})") ==
        "x.json.sar_model is 2, expected 1, the version of the format that this library reads");
  CHECK(error_of(R"({"sar_model": "1"})") == R"(x.json.sar_model is "1", expected a whole number)");
  CHECK(error_of(R"({"sar_model": 1})") == "x.json has no type, expected one");
  CHECK(error_of(R"({"sar_model": 1, "type": "sage", "in_feats": 8})") ==
        "x.json has no out_feats, expected one");
  CHECK(error_of(R"({"sar_model": 1, "type": 7})") == "x.json.type is 7, expected a text");
  CHECK(error_of(text_of("tree")).starts_with("x.json.type is 'tree', expected sage, gcn, gat"));
  CHECK(
      error_of(text_of("gcn", R"(, "hiden": 8)")) ==
      "x.json has the key 'hiden', which a network of type gcn has not, expected sar_model, type, in_feats, "
      "hidden, out_feats, layers, norm, activation, dropout, input_dropout, gcn_norm, residual, jk, "
      "pre_linear, readout, head_layers or weights");
  CHECK(error_of(text_of("gcn", R"(, "gcn_norm": "left")")) ==
        "x.json.gcn_norm is 'left', expected degrees, weights or in_weights");
  CHECK(error_of(text_of("gcn", R"(, "heads": 8)"))
            .starts_with("x.json has the key 'heads', which a network of"));
  CHECK(error_of(text_of("sage", R"(, "hidden": -4)")) ==
        "x.json.hidden is -4, expected a whole number from 1 to 16777216");
  CHECK(error_of(text_of("sage", R"(, "hidden": 2.5)")) == "x.json.hidden is 2.5, expected a whole number");
  CHECK(error_of(text_of("sage", R"(, "hidden": 1e400)")) ==
        "x.json has a number that is too large, expected the description of a network");
  CHECK(error_of(text_of("sage", R"(, "hidden": 18446744073709551615)")) ==
        "x.json.hidden is 18446744073709551615, expected a whole number");
  CHECK(error_of(text_of("sage", R"(, "layers": 0)")) ==
        "x.json.layers is 0, expected a whole number from 1 to 10000");
  CHECK(error_of(text_of("sage", R"(, "dropout": 1)")) ==
        "x.json.dropout is 1, expected a number from 0 on and below 1");
  CHECK(error_of(text_of("sage", R"(, "dropout": "no")")) == R"(x.json.dropout is "no", expected a number)");
  CHECK(error_of(text_of("sage", R"(, "norm": "group")")) ==
        "x.json.norm is 'group', expected none, batch or layer");
  CHECK(error_of(text_of("sage", R"(, "activation": "step")"))
            .starts_with("x.json.activation is 'step', expected none, relu,"));
  CHECK(error_of(text_of("sage", R"(, "aggregator": "sum")")) ==
        "x.json.aggregator is 'sum', expected mean, gcn, pool or lstm");
  CHECK(error_of(text_of("gin", R"(, "aggregator": "pool")"))
            .starts_with("x.json.aggregator is 'pool', expected sum, mean, "));
  CHECK(error_of(text_of("gat", R"(, "hidden": 10)")) ==
        "x.json.hidden is 10, expected a multiple of .heads, 4");
  CHECK(error_of(text_of("gat", R"(, "heads": 0)")) ==
        "x.json.heads is 0, expected a whole number from 1 to 16777216");
  CHECK(error_of(text_of("gat", R"(, "residual": 4)")) ==
        "x.json.residual is '4', expected none, identity, linear or the first layer with a residual "
        "connection, 1 to 3");
  CHECK(error_of(text_of("gat", R"(, "residual": "yes")")) ==
        "x.json.residual is 'yes', expected none, identity, linear or the first layer with a residual "
        "connection, 1 to 3");
  CHECK(error_of(R"({"sar_model": 1, "type": "mesh_graph_net", "in_feats": 8, "out_feats": 3})") ==
        "x.json has no edge_feats, expected one");
  CHECK(error_of(text_of("mesh_graph_net", R"(, "normalize": 1)")) ==
        "x.json.normalize is 1, expected true or false");
  CHECK(error_of(text_of("mesh_graph_net", R"(, "dropout": 0.1)"))
            .starts_with("x.json has the key 'dropout', which a network of type mesh_graph_net has not"));
  CHECK(thrown<InputError>([] { (void)ModelDescription{}.to_json(); }) ==
        "the description.in_feats is 0, expected a whole number from 1 to 16777216");
  CHECK(
      thrown<InputError>(
          [] { (void)ModelDescription{.in_feats = 1, .out_feats = 1, .edge_feats = 2}.checked(); }) ==
      "the description.edge_feats is 2, expected 0 for a network of type sage, which reads no rows of edges");
}
