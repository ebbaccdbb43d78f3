#include <sar/comm/rows/replace_ids.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/half.hpp>
#include <sar/core/index_set.hpp>
#include <sar/core/memory.hpp>
#include <sar/graph/build/edge_exchange.hpp>
#include <sar/graph/data/graph_data.hpp>
#include <sar/graph/data/partition_directory.hpp>
#include <sar/graph/data/partition_graph.hpp>
#include <sar/graph/partition/assignment.hpp>
#include <sar/graph/partition/node_order.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

/// This rank's share of the edges that shall be partitioned, in original ids and with all transforms but
/// drop_duplicates: only the owner of a node has all of its in-edges. Collective.
EdgeList read_transformed_edges(GraphSource& source, const PartitionBook& slices,
                                const PartitionGraphOptions& options) {
  EdgeList edges = source.read_edges();
  edges.weight = {};
  Index next_id = source.num_edges();
  if (options.add_reverse_edges) {
    const std::size_t count = edges.src.size();
    for (Array<Index>* column : {&edges.src, &edges.dst, &edges.id}) column->resize(2 * count);
    for (std::size_t e = 0; e < count; ++e) {
      edges.src[count + e] = edges.dst[e];
      edges.dst[count + e] = edges.src[e];
      edges.id[count + e] = next_id + edges.id[e];
    }
    next_id *= 2;
  }
  if (options.add_self_loops) {
    const int rank = source.comm().rank();
    Array<Index> nodes(slices.num_nodes(rank));
    std::iota(nodes.begin(), nodes.end(), slices.begin(rank));
    append_self_loops(slices.begin(rank), nodes, next_id, false, edges);
  }
  return edges;
}

/// One 0 or 1 for each node of this rank's slice; empty when the source has no "train_mask". Collective.
Array<std::uint8_t> read_train_mask(GraphSource& source, const PartitionBook& slices) {
  const auto& fields = source.node_fields();
  if (std::none_of(fields.begin(), fields.end(), [](const DataField& f) { return f.name == "train_mask"; }))
    return {};
  const int rank = source.comm().rank();
  Array<Index> nodes(slices.num_nodes(rank));
  std::iota(nodes.begin(), nodes.end(), slices.begin(rank));
  const DataArray rows = source.read_node_data("train_mask", nodes);
  Array<std::uint8_t> mask;
  source.comm().agree([&] { mask = rows.to_mask(source.name() + ": train_mask"); });
  return mask;
}

/// The global ids of all nodes.
struct Numbering {
  PartitionBook parts;           ///< the ids of each part
  PartitionBook ranks;           ///< the ids of each rank, which writes several parts
  Array<Index> of_slice;         ///< the ids of the original nodes of this rank's slice
  Array<Index> original_ids;     ///< the original ids of this rank's ids
  std::vector<int> owned_parts;  ///< the parts that this rank writes, increasing
};

/// Numbers the nodes of each part in the order of their original ids. Collective.
Numbering number_nodes(const Communicator& comm, const PartitionBook& slices,
                       std::span<const std::int32_t> part_of, int num_parts) {
  const auto parts = static_cast<std::size_t>(num_parts);
  const auto rank = static_cast<std::size_t>(comm.rank());
  std::vector<Index> counts(parts, 0);
  for (const std::int32_t part : part_of) ++counts[part];
  const std::vector<Index> all = comm.all_gather(std::span<const Index>(counts));  // [ranks][parts]

  std::vector<Index> offsets{0}, next(parts);  // next: the first id for a node of this slice, by part
  for (std::size_t p = 0; p < parts; ++p) {
    Index end = offsets.back();
    for (std::size_t q = 0; q < static_cast<std::size_t>(comm.size()); ++q) {
      if (q == rank) next[p] = end;
      end += all[q * parts + p];
    }
    offsets.push_back(end);
  }
  const PartitionBook part_owners = PartitionBook::even(num_parts, comm.size());

  Numbering numbers;
  numbers.parts = PartitionBook(offsets);
  numbers.ranks = numbers.parts.joined(part_owners);
  for (Index p = part_owners.begin(comm.rank()); p < part_owners.end(comm.rank()); ++p)
    numbers.owned_parts.push_back(static_cast<int>(p));

  numbers.of_slice.reserve(part_of.size());
  for (const std::int32_t part : part_of) numbers.of_slice.push_back(next[part]++);
  struct Node {
    Index id, original;
  };
  std::vector<Node> nodes;
  numbers.original_ids.resize(numbers.ranks.num_nodes(comm.rank()));
  route_chunks(
      comm, static_cast<Index>(part_of.size()), sizeof(Node),
      [&](Index i) { return numbers.ranks.owner(numbers.of_slice[i]); },
      [&](const RowRoute& route, Index first, Index last) {
        nodes.clear();
        for (Index i = first; i < last; ++i)
          nodes.push_back({numbers.of_slice[i], slices.begin(comm.rank()) + i});
        for (const Node& node : route.forward(std::span<const Node>(nodes)))
          numbers.original_ids[node.id - numbers.ranks.begin(comm.rank())] = node.original;
      });
  return numbers;
}

