#include <sar/core/error.hpp>
#include <sar/core/file.hpp>
#include <sar/graph/data/file_name.hpp>
#include <sar/graph/data/hetero_dataset.hpp>
#include <sar/graph/data/new_directory.hpp>
#include <sar/graph/data/shared_npy.hpp>
#include <sar/graph/data/write_dataset.hpp>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <vector>

namespace sar::inline SAR_PRECISION {
namespace {

std::vector<Index> shape_of(const DataField& field, Index rows) {
  std::vector<Index> shape{rows};
  shape.insert(shape.end(), field.row_shape.begin(), field.row_shape.end());
  return shape;
}

/// [begin, begin + count) of an array
Array<Index> range(Index begin, Index count) {
  Array<Index> numbers(count);
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

/// Each rank writes an even share of the rows, in chunks of about 16 MiB. read(numbers) is collective.
template <class Read>
void write_field(const Communicator& comm, const std::string& path, const DataField& field, Index rows,
                 const Read& read) {
  SharedNpyFile file(comm, path, shape_of(field, rows), field.type);
  const PartitionBook shares = PartitionBook::even(rows, comm.size());
  const Index chunk = std::max<Index>(1, (Index{16} << 20) / std::max<Index>(1, field.row_bytes()));
  const Index chunks = (shares.num_nodes(0) + chunk - 1) / chunk;  // rank 0 has the most
  for (Index i = 0; i < chunks; ++i) {
    const Index first = std::min(shares.begin(comm.rank()) + i * chunk, shares.end(comm.rank()));
    const Index count = std::min(chunk, shares.end(comm.rank()) - first);
    const DataArray data = read(range(first, count));
    file.write(first * field.row_size(), data.bytes);
  }
  file.commit();
}

void write_edges(GraphSource& source, std::size_t type, Index num_edges, const std::string& path) {
  const Communicator& comm = source.comm();
  const std::vector<Index> shape{2, num_edges};
  EdgeList edges = source.read_edges_of(type);
  SharedNpyFile file(comm, path, shape, NpyType::int64);
  // the edges of a rank mostly have consecutive ids: runs of these are written at once
  for (Index begin = 0, end = 0; begin < edges.size(); begin = end) {
    for (end = begin + 1; end < edges.size() && edges.id[end] == edges.id[end - 1] + 1;) ++end;
    const Index first = edges.id[begin];
    const auto bytes = [&](const Array<Index>& column) {
      return std::as_bytes(std::span(column).subspan(begin, end - begin));
    };
    require<InputError>(0 <= first && edges.id[end - 1] < num_edges, source.name(), ": edge id ", first,
                        ", expected ids below ", num_edges);
    file.write(first, bytes(edges.src));
    file.write(num_edges + first, bytes(edges.dst));
  }
  file.commit();
}

/// Collective.
void make_directory(const Communicator& comm, const std::string& path) {
  comm.agree([&] {
    if (comm.rank() != 0) return;
    std::error_code error;
    std::filesystem::create_directories(path, error);
    require<InputError>(!error, path, ": cannot make the directory (", error.message(), ")");
  });
}

/// A directory for each type, and the description. Collective.
void write_types(GraphSource& source, const SourceTypes& types, const std::string& directory) {
  const Communicator& comm = source.comm();
  for (std::size_t t = 0; t < types.nodes.size(); ++t) {
    const SourceNodes& type = types.nodes[t];
    const std::string here = directory + "/nodes/" + escaped(type.name);
    make_directory(comm, here);
    for (const DataField& field : type.fields)
      write_field(comm, here + "/" + escaped(field.name) + ".npy", field, type.num_nodes,
                  [&](const Array<Index>& rows) { return source.read_node_data_of(t, field.name, rows); });
  }
  for (std::size_t k = 0; k < types.edges.size(); ++k) {
    const SourceEdges& type = types.edges[k];
    const std::string here = directory + "/edges/" + escaped(type.src_type, type.name, type.dst_type);
    make_directory(comm, here);
    write_edges(source, k, type.num_edges, here + "/edge_index.npy");
    for (const DataField& field : type.fields)
      write_field(comm, here + "/" + escaped("edge_" + field.name) + ".npy", field, type.num_edges,
                  [&](const Array<Index>& rows) { return source.read_edge_data_of(k, field.name, rows); });
  }
  comm.agree([&] {
    if (comm.rank() == 0) write_text(directory + "/hetero.json", format_dataset_types(types));
  });
}

}  // namespace

void write_dataset(GraphSource& source, const std::string& directory) {
  const Communicator& comm = source.comm();
  comm.agree([&] {
    NewDirectory out(comm, directory);
    const SourceTypes types = source.types();
    const bool homogeneous = types.nodes.size() == 1 && types.nodes[0].name == default_node_type &&
                             types.edges.size() == 1 && types.edges[0].name == default_edge_type;
    if (!homogeneous) {
      write_types(source, types, out.path());
      out.commit();
      return;
    }
    const auto path = [&](const std::string& prefix, const std::string& name) {
      require<InputError>(!name.empty() && name[0] != '.' && name.find('/') == std::string::npos,
                          source.name(), ": data are called '", name, "', expected the name of a file");
      return out.path() + "/" + (name.starts_with(prefix) ? name : prefix + name) + ".npy";
    };
    write_edges(source, 0, source.num_edges(), out.path() + "/edge_index.npy");
    for (const DataField& field : source.node_fields())
      write_field(comm, path("", field.name), field, source.num_nodes(),
                  [&](const Array<Index>& nodes) { return source.read_node_data(field.name, nodes); });
    for (const DataField& field : source.edge_fields())
      write_field(comm, path("edge_", field.name), field, source.num_edges(),
                  [&](const Array<Index>& edges) { return source.read_edge_data(field.name, edges); });
    out.commit();
  });
}

}  // namespace sar
