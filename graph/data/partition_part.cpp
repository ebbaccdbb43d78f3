// SPDX-License-Identifier: MIT

// A part is written as columns, each gathered in chunks of 4 MiB in the order (source part, destination,
// source, id): O(E log(degree)) for the order, then one random read per value. Reading is sequential,
// straight into the arrays; a second pass checks ranges and order of the edges and adds up the checksums.
#include <sar/core/files/file.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/construct/edge_exchange.hpp>
#include <sar/graph/data/partition_part.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

constexpr Index chunk_bytes = Index{1} << 22;

/// A checksum of arrays of numbers. It depends on the order of the numbers and on the arrays' lengths.
class Checksum {
 public:
  void add(std::span<const Index> numbers) noexcept {
    std::uint64_t state = state_;
    for (const Index number : numbers)
      state =
          std::rotl(state ^ (static_cast<std::uint64_t>(number) * golden_ratio), 29) * 0xbf58476d1ce4e5b9u;
    state_ = state;
  }
  void end_array(Index length) noexcept { add({&length, 1}); }
  [[nodiscard]] std::uint64_t value() const noexcept { return state_ ^ (state_ >> 32); }

 private:
  std::uint64_t state_ = 0x94d049bb133111ebu;
};

std::string part_directory(const std::string& directory, int part) {
  std::array<char, 24> name{};
  std::snprintf(name.data(), name.size(), "/part-%05d", part);
  return directory + name.data();
}
std::string node_directory(const std::string& directory, int part, const std::string& type) {
  return part_directory(directory, part) + "/nodes/" + escaped(type);
}
std::string edge_directory(const std::string& directory, int part, const EdgeTypeData& type) {
  return part_directory(directory, part) + "/edges/" + escaped(type.src_type, type.name, type.dst_type);
}

/// Writes the elements at the positions `order`, in that order.
void write_column(const std::string& path, const Array<Index>& column, const Array<Index>& order,
                  Checksum& checksum) {
  const std::array<Index, 1> shape{static_cast<Index>(order.size())};
  NpyWriter file(path, shape, NpyType::int64);
  Array<Index> chunk;
  for (std::size_t begin = 0; begin < order.size(); begin += chunk.size()) {
    chunk.resize(std::min<std::size_t>(chunk_bytes / sizeof(Index), order.size() - begin));
    for (std::size_t i = 0; i < chunk.size(); ++i) chunk[i] = column[order[begin + i]];
    checksum.add(chunk);
    file.write(std::as_bytes(std::span<const Index>(chunk)));
  }
  file.commit(/*flushed=*/false);
  checksum.end_array(shape[0]);
}

void write_array(const std::string& path, std::span<const Index> shape, NpyType type,
                 std::span<const std::byte> bytes) {
  NpyWriter file(path, shape, type);
  file.write(bytes);
  file.commit(/*flushed=*/false);
}

void write_data(const std::string& path, const DataArray& column, Index num_rows,
                const Array<Index>* order = nullptr) {
  require<ShapeError>(column.num_rows == num_rows, path, ": the data have ", column.num_rows,
                      " rows, expected ", num_rows);
  const std::vector<Index> shape = shape_of_rows(num_rows, column.row_shape);
  if (order == nullptr) return write_array(path, shape, column.type, column.bytes);
  NpyWriter file(path, shape, column.type);
  const auto rows =
      static_cast<std::size_t>(std::max<Index>(1, chunk_bytes / std::max<Index>(1, column.row_bytes())));
  for (std::size_t begin = 0; begin < order->size(); begin += rows) {
    const auto some = std::span(*order).subspan(begin, std::min(rows, order->size() - begin));
    file.write(column.take({some.begin(), some.end()}).bytes);
  }
  file.commit(/*flushed=*/false);
}

