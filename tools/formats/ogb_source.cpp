#include "ogb_source.hpp"

#include "sliced_rows.hpp"
#include "text.hpp"

#include <sar/core/error.hpp>
#include <sar/core/file.hpp>

#include <algorithm>
#include <concepts>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

namespace sar::formats {
namespace {

namespace fs = std::filesystem;

/// edge-feat.csv.gz and edge_reltype.csv.gz -> edge-feat, edge_reltype
std::string without_extension(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  for (const char* extension : {".gz", ".csv"})
    if (name.ends_with(extension)) name.erase(name.rfind('.'));
  return name;
}

}  // namespace

std::vector<std::string> shared_list(const Communicator& comm, FunctionRef<std::vector<std::string>()> find) {
  std::string joined;
  comm.agree([&] {
    if (comm.rank() != 0) return;
    for (const std::string& item : find()) joined += item + '\n';
  });
  joined = comm.broadcast(joined, 0);
  std::vector<std::string> items;
  for (Lines lines(joined); lines.next();) items.emplace_back(lines.line());
  return items;
}

OgbSource::OgbSource(const Communicator& comm_of_source, const std::string& path,
                     const SourceOptions& options)
    : FileSource(comm_of_source, "OGB folder", path), block_bytes_(options.block_bytes) {
  bool binary = false;
  comm().agree([&] {
    for (const char* part : {"/raw/triplet-type-list.csv.gz", "/raw/relations", "/raw/num-node-dict.csv.gz",
                             "/raw/edge_index_dict.npz"})
      require<InputError>(!is_there(path_ + part), path_, part,
                          ": the graph has several types of nodes or edges, expected one of each");
    binary = is_there(path_ + "/raw/data.npz");
  });
  if (comm().all_reduce(binary ? 1 : 0, ReduceOp::max) == 1)
    read_binary_graph();
  else
    read_text_graph();
  read_splits(options.split);
  add_node_files(options.node_data);
}

/// The path of raw/name.csv.gz, unpacked or not; empty when there is none and it is not required. Collective.
std::string OgbSource::find_file(const std::string& name, bool required) const {
  const std::string path = path_ + "/raw/" + name + ".csv";
  const auto found = shared_list(comm(), [&] {
    for (const std::string& candidate : {path + ".gz", path})
      if (is_there(candidate)) return std::vector<std::string>{candidate};
    require<InputError>(!required, path, ".gz: there is no such file, expected an OGB folder");
    return std::vector<std::string>();
  });
  return found.empty() ? "" : found[0];
}

/// Files raw/<beginning>*.csv.gz by name. Collective.
std::vector<std::string> OgbSource::other_files(const std::string& beginning) const {
  return shared_list(comm(), [&] {
    std::vector<std::string> found;
    std::error_code unreachable;
    for (const auto& entry : fs::directory_iterator(path_ + "/raw", unreachable)) {
      const std::string file = entry.path().filename().string();
      if (file.starts_with(beginning) && (file.ends_with(".csv.gz") || file.ends_with(".csv")))
        found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  });
}

/// The only line of a file: of one graph.
Index OgbSource::read_count(const std::string& name) {
  const std::string path = find_file(name, true);
  std::vector<std::int64_t> values;
  Index mine = -1;
  const TextCounts counts = read_lines(
      comm(), path, {}, block_bytes_,
      [&](std::string_view text) {
        const TableFormat format{.smallest = 0, .largest = Index{1} << 62};
        const TextCounts found = parse_table(text, format, values);
        if (!values.empty()) mine = values[0];
        return found;
      },
      [](Index) {});
  require<InputError>(counts.rows == 1, path, ": there are ", counts.rows,
                      " graphs, expected one (a dataset of node properties)");
  return comm().all_reduce(mine, ReduceOp::max);
}

/// A table with one row for each node or edge, as slices.
template <class T>
DataArray OgbSource::read_table(const std::string& path, const TableFormat& format,
                                const PartitionBook& slices) {
  DataArray mine;
  const Index expected = slices.num_nodes();
  comm().agree([&] {
    require<InputError>(expected <= TextFile(path).max_text_bytes(), path, ": the file is too small for ",
                        expected, " lines, expected one for each node or edge");
    std::vector<Index> row_shape;
    if (format.columns > 1 || std::same_as<T, float>) row_shape.push_back(format.columns);
    mine = DataArray(std::same_as<T, float> ? NpyType::float32 : NpyType::int64, row_shape,
                     slices.num_nodes(comm().rank()));
  });
  std::vector<T> values;
  const auto row_bytes = format.columns * static_cast<Index>(sizeof(T));
  const auto require_count = [&](Index rows, const char* at_least) {
    require<InputError>(rows == expected, path, ": there are ", at_least, rows,
                        " lines of numbers, expected ", expected, ", one for each node or edge");
  };
  const TextCounts counts = read_lines(
      comm(), path, {}, block_bytes_,
      [&](std::string_view text) { return parse_table(text, format, values); },
      [&](Index first) {
        const Index end =
            comm().all_reduce(first + static_cast<Index>(values.size()) / format.columns, ReduceOp::max);
        if (end > expected) require_count(end, "at least ");
        send_rows(comm(), slices, first, std::as_bytes(std::span<const T>(values)), row_bytes,
                  mine.bytes.data());
      });
  require_count(counts.rows, "");
  return mine;
}

/// Features are floating-point numbers; other tables are integers if all their numbers are.
void OgbSource::read_text_field(FieldTable& to, const std::string& field, const std::string& path,
                                bool features) {
  const PartitionBook slices = PartitionBook::even(&to == &nodes_ ? num_nodes_ : num_edges_, comm().size());
  TableFormat format;
  comm().agree([&] {
    if (comm().rank() == 0) format.columns = count_columns(read_beginning(path, Index{1} << 22));
  });
  format.columns = std::max<Index>(1, comm().all_reduce(comm().rank() == 0 ? format.columns : 0));
  format.may_miss = !features;
  DataArray mine;
  try {
    if (!features) mine = read_table<std::int64_t>(path, format, slices);
  } catch (const NotAnInteger&) {  // on all ranks
    features = true;
  }
  if (features) mine = read_table<float>(path, format, slices);
  DataField known{field, mine.type, mine.row_shape};
  add(to, std::move(known), std::make_unique<SlicedFieldData>(slices, std::move(mine)), path);
}

void OgbSource::read_text_graph() {
  num_nodes_ = read_count("num-node-list");
  num_edges_ = read_count("num-edge-list");
  const std::string path = find_file("edge", true);
  std::vector<std::int64_t> values;
  const TableFormat format{.columns = 2, .smallest = 0, .largest = num_nodes_ - 1};
  const TextCounts counts = read_lines(
      comm(), path, {}, block_bytes_,
      [&](std::string_view text) { return parse_table(text, format, values); },
      [&](Index first) {
        comm().agree([&] {
          std::vector<Index> src, dst;
          for (std::size_t i = 0; i < values.size(); i += 2) {
            src.push_back(values[i]);
            dst.push_back(values[i + 1]);
          }
          chunks_.add(first, src, dst);
        });
      });
  require<InputError>(counts.rows == num_edges_, path, ": there are ", counts.rows, " edges, expected ",
                      num_edges_, " by num-edge-list.csv.gz");
  require_plausible_size(path_);
  if (const std::string file = find_file("node-feat", false); !file.empty())
    read_text_field(nodes_, "features", file, true);
  if (const std::string file = find_file("node-label", false); !file.empty())
    read_text_field(nodes_, "labels", file, false);
  if (const std::string file = find_file("species", false); !file.empty())
    read_text_field(nodes_, "node_species", file, false);
  for (const std::string& file : other_files("node_"))
    read_text_field(nodes_, without_extension(file), file, false);
  if (const std::string file = find_file("edge-feat", false); !file.empty())
    read_text_field(edges_, "features", file, true);
  for (const std::string& file : other_files("edge_"))
    read_text_field(edges_, without_extension(file), file, false);
}

void OgbSource::read_splits(const std::string& scheme) {
  const std::string directory = path_ + "/split";
  const auto schemes = shared_list(comm(), [&] {
    std::vector<std::string> found;
    std::error_code unreachable;
    for (const auto& entry : fs::directory_iterator(directory, unreachable))
      if (entry.is_directory(unreachable)) found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  });
  if (schemes.empty() && scheme.empty()) return;
  std::string names;
  for (const std::string& name : schemes) names += (names.empty() ? "" : ", ") + name;
  require<InputError>(!scheme.empty() || schemes.size() == 1, directory, ": there are several splits (",
                      names, "), expected the name of one of them");
  const std::string chosen = scheme.empty() ? schemes[0] : scheme;
  require<InputError>(std::find(schemes.begin(), schemes.end(), chosen) != schemes.end(), directory,
                      ": there is no split ", chosen, ", expected ", names.empty() ? "none" : names);
  pair_lists_ = directory + "/" + chosen;
  if (!find_pair_lists().empty()) return;
  pair_lists_.clear();
  for (const auto& [file, mask] :
       {std::pair{"train", "train_mask"}, {"valid", "val_mask"}, {"test", "test_mask"}}) {
    const std::string path = concat(directory, "/", chosen, "/", file, ".csv");
    const auto found = shared_list(comm(), [&] {
      require<InputError>(
          is_there(path + ".gz") || is_there(path), path,
          ".gz: there is no such file, expected the numbers of nodes, or lists of pairs (train.npz)");
      return std::vector<std::string>{is_there(path + ".gz") ? path + ".gz" : path};
    });
    read_split(found[0], mask);
  }
}

/// Numbers of nodes -> a mask.
void OgbSource::read_split(const std::string& path, const std::string& mask) {
  const PartitionBook slices = PartitionBook::even(num_nodes_, comm().size());
  DataArray mine;
  comm().agree([&] {
    mine = DataArray(NpyType::boolean, {}, slices.num_nodes(comm().rank()));
    std::fill(mine.bytes.begin(), mine.bytes.end(), std::byte{0});
  });
  std::vector<std::int64_t> nodes;
  const TableFormat format{.smallest = 0, .largest = num_nodes_ - 1};
  read_lines(
      comm(), path, {}, block_bytes_, [&](std::string_view text) { return parse_table(text, format, nodes); },
      [&](Index) {
        std::sort(nodes.begin(), nodes.end());
        std::vector<Index> counts(static_cast<std::size_t>(comm().size()), 0);
        for (const Index node : nodes) ++counts[slices.owner(node)];
        const Index begin = slices.begin(comm().rank());
        for (const Index node : comm().all_to_all_v(std::span<const Index>(nodes), counts).values)
          mine.bytes[node - begin] = std::byte{1};
      });
  add(nodes_, {mask, NpyType::boolean, {}}, std::make_unique<SlicedFieldData>(slices, std::move(mine)), path);
}

}  // namespace sar::formats
