#include "file_source.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace sar::formats {

FileSource::FileSource(const Communicator& comm_of_source, std::string kind, const std::string& path)
    : GraphSource(comm_of_source), path_(path), kind_(std::move(kind)) {
  std::filesystem::path last(path);
  if (!last.has_filename()) last = last.parent_path();
  name_ = last.filename().string();
  for (const char* extension : {".gz", ".mtx", ".csv", ".tsv", ".txt"})
    if (name_.ends_with(extension) && name_ != extension) name_.erase(name_.rfind('.'));
}

std::string FileSource::description() const {
  std::string text = concat(kind_, " ", name_, ": ", num_nodes_, " nodes, ", num_edges_, " edges");
  const auto list = [&](const char* of, const FieldTable& table) {
    if (!table.fields.empty()) text += of;
    for (const DataField& field : table.fields) text += " " + field.name;
  };
  list("; nodes:", nodes_);
  list("; edges:", edges_);
  return text;
}

EdgeList FileSource::read_edges() {
  EdgeList edges;
  comm().agree([&] { edges = chunks_.take_edges(); });
  return edges;
}

DataArray FileSource::read_node_data(const std::string& field, std::span<const Index> nodes) {
  return nodes_.read(comm(), path_, field, nodes);
}
DataArray FileSource::read_edge_data(const std::string& field, std::span<const Index> edges) {
  return edges_.read(comm(), path_, field, edges);
}

std::string FileSource::place_of(const std::string& field) const {
  for (const FieldTable* table : {&nodes_, &edges_})
    if (const auto found = table->places.find(field); found != table->places.end()) return found->second;
  return path_ + ": " + field;
}

void FileSource::add_node_files(const std::map<std::string, std::string>& files) {
  comm().agree([&] {
    for (const auto& [field, path] : files) {
      auto file = std::make_unique<const NpyFile>(path);
      require<InputError>(!nodes_.data.contains(field), path, ": node data ", field,
                          " are given twice, expected once");
      require<InputError>(!file->shape().empty() && file->num_rows() == num_nodes_, path, ": the array has ",
                          file->shape().empty() ? 0 : file->num_rows(), " rows, expected ", num_nodes_,
                          ", one for each node of ", path_);
      DataField known = field_of(field, *file);
      nodes_.add(std::move(known), std::make_unique<NpyFieldData>(std::move(file)), path);
    }
  });
}

void FileSource::require_plausible_size(const std::string& place) const {
  require<InputError>(num_nodes_ > 0, place, ": there are no edges, expected at least one");
  const Index most = std::max(Index{1} << 24, num_edges_ > (Index{1} << 50) ? INT64_MAX : 64 * num_edges_);
  require<InputError>(num_nodes_ <= most, place, ": there are ", num_nodes_, " nodes for ", num_edges_,
                      " edges, expected at most ", most);
}

}  // namespace sar::formats
