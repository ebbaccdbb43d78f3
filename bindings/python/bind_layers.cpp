// SPDX-License-Identifier: MIT
#include <sar/bindings/python/call.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/bindings/python/module_tree.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/dropout.hpp>
#include <sar/nn/modules/embedding.hpp>
#include <sar/nn/modules/linear.hpp>
#include <sar/nn/modules/norms.hpp>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

/// Ids of rows, which key the draws of an active dropout: those of a graph's nodes, an array, or None for
/// numbers of this rank's rows.
RowIds ids_of(nb::handle rows, Index count) {
  require<InputError>(!MessageScope::is_active(),
                      "a dropout in a message function, which the backward pass calls again, with other "
                      "draws: expected it before, on rows of nodes or edges");
  if (nb::isinstance<Graph>(rows)) {
    const auto graph = std::make_shared<Graph>(nb::cast<const Graph&>(rows));
    const Array<Index>& ids = std::ssize(graph->src_ids()) == count ? graph->src_ids() : graph->dst_ids();
    return {ids, graph};
  }
  if (!rows.is_none()) return Ids(rows, "ids of rows").rows();
  std::vector<Index> own(static_cast<std::size_t>(count));
  const Index first = Index{default_communicator().rank()} << 40;
  for (Index i = 0; i < count; ++i) own[static_cast<std::size_t>(i)] = first + i;
  return {std::move(own)};
}

}  // namespace

void bind_layers(Definitions& module) {
  using namespace nb::literals;
  nb::class_<Linear, Module>(module, "Linear", "torch.nn.Linear: x W^T + b.")
      .def(
          "__init__",
          [](Linear* self, Index in_features, Index out_features, bool bias) {
            new (self) Linear(in_features, out_features, *generator(), bias);
          },
          "in_features"_a, "out_features"_a, "bias"_a = true, remembered, restoring)
      .def(
          "__call__", [](const Linear& self, const Variable& x) { return compute([&] { return self(x); }); },
          "x"_a)
      .def_prop_ro("weight", [](const Linear& self) { return PyTensor{self.weight()}; })
      .def_prop_ro("bias", [](const Linear& self) -> std::optional<PyTensor> {
        if (!self.bias().defined()) return std::nullopt;
        return PyTensor{self.bias()};
      });
  nb::class_<MLP, Module>(module, "MLP", "Linear layers with an activation between them.")
      .def(
          "__init__",
          [](MLP* self, Index in_feats, Index hidden_feats, Index out_feats, int hidden_layers,
             std::optional<nb::callable> activation, bool layer_norm) {
            MLPOptions options{.hidden_layers = hidden_layers, .layer_norm = layer_norm};
            if (activation) options.activation = activation_of(std::move(activation));
            new (self) MLP(in_feats, hidden_feats, out_feats, *generator(), options);
          },
          "in_feats"_a, "hidden_feats"_a, "out_feats"_a, "hidden_layers"_a = 1, "activation"_a = nb::none(),
          "layer_norm"_a = false, remembered, restoring)
      .def(
          "__call__", [](const MLP& self, const Variable& x) { return compute([&] { return self(x); }); },
          "x"_a);
  nb::class_<LayerNorm, Module>(module, "LayerNorm", "torch.nn.LayerNorm of the last dimension.")
      .def(
          "__init__",
          [](LayerNorm* self, Index features, double eps, bool affine) {
            new (self) LayerNorm(features, eps, affine);
          },
          "normalized_shape"_a, "eps"_a = 1e-5, "elementwise_affine"_a = true, remembered, restoring)
      .def(
          "__call__",
          [](const LayerNorm& self, const Variable& x) { return compute([&] { return self(x); }); }, "x"_a);
  nb::class_<DistributedBN1D, Module>(
      module, "BatchNorm1d", "torch.nn.BatchNorm1d over the rows of all ranks. Collective in training.")
      .def(
          "__init__",
          [](DistributedBN1D* self, Index num_features, double eps, double momentum, bool affine,
             std::optional<Communicator> comm) {
            const BatchNormOptions options{.eps = eps, .momentum = momentum, .affine = affine};
            new (self) DistributedBN1D(num_features, or_default(comm), options);
          },
          "num_features"_a, "eps"_a = 1e-5, "momentum"_a = 0.1, "affine"_a = true, "comm"_a = nb::none(),
          remembered, restoring)
      .def(
          "__call__",
          [](DistributedBN1D& self, const Variable& x) { return compute([&] { return self(x); }); }, "x"_a);
  nb::class_<CategoryEmbedding, Module>(
      module, "CategoryEmbedding",
      "The sum of a row of a matrix for each column of integers (OGB's AtomEncoder).")
      .def(
          "__init__",
          [](CategoryEmbedding* self, std::vector<Index> sizes, Index width) {
            new (self) CategoryEmbedding(std::move(sizes), width, *generator());
          },
          "sizes"_a, "width"_a, remembered, restoring)
      .def(
          "__call__",
          [](const CategoryEmbedding& self, nb::handle categories) {
            const nb::object array = nb::module_::import_("numpy").attr("asarray")(categories);
            const auto columns = std::ssize(self.sizes());
            const nb::object shape = array.attr("shape");
            const std::size_t dims = nb::len(shape);
            require<ShapeError>(dims == 2 ? nb::cast<Index>(shape[1]) == columns : dims == 1 && columns == 1,
                                "categories of shape ", text_of(shape), ", expected [rows, ", columns, "]");
            const Ids flat(array.attr("reshape")(-1), "categories");
            return compute([&] {
              return self(IntegerRows{columns, Array<Index>(flat.span().begin(), flat.span().end())});
            });
          },
          "categories"_a, "Local. Integers [rows, columns], or [rows] for one column -> [rows, width].");
  nb::class_<Dropout, Module>(module, "Dropout",
                              "torch.nn.Dropout; the draws are functions of the ids of rows.")
      .def(
          "__init__", [](Dropout* self, double p) { new (self) Dropout(p, *generator()); }, "p"_a = 0.5,
          remembered, restoring)
      .def_prop_ro("p", &Dropout::p)
      .def(
          "__call__",
          [](Dropout& self, const Variable& x, nb::handle rows) {
            if (!self.is_active()) return PyTensor(compute([&] { return self(x, {}); }));
            const RowIds ids = ids_of(rows, x.num_rows());
            return PyTensor(compute([&] { return self(x, ids); }));
          },
          "x"_a, "rows"_a = nb::none(),
          "rows: the graph, whose ids of nodes make the draws independent of the ranks; or ids; None: "
          "numbers of rows.");
  module.def(
      "batch_norm_relu_dropout",
      [](const Variable& x, DistributedBN1D& norm, Dropout& dropout, nb::handle rows) {
        const RowIds ids = dropout.is_active() ? ids_of(rows, x.num_rows()) : RowIds();
        return compute([&] { return batch_norm_relu_dropout(x, norm, dropout, ids); });
      },
      "x"_a, "norm"_a, "dropout"_a, "rows"_a = nb::none(), "dropout(relu(norm(x)), rows) as one operation.");
  module.def(
      "relu_dropout",
      [](const Variable& x, Dropout& dropout, nb::handle rows) {
        const RowIds ids = dropout.is_active() ? ids_of(rows, x.num_rows()) : RowIds();
        return compute([&] { return relu_dropout(x, dropout, ids); });
      },
      "x"_a, "dropout"_a, "rows"_a = nb::none(), "dropout(relu(x), rows) as one operation.");
}

}}}  // namespace sar
