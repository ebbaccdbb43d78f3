/// The binary form of OGB's folders: raw/data.npz, raw/node-label.npz.
#include "npz_rows.hpp"
#include "ogb_source.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/graph/data/sources/edge_index.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sar::formats {
namespace {

const NpzMember& find_member(const NpzFile& archive, std::string_view name) {
  const NpzMember* member = archive.find(std::string(name));
  require<InputError>(member != nullptr, archive.path(), ": there is no array ", name,
                      ", expected an OGB dataset");
  return *member;
}

/// All integers of a short array.
std::vector<Index> read_integers(const Communicator& comm, const NpzFile& archive, const std::string& name) {
  constexpr Index most = 1 << 20;
  const NpzMember& member = find_member(archive, name);
  NpzArray array(comm, archive, member);
  const std::vector<Index>& shape = array.header().shape;
  const std::string place = archive.place_of(member);
  require<InputError>(shape.size() == 1 && shape[0] <= most, place, ": shape is ", shape_to_string(shape),
                      ", expected (1,)");
  std::vector<Index> offsets(static_cast<std::size_t>(comm.size()) + 1, shape[0]);  // all of it to rank 0
  offsets[0] = 0;
  const DataArray mine = array.read_rows(PartitionBook(offsets));
  std::vector<Index> values(static_cast<std::size_t>(shape[0]));
  comm.agree([&] {
    if (comm.rank() != 0) return;
    const Array<std::int64_t> integers = mine.to_integers(place);
    values.assign(integers.begin(), integers.end());
  });
  comm.broadcast(std::span<Index>(values), 0);
  return values;
}

/// The one number of a list with a number for each graph.
Index count_in(const Communicator& comm, const NpzFile& archive, const std::string& name) {
  const std::vector<Index> counts = read_integers(comm, archive, name);
  require<InputError>(counts.size() == 1, archive.path(), ": ", name, " has ", counts.size(),
                      " graphs, expected one (a dataset of node properties)");
  require<InputError>(counts[0] >= 0, archive.path(), ": ", name, " is ", counts[0],
                      ", expected no negative number");
  return counts[0];
}

/// Converts the ends of edges [begin, begin + elements.num_rows), which are row `row` of edge_index.
Array<Index> to_ends(const DataArray& elements, Index row, Index begin, const std::string& place) {
  Array<Index> nodes(static_cast<std::size_t>(elements.num_rows));
  const Index held = convert_elements(elements.type, elements.bytes.data(), elements.num_rows, nodes.data());
  if (held < elements.num_rows)
    throw_not_held<Index>(place, concat("element (", row, ", ", begin + held, ")"), elements.type,
                          elements.row(held));
  return nodes;
}

}  // namespace

void OgbSource::read_binary_graph() {
  const auto archive = open_npz(comm(), path_ + "/raw/data.npz");
  types_.node_types[0].book = slices_of(count_in(comm(), *archive, "num_nodes_list"));
  types_.edge_types[0].num_edges = count_in(comm(), *archive, "num_edges_list");
  require_plausible_size(archive->path());
  read_binary_edges(*archive);
  for (const NpzMember& member : archive->members()) {
    if (member.name.starts_with("node_"))
      add_binary_field(nodes_[0], member.name == "node_feat" ? "features" : member.name, *archive, member);
    else if (member.name.starts_with("edge_") && member.name != "edge_index")
      add_binary_field(edges_[0], member.name == "edge_feat" ? "features" : member.name, *archive, member);
  }
  const std::string labels = path_ + "/raw/node-label.npz";
  const bool binary_labels = is_there(labels);
  if (comm().all_reduce(binary_labels ? 1 : 0, ReduceOp::max) == 1) {
    const auto label_archive = open_npz(comm(), labels);
    add_binary_field(nodes_[0], "labels", *label_archive, find_member(*label_archive, "node_label"));
  } else {
    read_node_field(0, "labels", raw_, raw_.find_file("node-label", false), false);
  }
}

void OgbSource::read_binary_edges(const NpzFile& archive) {
  const NpzMember& member = find_member(archive, "edge_index");
  const std::string place = archive.place_of(member);
  NpzArray array(comm(), archive, member);
  const NpyHeader& header = array.header();
  require<InputError>(header.shape == std::vector<Index>{2, num_edges()}, place, ": shape is ",
                      shape_to_string(header.shape), ", expected (2, ", num_edges(), ")");
  const PartitionBook slices = slices_of(num_edges());
  const Index begin = slices.begin(comm().rank()), end = slices.end(comm().rank());
  if (array.stored()) {
    comm().agree([&] {
      const EdgeList edges = read_edge_range(*array.stored(), num_nodes(), num_nodes(), begin, end);
      chunks_[0].add(begin, edges.src, edges.dst);
    });
    return;
  }
  DataArray pairs;                 // of a file in Fortran order
  std::array<DataArray, 2> parts;  // sources and destinations
  comm().agree([&] {
    for (DataArray& part : parts) part = DataArray(header.type, {}, end - begin);
    if (header.fortran_order) pairs = DataArray(header.type, {2}, end - begin);
  });
  if (header.fortran_order) {
    array.deal(slices, pairs.row_bytes(), pairs.bytes.data());
    for (Index e = 0; e < pairs.num_rows; ++e)
      for (Index i = 0; i < 2; ++i)
        std::copy_n(pairs.row(e) + i * parts[i].row_bytes(), parts[i].row_bytes(), parts[i].row(e));
    pairs = {};
  } else {
    for (DataArray& part : parts) array.deal(slices, part.row_bytes(), part.bytes.data());
  }
  comm().agree([&] {
    EdgeList edges;
    edges.src = to_ends(parts[0], 0, begin, place);
    edges.dst = to_ends(parts[1], 1, begin, place);
    parts = {};
    edges.id.resize(end - begin);
    std::iota(edges.id.begin(), edges.id.end(), begin);
    require_nodes(place, edges, num_nodes(), num_nodes());
    chunks_[0].add(begin, edges.src, edges.dst);
  });
}

void OgbSource::add_binary_field(FieldTable& to, const std::string& field, const NpzFile& archive,
                                 const NpzMember& member) {
  const bool of_nodes = &to == &nodes_[0];
  const Index expected = of_nodes ? num_nodes() : num_edges();
  const std::string place = archive.place_of(member);
  NpzArray array(comm(), archive, member);
  const NpyHeader& header = array.header();
  require<InputError>(!header.shape.empty() && header.shape[0] == expected, place, ": shape is ",
                      shape_to_string(header.shape), ", expected ", expected, " rows, one for each ",
                      of_nodes ? "node" : "edge");
  DataField known{field, header.type, {header.shape.begin() + 1, header.shape.end()}};
  if (array.stored()) {
    to.add(std::move(known), std::make_unique<NpyFieldData>(std::move(array.stored())), place);
    return;
  }
  const PartitionBook slices = slices_of(expected);
  to.add(std::move(known), std::make_unique<SlicedFieldData>(slices, array.read_rows(slices)), place);
}

}  // namespace sar::formats
