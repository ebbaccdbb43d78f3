#include <sar/core/error.hpp>
#include <sar/core/memory/distinct_ids.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/parts/partition_directory.hpp>
#include <sar/graph/data/parts/partition_graph.hpp>
#include <sar/graph/data/parts/partition_steps.hpp>
#include <sar/graph/partition/assignment.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr std::array numbers_of_part{&PartSize::nodes, &PartSize::in_edges, &PartSize::cut_edges,
                                     &PartSize::training_nodes, &PartSize::halo_nodes};

/// One 0 or 1 for each node of this rank's slice of the homogeneous form; empty when no type has a
/// "train_mask". Collective.
Array<std::uint8_t> read_train_mask(GraphSource& source, const SourceTypes& types) {
  const std::vector<Index> first = first_of_types(types);
  const PartitionBook slices = PartitionBook::even(first.back(), source.comm().size());
  const Index begin = slices.begin(source.comm().rank()), end = slices.end(source.comm().rank());
  Array<std::uint8_t> mask;
  for (std::size_t t = 0; t < types.nodes.size(); ++t) {
    const auto& fields = types.nodes[t].fields;
    if (std::ranges::find(fields, "train_mask", &DataField::name) == fields.end()) continue;
    const Index here = std::clamp(first[t], begin, end);
    Array<Index> nodes(std::clamp(first[t + 1], begin, end) - here);
    std::iota(nodes.begin(), nodes.end(), here - first[t]);
    const DataArray rows = source.read_node_data(t, "train_mask", nodes);
    source.comm().agree([&] {
      const Array<std::uint8_t> of_type = rows.to_mask(concat(
          source.name(), ": ", types.nodes.size() == 1 ? "" : types.nodes[t].name + " ", "train_mask"));
      mask.resize(end - begin, 0);
      std::ranges::copy(of_type, mask.begin() + (here - begin));
    });
  }
  return mask;
}

