// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/graph/message/attention.hpp>
#include <sar/nn/conv/edge_conv.hpp>
#include <sar/nn/conv/edge_weight_norm.hpp>
#include <sar/nn/modules/reductions.hpp>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

constexpr EnumName<NormBy> norm_by_names[] = {{NormBy::dst, "dst"}, {NormBy::src, "src"}};
constexpr EnumName<EdgeNorm> edge_norm_names[] = {
    {EdgeNorm::right, "right"}, {EdgeNorm::both, "both"}, {EdgeNorm::in_weights, "in_weights"}};
constexpr EnumName<GeluApproximation> gelu_names[] = {{GeluApproximation::none, "none"},
                                                      {GeluApproximation::tanh, "tanh"}};
constexpr EnumName<ReduceOp> op_names[] = {
    {ReduceOp::sum, "sum"}, {ReduceOp::max, "max"}, {ReduceOp::min, "min"}};

using Whole = Variable (*)(const Variable&, const Communicator&, ReduceDim);

/// A reduction over all ranks.
auto whole(Whole f) {
  return [f](const Variable& x, std::optional<Communicator> comm) {
    const Communicator& all = or_default(comm);
    return compute([&] { return f(x, all, ReduceDim::all); });
  };
}

}  // namespace

void bind_functions(Definitions& module) {
  using namespace nb::literals;
  const auto element_wise = [&](const char* name, Variable (*f)(Variable), const char* doc) {
    module.def(name, computing(f), "x"_a, doc);
  };
  element_wise("relu", &relu, "Local. max(x, 0) of each element.");
  element_wise("sigmoid", &sigmoid, "Local. 1 / (1 + exp(-x)) of each element.");
  element_wise("softplus", &softplus, "Local. log(1 + exp(x)) of each element.");
  element_wise("tanh", &tanh, "Local. The hyperbolic tangent of each element.");
  element_wise("exp", &exp, "Local. e to the power of each element.");
  element_wise("log", &log, "Local. The natural logarithm of each element.");
  element_wise("sqrt", &sqrt, "Local. The square root of each element.");
  element_wise("abs", &abs, "Local. The magnitude of each element; its gradient is 0 at 0.");
  element_wise("silu", &silu, "Local. x / (1 + exp(-x)) of each element.");
  const auto of_rows = [&](const char* name, Variable (*f)(Variable), const char* doc) {
    module.def(
        name,
        [f](const Variable& x, int dim) {
          require<InputError>(dim == -1 || dim == x.shape().dims() - 1, "dim is ", dim,
                              ", expected -1, the last dimension");
          return compute([&] { return f(x); });
        },
        "x"_a, "dim"_a = -1, doc);
  };
  of_rows("softmax", &softmax, "Local. exp(x) / sum of exp(x) over the last dimension.");
  of_rows("log_softmax", &log_softmax, "Local. The logarithm of softmax().");
  module.def("leaky_relu", computing(&leaky_relu), "x"_a, "negative_slope"_a = 0.01,
             "Local. x of each element that is positive, otherwise negative_slope x.");
  module.def("elu", computing(&elu), "x"_a, "alpha"_a = 1.0,
             "Local. x of each element that is positive, otherwise alpha (exp(x) - 1).");
  module.def("clamp", computing(&clamp), "x"_a, "min"_a, "max"_a,
             "Local. Each element, at least min and at most max; its gradient is 0 where it is neither.");
  module.def(
      "linear",
      [](const Variable& x, const Variable& weight, const std::optional<Variable>& bias) {
        return compute([&] { return linear(x, weight, or_undefined(bias)); });
      },
      "x"_a, "weight"_a, "bias"_a = nb::none(),
      "Local. x weight^T + bias: x [rows, in], weight [out, in], bias [out] -> [rows, out].");
  module.def(
      "embedding",
      [](nb::handle ids, const Variable& weight) {
        const nb::object array = array_of(ids, "ids");
        const Ids rows(array.attr("reshape")(-1), "ids");
        std::vector<Index> extents = nb::cast<std::vector<Index>>(array.attr("shape"));
        require<ShapeError>(weight.shape().dims() == 2, "embedding: a weight of shape ", weight.shape(),
                            ", expected [rows, width]");
        extents.push_back(weight.shape()[1]);
        return compute(
            [&] { return reshape(gather_shared_rows(weight, rows.rows()), Shape(std::move(extents))); });
      },
      "ids"_a, "weight"_a,
      "Local. Rows of a matrix that all ranks have: weight[ids] [*ids.shape, width]. The matrix's gradient "
      "is "
      "the sum over all ids, in sar.reproducible() over those of all ranks.");
  module.def("matmul", computing(&matmul), "a"_a, "b"_a,
             "Local. The product of the matrices a [n, k] and b [k, m].");
  module.def(
      "gelu",
      [](const Variable& x, const std::string& approximate) {
        const GeluApproximation how = choice(gelu_names, approximate, "approximate");
        return compute([&] { return gelu(x, how); });
      },
      "x"_a, "approximate"_a = "none",
      "Local. x times the normal distribution function of x, of each element; with approximate='tanh' by "
      "tanh, as in torch.");
  module.def(
      "cat",
      [](const std::vector<Variable>& parts, int dim) {
        require<InputError>(!parts.empty(), "cat() of no tensors, expected at least one");
        const int dims = parts.front().shape().dims(), place = dim < 0 ? dim + dims : dim;
        require<InputError>(place == 0 || place == dims - 1, "dim is ", dim, ", expected 0 or -1");
        return compute([&] { return place == 0 ? concat_rows(parts) : concat_columns(parts); });
      },
      "parts"_a, "dim"_a = 0, "Local. Tensors one after another: rows (dim=0), or side by side (dim=-1).");
  module.def(
      "where",
      [](ArrayHandle condition, ArrayHandle a, ArrayHandle b) {
        const Tensor chosen = tensor_of(condition);
        const Operand first(a), second(b);
        for (const auto& [operand, given] : {std::pair(&first, a), std::pair(&second, b)})
          require<InputError>(operand->defined(), "where() of ", text_of(nb::repr(given)),
                              ", expected a tensor, array or number");
        return compute([&] { return where(chosen, first.value(), second.value()); });
      },
      "condition"_a, "a"_a, "b"_a,
      "Local. a where the condition, bools or numbers, is not 0, and b elsewhere.");

  module.def("sum", whole(&sum), "x"_a, "comm"_a = nb::none(),
             "Collective. The sum over the rows of all ranks, as a loss.");
  module.def("mean", whole(&mean), "x"_a, "comm"_a = nb::none(),
             "Collective. The mean over the rows of all ranks, as a loss.");
  module.def(
      "dot",
      [](const Variable& x, const Variable& y, std::optional<Communicator> comm) {
        const Communicator& all = or_default(comm);
        return compute([&] { return dot(x, y, all); });
      },
      "x"_a, "y"_a, "comm"_a = nb::none(),
      "Collective. The sum of x y over the elements of all ranks, as a loss.");
  module.def(
      "all_reduce",
      [](const Variable& x, const std::string& op, std::optional<Communicator> comm) {
        const ReduceOp chosen = choice(op_names, op, "op");
        const Communicator& all = or_default(comm);
        return compute([&] { return all_reduce(x, all, chosen); });
      },
      "x"_a, "op"_a = "sum", "comm"_a = nb::none(),
      "Collective. The sum, maximum or minimum over the ranks, which further layers may read.");

  module.def(
      "edge_softmax",
      [](const Graph& graph, const Variable& x, const std::string& norm_by) {
        const NormBy by = choice(norm_by_names, norm_by, "norm_by");
        return compute([&] { return edge_softmax(graph, x, by); });
      },
      "graph"_a, "x"_a, "norm_by"_a = "dst", "Collective. dgl.nn.functional.edge_softmax.");
  module.def(
      "edge_weight_norm",
      [](const Graph& graph, const Variable& weight, const std::string& norm) {
        const EdgeNorm how = choice(edge_norm_names, norm, "norm");
        return compute([&] { return edge_weight_norm(graph, weight, how); });
      },
      "graph"_a, "edge_weight"_a, "norm"_a = "both",
      "Collective. dgl.nn.EdgeWeightNorm; in_weights: PyG's gcn_norm.");
  module.def(
      "relative_positions",
      [](const Graph& graph, const Features& positions, const std::optional<Variable>& shifts) {
        return compute(
            [&] { return relative_positions(graph, features_of(positions), or_undefined(shifts)); });
      },
      "graph"_a, "positions"_a, "shifts"_a = nb::none(),
      "Collective. Relative position and distance of the ends of each edge, [edges, dim + 1].");
}

}}}  // namespace sar
