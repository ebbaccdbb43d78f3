// SPDX-License-Identifier: MIT
#include "plan_shape.hpp"

#include "formats/open_source.hpp"
#include "program.hpp"

#include <sar/core/text.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

namespace sar::tools {
namespace {

double real_of(Index x) {
  return static_cast<double>(x);
}

/// Returns parts of equal size with randomly chosen nodes.
GraphShape random_parts(GraphShape shape, int ranks) {
  const double P = ranks;
  PartShape part{.nodes = shape.nodes / P, .in_edges = shape.edges / P};
  part.cut_edges = part.in_edges * (P - 1) / P;
  part.halo_nodes = listed_rows(shape.nodes - part.nodes, part.cut_edges);
  part.neighbors = listed_rows(P - 1, part.cut_edges);
  shape.parts.assign(static_cast<std::size_t>(ranks), part);
  shape.source = "estimated for random parts of a graph of equal degrees";
  return shape;
}

PartShape total(const std::vector<PartShape>& parts) {
  return combined(parts, [](double a, double b) { return a + b; });
}

/// Reads the graph, partitions it and counts. Collective.
GraphShape shape_of_source(GraphSource& source, const PlanOptions& o) {
  const int ranks = o.machine.ranks;
  require<InputError>(ranks <= source.num_nodes(), source.name(), ": there are ", source.num_nodes(),
                      " nodes for --ranks ", ranks, ", expected at least one for each rank");
  GraphShape shape{.name = source.name()};
  shape.widths = complete_widths({.classes = o.train.num_classes}, source, o.train.data);
  set_report(shape, count_parts(source, {.parts = ranks, .data = o.train.data}));
  shape.source = concat("counted, ", to_string(o.train.data.partition), " parts");
  return shape;
}

// ---- partition directories

/// The number of columns, or of one column the largest label + 1.
Index count_classes(const std::string& directory, const PartitionDescription& description,
                    const DataField& labels) {
  if (labels.row_size() > 1) return labels.row_size();
  double largest = 0;
  std::vector<double> values;
  for (int part = 0; part < description.num_parts; ++part) {
    const NpyFile file(node_data_file(directory, part, description.graph.node_types[0].name, labels.name));
    values.resize(static_cast<std::size_t>(file.size()));
    file.read(0, file.size(), std::span<double>(values));
    largest = std::max(largest, largest_class(values));
  }
  return num_classes(largest, description.graph.node_types[0].book.num_nodes());
}

/// Returns the listed nodes' rows of a field, which are in increasing order.
DataArray read_of_parts(const std::string& directory, const PartitionDescription& description,
                        const DataField& field, std::span<const Index> ids) {
  const NodeTypeData& nodes = description.graph.node_types[0];
  DataArray rows(field.type, field.row_shape, 0);
  for (int part = 0; part < description.num_parts; ++part) {
    std::vector<Index> of_part;
    for (const Index id : ids)
      if (nodes.book.owner(id) == part) of_part.push_back(id - nodes.book.begin(part));
    if (of_part.empty()) continue;
    const NpyFile file(node_data_file(directory, part, nodes.name, field.name));
    const DataArray mine = read_rows(file, of_part);
    rows.num_rows += mine.num_rows;
    rows.bytes.insert(rows.bytes.end(), mine.bytes.begin(), mine.bytes.end());
  }
  return rows;
}

/// Returns the mean number of stored features of a node if training makes them sparse rows; 0 otherwise.
double stored_in_parts(const std::string& directory, const PartitionDescription& description,
                       const DataField& field, SparseFeatures sparse) {
  const NodeTypeData& nodes = description.graph.node_types[0];
  if (sparse == SparseFeatures::no) return 0;
  if (!field.is_sparse) {
    const auto read = [&](std::span<const Index> ids) {
      return read_of_parts(directory, description, field, ids);
    };
    return stored_features(Communicator::self(), sparse, field, nodes.num_nodes(), read);
  }
  Index stored = 0;
  for (int part = 0; part < description.num_parts; ++part)
    stored += NpyFile(sparse_folder(directory, part, nodes.name, field.name) + "/columns.npy").size();
  return real_of(stored) / real_of(nodes.num_nodes());
}

/// Adds the in-edges of a part from other parts, and the number of those parts, to its sizes.
void count_cut(const std::string& directory, const PartitionDescription& description, int part,
               PartShape& sizes) {
  const NpyFile file(edge_file(directory, part, description.graph.edge_types[0], "source_offsets"));
  require<InputError>(file.size() == description.num_parts + 1, file.path(), ": there are ", file.size(),
                      " offsets, expected ", description.num_parts + 1);
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(file.size()));
  file.read(0, file.size(), std::span<std::int64_t>(offsets));
  for (int q = 0; q < description.num_parts; ++q) {
    const std::int64_t edges =
        offsets[static_cast<std::size_t>(q) + 1] - offsets[static_cast<std::size_t>(q)];
    if (q == part || edges == 0) continue;
    sizes.cut_edges += real_of(edges);
    ++sizes.neighbors;
  }
}

/// Throws InputError if the partition was made with other edge transforms than the options name.
void check_info(const std::string& path, const PartitionDescription& description,
                const DatasetOptions& data) {
  const auto check = [&](const char* option, bool wanted, const char* key, const char* value = "yes") {
    const auto found = description.info.find(key);
    const bool has = found != description.info.end() && found->second == value;
    require<InputError>(!wanted || has, path, ": the partition was made without ", option,
                        ", expected one made with it, or a plan without it");
  };
  check("--add-reverse-edges", data.add_reverse_edges, "reverse_edges");
  if (data.remaining_self_loops)
    check("--add-self-loops remaining", true, "self_loops", "remaining");
  else
    check("--add-self-loops", data.add_self_loops, "self_loops");
  check("--drop-duplicates", data.drop_duplicates, "duplicates_dropped");
}

/// Local.
GraphShape shape_of_directory(const PlanOptions& o) {
  const std::string& path = o.train.found.path;
  const PartitionDescription description = read_partition_description(path);
  require<InputError>(description.graph.is_homogeneous(), path, ": the graph has ",
                      description.graph.node_types.size(), " node types and ",
                      description.graph.edge_types.size(), " edge types, expected one of each");
  check_info(path, description, o.train.data);
  const NodeTypeData& nodes = description.graph.node_types[0];
  const EdgeTypeData& edges = description.graph.edge_types[0];
  GraphShape shape{.name = description.graph.name,
                   .nodes = real_of(nodes.book.num_nodes()),
                   .edges = real_of(edges.num_edges),
                   .widths = {.classes = o.train.num_classes}};
  Widths& widths = shape.widths;
  const auto find = [&](const char* key, const char* other) {
    return find_field(nodes.unread, o.train.data.fields, key, {key, other}, shape.name);
  };
  if (const DataField* features = find("features", "feat")) {
    widths.features = features->row_size();
    widths.stored = stored_in_parts(path, description, *features, o.train.data.sparse_features);
  }
  const DataField* labels = find("labels", "label");
  if (widths.classes == 0 && labels != nullptr) widths.classes = count_classes(path, description, *labels);
  for (int p = 0; p < description.num_parts; ++p) {
    PartShape part{.nodes = real_of(nodes.book.num_nodes(p)),
                   .in_edges = real_of(description.edges_per_part[0][static_cast<std::size_t>(p)])};
    count_cut(path, description, p, part);
    shape.parts.push_back(part);
  }
  // only the total halo is known: divided in proportion to the cuts
  const auto info = description.info.find("halo_nodes");
  const double halo = info == description.info.end() ? -1 : to_number<double>(info->second).value_or(-1);
  require<InputError>(
      halo >= 0 || o.halo_fraction >= 0, path,
      ": the partition does not say its halo_nodes, expected one that partition wrote, or --halo-fraction");
  const double cut = total(shape.parts).cut_edges;
  for (PartShape& part : shape.parts)
    part.halo_nodes = cut > 0 ? std::max(halo, 0.0) * part.cut_edges / cut : 0;
  shape.source = concat("the ", description.num_parts, " parts of ", path);
  return shape;
}

/// Counts the parts of a built-in graph if it is small; estimates them otherwise.
GraphShape shape_of_built_in(const Communicator& comm, const PlanOptions& o) {
  constexpr double most_edges = 1e8;
  SbmOptions sbm = o.train.sbm;
  if (o.train.graph == BuiltInGraph::karate)
    return random_parts(
        {.name = "karate", .nodes = 34, .edges = 156, .widths = {.features = 34, .classes = 2}},
        o.machine.ranks);
  if (o.edges > 0) sbm.degree = real_of(o.edges) / real_of(sbm.nodes);
  GraphShape shape{
      .name = "sbm",
      .nodes = real_of(sbm.nodes),
      .edges = sbm.degree * real_of(sbm.nodes),
      .widths = {.features = sbm.features, .classes = std::max(sbm.classes, o.train.num_classes)}};
  if (o.halo_fraction >= 0 || shape.edges > most_edges)
    return random_parts(std::move(shape), o.machine.ranks);
  GraphShape counted = shape_of_source(*sbm_source(comm, sbm), o);
  counted.widths.classes = shape.widths.classes;
  return counted;
}

/// Uses the halo given on the command line, and estimates the cut from it.
void set_halo(GraphShape& shape, double fraction) {
  const GraphShape random = random_parts(shape, static_cast<int>(shape.parts.size()));
  for (PartShape& part : shape.parts) {
    part.halo_nodes = std::min(fraction * part.nodes, shape.nodes - part.nodes);
    const double least = part.halo_nodes;
    if (part.cut_edges > 0 && shape.source != random.source) continue;
    part.cut_edges =
        std::clamp(random.parts[0].cut_edges * part.halo_nodes / std::max(1.0, random.parts[0].halo_nodes),
                   least, std::max(least, part.in_edges));
    part.neighbors = listed_rows(static_cast<double>(shape.parts.size()) - 1, part.cut_edges);
  }
  shape.source = concat("of ", fraction, " halo nodes for each node");
}

void scale(GraphShape& shape, double nodes, double edges) {
  const double by_nodes = nodes / shape.nodes;
  const double by_edges = edges > 0 ? edges / shape.edges : by_nodes;
  shape.nodes *= by_nodes;
  shape.edges *= by_edges;
  for (PartShape& part : shape.parts) {
    part.nodes *= by_nodes;
    part.in_edges *= by_edges;
    part.cut_edges *= by_edges;
    part.halo_nodes = std::min({part.halo_nodes * by_nodes, part.cut_edges, shape.nodes - part.nodes});
  }
  shape.source += ", scaled";
}

}  // namespace

