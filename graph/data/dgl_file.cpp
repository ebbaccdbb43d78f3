// SPDX-License-Identifier: MIT

/// The layout of both kinds of files, little-endian. A list is a uint64 count and its elements; a text is a
/// list of bytes.
///
///   tensors      uint64 tensors_magic, uint64 count, list of named arrays
///   named array  text, array
///   array        uint64 array_magic, uint64 0, int32 device type (1: main memory), int32 device, int32
///                dimensions, uint8 kind (0 int, 1 uint, 2 float, 6 bool), uint8 bits, uint16 lanes (1),
///                int64 extents, int64 bytes, elements in C order
///   graphs       uint64 graphs_magic, 2, 2, number of graphs (1), anything up to byte 4096; uint64
///                position of the graph; list of named arrays; the graph; a text that holds the list of
///                positions, and its length as uint64
///   graph        uint64 hetero_graph_magic, meta graph (types as nodes and edges), list of relations, list
///                of int64 numbers of nodes, a list of lists of named arrays for nodes and one for edges, a
///                list of names of node types, one of edge types
///   meta graph   uint64 meta_graph_magic, CSR
///   relation     uint64 relation_magic, uint64 formats, uint64 formats allowed; then, for each of COO,
///                CSR, CSC that it has, a meta graph and the matrix. Where the upper half of `formats` is
///                not 0, the lower one is a sum of 1 (COO), 2 (CSR), 4 (CSC); in older files the word is 1,
///                2 or 3 (CSC) for the only one
///   COO          uint64 coo_magic, int64 columns, int64 rows, arrays of sources, destinations, edge ids
///                (empty: 0, 1, ...), 2 bytes
///   CSR, CSC     uint64 csr_magic, columns, rows, arrays indptr, indices, edge ids, a byte; in CSC, rows
///                are destinations
///
/// Ids are int32 or int64.
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/text.hpp>
#include <sar/graph/data/dgl_file.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

constexpr std::uint64_t tensors_magic = 0xDD5A9FBE3FA2443F;
constexpr std::uint64_t graphs_magic = 0xDD2E4FF046B4A13F;
constexpr std::uint64_t array_magic = 0xDD5E40F096B4A13F;
constexpr std::uint64_t hetero_graph_magic = 0xDD589FBE35224ABF;
constexpr std::uint64_t meta_graph_magic = 0xDD3C5FFE20046ABF;
constexpr std::uint64_t relation_magic = 0xDD2E60F0F6B4A127;
constexpr std::uint64_t csr_magic = 0xDD6CD31205DFF127;
constexpr std::uint64_t coo_magic = 0xDD61FFD305DFF127;

constexpr Index graphs_header_bytes = 4096;
constexpr Index least_array_bytes = 40;  // of a stored array without dimensions and data

/// DLPack's type of an element.
struct ElementType {
  std::uint8_t code = 0;
  std::uint8_t bits = 0;
  std::uint16_t lanes = 0;
};

