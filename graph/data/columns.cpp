// SPDX-License-Identifier: MIT
#include <sar/core/memory/memory.hpp>
#include <sar/core/numbers.hpp>
#include <sar/core/text.hpp>
#include <sar/graph/data/columns.hpp>
#include <sar/graph/data/label_columns.hpp>
#include <sar/graph/data/splits.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

bool is_sparse_field(const Communicator& comm, SparseFeatures sparse, const DataField& field, Index num_nodes,
                     std::span<const Index> ids, ReadRows read) {
  const bool at_best = becomes_sparse(sparse, field, 1, 0);
  if (!at_best || sparse != SparseFeatures::automatic) return at_best;
  Array<Index> sampled;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (is_sampled(ids[i], num_nodes)) sampled.push_back(static_cast<Index>(i));
  const DataArray rows = read(sampled);
  const Index stored = comm.all_reduce(count_stored(rows));
  return becomes_sparse(sparse, field, comm.all_reduce(rows.num_rows), stored);
}

SparseArray read_sparse(const Communicator& comm, const DataField& field, Index count,
                        const std::string& place, ReadRows read) {
  SparseArray array{.type = field.type, .row_shape = field.row_shape};
  array.row_offsets.reserve(count + 1);
  for_each_range(comm, count, rows_of_chunk(field), [&](Index begin, Index end) {
    const DataArray dense = read(consecutive(begin, end - begin));
    comm.agree([&] { array.append(dense, count - end, place); });
  });
  return array;
}

void choose_sparse_fields(GraphSource& source, const DatasetOptions& options, GraphData& graph) {
  const Communicator& comm = source.comm();
  for (std::size_t t = 0; t < graph.node_types.size(); ++t) {
    const Index num_nodes = graph.node_types[t].num_nodes();
    // each rank reads a share of the nodes: parts are not known yet
    const PartitionBook shares = PartitionBook::even(num_nodes, comm.size());
    const Array<Index> ids = consecutive(shares.begin(comm.rank()), shares.num_nodes(comm.rank()));
    for (DataField& field : graph.node_types[t].unread)
      field.is_sparse = is_sparse_field(comm, options.sparse_features, field, num_nodes, ids,
                                        [&](std::span<const Index> rows) {
                                          Array<Index> nodes;
                                          for (const Index row : rows) nodes.push_back(ids[row]);
                                          return source.read_node_data(t, field.name, nodes);
                                        });
  }
}

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

// Features are read in chunks of 16 MiB and converted to `real`, or compressed, in parallel: the raw rows
// exist one chunk at a time. Each value is read and written once, and read again to find the first that is
// not finite.

namespace {

constexpr std::string_view field_names[] = {
    "features",  "labels",     "train_mask",      "val_mask",      "test_mask",      "weight",
    "edge_type", "edge_split", "edge_train_mask", "edge_val_mask", "edge_test_mask", "edge_labels"};

/// Position of the first element that is NaN or infinite; size when there is none.
Index first_not_finite(std::span<const real> values) {
  const auto size = static_cast<Index>(values.size());
  return parallel_reduce(
      size, Index{1} << 16, size,
      [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i)
          if (!std::isfinite(values[i])) return i;
        return size;
      },
      [](Index a, Index b) { return std::min(a, b); });
}

/// An element as it is in the file; one that is finite there, and not as a real, says what it shall become.
std::string number_text(const DataArray& column, Index element) {
  const std::byte* at = column.bytes.data() + element * element_bytes(column.type);
  double value = 0;
  convert_elements(column.type, at, 1, &value);
  return concat(element_text(column.type, at),
                std::isfinite(value) ? ", which single precision cannot hold" : "");
}

