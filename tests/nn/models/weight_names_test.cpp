// SPDX-License-Identifier: MIT

/// Which tensor of a file is taken for which of the model, by names, shapes and equal values.
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/nn/models/weight_names.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

using Tensors = std::vector<NamedShape>;

/// Adds a prefix to all names.
Tensors named(const std::string& prefix, Tensors tensors) {
  for (NamedShape& each : tensors) each.name = prefix + each.name;
  return tensors;
}

Tensors together(const std::vector<Tensors>& parts) {
  Tensors all;
  for (const Tensors& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// Tensors are equal if they have the same value here, and otherwise differ.
using Values = std::map<std::string, int>;

WeightMatch match(const Tensors& file, const Tensors& model, const WeightNames& names = {},
                  const Values& values = {}) {
  return match_weights(file, model, names, "file", [&](const std::string& a, const std::string& b) {
    return values.contains(a) && values.contains(b) && values.at(a) == values.at(b);
  });
}

/// Returns "file>model" or "file>model>saved" of all links, in the order of the model's tensors.
std::string links(const WeightMatch& found) {
  std::map<std::string, std::string> by_model;
  for (const WeightLink& link : found.links)
    by_model[link.model] += (by_model[link.model].empty() ? "" : "+") + link.file +
                            (link.file == link.saved ? "" : ">" + link.saved);
  std::string text;
  for (const auto& [model, file] : by_model) text += (text.empty() ? "" : " ") + model + "=" + file;
  return text;
}

std::string error(const Tensors& file, const Tensors& model, const WeightNames& names = {},
                  const Values& values = {}) {
  return thrown<InputError>([&] { (void)match(file, model, names, values); });
}

const std::string cure =
    ", expected the names and shapes of the model, or names to change (--rename FROM=TO, --strip-prefix "
    "TEXT), to ignore (--drop-weights GLOB) or to leave at their initial values (--missing-weights GLOB)";

const Tensors gat =
    named("layers.0.", {{"attn_l", {1, 2, 3}}, {"attn_r", {1, 2, 3}}, {"fc.weight", {6, 4}}, {"bias", {6}}});
const Tensors attention{{"att_src", {1, 2, 3}}, {"att_dst", {1, 2, 3}}, {"bias", {6}}};
const Tensors gatv2{{"fc_src.weight", {6, 4}},
                    {"fc_src.bias", {6}},
                    {"fc_dst.weight", {6, 4}},
                    {"fc_dst.bias", {6}},
                    {"attn", {1, 2, 3}}};
const Tensors gatv2_shared{{"fc_src.weight", {6, 4}}, {"fc_src.bias", {6}}, {"attn", {1, 2, 3}}};

}  // namespace

TEST_CASE("GATConv: one matrix for both ends, in the file under one name or two") {
  const std::string rest =
      "layers.0.attn_l=conv1.att_src layers.0.attn_r=conv1.att_dst layers.0.bias=conv1.bias ";
  const auto file = [&](const std::vector<std::string>& names) {
    Tensors tensors = attention;
    for (const std::string& name : names) tensors.push_back({name + ".weight", {6, 4}});
    return named("conv1.", tensors);
  };
  for (const char* name : {"lin", "lin_src", "lin_dst", "lin_l", "lin_r", "fc", "fc_src", "fc_dst"}) {
    CAPTURE(name);
    CHECK(links(match(file({name}), gat)) == rest + "layers.0.fc.weight=conv1." + name + ".weight");
  }
  const Values same{{"conv1.lin_src.weight", 1}, {"conv1.lin_dst.weight", 1}};
  CHECK(links(match(file({"lin_src", "lin_dst"}), gat, {}, same)) ==
        rest + "layers.0.fc.weight=conv1.lin_dst.weight+conv1.lin_src.weight");
  CHECK(error(file({"lin_src", "lin_dst"}), gat) ==
        "file: 'conv1.lin_dst.weight' and 'conv1.lin_src.weight' of the file differ, and the model has one "
        "tensor for both, 'layers.0.fc.weight', the model has no place for 'conv1.lin_src.weight' [6, 4] of "
        "the file" +
            cure);
  CHECK(links(match(file({"lin_src", "lin_dst"}), gat, {.drop = {"*lin_dst*"}})) ==
        rest + "layers.0.fc.weight=conv1.lin_src.weight");
  const Values all{{"conv1.fc.weight", 1}, {"conv1.fc_src.weight", 1}, {"conv1.fc_dst.weight", 1}};
  CHECK(links(match(file({"fc", "fc_src", "fc_dst"}), gat, {}, all)) ==
        rest + "layers.0.fc.weight=conv1.fc.weight+conv1.fc_dst.weight+conv1.fc_src.weight");
}

TEST_CASE("GATv2Conv: shared weights under one name or two, for a layer by itself too") {
  for (const std::string prefix : {"", "layers.0."}) {
    CAPTURE(prefix);
    const Tensors file = named(prefix, gatv2), model = named(prefix, gatv2_shared);
    const Values same{{prefix + "fc_src.weight", 1},
                      {prefix + "fc_dst.weight", 1},
                      {prefix + "fc_src.bias", 2},
                      {prefix + "fc_dst.bias", 2}};
    CHECK(links(match(file, model, {}, same)) == prefix + "attn=" + prefix + "attn " + prefix +
                                                     "fc_src.bias=" + prefix + "fc_src.bias+" + prefix +
                                                     "fc_dst.bias " + prefix + "fc_src.weight=" + prefix +
                                                     "fc_src.weight+" + prefix + "fc_dst.weight");
    const std::string differs = error(file, model);
    CHECK(differs.starts_with("file: '" + prefix + "fc_src.weight' and '" + prefix +
                              "fc_dst.weight' of the file "));
    CHECK(differs.ends_with(cure));
    // a file with shared weights under one name, for a model that tells both ends apart
    CHECK(links(match(model, file)) ==
          prefix + "attn=" + prefix + "attn " + prefix + "fc_dst.bias=" + prefix + "fc_src.bias>" + prefix +
              "fc_dst.bias " + prefix + "fc_dst.weight=" + prefix + "fc_src.weight>" + prefix +
              "fc_dst.weight " + prefix + "fc_src.bias=" + prefix + "fc_src.bias " + prefix +
              "fc_src.weight=" + prefix + "fc_src.weight");
  }
  // two ends that differ, one without its bias: the bias of the other end is not taken for it
  const Tensors no_bias{gatv2[0], gatv2[1], gatv2[2], gatv2[4]};
  CHECK(error(no_bias, gatv2) == "file: the file has nothing for 'fc_dst.bias' [6] of the model" + cure);
  CHECK(links(match(no_bias, gatv2, {}, {{"fc_src.weight", 1}, {"fc_dst.weight", 1}}))
            .find("fc_dst.bias=fc_src.bias") != std::string::npos);
  const Tensors pyg{{"module.conv1.lin_r.weight", {6, 4}},
                    {"module.conv1.lin_r.bias", {6}},
                    {"module.conv1.att", {1, 2, 3}}};
  CHECK(links(match(pyg, named("layers.0.", gatv2))) ==
        "layers.0.attn=module.conv1.att layers.0.fc_dst.bias=module.conv1.lin_r.bias "
        "layers.0.fc_dst.weight=module.conv1.lin_r.weight "
        "layers.0.fc_src.bias=module.conv1.lin_r.bias>module.conv1.lin_l.bias "
        "layers.0.fc_src.weight=module.conv1.lin_r.weight>module.conv1.lin_l.weight");
  Tensors beside = gatv2;
  beside.push_back({"fc.weight", {6, 4}});
  CHECK(links(match(beside, gatv2, {}, {{"fc.weight", 1}, {"fc_dst.weight", 1}}))
            .find("fc_dst.weight+fc.weight") != std::string::npos);
  CHECK(error(beside, gatv2).find("the model has no place for 'fc.weight' [6, 4] of the file") !=
        std::string::npos);
}

TEST_CASE("names to ignore, and tensors to leave at their initial values") {
  const Tensors model = together({named("layers.0.", {{"weight", {4, 3}}, {"bias", {3}}}),
                                  named("layers.1.", {{"weight", {3, 3}}, {"bias", {3}}})});
  const Tensors conv1 = named("conv1.", {{"lin.weight", {3, 4}}, {"bias", {3}}});
  const Tensors conv2 = named("conv2.", {{"lin.weight", {3, 3}}, {"bias", {3}}});
  const Tensors more =
      together({conv1, conv2, {{"lin.weight", {7, 3}}, {"lin.bias", {7}}, {"n_averaged", {}}}});
  CHECK(error(more, model) ==
        "file: the model has no place for 'lin.weight' [7, 3], 'lin.bias' [7], 'n_averaged' [] of the file" +
            cure);
  const std::string expected =
      "layers.0.bias=conv1.bias layers.0.weight=conv1.lin.weight layers.1.bias=conv2.bias "
      "layers.1.weight=conv2.lin.weight";
  CHECK(links(match(more, model, {.drop = {"lin.*", "n_averaged"}})) == expected);
  CHECK(error(more, model, {.drop = {"lin.*", "linear.*"}}) ==
        "file: no name in the file matches 'linear.*', expected one to ignore");

  CHECK(error(conv1, model) ==
        "file: the file has nothing for 'layers.1.weight' [3, 3], 'layers.1.bias' [3] of the model" + cure);
  const WeightMatch first = match(conv1, model, {.missing = {"layers.1.*"}});
  CHECK(links(first) == "layers.0.bias=conv1.bias layers.0.weight=conv1.lin.weight");
  CHECK(first.missing == std::vector<std::string>{"layers.1.weight", "layers.1.bias"});
  CHECK(error(conv1, model, {.missing = {"layers.2.*"}}) ==
        "file: no name of the model matches 'layers.2.*', expected one to leave at its initial value");

  // a bias that the file lacks becomes 0, unless the caller ignores one that it has
  CHECK(first.absent_biases.empty());
  const auto bare = together({conv1, named("conv2.", {{"lin.weight", {3, 3}}})});
  CHECK(match(bare, model, {.missing = {"layers.1.bias"}}).absent_biases ==
        std::vector<std::string>{"layers.1.bias"});
  CHECK(match(together({conv1, conv2}), model, {.drop = {"conv2.bias"}, .missing = {"layers.1.bias"}})
            .absent_biases.empty());

  // a shape that differs, an additional tensor and a missing one are named alone
  CHECK(
      error(together({conv1, named("conv2.", {{"lin.weight", {2, 3}}, {"bias", {3}}})}), model) ==
      "file: the model has no place for 'conv2.lin.weight' [2, 3] of the file, and the file has nothing for "
      "'layers.1.weight' [3, 3] of the model" +
          cure);
  CHECK(error(together({conv1, conv2, {{"conv2.extra", {5}}}}), model) ==
        "file: the model has no place for 'conv2.extra' [5] of the file" + cure);
  CHECK(error(together({conv1, {conv2[0]}}), model) ==
        "file: the file has nothing for 'layers.1.bias' [3] of the model" + cure);
}

TEST_CASE("wrappers of a model and what they put into names") {
  const Tensors model = together({named("layers.0.", {{"weight", {4, 3}}, {"bias", {3}}}),
                                  named("layers.1.", {{"weight", {3, 2}}, {"bias", {2}}})});
  const Tensors plain = together({named("conv1.", {{"weight", {4, 3}}, {"bias", {3}}}),
                                  named("conv2.", {{"weight", {3, 2}}, {"bias", {2}}})});
  for (const std::string wrapper :
       {"module.", "_orig_mod.", "model.", "module._orig_mod.", "_orig_mod.module.", "net.gnn."}) {
    CAPTURE(wrapper);
    CHECK(links(match(named(wrapper, plain), model)) ==
          "layers.0.bias=" + wrapper + "conv1.bias layers.0.weight=" + wrapper +
              "conv1.weight layers.1.bias=" + wrapper + "conv2.bias layers.1.weight=" + wrapper +
              "conv2.weight");
  }
  CHECK(links(match(together({named("convs.0._orig_mod.", {{"weight", {4, 3}}, {"bias", {3}}}),
                              named("convs.1._orig_mod.", {{"weight", {3, 2}}, {"bias", {2}}})}),
                    model))
            .starts_with("layers.0.bias=convs.0._orig_mod.bias "));
  // one layer renamed by the caller, the other behind the wrapper
  CHECK(links(match(named("module.", plain), model, {.rename = {{"module.conv2", "layers.1"}}}))
            .ends_with("layers.1.weight=module.conv2.weight"));
}

TEST_CASE("layers that a file has twice, and a counter that it lacks") {
  const Tensors gin = named("layers.0.", {{"eps", {}},
                                          {"apply_func.0.weight", {3, 4}},
                                          {"apply_func.1.weight", {3}},
                                          {"apply_func.1.running_mean", {3}},
                                          {"apply_func.1.num_batches_tracked", {}}});
  const Tensors conv = named(
      "conv1.", {{"eps", {1}}, {"nn.0.weight", {3, 4}}, {"nn.1.weight", {3}}, {"nn.1.running_mean", {3}}});
  const WeightMatch without = match(conv, gin);
  CHECK(without.missing == std::vector<std::string>{"layers.0.apply_func.1.num_batches_tracked"});
  const Tensors twice = together({named("nn1.", {{"0.weight", {3, 4}}}), conv});
  CHECK(links(match(twice, gin, {}, {{"nn1.0.weight", 1}, {"conv1.nn.0.weight", 1}}))
            .find("layers.0.apply_func.0.weight=conv1.nn.0.weight+nn1.0.weight") != std::string::npos);
  CHECK(error(twice, gin) == "file: the model has no place for 'nn1.0.weight' [3, 4] of the file" + cure);

  const Tensors model =
      together({named("layers.0.", {{"weight", {3, 3}}}), named("layers.1.", {{"weight", {3, 3}}})});
  const Tensors lists =
      together({named("convs.0.", {{"weight", {3, 3}}}), named("convs.1.", {{"weight", {3, 3}}}),
                named("first.", {{"weight", {3, 3}}}), named("second.", {{"weight", {3, 3}}})});
  CHECK(links(match(
            lists, model, {},
            {{"convs.0.weight", 1}, {"first.weight", 1}, {"convs.1.weight", 2}, {"second.weight", 2}})) ==
        "layers.0.weight=convs.0.weight+first.weight layers.1.weight=convs.1.weight+second.weight");
  CHECK(error(lists, model)
            .starts_with("file: 'layers.0' of the model could be 'convs.0' or 'first' of the file"));
}

TEST_CASE("relations as DGL, PyG's HeteroConv and to_hetero() name them") {
  const auto layer = [](const std::string& rates, const std::string& rated, const std::string& weight) {
    return Tensors{{rates + "." + weight, {3, 4}}, {rated + "." + weight, {3, 5}}};
  };
  const Tensors model =
      named("layers.0.", layer("mods.rates", "mods.('item', 'rated-by', 'user')", "fc_neigh.weight"));
  const std::string expected[] = {"layers.0.mods.('item', 'rated-by', 'user').fc_neigh.weight=",
                                  "layers.0.mods.rates.fc_neigh.weight="};
  const std::pair<std::string, std::string> ways[] = {
      {"user__rates__item", "item__rated_by__user"},
      {"convs.user__rates__item", "convs.item__rated_by__user"},
      {"convs.<user___rates___item>", "convs.<item___rated-by___user>"},
      {"mods.rates", "mods.rated-by"},
      {"mods.('user', 'rates', 'item')", "mods.('item', 'rated-by', 'user')"}};
  for (const auto& [rates, rated] : ways) {
    CAPTURE(rates);
    CHECK(links(match(named("conv1.", layer(rates, rated, "lin_l.weight")), model)) ==
          expected[0] + "conv1." + rated + ".lin_l.weight " + expected[1] + "conv1." + rates +
              ".lin_l.weight");
  }
}

TEST_CASE("linear layers beside convolutions of the same shapes, by their names") {
  const auto linear = [](const std::string& name) {
    return named(name + ".", {{"weight", {3, 3}}, {"bias", {3}}});
  };
  const auto gcn = [](const std::string& name) {
    return named(name + ".", {{"lin.weight", {3, 3}}, {"bias", {3}}});
  };
  const Tensors model = together({linear("lin_in"), linear("layers.0"), linear("layers.1"), linear("lins.0"),
                                  linear("lins.1"), linear("lin")});
  const auto layers = [](const WeightMatch& found) {  // of the weights
    std::string text;
    for (const WeightLink& link : found.links)
      if (link.model.ends_with(".weight") && link.file != link.model)
        text += link.model.substr(0, link.model.size() - 7) + "=" + link.file + " ";
    return text;
  };
  CHECK(layers(match(together({linear("lin_in"), gcn("local_convs.0"), gcn("local_convs.1"), linear("lins.0"),
                               linear("lins.1"), linear("pred_local")}),
                     model)) ==
        "layers.0=local_convs.0.lin.weight layers.1=local_convs.1.lin.weight lin=pred_local.weight ");
  CHECK(layers(match(together({linear("head"), gcn("conv1"), gcn("conv2"), linear("lin1"), linear("lin2"),
                               linear("input_linear")}),
                     model)) ==
        "lin_in=input_linear.weight layers.0=conv1.lin.weight layers.1=conv2.lin.weight lins.0=lin1.weight "
        "lins.1=lin2.weight lin=head.weight ");
  CHECK(layers(match(together({linear("node_encoder"), linear("convs.0"), linear("convs.1"),
                               linear("linear.0"), linear("linear.1"), linear("pred_linear")}),
                     model)) ==
        "lin_in=node_encoder.weight layers.0=convs.0.weight layers.1=convs.1.weight lins.0=linear.0.weight "
        "lins.1=linear.1.weight lin=pred_linear.weight ");
  CHECK(error(together({linear("a"), linear("layers.0"), linear("layers.1"), linear("lins.0"),
                        linear("lins.1"), linear("b")}),
              model)
            .starts_with("file: 'lin_in' of the model could be 'a' or 'b' of the file"));
}

TEST_CASE("one bias for a convolution and its residual connection, and residual connections of attention") {
  const auto layer = [](const std::string& name, bool bias) {
    Tensors tensors = named(name + ".", {{"weight", {3, 3}}});
    if (bias) tensors.push_back({name + ".bias", {3}});
    return tensors;
  };
  const Tensors model = together({layer("layers.0", true), layer("lins.0", true)});
  const auto zeros = [&](bool of_layer, bool of_linear) {
    std::string text;
    for (const ZeroBias& zero :
         match(together({layer("layers.0", of_layer), layer("lins.0", of_linear)}), model).zeros)
      text += zero.name + " beside " + zero.other + " ";
    return text;
  };
  CHECK(zeros(true, true).empty());
  CHECK(zeros(false, true) == "layers.0.bias beside lins.0.bias ");
  CHECK(zeros(true, false) == "lins.0.bias beside layers.0.bias ");
  CHECK(error(together({layer("layers.0", true), layer("lins.0", true), layer("extra", true)}), model) ==
        "file: the model has no place for 'extra.weight' [3, 3], 'extra.bias' [3] of the file" + cure);

  const Tensors attends = together({gat, named("lins.0.", {{"weight", {6, 4}}, {"bias", {6}}})});
  const Tensors pyg =
      named("convs.0.", together({attention, {{"lin.weight", {6, 4}}, {"res.weight", {6, 4}}}}));
  CHECK(links(match(pyg, attends)).find("lins.0.weight=convs.0.res.weight") != std::string::npos);
  CHECK(match(pyg, attends).zeros.size() == 1);
}