void write_edges(const std::string& directory, int part, const GraphData& graph, const EdgeTypeData& type,
                 Checksum& checksum) {
  const PartitionBook& src_book = graph.node_type(type.src_type).book;
  const PartitionBook& dst_book = graph.node_type(type.dst_type).book;
  const EdgeList& edges = type.edges;
  const std::string place = type.canonical_name();
  require<ShapeError>(edges.weight.empty(), place,
                      ": edges of a GraphData have weights, expected them as data");
  require<ShapeError>(edges.src.size() == edges.dst.size() && edges.src.size() == edges.id.size(), place,
                      ": there are ", edges.src.size(), " sources, ", edges.dst.size(), " destinations and ",
                      edges.id.size(), " ids, expected the same number");
  for (std::size_t e = 0; e < edges.src.size(); ++e)
    require<InputError>(0 <= edges.src[e] && edges.src[e] < src_book.num_nodes() &&
                            dst_book.begin(part) <= edges.dst[e] && edges.dst[e] < dst_book.end(part),
                        place, ": edge ", edges.id[e], " is (", edges.src[e], ", ", edges.dst[e],
                        "), expected a destination of part ", part);
  const std::string here = edge_directory(directory, part, type);
  make_directories(here + "/data");
  // positions of the edges by source part, destination, source, id
  const auto [source_offsets, order] =
      grouped(edge_order(dst_book.begin(part), dst_book.end(part), edges), src_book.num_parts(),
              [&](Index e) { return src_book.owner(edges.src[e]); });
  write_column(edge_file(directory, part, type, "src"), edges.src, order, checksum);
  write_column(edge_file(directory, part, type, "dst"), edges.dst, order, checksum);
  write_column(edge_file(directory, part, type, "id"), edges.id, order, checksum);
  write_ids(edge_file(directory, part, type, "source_offsets"), source_offsets);
  for (const auto& [name, column] : type.data)
    write_data(edge_file(directory, part, type, "data/" + escaped(name)), column, edges.size(), &order);
}

/// Checks the edges [begin, end) of the list, which are those of one part.
void check_edges(const EdgeList& edges, std::size_t begin, std::size_t end, std::span<const Index> offsets,
                 const PartitionBook& src_book, Index dst_begin, Index dst_end, const PartFiles& sources,
                 std::size_t file) {
  const std::string& path = sources.paths[file];
  require<InputError>(offsets.front() == 0 && offsets.back() == static_cast<Index>(end - begin) &&
                          std::is_sorted(offsets.begin(), offsets.end()),
                      path, ": source_offsets beside it start at ", offsets.front(), " and end at ",
                      offsets.back(), ", expected numbers from 0 to ", end - begin, " that do not decrease");
  const auto fail = [&](std::size_t e, const char* what, Index first, Index last) {
    throw InputError(concat(path, ": edge ", e - begin, " of the part is (", edges.src[e], ", ", edges.dst[e],
                            "), expected a ", what, " from ", first, " to ", last - 1));
  };
  for (std::size_t q = 0; q + 1 < offsets.size(); ++q) {
    const Index src_begin = src_book.begin(static_cast<int>(q));
    const Index src_end = src_book.end(static_cast<int>(q));
    const std::size_t first = begin + static_cast<std::size_t>(offsets[q]);
    const std::size_t last = begin + static_cast<std::size_t>(offsets[q + 1]);
    for (std::size_t e = first; e < last; ++e) {
      if (edges.src[e] < src_begin || edges.src[e] >= src_end) fail(e, "source", src_begin, src_end);
      if (edges.dst[e] < dst_begin || edges.dst[e] >= dst_end) fail(e, "destination", dst_begin, dst_end);
      require<InputError>(edges.id[e] >= 0, path, ": edge ", e - begin, " of the part has id ", edges.id[e],
                          ", expected a number from 0 on");
      const bool in_order = e == first || edges.dst[e - 1] < edges.dst[e] ||
                            (edges.dst[e - 1] == edges.dst[e] && edges.src[e - 1] <= edges.src[e]);
      require<InputError>(in_order, path, ": edge ", e - begin, " of the part is (", edges.src[e], ", ",
                          edges.dst[e], ") after (", edges.src[e - 1], ", ", edges.dst[e - 1],
                          "), expected edges by destination and source");
    }
  }
}

/// Reads the parts [first, last) as one.
struct PartReader {
  const std::string& directory;
  const PartitionDescription& description;
  int first, last;
  std::vector<Checksum> checksums = std::vector<Checksum>(last - first);

  GraphData read() {
    GraphData graph = description.graph;
    for (NodeTypeData& type : graph.node_types) read_nodes(type);
    for (std::size_t k = 0; k < graph.edge_types.size(); ++k)
      read_edges(graph, description.edges_per_part[k], graph.edge_types[k]);
    for (int part = first; part < last && !description.checksums.empty(); ++part)
      require<InputError>(checksums[part - first].value() == description.checksums[part],
                          part_directory(directory, part), ": the ids and edges have another checksum than ",
                          directory, "/partition.json says, expected the part that was written with it");
    return graph;
  }

  /// The array with the files path(part), which have rows(part) rows.
  template <class Path, class Rows>
  [[nodiscard]] PartFiles files_of(const Path& path, const Rows& rows) const {
    PartFiles all;
    for (int part = first; part < last; ++part) {
      all.paths.push_back(path(part));
      all.rows.push_back(rows(part));
    }
    return all;
  }

