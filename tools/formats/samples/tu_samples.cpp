// SPDX-License-Identifier: MIT
#include "sample_tables.hpp"

#include "formats/csv_table.hpp"
#include "formats/text.hpp"

#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/sampling/graph_samples.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sar::formats {
namespace {

constexpr Index most_one_hot = 4096;  // columns of the labels of nodes or edges

/// One-hot columns of labels [n, C]: for each column as many as there are numbers from its smallest to its
/// largest (as torch_geometric's TUDataset). Collective.
Tensor one_hot(const Communicator& comm, const DataArray& labels, const std::string& path) {
  const Index rows = labels.num_rows, columns = labels.row_size();
  Array<std::int64_t> values(static_cast<std::size_t>(rows * columns));
  std::vector<Index> least(static_cast<std::size_t>(columns), std::numeric_limits<Index>::max()), most;
  for (Index i = 0; i < columns; ++i) most.push_back(std::numeric_limits<Index>::min());
  comm.agree([&] {
    const Index held = convert_elements(labels.type, labels.bytes.data(), rows * columns, values.data());
    if (held < rows * columns)
      throw InputError(
          concat(path, ": a label is ",
                 element_text(labels.type, labels.bytes.data() + held * element_bytes(labels.type)),
                 ", expected whole numbers of 64 bits"));
    for (Index i = 0; i < rows * columns; ++i) {
      least[i % columns] = std::min(least[i % columns], values[i]);
      most[i % columns] = std::max(most[i % columns], values[i]);
    }
  });
  comm.all_reduce(std::span<Index>(least), ReduceOp::min);
  comm.all_reduce(std::span<Index>(most), ReduceOp::max);
  std::vector<Index> first{0};
  for (Index c = 0; c < columns; ++c) {
    const double size =
        most[c] >= least[c] ? static_cast<double>(most[c]) - static_cast<double>(least[c]) + 1 : 1;
    require<InputError>(static_cast<double>(first.back()) + size <= static_cast<double>(most_one_hot), path,
                        ": the labels are from ", least[c], " to ", most[c], ", expected at most ",
                        most_one_hot, " of them for one-hot columns");
    first.push_back(first.back() + static_cast<Index>(size));
  }
  Tensor hot = Tensor::zeros({rows, first.back()});
  for (Index i = 0; i < rows; ++i)
    for (Index c = 0; c < columns; ++c) hot.row(i)[first[c] + values[i * columns + c] - least[c]] = 1;
  return hot;
}

Tensor side_by_side(const Tensor& left, const Tensor& right) {
  Tensor both({left.num_rows(), left.row_size() + right.row_size()});
  for (Index i = 0; i < left.num_rows(); ++i)
    std::copy_n(right.row(i), right.row_size(), std::copy_n(left.row(i), left.row_size(), both.row(i)));
  return both;
}

/// A dataset's files. All functions are collective.
class TuFolder : public TableFolder {
 public:
  using TableFolder::TableFolder;

  /// Collective. The number of lines of a table.
  Index count_lines(const std::string& path) const {
    const auto parse = [](std::string_view text) {
      return for_each_row(text, [](std::string_view, Index) {});
    };
    return read_lines(comm_, path, {}, block_bytes_, parse, [](const BlockPlace&) {}).rows;
  }

