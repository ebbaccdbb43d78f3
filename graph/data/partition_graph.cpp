// SPDX-License-Identifier: MIT

// Runs the steps of graph_steps.hpp with parts in the place of ranks, then takes the parts one after the
// other. The halo of a part is counted with a set of distinct ids: O(E / P) insertions of 8 bytes.
#include <sar/comm/rows/node_directory.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/columns.hpp>
#include <sar/graph/data/graph_steps.hpp>
#include <sar/graph/data/partition_directory.hpp>
#include <sar/graph/data/partition_graph.hpp>
#include <sar/graph/data/splits.hpp>
#include <sar/graph/partition/node_order.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

// The steps from a graph whose edges are with their owners (graph_steps.hpp) to its parts, of which a rank
// has several. `books` has the ids of the parts, by node type.
//
// A part is ordered by locality_order of the edges inside it; its in-edges are a range of the rank's sorted
// list.

namespace {

/// Positions of the edges whose destinations are nodes of a part, in a list ordered by destination.
struct Range {
  std::size_t begin, end;
};
Range edges_of_part(const EdgeList& edges, const PartitionBook& parts, int part) {
  const auto position = [&](Index node) {
    return static_cast<std::size_t>(std::ranges::lower_bound(edges.dst, node) - edges.dst.begin());
  };
  return {position(parts.begin(part)), position(parts.end(part))};
}

/// A range of the list. The whole list is moved, not copied.
EdgeList take(EdgeList& edges, Range range) {
  if (range.begin == 0 && range.end == edges.src.size()) return std::move(edges);
  EdgeList taken;
  for (const auto column : {&EdgeList::src, &EdgeList::dst, &EdgeList::id}) {
    const auto part = std::span(edges.*column).subspan(range.begin, range.end - range.begin);
    (taken.*column).assign(part.begin(), part.end());
  }
  return taken;
}

/// The order of the nodes of a part, which are numbered type after type: those of type t are
/// [first[t], first[t + 1]). Local.
Array<Index> order_of_part(const GraphData& graph, std::span<const PartitionBook> books, int part,
                           std::span<const Index> first) {
  Array<Index> src, dst;
  const auto for_each_inside = [&](const auto& take_edge) {
    for (const EdgeTypeData& type : graph.edge_types) {
      const std::size_t s = graph.place_of(type.src_type), d = graph.place_of(type.dst_type);
      const Index begin = books[s].begin(part), end = books[s].end(part);
      const Range range = edges_of_part(type.edges, books[d], part);
      for (std::size_t e = range.begin; e < range.end; ++e)
        if (begin <= type.edges.src[e] && type.edges.src[e] < end)
          take_edge(first[s] + type.edges.src[e] - begin,
                    first[d] + type.edges.dst[e] - books[d].begin(part));
    }
  };
  std::size_t count = 0;
  for_each_inside([&](Index, Index) { ++count; });
  src.reserve(count);
  dst.reserve(count);
  for_each_inside([&](Index from, Index to) {
    src.push_back(from);
    dst.push_back(to);
  });
  return locality_order(first.back(), src, dst);
}

/// Collective. Renumbers the nodes of each part in their locality_order. The edges are sorted before and
/// after.
void order_nodes(const Communicator& comm, std::span<const PartitionBook> books, GraphData& graph) {
  std::vector<Array<Index>> new_ids, original_ids;
  for (const NodeTypeData& nodes : graph.node_types) {
    new_ids.emplace_back(nodes.original_ids.size());
    original_ids.emplace_back(nodes.original_ids.size());
  }
  comm.agree([&] {
    const PartitionBook owners = PartitionBook::even(books.front().num_parts(), comm.size());
    for (Index p = owners.begin(comm.rank()); p < owners.end(comm.rank()); ++p) {
      const auto part = static_cast<int>(p);
      const std::vector<Index> first =
          offsets_of_sizes(books, [&](const PartitionBook& book) { return book.num_nodes(part); });
      std::vector<Index> next(first.begin(), first.end() - 1);
      for (const Index node : order_of_part(graph, books, part, first)) {
        const std::size_t t =
            static_cast<std::size_t>(std::ranges::upper_bound(first, node) - first.begin()) - 1;
        const NodeTypeData& nodes = graph.node_types[t];
        const Index own = nodes.book.begin(comm.rank()), begin = books[t].begin(part) - own - first[t];
        const Index before = begin + node, after = begin + next[t]++;
        new_ids[t][before] = own + after;
        original_ids[t][after] = nodes.original_ids[before];
      }
    }
  });
  for (std::size_t t = 0; t < new_ids.size(); ++t)
    graph.node_types[t].original_ids = std::move(original_ids[t]);
  for (EdgeTypeData& type : graph.edge_types) {
    const std::size_t src = graph.place_of(type.src_type), dst = graph.place_of(type.dst_type);
    const Index first = graph.node_types[dst].book.begin(comm.rank());
    for (Index& node : type.edges.dst) node = new_ids[dst][node - first];
    replace_ids(comm, graph.node_types[src].book, new_ids[src], type.edges.src);
  }
  sort_edges(comm, graph);
}

/// Local. The nodes and in-edges of a part of this rank, without their data; of part -1 the types only. The
/// edges are sorted; the last part that the rank takes leaves no edges behind.
GraphData take_part(const Communicator& comm, std::span<const PartitionBook> books, int part, bool is_last,
                    GraphData& graph) {
  GraphData taken;
  taken.name = graph.name;
  for (std::size_t t = 0; t < books.size(); ++t) {
    const NodeTypeData& nodes = graph.node_types[t];
    NodeTypeData& own = taken.node_types.emplace_back(
        NodeTypeData{.name = nodes.name, .book = books[t], .unread = nodes.unread});
    if (part < 0) continue;
    const Index first = nodes.book.begin(comm.rank());
    own.original_ids.assign(nodes.original_ids.begin() + (books[t].begin(part) - first),
                            nodes.original_ids.begin() + (books[t].end(part) - first));
  }
  for (EdgeTypeData& type : graph.edge_types) {
    EdgeList edges = std::exchange(type.edges, {});
    EdgeTypeData& own = taken.edge_types.emplace_back(type);
    if (part >= 0) own.edges = take(edges, edges_of_part(edges, books[graph.place_of(type.dst_type)], part));
    if (!is_last) type.edges = std::move(edges);
  }
  return taken;
}

/// One 0 or 1 for each node of this rank's slice of the homogeneous form; empty when no type has a training
/// mask. Reads `fields` and `split` of the options. Collective.
Array<std::uint8_t> read_train_mask(GraphSource& source, std::span<const Index> first,
                                    const DatasetOptions& options) {
  const std::string name = options.field("train_mask");
  const PartitionBook slices = PartitionBook::even(first.back(), source.comm().size());
  const Index begin = slices.begin(source.comm().rank()), end = slices.end(source.comm().rank());
  const std::vector<NodeTypeData>& types = source.types().node_types;
  Array<std::uint8_t> mask;
  for (std::size_t t = 0; t < types.size(); ++t) {
    const auto& fields = types[t].unread;
    if (std::ranges::find(fields, name, &DataField::name) == fields.end()) continue;
    const Index here = std::clamp(first[t], begin, end);
    const DataArray rows = source.read_node_data(
        t, name, consecutive(here - first[t], std::clamp(first[t + 1], begin, end) - here));
    source.comm().agree([&] {
      const Array<std::uint8_t> of_type =
          mask_of_split(rows, options.split,
                        concat(source.name(), ": ", types.size() == 1 ? "" : types[t].name + " ", name));
      mask.resize(end - begin, 0);
      std::ranges::copy(of_type, mask.begin() + (here - begin));
    });
  }
  return mask;
}

/// How the parts were made.
std::map<std::string, std::string> info_of(const PartitionGraphOptions& options,
                                           const PartitionReport& report) {
  const auto yes = [](bool flag) { return flag ? "yes" : "no"; };
  return {{"method", to_string(options.data.partition)},
          {"order", to_string(options.order)},
          {"seed", concat(options.data.partition_seed)},
          {"reverse_edges", yes(options.data.add_reverse_edges)},
          {"self_loops", options.data.add_self_loops && options.data.remaining_self_loops
                             ? "remaining"
                             : yes(options.data.add_self_loops)},
          {"duplicates_dropped", yes(options.data.drop_duplicates)},
          {"cut_edges", concat(report.total().cut_edges)},
          {"cut_share", concat(report.cut_share())},
          {"halo_nodes", concat(report.total().halo_nodes)},
          {"node_balance", concat(report.balance(&PartSize::nodes))},
          {"edge_balance", concat(report.balance(&PartSize::in_edges))},
          {"training_balance", concat(report.balance(&PartSize::training_nodes))}};
}

/// A report without sizes. Local.
PartitionReport report_of(const GraphData& graph, const PartitionGraphOptions& options) {
  PartitionReport report;
  const std::vector<PartSize> empty(options.parts);
  report.parts = empty;
  report.method = options.data.partition;
  report.num_nodes = graph.num_nodes();
  for (const NodeTypeData& type : graph.node_types) report.node_types.push_back({type.name, empty});
  for (const EdgeTypeData& type : graph.edge_types)
    report.edge_types.push_back({type.canonical_name(), empty});
  return report;
}

/// Divides the nodes; counts the training nodes of the parts. Collective.
std::vector<NodePartition> divide(GraphSource& source, const GraphData& graph,
                                  const PartitionGraphOptions& options, PartitionReport& report) {
  const std::vector<Index> first = first_of_types(graph);
  const Array<std::uint8_t> train_mask = read_train_mask(source, first, options.data);
  AssignmentOptions how{
      .parts = options.parts, .seed = options.data.partition_seed, .balance_edges = options.balance_edges};
  if (graph.node_types.size() > 1) how.first_of_type = first;
  if (options.balance_training) how.train_mask = train_mask;
  EdgeList all;
  Array<std::int32_t> part_of =
      assign_nodes(source.comm(), first.back(), homogeneous_edges(graph, all), options.data.partition, how);
  Index node = PartitionBook::even(first.back(), source.comm().size()).begin(source.comm().rank());
  std::size_t type = 0;
  for (std::size_t i = 0; i < train_mask.size(); ++i, ++node) {
    while (node >= first[type + 1]) ++type;
    report.parts[part_of[i]].training_nodes += train_mask[i];
    report.node_types[type].parts[part_of[i]].training_nodes += train_mask[i];
  }
  return partition_of_types(source.comm(), first, std::move(part_of), options.parts);
}

/// The graph with its edges at their owners, and the ids of the parts.
struct DividedGraph {
  GraphData graph;
  std::vector<PartitionBook> books;  ///< by node type
};

/// Throws InputError unless a type has each field that options.fields names.
void require_named_fields(const GraphData& graph, const DatasetOptions& options) {
  const auto has = [](const auto& types, const std::string& field) {
    return std::ranges::any_of(types, [&](const auto& type) {
      return std::ranges::find(type.unread, field, &DataField::name) != type.unread.end();
    });
  };
  for (const auto& [what, field] : options.fields) {
    const bool of_edges = what.starts_with("edge_") || what == "weight";
    require<InputError>(of_edges ? has(graph.edge_types, field) : has(graph.node_types, field), graph.name,
                        ": no type of ", of_edges ? "edges" : "nodes", " has data named ", field,
                        ", expected one, which shall be the ", what);
  }
}

/// All up to the order of the nodes in a part. Fills in the report but for the sizes of the parts.
/// Collective.
DividedGraph divide_graph(GraphSource& source, const PartitionGraphOptions& options,
                          PartitionProgress progress, PartitionReport& report) {
  const Communicator& comm = source.comm();
  const auto run_phase = [&](const std::string& name, Index total, const auto& run) {
    progress(name, 0, total);
    run();
    release_cached_memory();
    progress(name, total, total);
  };
  const auto count_edges = [&](const GraphData& graph) {
    return comm.all_reduce(offsets_of_sizes(graph.edge_types, [](const EdgeTypeData& type) {
                             return type.edges.size();
                           }).back());
  };
  const Index num_nodes = source.num_nodes();
  DividedGraph divided;
  GraphData& graph = divided.graph;
  std::vector<NodePartition> partitions;
  run_phase("read edges", source.num_edges(), [&] {
    graph = read_edges(source);
    comm.agree([&] {
      if (!graph.is_homogeneous()) require_named_fields(graph, options.data);
    });
    add_edges(comm, options.data, graph);
    choose_sparse_fields(source, options.data, graph);
  });
  report = report_of(graph, options);
  run_phase(concat("assign nodes (", to_string(options.data.partition), ")"), num_nodes,
            [&] { partitions = divide(source, graph, options, report); });
  run_phase("number nodes", num_nodes,
            [&] { divided.books = number_nodes(comm, std::move(partitions), graph); });
  run_phase("send edges to their parts", count_edges(graph), [&] { send_edges(comm, graph); });
  run_phase("sort edges", count_edges(graph), [&] {
    drop_edges(comm, options.data, graph);
    if (!options.data.drop_duplicates) sort_edges(comm, graph);  // else they are sorted
  });
  report.num_edges = graph.num_edges();
  return divided;
}

/// Calls take(part, graph) for each part of this rank, one at a time. The calls are collective: a rank that
/// has no part left makes them with part -1 and a graph without rows. The graph has no edges afterwards.
template <class Take>
void for_each_part(const Communicator& comm, DividedGraph& divided, const Take& take) {
  const PartitionBook owners = PartitionBook::even(divided.books.front().num_parts(), comm.size());
  const Index first = owners.begin(comm.rank()), own = owners.num_nodes(comm.rank());
  for (Index round = 0; round < owners.num_nodes(0); ++round) {  // rank 0 has the most
    const int part = round < own ? static_cast<int>(first + round) : -1;
    take(part, take_part(comm, divided.books, part, round + 1 == own, divided.graph));
  }
}

/// Writes the parts, one for each rank at a time, and completes the report. Returns their checksums, on every
/// rank. Collective.
std::vector<std::uint64_t> write_parts(GraphSource& source, PartitionWriter& writer, DividedGraph& divided,
                                       const PartitionGraphOptions& options, PartitionProgress progress,
                                       PartitionReport& report) {
  const Communicator& comm = source.comm();
  std::vector<std::uint64_t> checksums(report.parts.size(), 0);
  Index written = 0;
  progress("write parts", 0, options.parts);
  for_each_part(comm, divided, [&](int part, GraphData graph) {
    if (part >= 0) count_part(graph, part, report);
    read_columns(source, options.data, graph);
    if (part >= 0) checksums[part] = write_part(writer.path(), part, graph).checksum;
    written += comm.all_reduce(part >= 0 ? Index{1} : Index{0});
    progress("write parts", written, options.parts);
  });
  share_sizes(comm, report);
  comm.all_reduce(std::span<std::uint64_t>(checksums));
  return checksums;
}

/// What partition.json says, but for the checksums.
PartitionDescription describe(const Communicator& comm, DividedGraph& divided,
                              const PartitionGraphOptions& options, const PartitionReport& report) {
  PartitionDescription description{.graph = take_part(comm, divided.books, -1, false, divided.graph),
                                   .num_parts = options.parts,
                                   .info = info_of(options, report)};
  for (const TypeReport& type : report.edge_types) {
    std::vector<Index>& counts = description.edges_per_part.emplace_back();
    for (const PartSize& part : type.parts) counts.push_back(part.in_edges);
  }
  return description;
}

/// All from the edges to the complete directory. Collective.
PartitionReport write_partition(GraphSource& source, PartitionWriter& writer,
                                const PartitionGraphOptions& options, PartitionProgress progress) {
  PartitionReport report;
  DividedGraph divided = divide_graph(source, options, progress, report);
  if (options.order == NodeOrder::clusters) {
    progress("order nodes", 0, report.num_nodes);
    order_nodes(source.comm(), divided.books, divided.graph);
    progress("order nodes", report.num_nodes, report.num_nodes);
  }
  auto checksums = write_parts(source, writer, divided, options, progress, report);
  PartitionDescription description = describe(source.comm(), divided, options, report);
  description.checksums = std::move(checksums);
  source.write_node_keys(writer.path());
  writer.commit(description);
  return report;
}

/// Checks the options and chooses the method.
PartitionGraphOptions checked(const GraphSource& source, PartitionGraphOptions options) {
  require<InputError>(options.parts >= 1, "the graph shall have ", options.parts,
                      " parts, expected at least 1");
  require<InputError>(source.num_nodes() > 0, source.name(),
                      ": the graph has 0 nodes, expected at least one");
  options.data.partition = chosen_method(options.data.partition, source.num_edges(), options.most_gathered);
  return options;
}

}  // namespace

