// SPDX-License-Identifier: MIT

/// The splits of OGB's folders of link prediction: lists of pairs of nodes.
#include "formats/packed/npz_rows.hpp"
#include "formats/packed/sliced_rows.hpp"
#include "formats/packed/zip_file.hpp"
#include "ogb_source.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <numeric>
#include <utility>

namespace sar::formats {
namespace {

/// A column of integers.
Array<Index> column_of(const DataArray& rows, Index column) {
  Array<Index> all(static_cast<std::size_t>(rows.num_rows * rows.row_size()));
  convert_elements(rows.type, rows.bytes.data(), static_cast<Index>(all.size()), all.data());
  Array<Index> values;
  for (Index i = 0; i < rows.num_rows; ++i) values.push_back(all[i * rows.row_size() + column]);
  return values;
}

/// `file`: "train.csv.gz" -> there or not, packed or not.
std::string csv_of(const std::string& path) {
  return is_there_or_packed(path + ".csv.gz") ? path + ".csv.gz"
         : is_there_or_packed(path + ".csv")  ? path + ".csv"
                                              : "";
}

}  // namespace

std::vector<std::string> OgbSource::find_pair_lists() const {
  return shared_list(comm(), [&] {
    std::vector<std::string> found;
    for (const char* list : {"/train", "/valid", "/test"})
      for (const char* form : {".npz", "/edge.csv.gz", "/edge.csv", "/source_node.csv.gz", "/source_node.csv",
                               "/head.csv.gz", "/head.csv", ".pt"})
        if (is_there_or_packed(pair_lists_ + list + form) && csv_of(pair_lists_ + list).empty())
          found.push_back(pair_lists_ + list + form);
    return found;
  });
}

std::vector<ListedPairs> OgbSource::read_listed_pairs(std::size_t type) {
  if (pair_lists_.empty()) return {};
  std::vector<ListedPairs> lists;
  const Index relation = has_types_ ? relation_number(type) : 0;
  for (const char* list : {"/train", "/valid", "/test"})
    lists.push_back(has_types_ ? read_triples(pair_lists_ + list, type, relation)
                               : read_pairs(pair_lists_ + list));
  return lists;
}

/// The lists "edge" and "edge_neg", or "source_node", "target_node" and "target_node_neg".
ListedPairs OgbSource::read_pairs(const std::string& list) {
  ListedPairs pairs;
  const std::optional<DataArray> edge = read_pair_array(list, "edge", 2);
  if (edge) {
    pairs.edges.src = column_of(*edge, 0);
    pairs.edges.dst = column_of(*edge, 1);
    if (const auto negative = read_pair_array(list, "edge_neg", 2))
      pairs.negatives = {column_of(*negative, 0), column_of(*negative, 1)};
  } else {
    const auto source = read_pair_array(list, "source_node", 1),
               target = read_pair_array(list, "target_node", 1);
    require<InputError>(
        source && target, list,
        source || target ? ": source_node or target_node is missing" : ".npz: there are no pairs",
        ", expected the array edge, or source_node and target_node");
    pairs.edges.src = column_of(*source, 0);
    pairs.edges.dst = column_of(*target, 0);
    const Index ends[] = {comm().all_reduce(source->num_rows), comm().all_reduce(target->num_rows)};
    require<InputError>(ends[0] == ends[1], list, ": source_node has ", ends[0], " rows, expected ", ends[1],
                        " as target_node");
    if (const auto negative = read_pair_array(list, "target_node_neg", 0)) {
      const Index rows = comm().all_reduce(negative->num_rows);
      require<InputError>(rows == ends[0], list, ": target_node_neg has ", rows, " rows, expected ", ends[0],
                          " as source_node");
      pairs.negatives_per_edge = negative->row_size();
      for (Index i = 0; i < negative->num_rows; ++i)
        pairs.negatives.src.insert(pairs.negatives.src.end(), static_cast<std::size_t>(negative->row_size()),
                                   pairs.edges.src[i]);
      pairs.negatives.dst.resize(pairs.negatives.src.size());
      convert_elements(negative->type, negative->bytes.data(), std::ssize(pairs.negatives.dst),
                       pairs.negatives.dst.data());
    }
  }
  pairs.edges.id.resize(pairs.edges.src.size());
  const auto before = comm().all_gather(std::ssize(pairs.edges.src));
  std::iota(pairs.edges.id.begin(), pairs.edges.id.end(),
            std::accumulate(before.begin(), before.begin() + comm().rank(), Index{0}));
  return pairs;
}

/// This rank's slice of an array of nodes, [n] or [n, columns]; 0: any. None if there is none of the name.
std::optional<DataArray> OgbSource::read_pair_array(const std::string& list, const std::string& name,
                                                    Index columns, Index end, const char* what) {
  const auto files = shared_list(comm(), [&] {
    const std::string path = is_there_or_packed(list + ".npz") ? list + ".npz" : csv_of(list + "/" + name);
    require<InputError>(
        is_there_or_packed(list + ".npz") || !is_there_or_packed(list + ".pt") || is_there_or_packed(list),
        list, ".pt: is a file of torch, expected ", list,
        ".npz, as Python writes it: numpy.savez(\"train.npz\", **torch.load(\"train.pt\", "
        "weights_only=False)) and so on");
    return path.empty() ? std::vector<std::string>() : std::vector<std::string>{path};
  });
  if (files.empty()) return std::nullopt;
  std::string place = files[0];
  DataArray rows;
  if (place.ends_with(".npz")) {
    const auto archive = open_npz(comm(), place);
    const NpzMember* member = archive->find(name);
    if (member == nullptr) return std::nullopt;
    place = archive->place_of(*member);
    rows = read_pair_member(*archive, *member);
  } else {
    rows = read_pair_text(place, end);
  }
  const Index all = comm().all_reduce(rows.num_rows);
  comm().agree([&] {
    require<InputError>(all == 0 || columns == 0 || rows.row_size() == columns, place, ": a row has ",
                        rows.row_size(), " numbers, expected ", columns);
    Array<Index> nodes(static_cast<std::size_t>(rows.num_rows * rows.row_size()));
    const Index held = convert_elements(rows.type, rows.bytes.data(), std::ssize(nodes), nodes.data());
    if (held < std::ssize(nodes))
      throw_not_held<Index>(place, concat("a ", what), rows.type,
                            rows.bytes.data() + held * element_bytes(rows.type));
    for (const Index node : nodes)
      require<InputError>(0 <= node && node < end, place, ": there is no ", what, " ", node, ", expected ",
                          index_range(end));
  });
  return rows;
}

/// A table whose number of lines is known in the end.
DataArray OgbSource::read_pair_text(const std::string& path, Index end) {
  TableFormat format{.columns = 0, .smallest = 0, .largest = end - 1};
  comm().agree([&] {
    if (comm().rank() == 0) format.columns = count_columns(read_beginning(path, Index{1} << 22));
  });
  format.columns = std::max<Index>(1, comm().all_reduce(format.columns));
  std::vector<std::pair<Index, std::vector<std::int64_t>>> blocks;
  std::vector<std::int64_t> values;
  const TextCounts counts = read_lines(
      comm(), path, {}, block_bytes_,
      [&](std::string_view text) { return parse_table(text, format, values); },
      [&](const BlockPlace& at) {
        comm().agree([&] { blocks.emplace_back(at.first_row, std::exchange(values, {})); });
      });
  const PartitionBook slices = slices_of(counts.rows);
  DataArray mine;
  comm().agree([&] {
    mine = DataArray(NpyType::int64, {format.columns}, slices.num_nodes(comm().rank()));
    blocks.resize(static_cast<std::size_t>(comm().all_reduce(std::ssize(blocks), ReduceOp::max)));
  });
  for (const auto& [first, block] : blocks)
    send_rows(comm(), slices, first, std::as_bytes(std::span<const std::int64_t>(block)), mine.row_bytes(),
              mine.bytes.data());
  return mine;
}

DataArray OgbSource::read_pair_member(const NpzFile& archive, const NpzMember& member) {
  NpzArray array(comm(), archive, member);
  const std::vector<Index>& shape = array.header().shape;
  require<InputError>(shape.size() == 1 || shape.size() == 2, archive.place_of(member), ": shape is ",
                      shape_to_string(shape), ", expected nodes [n] or [n, k]");
  return array.read_rows(slices_of(shape[0]));
}

}  // namespace sar::formats