/// Positions of the edges whose destinations are nodes of a part, in a list ordered by destination.
struct Range {
  std::size_t begin, end;
};
Range edges_of_part(const EdgeList& edges, const PartitionBook& parts, int part) {
  const auto position = [&](Index node) {
    return static_cast<std::size_t>(std::lower_bound(edges.dst.begin(), edges.dst.end(), node) -
                                    edges.dst.begin());
  };
  return {position(parts.begin(part)), position(parts.end(part))};
}

/// Renumbers the nodes of each part in their locality_order. `edges`, the in-edges of this rank's nodes, are
/// ordered by sort_edges before and after. Collective.
void order_nodes(const Communicator& comm, Numbering& numbers, EdgeList& edges) {
  const Index first = numbers.ranks.begin(comm.rank());
  const Index end = numbers.ranks.end(comm.rank());
  Array<Index> new_ids(numbers.original_ids.size());
  Array<Index> original_ids(numbers.original_ids.size());
  comm.agree([&] {
    for (const int part : numbers.owned_parts) {
      const Index begin = numbers.parts.begin(part);
      const auto inside = [&](Index node) { return begin <= node && node < numbers.parts.end(part); };
      const Range range = edges_of_part(edges, numbers.parts, part);
      Array<Index> src, dst;
      const auto count = static_cast<std::size_t>(
          std::count_if(edges.src.begin() + static_cast<std::ptrdiff_t>(range.begin),
                        edges.src.begin() + static_cast<std::ptrdiff_t>(range.end), inside));
      src.reserve(count);
      dst.reserve(count);
      for (std::size_t e = range.begin; e < range.end; ++e) {
        if (!inside(edges.src[e])) continue;
        src.push_back(edges.src[e] - begin);
        dst.push_back(edges.dst[e] - begin);
      }
      const Array<Index> order = locality_order(numbers.parts.num_nodes(part), src, dst);
      for (std::size_t i = 0; i < order.size(); ++i) {
        const auto before = static_cast<std::size_t>(begin - first + order[i]);
        const auto after = static_cast<std::size_t>(begin - first) + i;
        new_ids[before] = first + static_cast<Index>(after);
        original_ids[after] = numbers.original_ids[before];
      }
    }
  });
  numbers.original_ids = std::move(original_ids);
  for (Index& dst : edges.dst) dst = new_ids[dst - first];
  replace_ids(comm, numbers.ranks, new_ids, edges.src);
  sort_edges(first, end, edges);
}

/// A range of the list. The whole list is moved, not copied.
EdgeList take(EdgeList& edges, Range range) {
  if (range.begin == 0 && range.end == edges.src.size()) return std::move(edges);
  EdgeList taken;
  const auto copy = [&](const Array<Index>& from, Array<Index>& to) {
    to.assign(from.begin() + static_cast<std::ptrdiff_t>(range.begin),
              from.begin() + static_cast<std::ptrdiff_t>(range.end));
  };
  copy(edges.src, taken.src);
  copy(edges.dst, taken.dst);
  copy(edges.id, taken.id);
  return taken;
}