PartitionReport partition_graph(GraphSource& source, const std::string& out_dir,
                                const PartitionGraphOptions& wanted, PartitionProgress progress) {
  const Communicator& comm = source.comm();
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("partition_graph").equal(wanted));
    const PartitionGraphOptions options = checked(source, wanted);
    PartitionWriter writer(comm, out_dir);
    // The writer lives until all ranks have stopped writing, whatever happens.
    return comm.agree([&] { return write_partition(source, writer, options, progress); });
  });
}

PartitionReport count_parts(GraphSource& source, const PartitionGraphOptions& wanted) {
  const Communicator& comm = source.comm();
  return comm.agree([&] {
    const PartitionGraphOptions options = checked(source, wanted);
    PartitionReport report;
    DividedGraph divided = divide_graph(source, options, no_progress, report);
    for_each_part(comm, divided, [&](int part, const GraphData& graph) {
      if (part >= 0) count_part(graph, part, report);
    });
    share_sizes(comm, report);
    return report;
  });
}

// The halo of a part is counted with a set of distinct ids: O(in-edges) insertions of 8 bytes. The sizes of
// all parts are one all_reduce of 48 bytes for each part and type.

namespace {

constexpr std::array numbers_of_part{&PartSize::nodes,          &PartSize::in_edges,   &PartSize::cut_edges,
                                     &PartSize::training_nodes, &PartSize::halo_nodes, &PartSize::neighbors};

}  // namespace

