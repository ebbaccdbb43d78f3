// SPDX-License-Identifier: MIT
#include "model_options.hpp"

#include "option_lists.hpp"
#include "options.hpp"

#include <sar/core/error.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace sar::tools {
namespace {

constexpr double most_dropout = 0.999;

/// Sets the heads from "8", or from "8,8,1".
void set_heads(ModelDescription& m, const std::string& text) {
  std::vector<Index> heads =
      read_list("--heads", text, 1, "a whole number from 1 on, or one for each layer, such as 8,8,1");
  if (heads.size() == 1)
    m.heads = heads[0];
  else
    m.heads_of_layers = std::move(heads);
}

/// Options of what is between, before and after the convolutions, and of attention.
void add_layer_options(CLI::App& app, ModelDescription& m) {
  add_number(app, "--dropout", m.dropout, "dropout probability between layers", 0, most_dropout);
  app.add_option_function<std::string>(
         "--input-dropout", [&m](const std::string& text) { m.input_dropout = to_number<double>(text); },
         "dropout of the input; default: --dropout for gcn, gat, gatv2 without linear layers")
      ->transform(number_from<double>(0, most_dropout))
      ->type_name("X");
  m.norm = m.jk = m.residual = "none";
  add_choice(app, "--norm", m.norm, named(ModelDescription::norms()), "normalization between layers");
  app.add_flag_callback(
         "--batch-norm", [&m] { m.norm = "batch"; }, "--norm batch, over the nodes of all ranks")
      ->excludes("--norm");
  add_choice(app, "--activation", m.activation, named(ModelDescription::activations()), "activation");
  const auto read_heads = [&m](const std::string& text) { set_heads(m, text); };
  app.add_option_function<std::string>("--heads", read_heads,
                                       "attention: heads of all layers but the last, or a list: 8,8,1")
      ->option_text("LIST")
      ->default_str(concat(m.heads));
  add_number(app, "--out-heads", m.out_heads, "attention: heads of the last layer, which are averaged", 1);
  add_number(app, "--attn-dropout", m.attention_dropout, "attention: dropout probability of the coefficients",
             0, most_dropout);
  app.add_option("--residual", m.residual,
                 "residual connection: none, identity, linear, or the first layer with one")
      ->option_text("NAME")
      ->default_str("none");
  add_choice(app, "--jk", m.jk, named(ModelDescription::jks()),
             "final linear layer, of the outputs of layers");
  m.readout = "none";
  std::vector<std::string> readouts = ModelDescription::readouts();
  std::erase(readouts, "none");
  add_choice(app, "--readout", m.readout, named(readouts),
             "--task graph: reduction over the nodes of a graph")
      ->default_str("sum");
  add_number(app, "--head-layers", m.head_layers, "--task graph: linear layers behind the readout", 1,
             ModelDescription::max_layers);
  app.add_flag_callback(
         "--post-linear", [&m] { m.jk = "last"; }, "a linear layer after the convolutions: --jk last")
      ->excludes("--jk");
  app.add_flag("--pre-linear", m.pre_linear, "a linear layer before the first convolution");
}

}  // namespace

void add_model_options(CLI::App& app, TrainOptions& o) {
  begin_group(app, "Model");
  constexpr Index most = std::numeric_limits<int>::max();  // of factors of a width
  ModelDescription& m = o.model;
  Choices<std::string> types;
  for (const ModelType& type : model_types())
    if (type.is_stack()) types.emplace_back(type.name, type.name);
  add_choice(app, "--model", m.type, types, "layers");
  add_layers_option(app, m.layers);
  add_number(app, "--hidden", m.hidden, "width between layers; gat, gatv2: of all heads together", 1);
  add_layer_options(app, m);
  app.add_flag("--edge-features", o.edge_features, "--task graph, gin: messages have features of the edges");
  add_choice(app, "--gcn-norm", m.gcn_norm, named(ModelDescription::gcn_norms()),
             "gcn: normalization; default: as --init-weights, or degrees");
  add_number(app, "--num-bases", m.num_bases,
             "rgcn: matrices that the edge types share; 0: one for each type");
  add_number(app, "--num-rels", m.num_rels, "rgcn without --category: number of generated edge types", 1,
             1 << 16);
  add_number(app, "--embedding", o.embedding,
             "width of learnable rows that replace the features; 0: features", 0, most);
  auto* init = add_path(app, "--init-weights", o.init_weights, "FILE",
                        "initial weights (.safetensors; names of DGL or PyG, too), or checkpoints");
  add_pairs(app, "--rename", o.weight_names.rename, "FROM=TO",
            "--init-weights: replaces a name or its beginning up to a dot")
      ->needs(init);
  app.add_option("--strip-prefix", o.weight_names.strip_prefix,
                 "--init-weights: removes the prefix from names, before --rename")
      ->option_text("TEXT")
      ->needs(init);
  app.add_option("--drop-weights", o.weight_names.drop,
                 "--init-weights: names in the file to ignore, as 'lin.*'; before --strip-prefix")
      ->option_text("GLOB ...")
      ->needs(init);
  app.add_option("--missing-weights", o.weight_names.missing,
                 "--init-weights: names of the model that keep their initial values")
      ->option_text("GLOB ...")
      ->needs(init);
}

void check_network(const CLI::App& app, const ModelDescription& m) {
  const auto refuse = [](bool wrong, const std::string& what) {
    if (wrong) throw CLI::ValidationError(what);
  };
  const bool is_number = m.first_residual() > 0, has_jk = m.jk != "none";
  refuse(m.residual != "none" && m.residual != "identity" && m.residual != "linear" && m.residual != "0" &&
             !(is_number && m.first_residual() <= m.layers),
         concat("--residual: '", m.residual,
                "', expected none, identity, linear or the first layer with a "
                "residual connection, 1 to --layers ",
                m.layers));
  if (!model_type(m.type).attends()) return;
  const auto& list = m.heads_of_layers;
  refuse(
      !list.empty() && std::ssize(list) != m.layers,
      concat("--heads: there are ", list.size(), " numbers, expected one for each of --layers ", m.layers));
  refuse(app.count("--out-heads") > 0 && !list.empty(),
         "--out-heads: cannot be combined with a list of --heads, whose last number says it");
  refuse(app.count("--out-heads") > 0 && has_jk, concat("--out-heads: cannot be combined with --jk ", m.jk,
                                                        ", with which the last layer has --heads"));
  std::vector<Index> side_by_side = list.empty() ? std::vector<Index>{m.heads} : list;
  if (!list.empty() && !has_jk) side_by_side.pop_back();
  for (const Index heads : side_by_side)
    refuse(m.hidden % heads != 0,
           concat("--hidden: is ", m.hidden, ", expected a multiple of --heads ", heads));
}

}  // namespace sar::tools
