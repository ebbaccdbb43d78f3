// SPDX-License-Identifier: MIT
#include <sar/core/number_text.hpp>
#include <sar/graph/data/edge_columns.hpp>
#include <sar/graph/data/node_columns.hpp>

#include <cmath>
#include <initializer_list>
#include <tuple>

namespace sar { inline namespace SAR_PRECISION {
namespace {

Array<EdgePart> to_parts(const Array<double>& values, std::span<const Index> ids, const std::string& place) {
  Array<EdgePart> parts(values.size());
  for (Index e = 0; e < std::ssize(values); ++e) {
    const double value = values[e];
    const bool is_part = value == 0 || value == 1 || value == 2;
    require<InputError>(is_part || value == -1 || std::isnan(value), place, ": the part of edge ",
                        ids[static_cast<std::size_t>(e)], " is ", value,
                        ", expected 0 (training), 1 (validation), 2 (test) or -1 (none)");
    parts[e] = is_part ? static_cast<EdgePart>(static_cast<int>(value)) : EdgePart::none;
  }
  return parts;
}

void add_mask(const Array<double>& mask, std::span<const Index> ids, const std::string& place, EdgePart part,
              Array<EdgePart>& parts) {
  for (Index e = 0; e < std::ssize(mask); ++e) {
    require<InputError>(mask[e] == 0 || mask[e] == 1, place, ": the mask of edge ",
                        ids[static_cast<std::size_t>(e)], " is ", mask[e], ", expected 0 or 1");
    if (mask[e] == 1 && parts[e] == EdgePart::none) parts[e] = part;
  }
}

void require_labels(const Array<double>& labels, std::span<const Index> ids, const std::string& place) {
  for (Index e = 0; e < std::ssize(labels); ++e)
    require<InputError>(std::isnan(labels[e]) || std::isfinite(static_cast<real>(labels[e])), place,
                        ": the label of edge ", ids[static_cast<std::size_t>(e)], " is ", labels[e],
                        std::isfinite(labels[e]) ? ", which single precision cannot hold" : "",
                        ", expected a finite number, or NaN for an unlabelled edge");
}

Array<Index> to_types(const Array<double>& values, std::span<const Index> ids, const std::string& place) {
  Array<Index> types(values.size());
  for (Index e = 0; e < std::ssize(values); ++e) {
    const double value = values[e];
    if (value != std::floor(value) || value < 0 || value >= 0x1p31)
      throw InputError(concat(place, ": the type of edge ", ids[static_cast<std::size_t>(e)], " is ",
                              exact_text(value), ", expected a whole number from 0 to 2147483647"));
    types[e] = static_cast<Index>(value);
  }
  return types;
}

}  // namespace

EdgeData read_edge_columns(const EdgeColumns& columns, const DatasetOptions& options, const NodeData& data,
                           Index end_id) {
  EdgeData edges;
  for (Index e = 0; e < data.edges.size(); ++e) {
    if (data.edges.id[e] >= end_id) continue;
    edges.edges.src.push_back(data.edges.src[e]);
    edges.edges.dst.push_back(data.edges.dst[e]);
    edges.edges.id.push_back(data.edges.id[e]);
  }
  const std::span<const Index> ids(edges.edges.id);
  const auto place_of = [&](const std::string& field) { return data.name + ": edge data " + field; };
  const auto find = [&](const char* key, std::initializer_list<const char*> usual) {
    return find_field(columns.fields, options.fields, key, usual, data.name + ": edges");
  };
  const auto read = [&](const DataField& field) {
    return to_numbers<double>(columns.read(field.name, ids), place_of(field.name));
  };
  if (const DataField* field = find("edge_labels", {"labels", "label"});
      field != nullptr && options.edge_labels) {
    edges.labels = read(*field);
    require_labels(edges.labels, ids, place_of(field->name));
  }
  if (const DataField* field = find("edge_type", {"type"}); field != nullptr && options.edge_types)
    edges.types = to_types(read(*field), ids, place_of(field->name));
  if (const DataField* field = find("edge_split", {"split"}); field != nullptr) {
    edges.parts = to_parts(read(*field), ids, place_of(field->name));
    return edges;
  }
  for (const auto& [key, usual, part] : {std::tuple{"edge_train_mask", "train_mask", EdgePart::train},
                                         {"edge_val_mask", "val_mask", EdgePart::valid},
                                         {"edge_test_mask", "test_mask", EdgePart::test}})
    if (const DataField* field = find(key, {usual}); field != nullptr) {
      edges.parts.resize(ids.size(), EdgePart::none);
      add_mask(read(*field), ids, place_of(field->name), part, edges.parts);
    }
  return edges;
}

}}  // namespace sar