void count_part(const GraphData& of_part, int part, PartitionReport& report) {
  PartSize& sum = report.parts[part];
  std::vector<char> is_neighbor(report.parts.size(), 0);
  for (std::size_t t = 0; t < of_part.node_types.size(); ++t) {
    const PartitionBook& parts = of_part.node_types[t].book;
    DistinctIds halo(parts.num_nodes());
    for (std::size_t k = 0; k < of_part.edge_types.size(); ++k) {
      if (of_part.edge_types[k].src_type != of_part.node_types[t].name) continue;
      const Array<Index>& sources = of_part.edge_types[k].edges.src;
      PartSize& size = report.edge_types[k].parts[part];
      size.in_edges = std::ssize(sources);
      for (const Index src : sources) {
        if (parts.begin(part) <= src && src < parts.end(part)) continue;
        halo.insert(src);
        ++size.cut_edges;
      }
      sum.in_edges += size.in_edges;
      sum.cut_edges += size.cut_edges;
    }
    halo.make_numbers();
    PartSize& size = report.node_types[t].parts[part];
    size.nodes = parts.num_nodes(part);
    size.halo_nodes = halo.size();
    Index end = 0;  // of the part of the node before
    for (const Index id : halo.members()) {
      if (id < end) continue;
      const int owner = parts.owner(id);
      end = parts.end(owner);
      is_neighbor[owner] = 1;
    }
    sum.nodes += size.nodes;
    sum.halo_nodes += size.halo_nodes;
  }
  sum.neighbors = std::ranges::count(is_neighbor, 1);
}

