// SPDX-License-Identifier: MIT

// The rows of the group Model: the network and its initial weights.
#include "option_table.hpp"

#include <sar/core/error.hpp>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace sar::tools {
namespace {

constexpr double most_dropout = 0.999;

/// Sets the heads from "8", or from "8,8,1".
void set_heads(const std::string& text, ModelDescription& m) {
  std::vector<Index> heads = read_numbers<Index>(
      "--heads", text, [](Index number) { return number >= 1; },
      "a whole number from 1 on, or one for each layer, such as 8,8,1");
  if (heads.size() == 1)
    m.heads = heads[0];
  else
    m.heads_of_layers = std::move(heads);
}

/// Options of what is between, before and after the convolutions, and of attention.
void add_layer_options(OptionTable& t, TrainOptions& o) {
  ModelDescription& m = o.model;
  t.number("--dropout", m.dropout, "dropout probability between layers", 0, most_dropout);
  t.row(t.app()
            .add_option_function<std::string>(
                "--input-dropout",
                [&m](const std::string& text) { m.input_dropout = to_signed_number<double>(text); },
                "dropout of the input; default: --dropout for gcn, gat, gatv2 without linear layers")
            ->transform(number_from<double>(0, most_dropout))
            ->type_name("X"))
      .as_text([&m] { return m.input_dropout ? concat(*m.input_dropout) : std::string("as by default"); });
  t.choice("--norm", m.norm, named(ModelDescription::norms), "normalization between layers");
  t.flag(
       "--batch-norm", [&m] { m.norm = "batch"; }, "--norm batch, over the nodes of all ranks")
      .excludes({"--norm"})
      .unrecorded();
  t.choice("--activation", m.activation, named(ModelDescription::activations()), "activation").as_text([&m] {
    return m.activation == default_activation(m) ? "as by default" : m.activation;
  });
  t.parsed("--heads", set_heads, m, "LIST", "attention: heads of all layers but the last, or a list: 8,8,1")
      .default_text(concat(m.heads))
      .for_models_with("heads", m)
      .as_text([&m] { return m.heads_of_layers.empty() ? concat(m.heads) : joined(m.heads_of_layers); });
  t.number("--out-heads", m.out_heads, "attention: heads of the last layer, which are averaged", 1)
      .for_models_with("out_heads", m);
  t.number("--attn-dropout", m.attention_dropout, "attention: dropout probability of the coefficients", 0,
           most_dropout)
      .for_models_with("attention_dropout", m);
  t.text("--residual", m.residual, "NAME",
         "residual connection: none, identity, linear, or the first layer with one")
      .default_text("none");
  t.choice("--jk", m.jk, named(ModelDescription::jks),
           "final linear layer, of outputs of layers; graph: last");
  std::vector<std::string> readouts = ModelDescription::readouts;
  std::erase(readouts, "none");
  t.choice("--readout", m.readout, named(readouts), "--task graph: reduction over the nodes of a graph")
      .default_text("sum")
      .for_tasks({TaskType::graph})
      .default_for(TaskType::graph, [&m] { m.readout = "sum"; });
  t.number("--head-layers", m.head_layers, "--task graph: linear layers behind the readout", 1,
           ModelDescription::max_layers)
      .for_tasks({TaskType::graph});
  t.flag(
       "--post-linear", [&m] { m.jk = "last"; }, "a linear layer after the convolutions: --jk last")
      .excludes({"--jk"})
      .unrecorded();
  t.flag("--pre-linear", m.pre_linear, "a linear layer before the first convolution");
}

void add_weight_options(OptionTable& t, TrainOptions& o) {
  t.group("Model", network_tasks, false);
  t.path("--init-weights", o.init_weights, "FILE",
         "initial weights (.safetensors; names of DGL or PyG, too), or checkpoints")
      .for_tasks(all_tasks);
  t.pairs("--rename", o.weight_names.rename, "FROM=TO",
          "--init-weights: replaces a name or its beginning up to a dot")
      .needs("--init-weights");
  t.text("--strip-prefix", o.weight_names.strip_prefix, "TEXT",
         "--init-weights: removes the prefix from names, before --rename")
      .needs("--init-weights");
  t.texts("--drop-weights", o.weight_names.drop, "GLOB ...",
          "--init-weights: names in the file to ignore, as 'lin.*'; before --strip-prefix")
      .needs("--init-weights");
  t.texts("--missing-weights", o.weight_names.missing, "GLOB ...",
          "--init-weights: names of the model that the file may lack")
      .needs("--init-weights");
}

}  // namespace

void add_model_options(OptionTable& t, TrainOptions& o) {
  t.group("Model", network_tasks, true);
  constexpr Index most = std::numeric_limits<int>::max();  // of factors of a width
  ModelDescription& m = o.model;
  Choices<std::string> types;
  for (const ModelType& type : model_types())
    if (type.is_stack() || type.is_potential) types.emplace_back(type.name, type.name);
  t.choice("--model", m.type, types, "type")
      .for_tasks(all_tasks)
      .common()
      .default_for(TaskType::potential, [&m] { m.type = "painn"; });
  t.number("--layers", m.layers, "number of layers; mace: 2", 1, ModelDescription::max_layers)
      .for_tasks(all_tasks)
      .common()
      .default_for(TaskType::potential, [&m] { m.layers = m.type == "mace" ? 2 : 3; });
  t.number("--hidden", m.hidden, "width between layers, of all heads together; potential: 64, mace: 128", 1)
      .for_tasks(all_tasks)
      .common()
      .default_for(TaskType::potential, [&m] { m.hidden = m.type == "mace" ? 128 : 64; });
  add_layer_options(t, o);
  t.flag("--edge-features", o.edge_features, "--task graph, gin: messages have features of the edges")
      .read_with("--task graph and --model gin",
                 [&o] { return o.task.type == TaskType::graph && o.model.type == "gin"; });
  t.choice("--gcn-norm", m.gcn_norm, named(ModelDescription::gcn_norms),
           "gcn: normalization; default: as --init-weights, or degrees")
      .for_models_with("gcn_norm", m)
      .as_text([&m] { return m.gcn_norm.empty() ? ModelDescription::gcn_norms[0] : m.gcn_norm; });
  t.number("--num-bases", m.num_bases, "rgcn: matrices that the edge types share; 0: one for each type")
      .for_models_with("num_bases", m);
  t.number("--num-rels", m.num_rels, "rgcn without --category: number of generated edge types", 1, 1 << 16)
      .read_with("--model rgcn, without --category",
                 [&o] { return model_type(o.model.type).has_relations && !o.is_typed(); });
  t.number("--embedding", o.embedding, "width of learnable rows that replace the features; 0: features", 0,
           most)
      .for_tasks(one_graph_tasks);
  add_weight_options(t, o);
}

}  // namespace sar::tools
