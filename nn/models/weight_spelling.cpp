// SPDX-License-Identifier: MIT
#include <sar/nn/models/weight_spelling.hpp>

#include <algorithm>
#include <set>

namespace sar { inline namespace SAR_PRECISION {

const std::vector<WeightSpelling>& weight_spellings() {
  static const std::vector<WeightSpelling> all{
      // SAGEConv: PyG from 1.6 on; DGL before 1.0 (one bias)
      {"lin_l.weight", "fc_neigh.weight"},
      {"lin_l.bias", "fc_self.bias"},
      {"lin_r.weight", "fc_self.weight"},
      {"bias", "fc_self.bias"},
      // GCNConv: PyG from 2.0 on; PyG 1.x has the names and layouts of DGL's GraphConv
      {"lin.weight", "weight", WeightLayout::transposed},
      // GATConv: PyG from 2.4 on (lin), 2.0 to 2.3 (lin_src, lin_dst: shared), 1.6 and 1.7 (lin_l, lin_r:
      // shared)
      {"lin.weight", "fc.weight"},
      {"att_src", "attn_l"},
      {"att_dst", "attn_r"},
      {"att_l", "attn_l"},
      {"att_r", "attn_r"},
      {"res.weight", "res_fc.weight"},
      {"bias", "bias", WeightLayout::one_head},
      {"bias", "res_fc.bias"},
      {"bias", "res_fc.bias", WeightLayout::one_head},
      // GATConv between nodes of two types: PyG from 2.0 on, then 1.6 and 1.7
      {"lin_src.weight", "fc_src.weight"},
      {"lin_dst.weight", "fc_dst.weight"},
      // GATv2Conv: PyG from 1.7 on
      {"lin_l.weight", "fc_src.weight"},
      {"lin_l.bias", "fc_src.bias"},
      {"lin_r.weight", "fc_dst.weight"},
      {"lin_r.bias", "fc_dst.bias"},
      {"att", "attn"},
      {"bias", "fc_src.bias", WeightLayout::added},
      // GINConv around PyG's Sequential, PyG's MLP and the MLP of DGL's example
      {"nn.lins.0.", "apply_func.0."},
      {"nn.norms.0.module.", "apply_func.1."},
      {"nn.norms.0.", "apply_func.1."},
      {"nn.lins.1.", "apply_func.3."},
      {"nn.", "apply_func."},
      {"apply_func.linears.0.", "apply_func.0."},
      {"apply_func.batch_norm.", "apply_func.1."},
      {"apply_func.linears.1.", "apply_func.3."},
      // PyG's RGCNConv
      {"weight", "linear_r.W"},
      {"comp", "linear_r.coeff"},
      {"root", "loop_weight"},
      {"bias", "h_bias"},
      // PyG's BatchNorm
      {"module.", ""},
  };
  return all;
}

const std::vector<LayerSpelling>& layer_spellings() {
  static const std::vector<LayerSpelling> all{
      // networks of arXiv 2406.08993, for medium and large graphs
      {"local_convs", "layers"},
      {"local_convs", "convs"},
      {"pred_local", "lin"},
      {"pred_linear", "lin"},
      {"node_encoder", "lin_in"},
      {"lns", "norms"},
      // examples of PyG and DGL
      {"convs", "layers"},
      {"conv", "layers"},
      {"conv", "convs"},
      {"norms", "bns"},
      {"linear", "lins"},
      {"linears", "lins"},
      {"lin", "lins"},
      {"input_linear", "lin_in"},
      {"output_linear", "lin"},
      {"head", "lin"},
      {"classifier", "lin"},
  };
  return all;
}

const std::vector<SharedSpelling>& shared_spellings() {
  static const std::vector<SharedSpelling> all{
      // GATConv with one matrix for both ends: PyG 2.0 to 2.3, PyG 1.6 and 1.7, DGL's names of two types
      {"lin_src.weight", "fc.weight", "lin_src.weight"},
      {"lin_dst.weight", "fc.weight", "lin_dst.weight"},
      {"lin_l.weight", "fc.weight", "lin_l.weight"},
      {"lin_r.weight", "fc.weight", "lin_r.weight"},
      {"fc_src.weight", "fc.weight", "fc_src.weight"},
      {"fc_dst.weight", "fc.weight", "fc_dst.weight"},
      // GATv2Conv with shared weights: PyG, then DGL
      {"lin_l.weight", "fc_dst.weight", "lin_r.weight", "attn"},
      {"lin_l.bias", "fc_dst.bias", "lin_r.bias", "attn"},
      {"lin_r.weight", "fc_src.weight", "lin_l.weight", "attn"},
      {"lin_r.bias", "fc_src.bias", "lin_l.bias", "attn"},
      {"fc_src.weight", "fc_dst.weight", "fc_dst.weight", "attn"},
      {"fc_src.bias", "fc_dst.bias", "fc_dst.bias", "attn"},
      {"fc_dst.weight", "fc_src.weight", "fc_src.weight", "attn"},
      {"fc_dst.bias", "fc_src.bias", "fc_src.bias", "attn"},
      {"fc.weight", "fc_src.weight", "fc_src.weight", "attn"},
      {"fc.bias", "fc_src.bias", "fc_src.bias", "attn"},
      {"fc.weight", "fc_dst.weight", "fc_dst.weight", "attn"},
      {"fc.bias", "fc_dst.bias", "fc_dst.bias", "attn"},
  };
  return all;
}

bool has_layout(WeightLayout layout, const std::vector<Index>& file, const std::vector<Index>& model) {
  const auto is_single = [](const auto& shape) {
    return std::ranges::all_of(shape, [](Index n) { return n == 1; });
  };
  switch (layout) {
    case WeightLayout::same:
      return file == model || (file.size() + model.size() == 1 && is_single(file) && is_single(model));
    case WeightLayout::transposed:
      return file.size() == 2 && model.size() == 2 && file[0] == model[1] && file[1] == model[0];
    case WeightLayout::one_head:
    case WeightLayout::added:
      return file.size() == 1 && model.size() == 1 && file[0] > 0 && model[0] % file[0] == 0;
  }
  return false;
}

bool begins_with_part(const std::string& name) {
  static const std::set<std::string> parts = [] {
    std::set<std::string> heads;
    for (const WeightSpelling& each : weight_spellings())
      for (const std::string& side : {each.from, each.to})
        if (const std::size_t dot = side.find('.'); dot != std::string::npos && side != "module.")
          heads.insert(side.substr(0, dot));
    return heads;
  }();
  const std::size_t dot = name.find('.');
  return dot != std::string::npos && parts.contains(name.substr(0, dot));
}

}}  // namespace sar