  /// The number of nodes of each graph. Graphs count from 1 to the number of labels, and their numbers
  /// ascend; those that no node has are graphs without nodes.
  std::vector<Index> nodes_of_graphs(const std::string& path, const std::string& label_file,
                                     Index graphs) const {
    const TableFormat format{.smallest = 1, .largest = std::numeric_limits<local_index>::max()};
    std::vector<Index> counts(static_cast<std::size_t>(graphs), 0);
    std::vector<std::array<Index, 3>> blocks;  // first line, first and last graph
    const auto require_next = [&](Index line, Index before, Index graph) {
      require<InputError>(before <= graph, path, ": line ", line + 1, ": the node is of graph ", graph,
                          " and that of the line before of graph ", before, ", expected ascending numbers");
      require<InputError>(graph <= graphs, path, ": line ", line + 1, ": the node is of graph ", graph,
                          ", expected at most ", graphs, ", the number of lines of ", label_file);
    };
    read_table<std::int64_t>(comm_, path, format, block_bytes_, [&](auto& values, const BlockPlace& at) {
      comm_.agree([&] {
        if (values.empty()) return;
        for (std::size_t i = 0; i < values.size(); ++i)
          require_next(at.first_row + static_cast<Index>(i), values[i == 0 ? 0 : i - 1], values[i]);
        blocks.push_back({at.first_row, values.front(), values.back()});
        for (const std::int64_t graph : values) ++counts[static_cast<std::size_t>(graph) - 1];
      });
    });
    std::vector<std::array<Index, 3>> all = comm_.all_gather(std::span<const std::array<Index, 3>>(blocks));
    std::ranges::sort(all);
    for (std::size_t i = 1; i < all.size(); ++i) require_next(all[i][0], all[i - 1][2], all[i][1]);
    comm_.all_reduce(std::span<Index>(counts));
    return counts;
  }

  /// The edges; their ends are numbers of nodes from 1 on.
  std::vector<SampleEdge> edges(const std::string& path, const SampleSizes& sizes, Index& num_edges) const {
    const TableFormat format{.columns = 2, .smallest = 1, .largest = sizes.nodes.num_nodes()};
    std::vector<SampleEdge> read;
    num_edges =
        read_table<std::int64_t>(comm_, path, format, block_bytes_, [&](auto& values, const BlockPlace& at) {
          comm_.agree([&] {
            Index row = at.first_row;
            for (std::size_t i = 0; i < values.size(); i += 2, ++row) {
              const Index src = values[i] - 1, dst = values[i + 1] - 1;
              const Index graph = sizes.graph_of(src), begin = sizes.node_begin[graph];
              require<InputError>(begin <= dst && dst < sizes.node_begin[graph + 1], path, ": line ", row + 1,
                                  ": the edge joins node ", src + 1, " of graph ", graph + 1, " and node ",
                                  dst + 1, " of graph ", sizes.graph_of(dst) + 1,
                                  ", expected two nodes of one graph");
              read.push_back(
                  {graph, row, static_cast<local_index>(src - begin), static_cast<local_index>(dst - begin)});
            }
          });
        });
    return read;
  }

  /// Collective. Adds attributes, and labels as one-hot columns behind them, of nodes or edges.
  void add_features(SampleFields& to, const std::string& of, const PartitionBook& book,
                    const Array<Index>& rows, std::vector<std::string>& notes) const {
    const std::string attributes = find_file(of + "_attributes", false),
                      labels = find_file(of + "_labels", false);
    Tensor features;
    if (!attributes.empty()) {
      const DataArray found =
          fetch_rows(comm_, book, read_rows(attributes, book, TableNumbers::features, of.c_str()), rows);
      comm_.agree([&] { add_field(to, "features", found, rows, attributes); });
      features = to.tensors["features"];
    }
    if (!labels.empty()) {
      const DataArray found =
          fetch_rows(comm_, book, read_rows(labels, book, TableNumbers::exact, of.c_str()), rows);
      const Tensor hot = one_hot(comm_, found, labels);
      notes.push_back(
          concat(of, " labels become ", hot.row_size(), " one-hot columns",
                 features.defined() ? concat(" behind ", features.row_size(), " attributes") : ""));
      features = features.defined() ? side_by_side(features, hot) : hot;
    }
    if (features.defined()) to.tensors["features"] = features;
  }
};

/// Numbers of classes 0, 1, ... in the place of labels, if these are one whole number for each graph.
/// Collective.
void number_classes(const Communicator& comm, SampleDataset& data) {
  if (data.labels.row_size() != 1) return;
  if (data.labels.type != NpyType::int64) {
    Array<double> values(static_cast<std::size_t>(data.labels.num_rows));
    convert_elements(data.labels.type, data.labels.bytes.data(), data.labels.num_rows, values.data());
    const bool whole = std::ranges::all_of(values, [](double x) { return x == std::floor(x); });
    require<InputError>(comm.all_reduce(whole ? 1 : 0, ReduceOp::min) == 0, data.label_file,
                        ": the labels are whole numbers, and one has more than 64 bits, expected numbers of "
                        "classes of 64 bits, or --loss mse or mae for values");
    return;
  }
  const Array<std::int64_t> values = data.labels.to_integers(data.label_file);
  std::vector<std::int64_t> distinct(values.begin(), values.end());
  const auto make_distinct = [&] {
    std::ranges::sort(distinct);
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  };
  make_distinct();
  distinct = comm.all_gather(std::span<const std::int64_t>(distinct));
  make_distinct();
  DataArray classes(NpyType::int64, {}, data.labels.num_rows);
  auto* const to = reinterpret_cast<std::int64_t*>(classes.bytes.data());
  for (std::size_t g = 0; g < values.size(); ++g)
    to[g] = std::ranges::lower_bound(distinct, values[g]) - distinct.begin();
  data.labels = std::move(classes);
  if (distinct.front() != 0 || distinct.back() != std::ssize(distinct) - 1)
    data.notes.push_back(
        concat("classes 0 to ", distinct.size() - 1, " are the graph labels ",
               distinct.size() <= 10 ? joined(distinct) : concat(distinct.front(), " to ", distinct.back())));
}

}  // namespace