std::string to_text(const ElementType& type) {
  constexpr const char* names[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  std::string text = type.code < std::size(names)
                         ? concat(names[type.code], int{type.bits})
                         : concat("type ", int{type.code}, " of ", int{type.bits}, " bits");
  if (type.lanes != 1) text += concat("x", type.lanes);
  return text;
}

/// Nothing for a type that NpyType does not have.
std::optional<NpyType> to_npy_type(const ElementType& from) {
  constexpr struct {
    std::uint8_t code, bits;
    NpyType type;
  } known[] = {{0, 8, NpyType::int8},     {0, 16, NpyType::int16},   {0, 32, NpyType::int32},
               {0, 64, NpyType::int64},   {1, 8, NpyType::uint8},    {1, 16, NpyType::uint16},
               {1, 32, NpyType::uint32},  {1, 64, NpyType::uint64},  {2, 16, NpyType::float16},
               {2, 32, NpyType::float32}, {2, 64, NpyType::float64}, {6, 8, NpyType::boolean}};
  for (const auto& each : known)
    if (each.code == from.code && each.bits == from.bits && from.lanes == 1) return each.type;
  return std::nullopt;
}

/// A file that is read from front to back.
class Reader {
 public:
  Reader(const std::string& path, const std::string& expected) : file_(path, expected) {}

  [[nodiscard]] Index offset() const noexcept { return offset_; }
  [[nodiscard]] Index remaining() const noexcept { return file_.size() - offset_; }

  template <class... Parts>
  void check(bool condition, const Parts&... parts) const {
    require<InputError>(condition, file_.path(), ": ", parts...);
  }

  void seek(Index offset) { offset_ = offset; }

  /// `what` names the value in errors.
  template <class T>
  T value(const std::string& what) {
    static_assert(std::is_trivially_copyable_v<T>);
    T result;
    bytes(&result, sizeof(T), what);
    return result;
  }

  void magic(std::uint64_t expected, const std::string& what) {
    const Index at = offset_;
    const auto found = value<std::uint64_t>(what);
    check(found == expected, what, " expected at byte ", at, " begins with ", hex(found), ", expected ",
          hex(expected));
  }

  /// How many elements of at least `least_bytes` follow.
  Index count(const std::string& what, Index least_bytes) {
    const Index at = offset_;
    const auto number = value<std::uint64_t>("the number of " + what);
    check(number <= static_cast<std::uint64_t>(remaining() / least_bytes), number, " ", what,
          " are announced at byte ", at, " and ", remaining(), " bytes are left, expected at least ",
          least_bytes, " for each");
    return static_cast<Index>(number);
  }

  std::string text(const std::string& what) {
    std::string result(count("characters of " + what, 1), ' ');
    bytes(result.data(), static_cast<Index>(result.size()), what);
    return result;
  }

  /// An array; its first extent counts rows.
  DataArray array(const std::string& name) {
    const std::string who = "tensor '" + name + "'";
    const Index at = offset_;
    magic(array_magic, who);
    value<std::uint64_t>(who);  // reserved
    const auto device = value<std::int32_t>(who);
    value<std::int32_t>(who);  // number of the device
    check(device == 1, who, " at byte ", at, " is on device ", device, ", expected 1 (main memory)");
    const auto dims = value<std::int32_t>(who);
    const auto stored = value<ElementType>(who);
    const std::optional<NpyType> type = to_npy_type(stored);
    check(type.has_value(), who, " at byte ", at, " has elements of ", to_text(stored),
          ", expected float16, float32, float64, bool, or integers of 8, 16, 32 or 64 bits");
    check(dims >= 1 && dims <= static_cast<Index>(max_file_dims), who, " at byte ", at, " has ", dims,
          " dimensions, expected 1 to ", max_file_dims);
    const std::vector<Index> shape = read_shape(dims, *type, concat(who, " at byte ", at));
    const Index size = checked_num_elements(shape, *type, file_.path()) * element_bytes(*type);
    const auto stored_size = value<Index>(who);
    check(stored_size == size, who, " at byte ", at, " of ", to_string(*type), " and shape ",
          shape_to_string(shape), " has ", stored_size, " bytes, expected ", size);
    check(size <= remaining(), who, " at byte ", at, " has ", size, " bytes, and the file ends after ",
          remaining(), " of them");
    DataArray result(*type, {shape.begin() + 1, shape.end()}, shape[0]);
    bytes(result.bytes.data(), size, who);
    return result;
  }

  /// One-dimensional, of integers.
  Array<Index> indices(const std::string& name) {
    return array(name).to_integers(concat(file_.path(), ": tensor '", name, "'"));
  }

  DataColumns named_arrays() {
    DataColumns columns;
    const Index number = count("tensors", 8 + least_array_bytes);
    for (Index i = 0; i < number; ++i) {
      std::string name = text("a tensor's name");
      check(!columns.contains(name), "tensor '", name, "' at byte ", offset_,
            " comes a second time, expected each once");
      DataArray data = array(name);
      columns.emplace(std::move(name), std::move(data));
    }
    return columns;
  }

  /// Named arrays of each of the types, with the number of rows that the type has.
  std::vector<DataColumns> columns_of_types(const std::vector<Index>& num_rows, const std::string& what) {
    const Index types = count("lists of " + what + " data", 8);
    check(types == static_cast<Index>(num_rows.size()), "there are ", types, " lists of ", what,
          " data, expected ", num_rows.size());
    std::vector<DataColumns> columns;
    for (const Index rows : num_rows) {
      columns.push_back(named_arrays());
      for (const auto& [name, data] : columns.back())
        check(data.num_rows == rows, "tensor '", name, "' has ", data.num_rows, " rows, expected ", rows,
              ", one for each ", what);
    }
    return columns;
  }

  std::vector<std::string> names(std::size_t expected, const std::string& what) {
    const Index number = count("names of " + what, 8);
    check(number == static_cast<Index>(expected), "there are ", number, " names of ", what, ", expected ",
          expected);
    std::vector<std::string> result;
    for (Index i = 0; i < number; ++i) result.push_back(text("a name of " + what));
    return result;
  }

 private:
  static std::string hex(std::uint64_t number) { return "0x" + exact_text(number, 16); }

  std::vector<Index> read_shape(Index dims, NpyType type, const std::string& who) {
    std::vector<Index> shape(dims);
    bytes(shape.data(), 8 * dims, who);
    std::vector<Index> widest = shape;  // an extent of 0 must not hide a product that overflows
    for (Index& extent : widest) {
      if (extent < 0)
        check(false, who, " has shape ", shape_to_string(shape), ", expected no negative extent");
      extent = std::max<Index>(extent, 1);
    }
    static_cast<void>(checked_num_elements(widest, type, concat(file_.path(), ": ", who)));
    return shape;
  }

  void bytes(void* out, Index size, const std::string& what) {
    check(size <= remaining(), "the file ends in ", what, " at byte ", offset_, ", expected ", size,
          " more bytes");
    file_.read(offset_, out, size);
    offset_ += size;
  }

  InputFile file_;
  Index offset_ = 0;
};

/// A sparse matrix whose element k is (row[k], col[k]).
struct Elements {
  Index num_rows = 0, num_cols = 0;
  Array<Index> row, col;

  bool operator==(const Elements&) const = default;
};

/// Moves element k to position ids[k]. Without ids, the elements are in order.
void order_by_id(const Reader& reader, Elements& elements, const Array<Index>& ids) {
  if (ids.empty()) return;
  const Index size = std::ssize(elements.row);
  reader.check(std::ssize(ids) == size, "a matrix of ", size, " elements has ", ids.size(),
               " ids, expected one for each");
  Array<Index> row(size), col(size);
  std::vector<bool> seen(size, false);
  for (Index k = 0; k < size; ++k) {
    const Index id = ids[k];
    reader.check(0 <= id && id < size && !seen[id], "element ", k, " of a matrix has id ", id,
                 ", expected each of ", index_range(size), " once");
    seen[id] = true;
    row[id] = elements.row[k];
    col[id] = elements.col[k];
  }
  elements.row = std::move(row);
  elements.col = std::move(col);
}

void read_extents(Reader& reader, Elements& elements) {
  elements.num_cols = reader.value<Index>("a matrix");
  elements.num_rows = reader.value<Index>("a matrix");
  reader.check(elements.num_rows >= 0 && elements.num_cols >= 0, "a matrix before byte ", reader.offset(),
               " has ", elements.num_rows, " rows and ", elements.num_cols,
               " columns, expected no less than 0");
}

void require_in_range(const Reader& reader, const Array<Index>& indices, Index end, const char* what) {
  for (const Index i : indices)
    reader.check(0 <= i && i < end, "a matrix has an element in ", what, " ", i, ", expected ",
                 index_range(end));
}

Elements read_csr(Reader& reader) {
  reader.magic(csr_magic, "a CSR matrix");
  Elements result;
  read_extents(reader, result);
  const Array<Index> begins = reader.indices("indptr");
  result.col = reader.indices("indices");
  const Array<Index> ids = reader.indices("edge ids");
  reader.value<std::uint8_t>("a CSR matrix");  // sorted?
  const auto size = static_cast<Index>(result.col.size());
  reader.check(result.num_rows == static_cast<Index>(begins.size()) - 1 && begins.front() == 0 &&
                   begins.back() == size && std::is_sorted(begins.begin(), begins.end()),
               "indptr of a matrix of ", result.num_rows, " rows and ", size, " elements has ", begins.size(),
               " entries, expected ", result.num_rows, " + 1 that rise from 0 to ", size);
  require_in_range(reader, result.col, result.num_cols, "column");
  result.row.resize(result.col.size());
  for (Index r = 0; r < result.num_rows; ++r)
    std::fill(result.row.begin() + begins[r], result.row.begin() + begins[r + 1], r);
  order_by_id(reader, result, ids);
  return result;
}

Elements read_coo(Reader& reader) {
  reader.magic(coo_magic, "a COO matrix");
  Elements result;
  read_extents(reader, result);
  result.row = reader.indices("row");
  result.col = reader.indices("col");
  const Array<Index> ids = reader.indices("edge ids");
  reader.value<std::uint16_t>("a COO matrix");  // sorted by row? by column?
  reader.check(result.row.size() == result.col.size(), "a COO matrix has ", result.row.size(), " rows and ",
               result.col.size(), " columns of elements, expected as many");
  require_in_range(reader, result.row, result.num_rows, "row");
  require_in_range(reader, result.col, result.num_cols, "column");
  order_by_id(reader, result, ids);
  return result;
}

/// Types as nodes and edges of a small graph.
Elements read_meta_graph(Reader& reader) {
  reader.magic(meta_graph_magic, "a meta graph");
  return read_csr(reader);
}

/// The formats in which the edges of a type are stored, one after the other in this order.
constexpr std::uint32_t coo_bit = 1, csr_bit = 2, csc_bit = 4;

/// From the word in front of the edges. Where its upper half is set, the lower half has a bit for each format
/// (DGL 0.8 and later); otherwise it is the number of the only one.
std::uint32_t read_formats(Reader& reader) {
  const auto format = reader.value<std::uint32_t>("the edges of a type");
  const bool has_bits = reader.value<std::uint32_t>("the edges of a type") != 0;
  reader.value<std::uint64_t>("the edges of a type");  // the formats that DGL may make
  if (has_bits) {
    reader.check(1 <= format && format <= 7, "the edges of a type are in the formats ", format,
                 ", expected a sum of 1 (COO), 2 (CSR) and 4 (CSC)");
    return format;
  }
  reader.check(1 <= format && format <= 3, "the edges of a type are in format ", format,
               ", expected 1 (COO), 2 (CSR) or 3 (CSC)");
  return format == 3 ? csc_bit : format;
}

/// The edges of one type: element e is (source, destination). All formats must hold the same edges.
Elements read_relation(Reader& reader) {
  reader.magic(relation_magic, "the edges of a type");
  const std::uint32_t formats = read_formats(reader);
  std::optional<Elements> result;
  for (const std::uint32_t format : {coo_bit, csr_bit, csc_bit}) {
    if ((formats & format) == 0) continue;
    read_meta_graph(reader);  // of this type alone
    Elements found = format == coo_bit ? read_coo(reader) : read_csr(reader);
    if (format == csc_bit) {  // rows are destinations
      std::swap(found.num_rows, found.num_cols);
      std::swap(found.row, found.col);
    }
    reader.check(!result || *result == found, "the edges of a type before byte ", reader.offset(),
                 " are others in ", format == csr_bit ? "CSR" : "CSC",
                 " than in the format before it, expected the same");
    result = std::move(found);
  }
  return std::move(*result);
}

void read_graph(Reader& reader, DglGraph& graph) {
  reader.magic(hetero_graph_magic, "a graph");
  const Elements meta = read_meta_graph(reader);
  reader.check(meta.num_rows == meta.num_cols, "the meta graph has ", meta.num_rows, " rows and ",
               meta.num_cols, " columns, expected as many");
  const Index num_edge_types = reader.count("types of edges", 8);
  reader.check(num_edge_types == static_cast<Index>(meta.row.size()), "there are ", num_edge_types,
               " types of edges and the meta graph has ", meta.row.size(), ", expected as many");
  std::vector<Elements> relations;
  for (Index t = 0; t < num_edge_types; ++t) relations.push_back(read_relation(reader));

  const Index num_node_types = reader.count("types of nodes", 8);
  reader.check(num_node_types == meta.num_rows, "there are ", num_node_types,
               " types of nodes and the meta graph has ", meta.num_rows, ", expected as many");
  std::vector<Index> num_nodes, num_edges;
  for (Index t = 0; t < num_node_types; ++t) {
    num_nodes.push_back(reader.value<Index>("numbers of nodes"));
    reader.check(num_nodes.back() >= 0, "there are ", num_nodes.back(), " nodes of type ", t,
                 ", expected no less than 0");
  }
  for (std::size_t t = 0; t < relations.size(); ++t) {
    const Index src_nodes = num_nodes[meta.row[t]];
    const Index dst_nodes = num_nodes[meta.col[t]];
    reader.check(relations[t].num_rows == src_nodes && relations[t].num_cols == dst_nodes, "edges of type ",
                 t, " are between ", relations[t].num_rows, " and ", relations[t].num_cols,
                 " nodes, expected ", src_nodes, " and ", dst_nodes);
    num_edges.push_back(static_cast<Index>(relations[t].row.size()));
  }

  std::vector<DataColumns> node_data = reader.columns_of_types(num_nodes, "node");
  std::vector<DataColumns> edge_data = reader.columns_of_types(num_edges, "edge");
  std::vector<std::string> node_names = reader.names(num_nodes.size(), "types of nodes");
  std::vector<std::string> edge_names = reader.names(num_edges.size(), "types of edges");
  for (std::size_t t = 0; t < num_nodes.size(); ++t)
    graph.node_types.push_back({std::move(node_names[t]), num_nodes[t], std::move(node_data[t])});
  for (std::size_t t = 0; t < num_edges.size(); ++t)
    graph.edge_types.push_back({std::move(edge_names[t]), meta.row[t], meta.col[t],
                                std::move(relations[t].row), std::move(relations[t].col),
                                std::move(edge_data[t])});
}

}  // namespace

