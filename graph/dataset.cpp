#include <sar/core/error.hpp>
#include <sar/graph/dataset.hpp>
#include <sar/graph/distribute.hpp>
#include <sar/graph/npy.hpp>
#include <sar/graph/npy_header.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace sar {
namespace {

constexpr std::int64_t max_label = std::numeric_limits<std::int32_t>::max() - 1;

/// The open files of a dataset, their types and shapes checked. Local.
struct Files {
  NpyFile edge_index, features, labels, train_mask, val_mask, test_mask;
  std::optional<NpyFile> edge_weight;

  explicit Files(const std::string& directory)
      : edge_index(directory + "/edge_index.npy", NpyOrder::c_or_fortran),
        features(directory + "/features.npy"),
        labels(directory + "/labels.npy"),
        train_mask(directory + "/train_mask.npy"),
        val_mask(directory + "/val_mask.npy"),
        test_mask(directory + "/test_mask.npy") {
    std::error_code unreachable;
    if (const std::string path = directory + "/edge_weight.npy"; std::filesystem::exists(path, unreachable))
      edge_weight.emplace(path);

    edge_index.expect({NpyType::int64}, 2);
    require<InputError>(edge_index.num_rows() == 2, edge_index.path(), ": shape is ",
                        shape_to_string(edge_index.shape()), ", expected (2, number of edges)");
    features.expect({NpyType::float16, NpyType::float32, NpyType::float64, NpyType::uint8}, 2);
    require<InputError>(features.row_size() > 0, features.path(), ": shape is ",
                        shape_to_string(features.shape()), ", expected at least one column");
    labels.expect({NpyType::int64}, 1);
    expect_nodes(labels);
    for (const NpyFile* mask : {&train_mask, &val_mask, &test_mask}) {
      mask->expect({NpyType::boolean}, 1);
      expect_nodes(*mask);
    }
    if (!edge_weight) return;
    edge_weight->expect({NpyType::float16, NpyType::float32, NpyType::float64}, 1);
    require<InputError>(edge_weight->num_rows() == num_edges(), edge_weight->path(), ": length is ",
                        edge_weight->num_rows(), ", expected ", num_edges(), ", one for each edge of ",
                        edge_index.path());
  }

  [[nodiscard]] Index num_nodes() const noexcept { return features.num_rows(); }
  [[nodiscard]] Index num_edges() const noexcept { return edge_index.row_size(); }

 private:
  void expect_nodes(const NpyFile& file) const {
    require<InputError>(file.num_rows() == num_nodes(), file.path(), ": length is ", file.num_rows(),
                        ", expected ", num_nodes(), ", one for each row of ", features.path());
  }
};

/// Position of the first element that is NaN or infinite; size when there is none.
Index first_not_finite(std::span<const real> values) {
  const auto size = static_cast<Index>(values.size());
  return parallel_reduce(
      size, Index{1} << 16, size,
      [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i)
          if (!std::isfinite(values[static_cast<std::size_t>(i)])) return i;
        return size;
      },
      [](Index a, Index b) { return std::min(a, b); });
}

/// Ends of edges [begin, end). NumPy writes the transpose of an [E, 2] array in Fortran order: the two ends
/// of an edge lie together.
void read_ends(const NpyFile& edge_index, Index begin, Index end, EdgeList& edges) {
  if (!edge_index.fortran_order()) {
    edge_index.read(begin, end, std::span<Index>(edges.src));
    edge_index.read(edge_index.row_size() + begin, edge_index.row_size() + end, std::span<Index>(edges.dst));
    return;
  }
  constexpr Index block = Index{1} << 16;
  std::vector<Index> pairs;
  for (Index first = begin; first < end; first += block) {
    const Index count = std::min(block, end - first);
    pairs.resize(static_cast<std::size_t>(2 * count));
    edge_index.read(2 * first, 2 * (first + count), std::span<Index>(pairs));
    for (Index i = 0; i < count; ++i) {
      edges.src[static_cast<std::size_t>(first - begin + i)] = pairs[static_cast<std::size_t>(2 * i)];
      edges.dst[static_cast<std::size_t>(first - begin + i)] = pairs[static_cast<std::size_t>(2 * i + 1)];
    }
  }
}