  /// Reads ids and adds them to the checksums of their parts.
  Array<Index> read_ids(const PartFiles& files) {
    Array<Index> ids = files.read_ids();
    std::span<const Index> rest(ids);
    for (std::size_t i = 0; i < files.rows.size(); ++i) {
      checksums[i].add(rest.first(files.rows[i]));
      checksums[i].end_array(files.rows[i]);
      rest = rest.subspan(files.rows[i]);
    }
    return ids;
  }

  void read_nodes(NodeTypeData& type) {
    const auto rows = [&](int part) { return type.book.num_nodes(part); };
    const PartFiles files =
        files_of([&](int part) { return node_file(directory, part, type.name, "original_ids"); }, rows);
    type.original_ids = read_ids(files);
    for (std::size_t i = 0, file = 0, begin = 0; i < type.original_ids.size(); ++i) {
      for (; static_cast<Index>(i - begin) == files.rows[file]; ++file) begin = i;
      require<InputError>(0 <= type.original_ids[i] && type.original_ids[i] < type.num_nodes(),
                          files.paths[file], ": element ", i - begin, " is ", type.original_ids[i],
                          ", expected ", index_range(type.num_nodes()));
    }
    for (const DataField& field : std::exchange(type.unread, {})) {
      if (field.is_sparse) {
        read_sparse(field, type);
        continue;
      }
      type.data[field.name] =
          files_of([&](int part) { return node_data_file(directory, part, type.name, field.name); }, rows)
              .read_data(field);
    }
  }

  void read_sparse(const DataField& field, NodeTypeData& type) {
    SparseArray& all = type.sparse[field.name];
    all.type = field.type;
    all.row_shape = field.row_shape;
    for (int part = first; part < last; ++part)
      read_sparse_part(sparse_folder(directory, part, type.name, field.name), field,
                       type.book.num_nodes(part), all);
  }

  void read_edges(const GraphData& graph, const std::vector<Index>& per_part, EdgeTypeData& type) {
    const PartitionBook& src_book = graph.node_type(type.src_type).book;
    const PartitionBook& dst_book = graph.node_type(type.dst_type).book;
    const auto rows = [&](int part) { return per_part[part]; };
    const auto files = [&](const std::string& array) {
      return files_of([&](int part) { return edge_file(directory, part, type, array); }, rows);
    };
    const PartFiles sources = files("src");
    type.edges.src = read_ids(sources);
    type.edges.dst = read_ids(files("dst"));
    type.edges.id = read_ids(files("id"));
    const auto num_offsets = static_cast<Index>(description.num_parts) + 1;
    std::size_t begin = 0;
    for (int part = first; part < last; ++part) {
      const Array<Index> offsets =
          PartFiles{{edge_file(directory, part, type, "source_offsets")}, {num_offsets}}.read_ids();
      const std::size_t end = begin + static_cast<std::size_t>(rows(part));
      check_edges(type.edges, begin, end, offsets, src_book, dst_book.begin(part), dst_book.end(part),
                  sources, static_cast<std::size_t>(part - first));
      begin = end;
    }
    for (const DataField& field : std::exchange(type.unread, {}))
      type.data[field.name] = files("data/" + escaped(field.name)).read_data(field);
  }
};

}  // namespace

std::string node_file(const std::string& directory, int part, const std::string& type,
                      const std::string& array) {
  return node_directory(directory, part, type) + "/" + array + ".npy";
}
std::string node_data_file(const std::string& directory, int part, const std::string& type,
                           const std::string& field) {
  return node_directory(directory, part, type) + "/data/" + escaped(field) + ".npy";
}
std::string sparse_folder(const std::string& directory, int part, const std::string& type,
                          const std::string& field) {
  return node_directory(directory, part, type) + "/data/" + escaped(field);
}
std::string edge_file(const std::string& directory, int part, const EdgeTypeData& type,
                      const std::string& array) {
  return edge_directory(directory, part, type) + "/" + array + ".npy";
}
PartSummary write_part(const std::string& directory, int part, const GraphData& graph) {
  Checksum checksum;
  for (const NodeTypeData& nodes : graph.node_types) {
    const std::string here = node_directory(directory, part, nodes.name);
    make_directories(here + "/data");
    const Index count = nodes.book.num_nodes(part);
    require<ShapeError>(static_cast<Index>(nodes.original_ids.size()) == count, nodes.name, ": there are ",
                        nodes.original_ids.size(), " original ids, expected ", count);
    write_ids(node_file(directory, part, nodes.name, "original_ids"), nodes.original_ids);
    checksum.add(nodes.original_ids);
    checksum.end_array(count);
    for (const auto& [name, column] : nodes.data)
      write_data(node_data_file(directory, part, nodes.name, name), column, count);
    for (const auto& [name, column] : nodes.sparse)
      write_sparse_part(sparse_folder(directory, part, nodes.name, name), column, count);
  }
  PartSummary summary;
  for (const EdgeTypeData& type : graph.edge_types) {
    write_edges(directory, part, graph, type, checksum);
    summary.num_edges.push_back(type.edges.size());
  }
  summary.checksum = checksum.value();
  return summary;
}

