// SPDX-License-Identifier: MIT
#include "file_source.hpp"

#include "edge_counts.hpp"

#include <sar/core/error.hpp>
#include <sar/graph/data/dataset_source.hpp>

#include <algorithm>
#include <utility>

namespace sar::formats {
namespace {

std::string name_of(const std::string& path) {
  std::string name = last_part_of(path);
  for (const char* extension : {".gz", ".mtx", ".csv", ".tsv", ".txt", ".npz", ".zip"})
    if (name.ends_with(extension) && name != extension) name.erase(name.rfind('.'));
  return name;
}

}  // namespace

FileSource::FileSource(const Communicator& comm_of_source, const std::string& kind, const std::string& path)
    : GraphSource(comm_of_source, kind, name_of(path)), path_(path) {}

void FileSource::add_nodes(const std::string& name, Index num_nodes) {
  types_.node_types.push_back({.name = name, .book = slices_of(num_nodes)});
  nodes_.emplace_back();
}
void FileSource::add_edges(EdgeTypeData type) {
  types_.edge_types.push_back(std::move(type));
  edges_.emplace_back();
  chunks_.emplace_back();
}

EdgeList FileSource::read_edges(std::size_t type) {
  return comm().agree([&] { return chunks_.at(type).take_edges(); });
}
DataArray FileSource::read_node_data(std::size_t type, const std::string& field,
                                     std::span<const Index> nodes) {
  const std::string of = types_.is_homogeneous() ? "" : ": " + types_.node_types.at(type).name;
  return nodes_.at(type).read(comm(), path_ + of, field, nodes);
}
DataArray FileSource::read_edge_data(std::size_t type, const std::string& field,
                                     std::span<const Index> edges) {
  const std::string of = types_.is_homogeneous() ? "" : ": " + types_.edge_types.at(type).canonical_name();
  return edges_.at(type).read(comm(), path_ + of, field, edges);
}

std::string FileSource::place_of(const std::string& field) const {
  for (const auto* tables : {&nodes_, &edges_})
    for (const FieldTable& table : *tables)
      if (const auto* found = table.find(field)) return found->place;
  return path_ + ": " + field;
}

void FileSource::add_node_file(std::size_t t, const std::string& field, const std::string& path, bool more,
                               const std::string& hint) {
  NodeTypeData& type = types_.node_types[t];
  auto file = std::make_shared<const NpyFile>(path);
  if (const std::string mask = mask_of_list(field); !mask.empty()) {
    file->expect_dims(1);
    Array<std::int64_t> nodes(file->size());
    file->read(0, file->size(), std::span<std::int64_t>(nodes));
    return add_node_list(t, mask, std::move(nodes), path);
  }
  const Index rows = file->shape().empty() ? 0 : file->num_rows();
  require<InputError>(!nodes_[t].contains(field), path, ": node data ", field,
                      " are given twice, expected once");
  require<InputError>(more && nodes_[t].fields.empty() ? rows >= type.num_nodes() : rows == type.num_nodes(),
                      path, ": the array has ", rows, " rows, expected ", type.num_nodes(),
                      ", one for each node of ", types_.is_homogeneous() ? path_ : "type " + type.name,
                      field.ends_with("_mask") ? "; a list of nodes is --node-data train_nodes=FILE" : hint);
  type.book = slices_of(rows);
  DataField known = field_of(field, *file);
  nodes_[t].add(std::move(known), std::move(file), path);
}

void FileSource::add_node_list(std::size_t type, const std::string& mask, Array<std::int64_t> nodes,
                               const std::string& place) {
  if (const auto* found = nodes_[type].find(mask))
    throw InputError(concat(place, ": ", mask, " is in ", found->place, ", too, expected it once"));
  const PartitionBook& book = types_.node_types[type].book;
  nodes_[type].add(mask, book, mask_of(std::move(nodes), book, comm().rank(), place), place);
}

void FileSource::add_node_fields(Index num_nodes, FieldTable fields, const std::string& note) {
  types_.node_types.at(0).book = slices_of(num_nodes);
  for (FieldTable::Field& each : fields.fields) {
    const std::string& name = each.field.name;
    require<InputError>(!nodes_[0].contains(name), each.place, ": node data ", name, " are in ",
                        place_of(name), ", too, expected them once");
    nodes_[0].fields.push_back(std::move(each));
  }
  notes_.push_back(note);
  list_fields();
}

/// Counts in a sample of the pairs of nodes if there are many edges.
void FileSource::note_directions() {
  constexpr Index most = Index{1} << 20;
  if (!types_.is_homogeneous() || num_edges() == 0) return;
  EdgeList sample;
  comm().agree([&] { sample = sample_of_pairs(chunks_[0], std::max<Index>(1, num_edges() / most)); });
  const EdgeCounts counts = count_edges(comm(), sample, true);
  const Index edges = comm().all_reduce(sample.size()) - counts.self_loops;
  if (edges == 0 || counts.opposites * 20 > edges) return;
  notes_.push_back(concat(path_, ": ", counts.opposites == 0 ? "no edge has" : "hardly any edge has",
                          " its reverse in the file, and messages go from source to destination only; "
                          "--add-reverse-edges adds the "
                          "others, as for a graph without directions"));
}

void FileSource::require_ends(const std::string& place) {
  comm().agree([&] {
    for (const EdgeChunk& chunk : chunks_[0].chunks())
      require_nodes(place, chunk.first_id, chunk.src, chunk.dst, num_nodes(), num_nodes());
  });
}

void FileSource::require_plausible_size(const std::string& place) const {
  require<InputError>(num_nodes() > 0, place, ": there are no edges, expected at least one");
  require_plausible_sizes(place);
}

void FileSource::list_fields() {
  const auto list = [](const FieldTable& table, std::vector<DataField>& unread) {
    unread.clear();
    for (const FieldTable::Field& each : table.fields) unread.push_back(each.field);
  };
  for (std::size_t t = 0; t < nodes_.size(); ++t) list(nodes_[t], types_.node_types[t].unread);
  for (std::size_t k = 0; k < edges_.size(); ++k) list(edges_[k], types_.edge_types[k].unread);
}

}  // namespace sar::formats