PartShape combined(const std::vector<PartShape>& parts, FunctionRef<double(double, double)> combine) {
  PartShape all;
  for (const PartShape& part : parts)
    for (double PartShape::*size : {&PartShape::nodes, &PartShape::in_edges, &PartShape::cut_edges,
                                    &PartShape::halo_nodes, &PartShape::neighbors})
      all.*size = combine(all.*size, part.*size);
  return all;
}

double listed_rows(double nodes, double cut_edges) {
  return nodes > 0 ? -nodes * std::expm1(-cut_edges / nodes) : 0;
}

void set_report(GraphShape& shape, const PartitionReport& report) {
  shape.nodes = real_of(report.num_nodes);
  shape.edges = real_of(report.num_edges);
  for (const PartSize& part : report.parts)
    shape.parts.push_back({real_of(part.nodes), real_of(part.in_edges), real_of(part.cut_edges),
                           real_of(part.halo_nodes), real_of(part.neighbors)});
}

GraphShape divided(const GraphShape& shape, int ranks) {
  const GraphShape random = random_parts(shape, ranks);
  const double P = static_cast<double>(shape.parts.size());
  const PartShape now = total(shape.parts);
  if (P < 2 || now.cut_edges == 0) return random;
  const GraphShape random_now = random_parts(shape, static_cast<int>(P));
  const PartShape part = random_now.parts[0];
  const double cut = now.cut_edges / (P * part.cut_edges);  // relative to random parts
  // halo nodes per cut edge, relative to random parts
  const double halo = now.halo_nodes / now.cut_edges * part.cut_edges / std::max(part.halo_nodes, 1e-9);
  GraphShape other = random;
  for (PartShape& of : other.parts) {
    const double of_edge = of.cut_edges > 0 ? of.halo_nodes / of.cut_edges : 0;
    of.cut_edges *= std::min(cut, 1.0);
    of.halo_nodes = std::min(of.cut_edges * of_edge * halo, other.nodes - of.nodes);
    of.neighbors = listed_rows(ranks - 1, of.cut_edges);
  }
  other.source = concat("estimated from ", shape.source);
  return other;
}

