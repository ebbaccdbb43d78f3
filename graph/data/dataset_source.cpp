#include <sar/core/error.hpp>
#include <sar/core/file.hpp>
#include <sar/graph/data/dataset_source.hpp>
#include <sar/graph/data/edge_index.hpp>
#include <sar/graph/io/npy_header.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

namespace fs = std::filesystem;

void expect_length(const NpyFile& file, Index length, const char* one_for_each, const NpyFile& other) {
  require<InputError>(file.num_rows() == length, file.path(), ": length is ", file.num_rows(), ", expected ",
                      length, ", one for each ", one_for_each, " of ", other.path());
}

DataArray read_field(const Communicator& comm, const std::map<std::string, NpyFile>& files,
                     const std::string& directory, const std::string& field, std::span<const Index> rows) {
  return comm.agree([&] {
    const auto found = files.find(field);
    require<InputError>(found != files.end(), directory, ": there are no data named ", field);
    return read_rows(found->second, rows);
  });
}

}  // namespace

DatasetSource::DatasetSource(const Communicator& communicator, const std::string& directory,
                             bool for_training)
    : GraphSource(communicator) {
  comm().agree([&] {
    directory_ = directory;
    fs::path path(directory);
    if (!path.has_filename()) path = path.parent_path();
    name_ = path.filename().string();
    open_files(for_training);
    require_same_files();
  });
}

DatasetSource::~DatasetSource() = default;

void DatasetSource::open_files(bool for_training) {
  edge_index_.emplace(directory_ + "/edge_index.npy", NpyOrder::c_or_fortran);
  const NpyFile& features = nodes_.try_emplace("features", directory_ + "/features.npy").first->second;
  open_labels_and_masks(for_training);
  edge_index_->expect({NpyType::int64}, 2);
  require<InputError>(edge_index_->num_rows() == 2, edge_index_->path(), ": shape is ",
                      shape_to_string(edge_index_->shape()), ", expected (2, number of edges)");
  if (for_training)
    features.expect({NpyType::float16, NpyType::float32, NpyType::float64, NpyType::uint8}, 2);
  require<InputError>(!features.shape().empty() && features.row_size() > 0, features.path(), ": shape is ",
                      shape_to_string(features.shape()), ", expected at least one column");
  for (const auto& [field, file] : nodes_) {
    if (for_training && field == "labels") file.expect({NpyType::int64}, 1);
    if (for_training && field.ends_with("_mask")) file.expect({NpyType::boolean}, 1);
    if (&file != &features) expect_length(file, num_nodes(), "row", features);
  }
  for (const char* field : {"weight", "labels", "type", "split", "train_mask", "val_mask", "test_mask"}) {
    const std::string path = directory_ + "/edge_" + field + ".npy";
    if (!is_there(path)) continue;
    const NpyFile& file = edges_.try_emplace(field, path).first->second;
    if (field == std::string("weight"))
      file.expect({NpyType::float16, NpyType::float32, NpyType::float64, NpyType::uint8, NpyType::int8,
                   NpyType::int16, NpyType::int32, NpyType::int64},
                  1);
    require<InputError>(!file.shape().empty(), path, ": the array is a number, expected one for each edge");
    expect_length(file, num_edges(), "edge", *edge_index_);
  }
  open_others();
  for (const auto& [field, file] : nodes_) node_fields_.push_back(field_of(field, file));
  for (const auto& [field, file] : edges_) edge_fields_.push_back(field_of(field, file));
}

void DatasetSource::open_labels_and_masks(bool required) {
  for (const char* field : {"labels", "train_mask", "val_mask", "test_mask"}) {
    const std::string path = directory_ + "/" + field + ".npy";
    if (required || is_there(path)) nodes_.try_emplace(field, path);
  }
}

/// Opens the other files with one row for each node or edge; files of other forms are not part of the
/// dataset.
void DatasetSource::open_others() {
  std::error_code unreachable;
  for (const std::string& name : names_in(directory_, unreachable)) {
    const fs::path path = fs::path(directory_) / name;
    std::string field = path.stem().string();
    if (path.extension() != ".npy" || field == "edge_index" || nodes_.contains(field)) continue;
    const bool of_edges = field.starts_with("edge_");
    if (of_edges) field.erase(0, 5);
    auto& files = of_edges ? edges_ : nodes_;
    if (field.empty() || files.contains(field)) continue;
    try {
      const NpyFile file(path.string());
      if (!file.shape().empty() && file.num_rows() == (of_edges ? num_edges() : num_nodes()))
        files.try_emplace(field, path.string());
    } catch (const InputError&) {  // a pickle, say
    }
  }
}

/// Ranks that saw different files would wait for each other for ever, or train on a mixture. Collective.
void DatasetSource::require_same_files() const {
  std::string sizes =
      concat(num_nodes(), " nodes, ", num_edges(), " edges, ", nodes_.at("features").row_size(),
             " feature columns and ", edges_.contains("weight") ? "edge weights" : "no edge weights");
  std::string others = "the files";
  for (const auto& [field, file] : nodes_)
    others += concat(" ", field, shape_to_string(file.shape()), to_string(file.type()));
  for (const auto& [field, file] : edges_)
    others += concat(" edge_", field, shape_to_string(file.shape()), to_string(file.type()));
  const std::string directory = comm().broadcast(directory_, 0);
  for (const std::string& mine : {sizes, others}) {
    const std::string expected = comm().broadcast(mine, 0);
    require<InputError>(mine == expected, directory, ": rank ", comm().rank(), " finds ", mine, ", expected ",
                        expected, " as on rank 0");
  }
}

std::string DatasetSource::description() const {
  std::string text =
      concat("dataset directory ", name_, ": ", num_nodes(), " nodes, ", num_edges(), " edges; nodes:");
  for (const DataField& field : node_fields_) text += " " + field.name;
  if (!edge_fields_.empty()) text += "; edges:";
  for (const DataField& field : edge_fields_) text += " " + field.name;
  return text;
}

Index DatasetSource::num_nodes() const {
  return nodes_.at("features").num_rows();
}
Index DatasetSource::num_edges() const {
  return edge_index_->row_size();
}

EdgeList DatasetSource::read_edges() {
  return comm().agree([&] {
    const PartitionBook slices = PartitionBook::even(num_edges(), comm().size());
    return read_edge_range(*edge_index_, num_nodes(), num_nodes(), slices.begin(comm().rank()),
                           slices.end(comm().rank()));
  });
}

DataArray DatasetSource::read_node_data(const std::string& field, std::span<const Index> nodes) {
  return read_field(comm(), nodes_, directory_, field, nodes);
}
DataArray DatasetSource::read_edge_data(const std::string& field, std::span<const Index> edges) {
  return read_field(comm(), edges_, directory_, field, edges);
}

std::string DatasetSource::place_of(const std::string& field) const {
  return directory_ + (nodes_.contains(field) ? "/" : "/edge_") + field + ".npy";
}

}  // namespace sar