/// Copies the rows of `column` to the rows of x from `first` on. They must be finite.
void take_features(const DataArray& column, std::span<const Index> ids, const std::string& place, Index first,
                   Tensor& x) {
  const Index width = x.row_size();
  const Index grain = std::max<Index>(1, (1 << 14) / width);
  parallel_for(column.num_rows, grain, [&](Index begin, Index end) {
    convert_elements(column.type, column.row(begin), (end - begin) * width, x.row(first + begin));
  });
  const auto taken = x.values().subspan(first * width, column.num_rows * width);
  const Index bad = first_not_finite(taken);
  if (bad < std::ssize(taken))
    throw InputError(concat(place, ": row ", ids[first + bad / width], ", column ", bad % width, " is ",
                            number_text(column, bad), ", expected a finite number"));
}

/// The sparse rows, whose values must be finite.
std::shared_ptr<const SparseMatrix> to_sparse_features(SparseArray array, std::span<const Index> ids,
                                                       const std::string& place) {
  const Index bad = first_not_finite(array.values());
  if (bad < array.num_stored()) {
    const auto row = std::ranges::upper_bound(array.row_offsets, bad) - array.row_offsets.begin() - 1;
    const DataArray one = array.dense_rows(std::vector<Index>{row});
    throw InputError(concat(place, ": row ", ids[row], ", column ", array.columns[bad], " is ",
                            number_text(one, array.columns[bad]), ", expected a finite number"));
  }
  return to_sparse_matrix(std::move(array));
}

/// row /= sum(|row|); a row of zeros stays as it is.
void normalize(std::span<real> row) {
  double sum = 0;
  for (const real x : row) sum += std::abs(static_cast<double>(x));
  if (sum == 0) return;
  for (real& x : row) x = static_cast<real>(x / sum);
}

/// The rows normalized, of which only the stored values are read.
std::shared_ptr<const SparseMatrix> normalized_rows(const SparseMatrix& x) {
  Array<real> values(x.values().begin(), x.values().end());
  parallel_for_each(x.num_rows(), 256, [&](Index v) {
    const Index begin = x.row_offsets()[v], end = x.row_offsets()[v + 1];
    normalize(std::span(values).subspan(begin, end - begin));
  });
  return x.with_values(std::move(values));
}

/// Whether the features become sparse rows. Collective.
bool are_sparse(const Communicator& comm, const NodeColumns& columns, const DataField& field,
                SparseFeatures sparse, const NodeData& data) {
  return is_sparse_field(comm, sparse, field, data.num_nodes(), data.original_ids,
                         [&](std::span<const Index> rows) { return columns.read(field.name, rows); });
}

void read_features(const Communicator& comm, const NodeColumns& columns, const DatasetOptions& options,
                   NodeData& data) {
  const DataField* field =
      find_field(columns.fields, options.fields, "features", {"features", "feat"}, data.name);
  require<InputError>(field != nullptr, data.name, ": the data of the nodes are ",
                      columns.fields.empty() ? "none" : joined(columns.fields, &DataField::name),
                      ", expected features (or feat) among them");
  const Index width = field->row_size();
  require<InputError>(width > 0, columns.place_of(field->name), ": a row has shape ",
                      shape_to_string(field->row_shape), ", expected at least one column");
  const auto count = static_cast<Index>(data.original_ids.size());
  const std::string place = columns.place_of(field->name);
  if (are_sparse(comm, columns, *field, options.sparse_features, data)) {
    const auto read = [&](std::span<const Index> rows) { return columns.read(field->name, rows); };
    data.sparse_features =
        field->is_sparse
            ? to_sparse_features(columns.read_sparse(field->name), data.original_ids, place)
            : to_sparse_features(read_sparse(comm, *field, count, place, read), data.original_ids, place);
    if (options.normalize_features) data.sparse_features = normalized_rows(*data.sparse_features);
    return;
  }
  data.features = Tensor(Shape{count, width});
  for_each_range(comm, count, rows_of_chunk(*field), [&](Index begin, Index end) {
    const DataArray rows = columns.read(field->name, consecutive(begin, end - begin));
    take_features(rows, data.original_ids, place, begin, data.features);
  });
  if (!options.normalize_features) return;
  parallel_for_each(count, 256, [&](Index v) {
    normalize({data.features.row(v), static_cast<std::size_t>(width)});
  });
}