/// Cut and halo of a part.
void count_halo(const EdgeList& edges, const PartitionBook& parts, int part, PartSize& size) {
  IndexSet halo(parts.num_nodes());
  for (const Index src : edges.src) {
    if (parts.begin(part) <= src && src < parts.end(part)) continue;
    halo.insert(src);
    ++size.cut_edges;
  }
  size.in_edges = edges.size();
  size.halo_nodes = halo.size();
}

/// 1 as an element of this type.
std::vector<std::byte> one(NpyType type) {
  std::vector<std::byte> bytes(element_bytes(type), std::byte{0});
  const auto set = [&](auto value) {
    std::copy_n(reinterpret_cast<const std::byte*>(&value), sizeof(value), bytes.data());
  };
  if (type == NpyType::float64)
    set(1.0);
  else if (type == NpyType::float32)
    set(1.0f);
  else if (type == NpyType::float16)
    set(float_to_half(1));
  else
    bytes[0] = std::byte{1};  // integers are little-endian
  return bytes;
}

/// The data of the edges with these ids. Reversed edges have those of the edges that they reverse, and self
/// loops those that PartitionGraphOptions names. Collective.
DataArray read_edge_data(GraphSource& source, const DataField& field, const Array<Index>& ids,
                         const PartitionGraphOptions& options) {
  const Index num_edges = source.num_edges();
  const Index first_loop = options.add_reverse_edges ? 2 * num_edges : num_edges;
  Array<Index> rows;
  rows.reserve(ids.size());
  for (const Index id : ids)
    if (id < first_loop) rows.push_back(id < num_edges ? id : id - num_edges);
  DataArray known = source.read_edge_data(field.name, rows);
  if (!options.add_self_loops) return known;

  DataArray data(field.type, field.row_shape, static_cast<Index>(ids.size()));
  const std::vector<std::byte> fill = field.name == "weight" || field.name == "edge_weight"
                                          ? one(field.type)
                                          : std::vector<std::byte>(element_bytes(field.type));
  Index next = 0;
  for (std::size_t e = 0; e < ids.size(); ++e) {
    std::byte* row = data.row(static_cast<Index>(e));
    if (ids[e] < first_loop)
      std::copy_n(known.row(next++), data.row_bytes(), row);
    else
      for (Index i = 0; i < data.row_size(); ++i)
        std::copy(fill.begin(), fill.end(), row + i * static_cast<Index>(fill.size()));
  }
  return data;
}

/// The sizes of all parts on every rank; a part is filled in on the rank that owns it. Collective.
void share_sizes(const Communicator& comm, std::vector<PartSize>& sizes) {
  std::vector<Index> numbers;
  for (const PartSize& size : sizes)
    numbers.insert(numbers.end(),
                   {size.nodes, size.in_edges, size.cut_edges, size.training_nodes, size.halo_nodes});
  comm.all_reduce(std::span<Index>(numbers));
  for (std::size_t p = 0; p < sizes.size(); ++p)
    sizes[p] = {numbers[5 * p], numbers[5 * p + 1], numbers[5 * p + 2], numbers[5 * p + 3],
                numbers[5 * p + 4]};
}

/// Reads the data of a part and of its in-edges. A rank that has no part in this round gives -1. Collective.
GraphData read_part_data(GraphSource& source, const Numbering& numbers, int part, EdgeList edges,
                         Index num_edges, const PartitionGraphOptions& options) {
  NodeTypeData nodes;
  nodes.book = numbers.parts;
  if (part >= 0) {
    const auto& ids = numbers.original_ids;
    const Index before = numbers.ranks.begin(source.comm().rank());
    nodes.original_ids.assign(ids.begin() + (numbers.parts.begin(part) - before),
                              ids.begin() + (numbers.parts.end(part) - before));
  }
  for (const DataField& field : source.node_fields())
    nodes.data.emplace(field.name, source.read_node_data(field.name, nodes.original_ids));
  EdgeTypeData in_edges;
  in_edges.num_edges = num_edges;
  for (const DataField& field : source.edge_fields())
    in_edges.data.emplace(field.name, read_edge_data(source, field, edges.id, options));
  in_edges.edges = std::move(edges);

  GraphData data;
  data.name = source.name();
  data.node_types.push_back(std::move(nodes));
  data.edge_types.push_back(std::move(in_edges));
  return data;
}

