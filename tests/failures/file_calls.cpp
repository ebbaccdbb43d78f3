// SPDX-License-Identifier: MIT
#include "failures/scene.hpp"
#include "graph/data/dataset_files.hpp"

#include <sar/graph/data/dataset_source.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/data/partition_graph.hpp>
#include <sar/graph/data/relation_data.hpp>

#include <filesystem>

namespace sar::test {
namespace {

std::vector<double> data_numbers(const NodeData& data) {
  std::vector<double> result = numbers(data.input().value());
  result.push_back(static_cast<double>(data.num_edges));
  return result;
}

std::vector<double> nothing(bool) {
  return {};
}

std::vector<double> node_counts(const GraphData& graph) {
  std::vector<double> counts;
  for (const NodeTypeData& nodes : graph.node_types)
    counts.push_back(static_cast<double>(nodes.book.num_nodes()));
  return counts;
}

/// Names of a directory that is given to a call anew each time, and removed beforehand.
class FreshName {
 public:
  FreshName(const Communicator& comm, std::string path) : path_(std::move(path)) {
    comm.barrier();
    if (comm.rank() == 0) std::filesystem::remove_all(path_);
    comm.barrier();
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void add_readers(std::vector<Call>& calls, const Communicator& comm, const std::string& dataset,
                 const std::string& parts) {
  const auto path = [](const std::string& right, bool wrong) { return wrong ? right + "-elsewhere" : right; };
  add_maker<NodeData>(
      calls, "graph/data/load_dataset.hpp load_dataset", true,
      [=](bool wrong) {
        return [=, from = path(dataset, wrong)] {
          return load_dataset(comm, from, {.add_reverse_edges = true});
        };
      },
      data_numbers);
  add_maker<NodeData>(
      calls, "graph/data/load_dataset.hpp load_dataset with sparse features", false,
      [=](bool) {
        return [=] { return load_dataset(comm, dataset, {.sparse_features = SparseFeatures::yes}); };
      },
      data_numbers);
  add_maker<std::unique_ptr<GraphSource>>(
      calls, "graph/data/load_dataset.hpp open_dataset", false,
      [=](bool) { return [=] { return open_dataset(comm, dataset); }; },
      [](const auto& source) { return std::vector<double>{static_cast<double>(source->num_edges())}; });
  add_maker<std::shared_ptr<DatasetSource>>(
      calls, "graph/data/dataset_source.hpp DatasetSource", true,
      [=](bool wrong) {
        return [=, from = path(dataset, wrong)] {
          return comm.agree([&] { return std::make_shared<DatasetSource>(comm, from); });
        };
      },
      [](const auto& source) { return std::vector<double>{static_cast<double>(source->num_edges())}; });
  add_maker<EdgeList>(
      calls, "graph/data/graph_source.hpp GraphSource::read_edges", false,
      [=](bool) {
        auto source = std::make_shared<DatasetSource>(comm, dataset);
        return [=] { return source->read_edges(0); };
      },
      [](const EdgeList& edges) { return std::vector<double>(edges.src.begin(), edges.src.end()); });
  add_maker<DataArray>(
      calls, "graph/data/graph_source.hpp GraphSource::read_node_data", true,
      [=](bool wrong) {
        auto source = std::make_shared<DatasetSource>(comm, dataset);
        const std::vector<Index> nodes{1, 4};
        const std::string field = wrong ? "no such field of the dataset" : "features";
        return [=] { return source->read_node_data(0, field, nodes); };
      },
      [](const DataArray& rows) { return numbers(rows.to_tensor()); });
  add_maker<DataArray>(
      calls, "graph/data/graph_source.hpp GraphSource::read_edge_data", true,
      [=](bool wrong) {
        auto source = std::make_shared<DatasetSource>(comm, dataset);
        const std::vector<Index> edges{1, 4};
        const std::string field = wrong ? "no such field of the dataset" : "weight";
        return [=] { return source->read_edge_data(0, field, edges); };
      },
      [](const DataArray& rows) { return numbers(rows.to_tensor()); });
  add_maker<NodeData>(
      calls, "graph/data/load_dataset.hpp load_dataset", false,
      [=](bool) {
        auto source = std::make_shared<DatasetSource>(comm, dataset);
        return [=] { return load_dataset(*source, {.edge_data = true}); };
      },
      data_numbers);
  add_maker<GraphData>(
      calls, "graph/data/partition_directory.hpp load_partition", true,
      [=](bool wrong) {
        return [=, from = path(parts, wrong && comm.rank() == 0)] { return load_partition(comm, from); };
      },
      node_counts);
  calls.back().has_wrong = false;  // only rank 0 opens the description
  if (comm.size() <= 2) {
    const std::string dgl = std::string(SAR_TEST_DATA) + "/dgl/heterogeneous/papers.json";
    add_maker<GraphData>(
        calls, "graph/data/dgl_partition.hpp load_dgl_partition", true,
        [=](bool wrong) { return [=, from = path(dgl, wrong)] { return load_dgl_partition(comm, from); }; },
        node_counts);
  }
  add_maker<NodeData>(
      calls, "graph/data/graph_view.hpp to_node_data", true,
      [=](bool wrong) {
        auto graph = std::make_shared<GraphData>(load_partition(comm, parts));
        if (wrong) graph->node_types[0].data.clear();
        return [=] { return to_node_data(comm, std::move(*graph), {.edge_data = true}); };
      },
      data_numbers);
  add_maker<bool>(
      calls, "graph/data/splits.hpp require_training_labels", false,
      [=](bool) {
        auto data = std::make_shared<NodeData>(load_dataset(comm, dataset));
        return [=] {
          require_training_labels(comm, *data);
          return true;
        };
      },
      nothing);
}

/// Of a dataset with types.
void add_typed_readers(std::vector<Call>& calls, const Communicator& comm, const std::string& dataset,
                       const std::string& typed) {
  const auto open = [=] { return std::make_shared<DatasetSource>(comm, typed); };
  const auto load = [=] { return std::make_shared<GraphData>(load_graph(*open())); };
  add_maker<std::unique_ptr<GraphSource>>(
      calls, "graph/data/generators.hpp words_source", false,
      [=](bool) {
        auto source = std::make_shared<DatasetSource>(comm, dataset);
        return [=] { return words_source(*source); };
      },
      [](const auto& source) { return std::vector<double>{static_cast<double>(source->num_edges())}; });
  add_maker<EdgeList>(
      calls, "graph/data/graph_source.hpp GraphSource::read_edges", false,
      [=](bool) { return [source = open()] { return source->read_edges(1); }; },
      [](const EdgeList& edges) { return std::vector<double>(edges.src.begin(), edges.src.end()); });
  for (const bool of_nodes : {true, false})
    add_maker<DataArray>(
        calls,
        of_nodes ? "graph/data/graph_source.hpp GraphSource::read_node_data"
                 : "graph/data/graph_source.hpp GraphSource::read_edge_data",
        true,
        [=](bool wrong) {
          const std::vector<Index> rows{1, 4};
          const std::string field = wrong ? "no such field of the dataset" : of_nodes ? "labels" : "weight";
          return [=, source = open()] {
            return of_nodes ? source->read_node_data(0, field, rows) : source->read_edge_data(0, field, rows);
          };
        },
        [](const DataArray& rows) { return numbers(rows.to_tensor()); });
  add_maker<GraphData>(
      calls, "graph/data/load_dataset.hpp load_graph", false,
      [=](bool) { return [source = open()] { return load_graph(*source, {.add_reverse_edges = true}); }; },
      node_counts);
  add_maker<GraphData>(
      calls, "graph/data/load_dataset.hpp load_graph", false,
      [=](bool) { return [=] { return load_graph(comm, typed); }; }, node_counts);
  for (const bool category : {false, true})
    add_maker<NodeData>(
        calls,
        category ? "graph/data/graph_view.hpp category_data" : "graph/data/graph_view.hpp node_data_of", true,
        [=](bool wrong) {
          return [=, graph = load(), type = std::string(wrong ? "no such type of the dataset" : "paper")] {
            return category ? category_data(comm, *graph, type) : node_data_of(comm, *graph, type);
          };
        },
        data_numbers);
  add_maker<Graph>(
      calls, "graph/data/relation_data.hpp construct_hetero_graph", true,
      [=](bool wrong) {
        auto graph = load();
        if (wrong) graph->edge_types[0].edges.src.push_back(0);
        return [=] { return construct_hetero_graph(comm, *graph); };
      },
      [](const Graph& graph) {
        return std::vector<double>{static_cast<double>(graph.num_global_nodes("word"))};
      });
}

void add_writers(std::vector<Call>& calls, const Communicator& comm, const std::string& dataset,
                 const std::string& directory) {
  const std::string out = directory + "/written";
  const auto written = [out](bool) { return std::vector<double>{std::filesystem::exists(out) ? 1.0 : 0.0}; };
  add_maker<bool>(
      calls, "graph/data/dataset_source.hpp write_dataset", false,
      [=](bool) {
        const FreshName name(comm, out);
        auto source = std::make_shared<DatasetSource>(comm, dataset);
        return [=] {
          write_dataset(*source, out);
          return true;
        };
      },
      written);
  add_maker<bool>(
      calls,
      "graph/data/partition_directory.hpp save_partition, graph/data/partition_directory.hpp "
      "PartitionWriter, "
      "graph/data/partition_directory.hpp PartitionWriter::commit",
      true,
      [=](bool wrong) {
        const FreshName name(comm, out);
        auto graph = std::make_shared<GraphData>(to_graph_data(load_dataset(comm, dataset)));
        if (wrong) graph->node_types[0].data["more of it"] = DataArray(NpyType::int8, {}, 1);
        auto info = std::make_shared<std::map<std::string, std::string>>();
        return [=] {
          save_partition(comm, out, *graph, *info);
          return true;
        };
      },
      written);
  calls.back().compares = true;
  add_maker<bool>(
      calls, "graph/data/partition_graph.hpp partition_graph", false,
      [=](bool) {
        const FreshName name(comm, out);
        auto source = std::make_shared<DatasetSource>(comm, dataset);
        return [=] {
          (void)partition_graph(*source, out, {.parts = 3, .data = {.partition = PartitionMethod::ldg}});
          return true;
        };
      },
      written);
  for (const bool integers : {false, true})
    add_maker<bool>(
        calls, "comm/rows/write_rows.hpp write_npy_rows", true,
        [=](bool wrong) {
          const FreshName name(comm, out);
          const PartitionBook book = PartitionBook::even(scene_nodes, comm.size());
          Array<Index> ids;
          for (Index v = book.begin(comm.rank()); v < book.end(comm.rank()); ++v) ids.push_back(v);
          if (wrong) ids.front() = scene_nodes;
          const std::vector<std::int64_t> labels(ids.size(), 5);
          const Tensor rows = scene_values({static_cast<Index>(ids.size()), 2}, 0);
          return [=] {
            if (integers)
              write_npy_rows(comm, out, labels, ids);
            else
              write_npy_rows(comm, out, rows, ids, NpyType::float32);
            return true;
          };
        },
        written);
}

}  // namespace

std::vector<Call> file_calls(const Communicator& comm, const std::string& directory) {
  const std::string dataset = directory + "/dataset", parts = directory + "/parts";
  write_dataset(*sbm_source(comm, {.nodes = 24, .degree = 3, .classes = 2, .features = 3}), dataset);
  comm.agree([&] {
    if (comm.rank() != 0) return;
    const Tensor weights = scene_values({72}, 0);
    const std::vector<Index> ids = [] {
      std::vector<Index> all(72);
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Index>(i);
      return all;
    }();
    write_npy_rows(Communicator::self(), dataset + "/edge_weight.npy", weights, ids, NpyType::float32);
  });
  save_partition(comm, parts, to_graph_data(load_dataset(comm, dataset)));
  std::vector<Call> calls;
  add_readers(calls, comm, dataset, parts);
  DatasetSource papers(comm, dataset);
  write_dataset(*words_source(papers), directory + "/typed");
  add_typed_readers(calls, comm, dataset, directory + "/typed");
  add_writers(calls, comm, dataset, directory);
  return calls;
}

}  // namespace sar::test