/// Without the field, all nodes are unlabelled.
void read_labels(const Communicator& comm, const NodeColumns& columns, const DatasetOptions& options,
                 NodeData& data) {
  const DataField* field =
      find_field(columns.fields, options.fields, "labels", {"labels", "label"}, data.name);
  data.num_classes = 0;
  if (field == nullptr) {
    data.label_type = options.label_type == LabelType::automatic ? LabelType::classes : options.label_type;
    data.labels.assign(data.original_ids.size(), -1);
    return;
  }
  take_labels(comm, columns.read(field->name, consecutive(0, std::ssize(data.original_ids))),
              columns.place_of(field->name), options.label_type, data);
}

/// The masks of all splits. Without the field of a mask, nothing is selected.
void read_masks(const NodeColumns& columns, const DatasetOptions& options, NodeData& data) {
  const auto count = static_cast<Index>(data.original_ids.size());
  std::array<DataArray, 3> masks;
  std::array<std::string, 3> places;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const char* const name = std::array{"train_mask", "val_mask", "test_mask"}[i];
    const DataField* field = find_field(columns.fields, options.fields, name, {name}, data.name);
    if (field == nullptr) {
      masks[i] = DataArray(NpyType::boolean, {}, count);
      std::ranges::fill(masks[i].bytes, std::byte{0});
      continue;
    }
    places[i] = columns.place_of(field->name);
    masks[i] = columns.read(field->name, consecutive(0, count));
  }
  set_splits(data, masks, options.split, places);
}

/// Whether a real is exactly this integer.
bool is_exact(std::int64_t value) {
  auto magnitude = static_cast<std::uint64_t>(value);
  if (value < 0) magnitude = 0 - magnitude;
  return magnitude == 0 ||
         (magnitude >> std::countr_zero(magnitude)) >> std::numeric_limits<real>::digits == 0;
}

}  // namespace

void read_node_columns(const Communicator& comm, const NodeColumns& columns, const DatasetOptions& options,
                       NodeData& data) {
  for (const auto& [name, field] : options.fields)
    require<InputError>(
        std::ranges::find(field_names, name) != std::end(field_names), data.name, ": a field shall be the ",
        name,
        ", expected features, labels, train_mask, val_mask, test_mask, weight, edge_labels, edge_type, "
        "edge_split, edge_train_mask, edge_val_mask or edge_test_mask");
  if (options.features)
    read_features(comm, columns, options, data);
  else
    data.features = Tensor({std::ssize(data.original_ids), Index{0}});
  if (!options.labels) return;
  read_labels(comm, columns, options, data);
  read_masks(columns, options, data);
}

std::string weight_field(const std::vector<DataField>& edge_fields, const DatasetOptions& options,
                         const std::string& place) {
  if (!options.edge_weights) return "";
  std::vector<DataField> fields = edge_fields;
  if (!options.fields.contains("weight"))  // what is something else by name is not the weight, too
    std::erase_if(fields, [&](const DataField& field) {
      return std::ranges::any_of(options.fields, [&](const auto& named) {
        return named.first.starts_with("edge_") && named.second == field.name;
      });
    });
  const DataField* field = find_field(fields, options.fields, "weight", {"weight", "edge_weight"}, place);
  return field == nullptr ? "" : field->name;
}

Array<real> to_edge_weights(const DataArray& column, std::span<const Index> ids, const std::string& place) {
  auto weights = to_numbers<real>(column, place);
  const Index bad = first_not_finite(weights);
  if (bad < column.num_rows)
    throw InputError(concat(place, ": the weight of edge ", ids[bad], " is ", number_text(column, bad),
                            ", expected a finite number"));
  if (is_floating_point(column.type)) return weights;
  const Array<std::int64_t> integers = column.to_integers(place, ids);
  const auto rounded = std::ranges::find_if_not(integers, is_exact);
  if (rounded != integers.end())
    throw InputError(
        concat(place, ": the weight of edge ", ids[rounded - integers.begin()], " is ", *rounded, ", which ",
               sizeof(real) == 8 ? "double" : "single",
               " precision cannot hold exactly, expected weights of which it holds all digits, or "
               "floating-point numbers, which are rounded"));
  return weights;
}

