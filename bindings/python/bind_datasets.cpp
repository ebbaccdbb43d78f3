// SPDX-License-Identifier: MIT
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/data.hpp>

#include <nanobind/stl/unique_ptr.h>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

constexpr EnumName<PartitionMethod> partition_names[] = {{PartitionMethod::contiguous, "contiguous"},
                                                         {PartitionMethod::random, "random"},
                                                         {PartitionMethod::metis, "metis"},
                                                         {PartitionMethod::ldg, "ldg"}};
constexpr EnumName<LabelType> label_type_names[] = {{LabelType::classes, "classes"},
                                                    {LabelType::binary, "binary"},
                                                    {LabelType::values, "values"},
                                                    {LabelType::automatic, "automatic"}};

DatasetOptions options_of(bool add_reverse_edges, nb::handle add_self_loops, bool drop_duplicates,
                          bool normalize_features, const std::string& partition,
                          const std::string& label_type, nb::handle sparse_features, Index split) {
  DatasetOptions options{.add_reverse_edges = add_reverse_edges,
                         .drop_duplicates = drop_duplicates,
                         .normalize_features = normalize_features,
                         .partition = choice(partition_names, partition, "partition"),
                         .sparse_features = SparseFeatures::automatic,
                         .label_type = choice(label_type_names, label_type, "label_type"),
                         .split = split};
  if (nb::isinstance<nb::str>(add_self_loops)) {
    require<InputError>(nb::cast<std::string>(add_self_loops) == "remaining", "add_self_loops is '",
                        nb::cast<std::string>(add_self_loops), "', expected True, False or 'remaining'");
    options.add_self_loops = options.remaining_self_loops = true;
  } else {
    options.add_self_loops = nb::cast<bool>(add_self_loops);
  }
  if (nb::isinstance<nb::str>(sparse_features))
    require<InputError>(nb::cast<std::string>(sparse_features) == "auto", "sparse_features is '",
                        nb::cast<std::string>(sparse_features), "', expected True, False or 'auto'");
  else
    options.sparse_features = nb::cast<bool>(sparse_features) ? SparseFeatures::yes : SparseFeatures::no;
  return options;
}

}  // namespace

void bind_datasets(Definitions& module) {
  using namespace nb::literals;
  nb::class_<NodeData>(module, "NodeData")
      .def_ro("name", &NodeData::name)
      .def_ro("num_classes", &NodeData::num_classes)
      .def_prop_ro("num_nodes", &NodeData::num_nodes)
      .def_ro("num_edges", &NodeData::num_edges)
      .def_prop_ro("features", [](const NodeData& self) { return PyTensor{self.input()}; })
      .def_prop_ro("labels",
                   [](const NodeData& self) { return numpy_of(std::span<const Index>(self.labels)); })
      .def_prop_ro("targets",
                   [](const NodeData& self) -> std::optional<PyTensor> {
                     if (!self.targets.defined()) return std::nullopt;
                     return PyTensor{Variable(self.targets)};
                   })
      .def_prop_ro("train_mask", [](const NodeData& self) { return numpy_of(Columns(self.train_mask)); })
      .def_prop_ro("val_mask", [](const NodeData& self) { return numpy_of(Columns(self.val_mask)); })
      .def_prop_ro("test_mask", [](const NodeData& self) { return numpy_of(Columns(self.test_mask)); })
      .def_prop_ro("node_ids",
                   [](const NodeData& self) { return numpy_of(std::span<const Index>(self.original_ids)); })
      .def("_first_id",
           [](const NodeData& self, const Communicator& comm) { return self.book.begin(comm.rank()); });
  module.def(
      "_load_dataset",
      [](const Communicator& comm, const std::string& path, bool add_reverse_edges, nb::handle add_self_loops,
         bool drop_duplicates, bool normalize_features, const std::string& partition,
         const std::string& label_type, nb::handle sparse_features, Index split) {
        const DatasetOptions options =
            options_of(add_reverse_edges, add_self_loops, drop_duplicates, normalize_features, partition,
                       label_type, sparse_features, split);
        return compute([&] { return std::make_unique<NodeData>(load_dataset(comm, path, options)); });
      },
      "comm"_a, "path"_a, "add_reverse_edges"_a, "add_self_loops"_a, "drop_duplicates"_a,
      "normalize_features"_a, "partition"_a, "label_type"_a, "sparse_features"_a, "split"_a);
  module.def(
      "_construct_graph",
      [](const Communicator& comm, NodeData& data) {
        return compute([&] { return construct_full_graph(comm, data); });
      },
      "comm"_a, "data"_a);
}

}}}  // namespace sar