SampleDataset read_tu_samples(const Communicator& comm, const std::string& folder, const std::string& name,
                              const SourceOptions& options, LabelType labels) {
  require<InputError>(options.split.empty(), folder, "/", name,
                      ": a TU dataset has no split, expected no --split");
  const TuFolder files(comm, folder + "/" + name + "_", options.block_bytes, {".txt"},
                       "one beside the graph_indicator of a TU dataset");
  const std::string indicator = files.find_file("graph_indicator", true);
  SampleDataset data;
  data.format = "TU folder";
  data.name = name;
  const std::string of_classes = files.find_file("graph_labels", false);
  const std::string of_values = files.find_file("graph_attributes", false);
  const bool takes_values = !of_values.empty() && (of_classes.empty() || labels != LabelType::classes);
  data.label_file = takes_values ? of_values : files.find_file("graph_labels", true);
  const SampleSizes sizes(
      comm, files.nodes_of_graphs(indicator, data.label_file, files.count_lines(data.label_file)), 1,
      indicator);
  data.book = sizes.graphs;
  Index num_edges = 0;
  Array<Index> edge_rows;
  {
    const std::vector<SampleEdge> edges = files.edges(files.find_file("A", true), sizes, num_edges);
    data.samples = make_samples(comm, sizes, edges, edge_rows);
  }
  GraphSamples& samples = data.samples;
  files.add_features(samples.nodes, "node", sizes.nodes, rows_of_rank(comm, sizes.nodes), data.notes);
  files.add_features(samples.edges, "edge", PartitionBook::even(num_edges, comm.size()), edge_rows,
                     data.notes);
  if (samples.nodes.empty()) {
    samples.nodes.tensors["features"] = Tensor::full({samples.num_nodes(), Index{1}}, 1);
    data.notes.emplace_back("there are no node labels or attributes: the feature of each node is 1");
  }
  if (const std::string note = sizes.note_of_empty(1); !note.empty()) data.notes.push_back(note);
  if (takes_values && !of_classes.empty())
    data.notes.emplace_back(
        "graph_attributes are the labels, not graph_labels (--loss cross-entropy takes these)");
  data.labels = files.read_rows(data.label_file, sizes.graphs, TableNumbers::exact, "graph");
  if (!takes_values && (labels == LabelType::classes || labels == LabelType::automatic))
    number_classes(comm, data);
  comm.agree([&] { sort_edges(samples); });
  return data;
}

}  // namespace sar::formats