/// How the parts were made.
std::map<std::string, std::string> info_of(const PartitionGraphOptions& options,
                                           const PartitionReport& report) {
  const auto yes = [](bool flag) { return flag ? "yes" : "no"; };
  return {{"method", to_string(options.method)},
          {"order", to_string(options.order)},
          {"seed", concat(options.seed)},
          {"reverse_edges", yes(options.add_reverse_edges)},
          {"self_loops", yes(options.add_self_loops)},
          {"duplicates_dropped", yes(options.drop_duplicates)},
          {"cut_edges", concat(report.total().cut_edges)},
          {"cut_share", concat(report.cut_share())},
          {"halo_nodes", concat(report.total().halo_nodes)},
          {"node_balance", concat(report.balance(&PartSize::nodes))},
          {"edge_balance", concat(report.balance(&PartSize::in_edges))},
          {"training_balance", concat(report.balance(&PartSize::training_nodes))}};
}

/// The part of each node of this rank's slice; counts the training nodes of the parts. Collective.
Array<std::int32_t> assign(GraphSource& source, const PartitionBook& slices, const EdgeList& edges,
                           const PartitionGraphOptions& options, PartitionReport& report) {
  const Array<std::uint8_t> train_mask = read_train_mask(source, slices);
  AssignmentOptions how{.parts = options.parts, .seed = options.seed, .balance_edges = options.balance_edges};
  if (options.balance_training) how.train_mask = train_mask;
  Array<std::int32_t> part_of = assign_nodes(source.comm(), source.num_nodes(), edges, options.method, how);
  for (std::size_t i = 0; i < train_mask.size(); ++i)
    report.parts[part_of[i]].training_nodes += train_mask[i];
  return part_of;
}

/// Writes the parts, one for each rank at a time, and completes the report. Returns their checksums, on every
/// rank. Collective.
std::vector<std::uint64_t> write_parts(GraphSource& source, PartitionWriter& writer, const Numbering& numbers,
                                       EdgeList edges, const PartitionGraphOptions& options,
                                       PartitionProgress progress, PartitionReport& report) {
  const Communicator& comm = source.comm();
  const auto own = static_cast<Index>(numbers.owned_parts.size());
  const Index rounds = comm.all_reduce(own, ReduceOp::max);
  std::vector<std::uint64_t> checksums(report.parts.size(), 0);
  progress("write parts", 0, options.parts);
  for (Index round = 0; round < rounds; ++round) {
    const int part = round < own ? numbers.owned_parts[round] : -1;
    EdgeList in_edges;
    if (part >= 0) {
      in_edges = take(edges, edges_of_part(edges, numbers.parts, part));
      if (round + 1 == own) edges = {};
      PartSize& size = report.parts[part];
      size.nodes = numbers.parts.num_nodes(part);
      count_halo(in_edges, numbers.parts, part, size);
    }
    const GraphData data =
        read_part_data(source, numbers, part, std::move(in_edges), report.num_edges, options);
    if (part >= 0) checksums[part] = write_part(writer.path(), part, data).checksum;
    progress("write parts", comm.all_reduce(std::min(round + 1, own)), options.parts);
  }
  share_sizes(comm, report.parts);
  comm.all_reduce(std::span<std::uint64_t>(checksums));
  return checksums;
}

/// What partition.json says.
PartitionDescription describe(const GraphSource& source, const Numbering& numbers,
                              const PartitionGraphOptions& options, const PartitionReport& report) {
  PartitionDescription description;
  description.name = source.name();
  description.num_parts = options.parts;
  description.node_types.push_back({default_node_type, numbers.parts, source.node_fields()});
  description.edge_types.push_back(
      {default_node_type, default_edge_type, default_node_type, {}, source.edge_fields()});
  if (options.add_reverse_edges || options.add_self_loops)
    description.edge_types[0].first_added_id = source.num_edges();
  for (const PartSize& part : report.parts) description.edge_types[0].edges_per_part.push_back(part.in_edges);
  description.info = info_of(options, report);
  return description;
}