void share_sizes(const Communicator& comm, PartitionReport& report) {
  std::vector<Index> numbers;
  const auto for_each_number = [&](const auto& take) {
    const auto of_parts = [&](std::vector<PartSize>& parts) {
      for (PartSize& size : parts)
        for (const auto number : numbers_of_part) take(size.*number);
    };
    of_parts(report.parts);
    for (auto* types : {&report.node_types, &report.edge_types})
      for (TypeReport& type : *types) of_parts(type.parts);
  };
  for_each_number([&](Index number) { numbers.push_back(number); });
  comm.all_reduce(std::span<Index>(numbers));
  auto next = numbers.begin();
  for_each_number([&](Index& number) { number = *next++; });
}

PartSize TypeReport::total() const {
  PartSize sum;
  for (const PartSize& part : parts)
    for (const auto number : numbers_of_part) sum.*number += part.*number;
  return sum;
}

double TypeReport::balance(Index PartSize::*what) const {
  const Index largest = parts.empty() ? 0 : std::ranges::max(parts, {}, what).*what;
  const Index sum = total().*what;
  return sum == 0
             ? 1
             : static_cast<double>(largest) * static_cast<double>(parts.size()) / static_cast<double>(sum);
}

double PartitionReport::cut_share() const {
  return num_edges == 0 ? 0 : static_cast<double>(total().cut_edges) / static_cast<double>(num_edges);
}
}}  // namespace sar