/// Fills in nodes, in-edges, cut and halo of a part whose in-edges of each type have these sources. Local.
void count_part(const DistributedGraph& graph, int part, std::span<const std::span<const Index>> sources,
                PartitionReport& report) {
  PartSize& sum = report.parts[part];
  for (std::size_t t = 0; t < graph.nodes.size(); ++t) {
    const PartitionBook& parts = graph.nodes[t].parts;
    DistinctIds halo(parts.num_nodes());
    for (std::size_t k = 0; k < sources.size(); ++k) {
      if (graph.relations[k].src != t) continue;
      PartSize& size = report.edge_types[k].parts[part];
      size.in_edges = std::ssize(sources[k]);
      for (const Index src : sources[k]) {
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
    sum.nodes += size.nodes;
    sum.halo_nodes += size.halo_nodes;
  }
}

/// The sizes of all parts on every rank; a part is filled in on the rank that owns it. Collective.
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

/// How the parts were made.
std::map<std::string, std::string> info_of(const PartitionGraphOptions& options,
                                           const PartitionReport& report) {
  const auto yes = [](bool flag) { return flag ? "yes" : "no"; };
  return {
      {"method", to_string(options.method)},
      {"order", to_string(options.order)},
      {"seed", concat(options.seed)},
      {"reverse_edges", yes(options.add_reverse_edges)},
      {"self_loops",
       options.add_self_loops && options.remaining_self_loops ? "remaining" : yes(options.add_self_loops)},
      {"duplicates_dropped", yes(options.drop_duplicates)},
      {"cut_edges", concat(report.total().cut_edges)},
      {"cut_share", concat(report.cut_share())},
      {"halo_nodes", concat(report.total().halo_nodes)},
      {"node_balance", concat(report.balance(&PartSize::nodes))},
      {"edge_balance", concat(report.balance(&PartSize::in_edges))},
      {"training_balance", concat(report.balance(&PartSize::training_nodes))}};
}

/// Divides the nodes; counts the training nodes of the parts. Collective.
std::vector<NodePartition> divide(GraphSource& source, const SourceTypes& types, const EdgeList& edges,
                                  const PartitionGraphOptions& options, PartitionReport& report) {
  const std::vector<Index> first = first_of_types(types);
  const Array<std::uint8_t> train_mask = read_train_mask(source, types);
  AssignmentOptions how{.parts = options.parts, .seed = options.seed, .balance_edges = options.balance_edges};
  if (types.nodes.size() > 1) how.first_of_type = first;
  if (options.balance_training) how.train_mask = train_mask;
  Array<std::int32_t> part_of = assign_nodes(source.comm(), first.back(), edges, options.method, how);
  Index node = PartitionBook::even(first.back(), source.comm().size()).begin(source.comm().rank());
  std::size_t type = 0;
  for (std::size_t i = 0; i < train_mask.size(); ++i, ++node) {
    while (node >= first[type + 1]) ++type;
    report.parts[part_of[i]].training_nodes += train_mask[i];
    report.node_types[type].parts[part_of[i]].training_nodes += train_mask[i];
  }
  return partition_of_types(source.comm(), first, std::move(part_of), options.parts);
}

/// Writes the parts, one for each rank at a time, and completes the report. Returns their checksums, on every
/// rank. Collective.
std::vector<std::uint64_t> write_parts(GraphSource& source, PartitionWriter& writer, DistributedGraph& graph,
                                       const PartitionGraphOptions& options, PartitionProgress progress,
                                       PartitionReport& report) {
  const Communicator& comm = source.comm();
  const auto own = static_cast<Index>(graph.owned_parts.size());
  const Index rounds = comm.all_reduce(own, ReduceOp::max);
  std::vector<std::uint64_t> checksums(report.parts.size(), 0);
  progress("write parts", 0, options.parts);
  for (Index round = 0; round < rounds; ++round) {
    const int part = round < own ? graph.owned_parts[round] : -1;
    std::vector<EdgeList> in_edges;
    if (part >= 0) {
      in_edges = take_edges_of_part(graph, part, round + 1 == own);
      std::vector<std::span<const Index>> sources;
      for (const EdgeList& edges : in_edges) sources.emplace_back(edges.src);
      count_part(graph, part, sources, report);
    }
    GraphData data = graph_of_part(source, graph, part, std::move(in_edges), options);
    read_part_data(source, graph, options, data);
    if (part >= 0) checksums[part] = write_part(writer.path(), part, data).checksum;
    progress("write parts", comm.all_reduce(std::min(round + 1, own)), options.parts);
  }
  share_sizes(comm, report);
  comm.all_reduce(std::span<std::uint64_t>(checksums));
  return checksums;
}

/// What partition.json says.
PartitionDescription describe(const GraphSource& source, const DistributedGraph& graph,
                              const PartitionGraphOptions& options, const PartitionReport& report) {
  PartitionDescription description = describe_partition(graph_of_part(source, graph, -1, {}, options));
  for (std::size_t t = 0; t < graph.nodes.size(); ++t)
    description.node_types[t].data = graph.types.nodes[t].fields;
  for (std::size_t k = 0; k < graph.relations.size(); ++k) {
    description.edge_types[k].data = graph.types.edges[k].fields;
    for (const PartSize& part : report.edge_types[k].parts)
      description.edge_types[k].edges_per_part.push_back(part.in_edges);
  }
  description.info = info_of(options, report);
  return description;
}

/// All up to the order of the nodes in a part. Fills in the report but for the sizes of the parts.
/// Collective.
DistributedGraph distribute(GraphSource& source, const PartitionGraphOptions& options,
                            PartitionProgress progress, PartitionReport& report) {
  const auto prepare_and_divide = [&](const SourceTypes& types, const EdgeList& edges) {
    const std::vector<PartSize> empty(options.parts);
    report.parts = empty;
    for (const SourceNodes& type : types.nodes) report.node_types.push_back({type.name, empty});
    for (const SourceEdges& type : types.edges) report.edge_types.push_back({type.canonical_name(), empty});
    return divide(source, types, edges, options, report);
  };
  DistributedGraph graph = distribute_graph(source, options, prepare_and_divide, progress);
  sort_edges(source.comm(), options, graph, progress);
  report.num_nodes = source.num_nodes();
  report.method = options.method;
  for (const Index count : graph.num_edges) report.num_edges += count;
  return graph;
}

/// All from the edges to the complete directory. Collective.
PartitionReport write_partition(GraphSource& source, PartitionWriter& writer,
                                const PartitionGraphOptions& options, PartitionProgress progress) {
  const Communicator& comm = source.comm();
  PartitionReport report;
  DistributedGraph graph = distribute(source, options, progress, report);
  if (options.order == NodeOrder::clusters) {
    progress("order nodes", 0, report.num_nodes);
    order_nodes(comm, graph);
    release_cached_memory();
    progress("order nodes", report.num_nodes, report.num_nodes);
  }
  auto checksums = write_parts(source, writer, graph, options, progress, report);
  PartitionDescription description = describe(source, graph, options, report);
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
  options.method = chosen_method(options.method, source.num_edges(), options.most_gathered);
  return options;
}

}  // namespace

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
    const DistributedGraph graph = distribute(source, options, no_progress, report);
    for (const int part : graph.owned_parts) {
      std::vector<std::span<const Index>> sources;
      for (std::size_t k = 0; k < graph.edges.size(); ++k) {
        const Range range = edges_of_part(graph.edges[k], graph.nodes[graph.relations[k].dst].parts, part);
        sources.push_back(std::span(graph.edges[k].src).subspan(range.begin, range.end - range.begin));
      }
      count_part(graph, part, sources, report);
    }
    share_sizes(comm, report);
    return report;
  });
}

}}  // namespace sar