/// All from the edges to the complete directory. Collective.
PartitionReport write_partition(GraphSource& source, PartitionWriter& writer,
                                const PartitionGraphOptions& options, PartitionProgress progress) {
  const Communicator& comm = source.comm();
  const PartitionBook slices = PartitionBook::even(source.num_nodes(), comm.size());
  const auto phase = [&](const std::string& name, Index total, const auto& run) {
    progress(name, 0, total);
    run();
    release_cached_memory();
    progress(name, total, total);
  };
  PartitionReport report;
  report.num_nodes = source.num_nodes();
  report.parts.resize(options.parts);
  EdgeList edges;
  Array<std::int32_t> part_of;
  Numbering numbers;
  phase("read edges", source.num_edges(), [&] { edges = read_transformed_edges(source, slices, options); });
  phase(concat("assign nodes (", to_string(options.method), ")"), report.num_nodes,
        [&] { part_of = assign(source, slices, edges, options, report); });
  const Index num_edges = comm.all_reduce(edges.size());
  phase("number nodes", report.num_nodes, [&] {
    numbers = number_nodes(comm, slices, part_of, options.parts);
    replace_ids(comm, slices, numbers.of_slice, edges.src);
    replace_ids(comm, slices, numbers.of_slice, edges.dst);
    part_of = {};
    numbers.of_slice = {};
  });
  phase("send edges to their parts", num_edges, [&] {
    EdgeList mine;
    exchange_edges(comm, numbers.ranks, std::move(edges), false, mine);
    edges = std::move(mine);
  });
  phase("sort edges", num_edges, [&] {
    const auto sort = options.drop_duplicates ? drop_duplicates : sort_edges;
    sort(numbers.ranks.begin(comm.rank()), numbers.ranks.end(comm.rank()), edges);
  });
  report.num_edges = comm.all_reduce(edges.size());
  if (options.order == NodeOrder::clusters)
    phase("order nodes", report.num_nodes, [&] { order_nodes(comm, numbers, edges); });

  auto checksums = write_parts(source, writer, numbers, std::move(edges), options, progress, report);
  PartitionDescription description = describe(source, numbers, options, report);
  description.checksums = std::move(checksums);
  source.write_node_keys(writer.path());
  writer.commit(description);
  return report;
}

}  // namespace

const char* to_string(NodeOrder order) noexcept {
  return order == NodeOrder::clusters ? "clusters" : "original";
}

PartSize PartitionReport::total() const {
  PartSize sum;
  for (const PartSize& part : parts) {
    sum.nodes += part.nodes;
    sum.in_edges += part.in_edges;
    sum.cut_edges += part.cut_edges;
    sum.training_nodes += part.training_nodes;
    sum.halo_nodes += part.halo_nodes;
  }
  return sum;
}

double PartitionReport::balance(Index PartSize::*what) const {
  Index largest = 0;
  for (const PartSize& part : parts) largest = std::max(largest, part.*what);
  const Index sum = total().*what;
  return sum == 0
             ? 1
             : static_cast<double>(largest) * static_cast<double>(parts.size()) / static_cast<double>(sum);
}

double PartitionReport::cut_share() const {
  return num_edges == 0 ? 0 : static_cast<double>(total().cut_edges) / static_cast<double>(num_edges);
}

PartitionReport partition_graph(GraphSource& source, const std::string& out_dir,
                                const PartitionGraphOptions& options, PartitionProgress progress) {
  const Communicator& comm = source.comm();
  return comm.agree([&] {
    require<InputError>(options.parts >= 1, "the graph shall have ", options.parts,
                        " parts, expected at least 1");
    require<InputError>(source.num_nodes() > 0, source.name(),
                        ": the graph has 0 nodes, expected at least one");
    PartitionWriter writer(comm, out_dir);
    // The writer lives until all ranks have stopped writing, whatever happens.
    return comm.agree([&] { return write_partition(source, writer, options, progress); });
  });
}

PartitionReport partition_graph(GraphSource& source, const std::string& out_dir,
                                const PartitionGraphOptions& options) {
  return partition_graph(source, out_dir, options, [](const std::string&, Index, Index) {});
}

}  // namespace sar