/// Edges [begin, end) with their numbers as ids. Local.
EdgeList read_edges(const Files& files, Index begin, Index end) {
  const auto count = static_cast<std::size_t>(end - begin);
  EdgeList edges;
  edges.src.resize(count);
  edges.dst.resize(count);
  edges.id.resize(count);
  read_ends(files.edge_index, begin, end, edges);
  const Index num_nodes = files.num_nodes();
  for (std::size_t e = 0; e < count; ++e) {
    edges.id[e] = begin + static_cast<Index>(e);
    for (const Index node : {edges.src[e], edges.dst[e]})
      require<InputError>(0 <= node && node < num_nodes, files.edge_index.path(), ": edge ", edges.id[e],
                          " is (", edges.src[e], ", ", edges.dst[e], "), but there is no node ", node,
                          ", expected 0 to ", num_nodes - 1);
  }
  if (files.edge_weight) {
    edges.weight.resize(count);
    files.edge_weight->read(begin, end, std::span<real>(edges.weight));
    const Index bad = first_not_finite(edges.weight);
    if (bad < static_cast<Index>(count))
      throw InputError(concat(files.edge_weight->path(), ": the weight of edge ", begin + bad, " is ",
                              edges.weight[static_cast<std::size_t>(bad)], ", expected a finite number"));
  }
  return edges;
}

/// The data of the nodes data.original_ids. Local.
void read_nodes(const Files& files, NodeData& data) {
  const auto& ids = data.original_ids;
  const auto count = static_cast<Index>(ids.size());
  data.features = Tensor(Shape{count, files.features.row_size()});
  files.features.read_rows(ids, data.features.values());
  const Index bad = first_not_finite(data.features.values());
  if (bad < data.features.size()) {
    const Index width = data.features.row_size();
    throw InputError(concat(files.features.path(), ": row ", ids[static_cast<std::size_t>(bad / width)],
                            ", column ", bad % width, " is ", data.features.data()[bad],
                            ", expected a finite number"));
  }

  data.labels.resize(ids.size());
  files.labels.read_rows(ids, std::span<std::int64_t>(data.labels));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    require<InputError>(-1 <= data.labels[i] && data.labels[i] <= max_label, files.labels.path(),
                        ": the label of node ", ids[i], " is ", data.labels[i],
                        ", expected a class from 0 to ", max_label, " or -1 for an unlabelled node");
    data.num_classes = std::max<Index>(data.num_classes, data.labels[i] + 1);
  }

  for (const auto& [file, mask] : {std::pair{&files.train_mask, &data.train_mask},
                                   {&files.val_mask, &data.val_mask},
                                   {&files.test_mask, &data.test_mask}}) {
    mask->resize(ids.size());
    file->read_rows(ids, std::span<std::uint8_t>(*mask));
  }
}

/// Ranks that see different files would otherwise wait for each other in vain, or train on a mixture.
/// Collective.
void require_same_files(const Communicator& comm, const std::string& directory, const Files& files) {
  const std::array<Index, 4> mine{files.num_nodes(), files.num_edges(), files.features.row_size(),
                                  files.edge_weight ? 1 : 0};
  const auto all = comm.all_gather(mine);
  const auto other = std::find_if(all.begin(), all.end(), [&](const auto& sizes) { return sizes != all[0]; });
  if (other == all.end()) return;
  const auto describe = [](const std::array<Index, 4>& sizes) {
    return concat(sizes[0], " nodes, ", sizes[1], " edges, ", sizes[2], " feature columns and ",
                  sizes[3] == 1 ? "edge weights" : "no edge weights");
  };
  throw InputError(concat(comm.broadcast(directory, 0), ": rank ", other - all.begin(), " finds ",
                          describe(*other), ", expected ", describe(all[0]), " as on rank 0"));
}

}  // namespace

NodeData load_dataset(const Communicator& comm, const std::string& directory, const DatasetOptions& options) {
  std::optional<Files> files;
  comm.agree([&] {
    files.emplace(directory);
    require_nodes_for_ranks(files->features.path(), files->num_nodes(), comm.size());
  });
  require_same_files(comm, directory, *files);

  const PartitionBook slices = PartitionBook::even(files->num_edges(), comm.size());
  EdgeList edges;
  comm.agree([&] { edges = read_edges(*files, slices.begin(comm.rank()), slices.end(comm.rank())); });

  std::filesystem::path path(directory);
  if (!path.has_filename()) path = path.parent_path();
  NodeData data = distribute(comm, path.filename().string(), files->num_nodes(), std::move(edges), options,
                             [&](NodeData& mine) { read_nodes(*files, mine); });

  std::array<Index, 2> training{0, 0};  // nodes, nodes with a label
  for (std::size_t i = 0; i < data.train_mask.size(); ++i) {
    training[0] += data.train_mask[i];
    training[1] += data.train_mask[i] != 0 && data.labels[i] >= 0 ? 1 : 0;
  }
  comm.all_reduce(std::span<Index>(training));
  comm.agree([&] {
    require<InputError>(training[1] > 0, files->train_mask.path(), ": the mask selects ", training[0],
                        " training nodes, of which ", training[1], " have a label, expected at least one");
  });
  return data;
}

}  // namespace sar
