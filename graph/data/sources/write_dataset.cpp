// SPDX-License-Identifier: MIT
#include <sar/comm/files/new_directory.hpp>
#include <sar/comm/files/shared_npy.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/graph/data/row_chunks.hpp>
#include <sar/graph/data/sources/dataset_source.hpp>
#include <sar/graph/data/sources/write_dataset.hpp>

#include <filesystem>
#include <system_error>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Each rank writes an even share of the rows, in chunks of about 16 MiB. read(numbers) is collective.
template <class Read>
void write_field(const Communicator& comm, const std::string& path, const DataField& field, Index rows,
                 const Read& read) {
  std::vector<Index> shape{rows};
  shape.insert(shape.end(), field.row_shape.begin(), field.row_shape.end());
  SharedNpyFile file(comm, path, shape, field.type);
  for_each_chunk(comm, field, rows, [&](const Array<Index>& numbers, Index first) {
    const DataArray data = read(numbers);
    file.write(first * field.row_size(), data.bytes);
  });
  file.commit();
}

void write_edges(GraphSource& source, std::size_t type, Index num_edges, const std::string& path) {
  const Communicator& comm = source.comm();
  const std::vector<Index> shape{2, num_edges};
  EdgeList edges = source.read_edges(type);
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

/// Writes edges and data; the arguments say the folder of a type and the file of a field. Collective.
template <class Nodes, class Edges, class File>
void write_types(GraphSource& source, const Nodes& nodes_folder, const Edges& edges_folder,
                 const File& file) {
  const Communicator& comm = source.comm();
  const GraphData& types = source.types();
  for (std::size_t t = 0; t < types.node_types.size(); ++t) {
    const std::string here = nodes_folder(types.node_types[t]);
    make_directory(comm, here);
    for (const DataField& field : types.node_types[t].unread)
      write_field(comm, here + "/" + file("", field.name), field, types.node_types[t].num_nodes(),
                  [&](const Array<Index>& rows) { return source.read_node_data(t, field.name, rows); });
  }
  for (std::size_t k = 0; k < types.edge_types.size(); ++k) {
    const std::string here = edges_folder(types.edge_types[k]);
    make_directory(comm, here);
    write_edges(source, k, types.edge_types[k].num_edges, here + "/edge_index.npy");
    for (const DataField& field : types.edge_types[k].unread)
      write_field(comm, here + "/" + file("edge_", field.name), field, types.edge_types[k].num_edges,
                  [&](const Array<Index>& rows) { return source.read_edge_data(k, field.name, rows); });
  }
}

}  // namespace

void write_dataset(GraphSource& source, const std::string& directory) {
  const Communicator& comm = source.comm();
  comm.agree([&] {
    NewDirectory out(comm, directory);
    const GraphData& types = source.types();
    if (types.is_homogeneous() && types.node_types[0].name == default_node_type &&
        types.edge_types[0].name == default_edge_type) {
      const auto folder = [&](const auto&) { return out.path(); };
      write_types(source, folder, folder, [&](const std::string& prefix, const std::string& name) {
        require<InputError>(!name.empty() && name[0] != '.' && name.find('/') == std::string::npos,
                            source.name(), ": data are called '", name, "', expected the name of a file");
        return (name.starts_with(prefix) ? name : prefix + name) + ".npy";
      });
    } else {
      write_types(
          source, [&](const NodeTypeData& type) { return out.path() + "/nodes/" + escaped(type.name); },
          [&](const EdgeTypeData& type) {
            return out.path() + "/edges/" + escaped(type.src_type, type.name, type.dst_type);
          },
          [](const std::string& prefix, const std::string& name) { return escaped(prefix + name) + ".npy"; });
      comm.agree([&] {
        if (comm.rank() == 0) write_text(out.path() + "/hetero.json", format_dataset_types(types));
      });
    }
    out.commit();
  });
}

}}  // namespace sar