GraphShape shape_of(const Communicator& comm, const PlanOptions& o) {
  const int ranks = o.machine.ranks;
  const TrainOptions& t = o.train;
  require<InputError>(
      t.found.kind != DatasetKind::dgl_partition, t.found.path,
      ": a plan does not read a DGL partition, expected a dataset, or a directory that partition wrote");
  GraphShape shape;
  if (t.dataset.empty()) {
    shape = shape_of_built_in(comm, o);
  } else if (t.found.kind == DatasetKind::partition_directory) {
    comm.agree([&] { shape = shape_of_directory(o); });
  } else {
    const std::unique_ptr<GraphSource> source = formats::open_source(comm, t.found, t.source);
    print_notes(*source, source->description());
    shape = shape_of_source(*source, o);
  }
  if (o.scale_nodes > 0) scale(shape, real_of(o.scale_nodes), real_of(o.scale_edges));
  if (t.num_classes > 0) shape.widths.classes = t.num_classes;
  const std::string& name = t.dataset.empty() ? shape.name : t.dataset;
  require<InputError>(ranks <= shape.nodes, name, ": there are ", shape.nodes, " nodes for --ranks ", ranks,
                      ", expected at least one for each rank");
  require<InputError>(shape.widths.features > 0, name,
                      ": there are no features, expected node data features or feat");
  require<InputError>(shape.widths.classes > 0, name, ": there are no labels, expected --num-classes");
  if (static_cast<int>(shape.parts.size()) != ranks) shape = divided(shape, ranks);
  if (o.halo_fraction >= 0 && ranks > 1) set_halo(shape, o.halo_fraction);
  return shape;
}

}  // namespace sar::tools