DataColumns read_dgl_tensors(const std::string& path) {
  Reader reader(path, "a file of tensors written by DGL");
  reader.magic(tensors_magic, "DGL's file of tensors");
  const auto announced = reader.value<std::uint64_t>("the number of tensors");
  DataColumns tensors = reader.named_arrays();
  reader.check(announced == tensors.size(), announced, " tensors are announced and ", tensors.size(),
               " found, expected as many");
  reader.check(reader.remaining() == 0, reader.remaining(), " bytes follow the last tensor, expected none");
  return tensors;
}

DglGraph read_dgl_graph(const std::string& path) {
  Reader reader(path, "a file of graphs written by DGL");
  reader.magic(graphs_magic, "DGL's file of graphs");
  const auto version = reader.value<std::uint64_t>("the version");
  const auto kind = reader.value<std::uint64_t>("the kind of graphs");
  reader.check(version == 2 && kind == 2, "graphs of kind ", kind, " in version ", version,
               " of the format, expected kind 2 in version 2 (DGL 0.5 and later)");
  const auto number = reader.value<std::uint64_t>("the number of graphs");
  reader.check(number == 1, "the file holds ", number, " graphs, expected one");
  reader.check(reader.remaining() >= graphs_header_bytes, "the file ends in its header, expected ",
               graphs_header_bytes, " bytes");
  reader.seek(graphs_header_bytes);
  const auto begin = reader.value<Index>("the position of the graph");
  reader.check(begin >= reader.offset() && begin <= reader.offset() + reader.remaining(),
               "the graph begins at byte ", begin, ", expected a position after ", reader.offset(),
               " in the file");
  reader.seek(begin);  // tensors of the file as a whole lie between
  DglGraph graph;
  read_graph(reader, graph);

  // the table of positions: a text that holds a list, and its length
  const Index table = 2 * 8;
  const auto length = reader.value<std::uint64_t>("the table of graphs");
  const auto entries = reader.value<std::uint64_t>("the table of graphs");
  const auto position = reader.value<Index>("the table of graphs");
  const auto length_again = reader.value<std::uint64_t>("the table of graphs");
  reader.check(length == table && length_again == table && entries == 1 && position == begin &&
                   reader.remaining() == 0,
               "the table of graphs has ", entries, " entries, the first of them ", position, ", and ",
               reader.remaining(), " bytes follow, expected one, ", begin, ", and none");
  return graph;
}
}}  // namespace sar
