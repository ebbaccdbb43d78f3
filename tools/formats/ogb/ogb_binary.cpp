/// The binary form of OGB's folders: raw/data.npz, raw/node-label.npz.
#include "npz_rows.hpp"
#include "ogb_source.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/graph/data/sources/edge_index.hpp>

#include <array>
#include <memory>
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
  const NpyHeader& header = array.header();
  const std::string place = archive.place_of(member);
  const Index size = checked_num_elements(header.shape, header.type, place);
  require<InputError>(size <= most, place, ": shape is ", shape_to_string(header.shape), ", expected (1,)");
  DataArray mine(header.type, {}, comm.rank() == 0 ? size : 0);
  std::vector<Index> offsets(static_cast<std::size_t>(comm.size()) + 1, size);  // all of it to rank 0
  offsets[0] = 0;
  if (!array.stored()) array.deal(PartitionBook(offsets), element_bytes(header.type), mine.bytes.data());
  std::vector<Index> values(static_cast<std::size_t>(size));
  comm.agree([&] {
    if (comm.rank() != 0) return;
    if (array.stored()) array.stored()->read_raw(0, size, mine.bytes);
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

bool has_integers(NpyType type) {
  return type != NpyType::float16 && type != NpyType::float32 && type != NpyType::float64;
}

}  // namespace

void OgbSource::read_binary_graph() {
  const auto archive = open_npz(comm(), path_ + "/raw/data.npz");
  types_.nodes[0].num_nodes = count_in(comm(), *archive, "num_nodes_list");
  types_.edges[0].num_edges = count_in(comm(), *archive, "num_edges_list");
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
  NpzArray array(comm(), archive, member, NpyOrder::c_or_fortran);
  const NpyHeader& header = array.header();
  require<InputError>(has_integers(header.type) && header.shape == std::vector<Index>{2, num_edges()}, place,
                      ": shape is ", shape_to_string(header.shape), " of ", to_string(header.type),
                      ", expected (2, ", num_edges(), ") of int64");
  const PartitionBook slices = PartitionBook::even(num_edges(), comm().size());
  const Index begin = slices.begin(comm().rank()), end = slices.end(comm().rank());
  if (array.stored()) {
    comm().agree([&] {
      const EdgeList edges = read_edge_range(*array.stored(), num_nodes(), num_nodes(), begin, end);
      chunks_[0].add(begin, edges.src, edges.dst);
    });
    return;
  }
  const Index bytes = element_bytes(header.type);
  std::array<DataArray, 2> parts;  // sources and destinations, or pairs of them
  comm().agree([&] {
    if (header.fortran_order)
      parts[0] = DataArray(header.type, {2}, end - begin);
    else
      for (DataArray& part : parts) part = DataArray(header.type, {}, end - begin);
  });
  if (header.fortran_order)
    array.deal(slices, 2 * bytes, parts[0].bytes.data());
  else
    for (DataArray& part : parts) array.deal(slices, bytes, part.bytes.data());
  comm().agree([&] {
    const auto count = static_cast<std::size_t>(end - begin);
    std::array<std::vector<Index>, 2> ends{std::vector<Index>(count), std::vector<Index>(count)};
    if (header.fortran_order) {
      std::vector<Index> pairs(2 * count);
      convert_elements(header.type, parts[0].bytes.data(), static_cast<Index>(pairs.size()), pairs.data());
      parts[0] = {};
      for (std::size_t e = 0; e < 2 * count; ++e) ends[e % 2][e / 2] = pairs[e];
    } else {
      for (std::size_t i = 0; i < 2; ++i) {
        convert_elements(header.type, parts[i].bytes.data(), end - begin, ends[i].data());
        parts[i] = {};
      }
    }
    const std::string expected = index_range(num_nodes());
    for (std::size_t e = 0; e < count; ++e)
      for (const std::vector<Index>& nodes : ends)
        require<InputError>(0 <= nodes[e] && nodes[e] < num_nodes(), place, ": edge ",
                            begin + static_cast<Index>(e), " is (", ends[0][e], ", ", ends[1][e],
                            "), but there is no node ", nodes[e], ", expected ", expected);
    chunks_[0].add(begin, ends[0], ends[1]);
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
  const PartitionBook slices = PartitionBook::even(expected, comm().size());
  DataArray mine;
  comm().agree([&] { mine = DataArray(known.type, known.row_shape, slices.num_nodes(comm().rank())); });
  array.deal(slices, known.row_bytes(), mine.bytes.data());
  to.add(std::move(known), std::make_unique<SlicedFieldData>(slices, std::move(mine)), place);
}

}  // namespace sar::formats