GraphData read_parts(const std::string& directory, const PartitionDescription& description, int first,
                     int last) {
  return PartReader{directory, description, first, last}.read();
}

void write_ids(const std::string& path, const Array<Index>& ids) {
  write_array(path, std::array{Index{std::ssize(ids)}}, NpyType::int64,
              std::as_bytes(std::span<const Index>(ids)));
}

Array<Index> PartFiles::read_ids() const {
  Array<Index> ids;
  read(NpyType::int64, {}, [&](Index total) {
    ids.resize(total);
    return std::as_writable_bytes(std::span<Index>(ids));
  });
  return ids;
}

DataArray PartFiles::read_data(const DataField& field) const {
  DataArray data;
  read(field.type, field.row_shape, [&](Index total) {
    data = DataArray(field.type, field.row_shape, total);
    return std::span<std::byte>(data.bytes);
  });
  return data;
}

void PartFiles::check(const NpyFile& file, std::size_t i, NpyType type,
                      const std::vector<Index>& row_shape) const {
  const std::vector<Index> shape = shape_of_rows(rows[i], row_shape);
  require<InputError>(file.type() == type, paths[i], ": dtype is ", to_string(file.type()), ", expected ",
                      to_string(type), " as in partition.json");
  require<InputError>(file.shape() == shape, paths[i], ": shape is ", shape_to_string(file.shape()),
                      ", expected ", shape_to_string(shape), " as in partition.json");
}

namespace {

/// The arrays of a sparse field.
struct SparseFiles {
  explicit SparseFiles(const std::string& folder)
      : row_offsets(folder + "/row_offsets.npy"),
        columns(folder + "/columns.npy"),
        values(folder + "/values.npy") {}
  std::string row_offsets, columns, values;
};

}  // namespace

void write_sparse_part(const std::string& folder, const SparseArray& rows, Index num_rows) {
  const SparseFiles files(folder);
  require<ShapeError>(rows.num_rows() == num_rows, files.row_offsets, ": the data have ", rows.num_rows(),
                      " rows, expected ", num_rows);
  make_directories(folder);
  write_ids(files.row_offsets, rows.row_offsets);
  const std::array<Index, 1> shape{rows.num_stored()};
  write_array(files.columns, shape, NpyType::int32, std::as_bytes(std::span(rows.columns)));
  write_array(files.values, shape, rows.type, rows.bytes);
}

void read_sparse_part(const std::string& folder, const DataField& field, Index num_rows, SparseArray& all) {
  const SparseFiles files(folder);
  const Array<Index> offsets = PartFiles{{files.row_offsets}, {num_rows + 1}}.read_ids();
  require<InputError>(offsets.front() == 0 && std::ranges::is_sorted(offsets), files.row_offsets,
                      ": the numbers go from ", offsets.front(), " to ", offsets.back(),
                      ", expected numbers from 0 on that do not decrease");
  const Index before = all.num_stored(), stored = offsets.back(), element = element_bytes(field.type);
  PartFiles{{files.columns}, {stored}}.read(NpyType::int32, {}, [&](Index total) {
    all.columns.resize(before + total);
    return std::as_writable_bytes(std::span(all.columns).subspan(before));
  });
  PartFiles{{files.values}, {stored}}.read(field.type, {}, [&](Index total) {
    all.bytes.resize((before + total) * element);
    return std::span<std::byte>(all.bytes).subspan(before * element);
  });
  const Index width = field.row_size();
  for (Index i = 0; i < num_rows; ++i)
    for (Index k = offsets[i]; k < offsets[i + 1]; ++k) {
      const Index column = all.columns[before + k];
      const Index least = k == offsets[i] ? 0 : Index{all.columns[before + k - 1]} + 1;
      require<InputError>(least <= column && column < width, files.columns, ": row ", i, " has column ",
                          column, ", expected columns from ", least, " to ", width - 1,
                          " in increasing order");
    }
  for (const Index offset : std::span(offsets).subspan(1)) all.row_offsets.push_back(before + offset);
}
}}  // namespace sar