namespace {

/// 1 as an element of this type.
std::vector<std::byte> one(NpyType type) {
  std::vector<std::byte> bytes(element_bytes(type), std::byte{0});
  const auto set = [&](auto value) {
    std::copy_n(reinterpret_cast<const std::byte*>(&value), sizeof(value), bytes.data());
  };
  if (type == NpyType::float64) set(1.0);
  if (type == NpyType::float32) set(1.0f);
  if (type == NpyType::float16) set(float_to_half(1));
  if (!is_floating_point(type)) bytes[0] = std::byte{1};  // integers are little-endian
  return bytes;
}

/// The rows of the edges with these ids. Collective.
DataArray read_edge_rows(GraphSource& source, std::size_t type, const DataField& field,
                         const Array<Index>& ids, const DatasetOptions& options) {
  const Index num_edges = source.types().edge_types[type].num_edges;
  const Index first_loop = options.add_reverse_edges ? 2 * num_edges : num_edges;
  Array<Index> rows;
  rows.reserve(ids.size());
  for (const Index id : ids)
    if (id < first_loop) rows.push_back(id < num_edges ? id : id - num_edges);
  DataArray known = source.read_edge_data(type, field.name, rows);
  if (rows.size() == ids.size()) return known;

  DataArray data(field.type, field.row_shape, static_cast<Index>(ids.size()));
  const bool is_weight =
      field.name == "weight" || field.name == "edge_weight" || field.name == options.field("weight");
  const std::vector<std::byte> fill =
      is_weight ? one(field.type) : std::vector<std::byte>(element_bytes(field.type));
  Index next = 0;
  for (std::size_t e = 0; e < ids.size(); ++e) {
    std::byte* row = data.row(static_cast<Index>(e));
    if (ids[e] < first_loop)
      std::copy_n(known.row(next++), data.row_bytes(), row);
    else
      for (Index i = 0; i < data.row_size(); ++i)
        std::copy(fill.begin(), fill.end(), row + i * static_cast<Index>(fill.size()));
  }
  return data;
}

/// The rows of the nodes with these ids. Collective.
SparseArray read_sparse_rows(GraphSource& source, std::size_t type, const DataField& field,
                             std::span<const Index> ids) {
  return read_sparse(source.comm(), field, std::ssize(ids), source.place_of(field.name),
                     [&](std::span<const Index> rows) {
                       const auto some = rows.empty() ? ids.first(0) : ids.subspan(rows.front(), rows.size());
                       return source.read_node_data(type, field.name, some);
                     });
}

/// The place of the type of the source that the edges of a type come from.
std::size_t source_type_of(const GraphSource& source, const EdgeTypeData& type) {
  const auto& types = source.types().edge_types;
  auto found = std::ranges::find(types, type.canonical_name(), &EdgeTypeData::canonical_name);
  if (found == types.end())  // its reverse edges
    found = std::ranges::find_if(types, [&](const EdgeTypeData& other) {
      return other.src_type == type.dst_type && other.dst_type == type.src_type &&
             "rev_" + other.name == type.name;
    });
  return static_cast<std::size_t>(found - types.begin());
}

}  // namespace

void read_columns(GraphSource& source, const DatasetOptions& options, GraphData& graph) {
  for (std::size_t t = 0; t < graph.node_types.size(); ++t) {
    NodeTypeData& nodes = graph.node_types[t];
    for (const DataField& field : std::exchange(nodes.unread, {}))
      if (field.is_sparse)
        nodes.sparse.emplace(field.name, read_sparse_rows(source, t, field, nodes.original_ids));
      else
        nodes.data.emplace(field.name, source.read_node_data(t, field.name, nodes.original_ids));
  }
  for (EdgeTypeData& edges : graph.edge_types) {
    const std::size_t type = source_type_of(source, edges);
    for (const DataField& field : std::exchange(edges.unread, {}))
      edges.data.emplace(field.name, read_edge_rows(source, type, field, edges.edges.id, options));
  }
}
}}  // namespace sar
