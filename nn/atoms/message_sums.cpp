// SPDX-License-Identifier: MIT

// On a reproducible graph, messages are a function of edges, whose sums are exact. Otherwise a kernel sums
// them without rows of messages. Operands and tangents of the sources are the columns of one tensor, and so
// are values and tangents of the sums: gradients of the parts are those of concat_columns() and
// slice_columns().
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/products/matmul.hpp>
#include <sar/graph/message/halo_step.hpp>
#include <sar/graph/message/operation.hpp>
#include <sar/graph/topology/sharded_graph.hpp>
#include <sar/nn/atoms/edge_rows.hpp>
#include <sar/nn/atoms/message_sums.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/modules/row_distance.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Sums of a function of edges.
Variable sums_of_function(const Graph& graph, const MessageSumOperands& o) {
  const Variable own = dst_rows(graph, o.positions);
  const auto message = [o, own](const EdgeBatch& edges) {
    const Index columns = o.functions.columns();
    const Variable radial = radial_rows(edge_vectors(edges.src(o.positions), edges.dst(own),
                                                     o.shifts.defined() ? edges.edata(o.shifts) : Variable()),
                                        o.functions);
    return vector_messages(edges.src(o.phi), linear(slice_columns(radial, 0, columns - 3), o.filter),
                           slice_columns(radial, columns - 3, columns),
                           o.vectors.defined() ? edges.src(o.vectors) : Variable());
  };
  return graph.update_all(message, fn::sum);
}

/// One call, as its record keeps it.
struct MessageSum {
  std::shared_ptr<const ShardedGraph> graph;
  GraphOptions options;
  RadialFunctions radial;
  bool vectors;
  Variable sources;                // all source operands side by side
  Variable positions, positions_tangent;  // x and its tangent; undefined without tangents
  Variable shifts, shifts_tangent;        // undefined: 0
  Variable filter;

  [[nodiscard]] MessageSumKernel::Operands operands() const {
    const auto tensor = [](const Variable& x) { return x.defined() ? x.value() : Tensor(); };
    const Index feats = filter.num_rows() / 3;
    return {.radial = radial,
            .feats = feats,
            .vectors = vectors,
            // chunks whose rows stay in the second-level cache
            .edge_chunk = std::clamp<Index>((1 << 14) / feats, 1, options.edge_chunk),
            .filter = filter.value(),
            .own = positions.value(),
            .own_tangent = tensor(positions_tangent),
            .shifts = tensor(shifts),
            .shifts_tangent = tensor(shifts_tangent)};
  }
  [[nodiscard]] TypedRows forward(const Driver& driver) const {
    MessageSumKernel::Operands o = operands();
    const Tensor out({graph->topology->local.num_dst, (o.tangents() ? 8 : 4) * o.feats});
    o.out = out;
    MessageSumKernel kernel(std::move(o));
    driver.forward(sources.value(), kernel);
    return out;
  }
  void backward(const Driver& driver, const Tensor& grad) const;
};

void MessageSum::backward(const Driver& driver, const Tensor& grad) const {
  const auto wants = [](const Variable& x) { return x.defined() && x.requires_grad(); };
  MessageSumKernel::Operands o = operands();
  o.grad_out = grad;
  if (filter.requires_grad()) o.grad_filter = Tensor::zeros(filter.shape());
  if (wants(positions) || wants(shifts) || wants(positions_tangent) || wants(shifts_tangent)) {
    o.grad_edges = Tensor({graph->topology->num_edges(), 3});
    if (o.tangents()) o.grad_tangents = Tensor(o.grad_edges.shape());
  }
  const Tensor of_filter = o.grad_filter, of_edges = o.grad_edges, of_tangents = o.grad_tangents;
  MessageSumKernel kernel(std::move(o));
  driver.backward(sources.value(), sources.shape(), kernel, sources.gradient());
  if (of_filter.defined()) filter.gradient()->add(of_filter);
  if (of_edges.defined()) give_edge_gradients(*graph, of_edges, positions, shifts);
  if (of_tangents.defined()) give_edge_gradients(*graph, of_tangents, positions_tangent, shifts_tangent);
}

}  // namespace

void give_edge_gradients(const ShardedGraph& graph, const Tensor& of_edges, const Variable& x,
                         const Variable& shift) {
  if (x.requires_grad()) {
    Tensor of_x = Tensor::zeros(x.shape());
    for (const GraphShard* shard : {&graph.topology->local, &graph.topology->remote})
      for (Index i = 0; i < shard->num_rows(); ++i) {
        double sum[3] = {};
        for (Index e = shard->row_begin[i]; e < shard->row_begin[i + 1]; ++e)
          for (Index k = 0; k < 3; ++k) sum[k] += static_cast<double>(of_edges.row(shard->edge(e))[k]);
        for (Index k = 0; k < 3; ++k) of_x.row(shard->dst_row(i))[k] -= static_cast<real>(sum[k]);
      }
    x.gradient()->add(std::move(of_x));
  }
  if (shift.defined() && shift.requires_grad()) shift.gradient()->add(of_edges);
}

Tensor SourceVectors::differences(const Stage& stage, const EdgeBlock& edges, const Tensor& own,
                                  const Tensor& shifts) const {
  Tensor result({edges.size(), 3});
  for (Index e = 0; e < edges.size(); ++e) {
    const real* const from = stage.rows.reals() + edges.src[e] * source_columns + column;
    const real *const to = own.row(edges.dst[e]), *const t =
                                                      shifts.defined() ? shifts.row(edges.edge[e]) : nullptr;
    for (Index k = 0; k < 3; ++k)
      result.row(e)[k] =
          static_cast<real>(static_cast<double>(from[k]) + (t != nullptr ? static_cast<double>(t[k]) : 0) -
                            static_cast<double>(to[k]));
  }
  return result;
}

void SourceVectors::give(const Tensor& gradients, const EdgeBlock& edges, const BlockGroups& groups,
                         Tensor of_all_edges, real* grad_src) const {
  if (!gradients.defined()) return;
  for (Index e = 0; e < edges.size(); ++e)
    std::copy_n(gradients.data() + 3 * e, 3, of_all_edges.data() + Index{3} * edges.edge[e]);
  for (Index i = 0; i < groups.size(); ++i) {
    double sum[3] = {};
    for (Index e = groups.begin[i]; e < groups.begin[i + 1]; ++e)
      for (Index k = 0; k < 3; ++k) sum[k] += static_cast<double>(gradients.data()[3 * e + k]);
    real* const x = grad_src + groups.rows[i] * source_columns + column;
    for (Index k = 0; k < 3; ++k) x[k] += static_cast<real>(sum[k]);
  }
}

void require_exact_positions(const Graph& graph, const Variable& positions) {
  const HaloFormat format = options_of_operation(graph.options()).halo_format;
  const auto is_zero = [](real x) { return x == 0; };
  require<InputError>(format == HaloFormat::exact || std::ranges::all_of(positions.value().values(), is_zero),
                      "positions of atoms on a graph whose halo rows are rounded (halo_format), expected "
                      "halo_format exact, or positions of 0 and the vectors of the edges as shifts");
}

Variable message_sums(const Graph& graph, const MessageSumOperands& o) {
  if (graph.options().reproducible) return sums_of_function(graph, o);
  const Index n = graph.num_src_nodes(), feats = o.filter.num_rows() / 3;
  const bool dual = any_dual({&o.phi, &o.vectors, &o.positions, &o.shifts});
  return collective(
      graph.comm(),
      [&] {
        refuse_tangents({&o.filter}, "PaiNNConv");
        require_exact_positions(graph, o.positions);
        return OperationCall("PaiNNConv", graph, Tangents::known)
            .sources("phi", o.phi)
            .operand("vectors", o.vectors)
            .operand("positions", o.positions)
            .operand("shifts", o.shifts)
            .operand("the filter", o.filter)
            .equal("number of channels", feats)
            .equal("number of radial functions", o.functions.num_basis);
      },
      [&]() -> Variable {
        const auto tangent = [&](const Variable& x) { return dual ? tangent_or_zeros(x) : Variable(); };
        const auto flat = [&](const Variable& v) { return reshape(v, {n, 3 * feats}); };
        std::vector<Variable> parts{o.phi.primal()};
        if (o.vectors.defined()) parts.push_back(flat(o.vectors.primal()));
        if (dual) parts.push_back(tangent(o.phi));
        if (dual && o.vectors.defined()) parts.push_back(flat(tangent(o.vectors)));
        parts.push_back(o.positions.primal());
        if (dual) parts.push_back(tangent(o.positions));
        const MessageSum call{.graph = graph.shards(),
                              .options = graph.options(),
                              .radial = o.functions,
                              .vectors = o.vectors.defined(),
                              .sources = concat_columns(parts),
                              .positions = o.positions.primal(),
                              .positions_tangent = tangent(o.positions),
                              .shifts = o.shifts.primal(),
                              .shifts_tangent = o.shifts.defined() ? tangent(o.shifts) : Variable(),
                              .filter = o.filter};
        const bool recorded =
            recording({&call.sources, &call.positions, &call.shifts, &call.shifts_tangent, &call.filter});
        const Variable out = run_pass(graph, {"update_all", "update_all backward"}, recorded, call);
        if (!dual) return out;
        return make_dual(slice_columns(out, 0, 4 * feats), slice_columns(out, 4 * feats, 8 * feats));
      });
}

namespace {

/// The rows of W that are used.
MatrixView used(const MessageSumKernel::Operands& o) {
  return {o.filter.data(), o.filter_size(), o.filter.row_size(), o.filter.row_size(), 1};
}

}  // namespace

MessageSumKernel::MessageSumKernel(Operands operands)
    : o_(std::move(operands)),
      weight_(product_method()),
      transposed_(product_method()),
      blocks_(o_.edge_chunk, EdgeBlocks::Rows::whole) {
  weight_.pack(used(o_));
  transposed_.pack(used(o_).transposed());
}

/// Computes d, the radial rows and the filters of the edges of a chunk, and their tangents.
void MessageSumKernel::make_edge_rows(const Stage& stage, Chunk& chunk) const {
  const EdgeBlock& edges = chunk.edges;
  const Index n = edges.size(), columns = o_.radial.columns();
  const auto filter_of = [&](const Tensor& radial) {
    Tensor filter({n, o_.filter_size()});
    transposed_.multiply({radial.data(), n, columns - 3, columns, 1}, {filter.data(), o_.filter_size()});
    return filter;
  };
  chunk.d = o_.positions().differences(stage, edges, o_.own, o_.shifts);
  chunk.radial = Tensor({n, columns});
  radial_rows(o_.radial, chunk.d, chunk.radial);
  chunk.filter = filter_of(chunk.radial);
  if (!o_.tangents()) return;
  chunk.tangent = o_.position_tangents().differences(stage, edges, o_.own_tangent, o_.shifts_tangent);
  chunk.radial_tangent = Tensor({n, columns});
  radial_rows_tangent(o_.radial, chunk.d, chunk.tangent, chunk.radial_tangent);
  chunk.filter_tangent = filter_of(chunk.radial_tangent);
}

VectorMessageChunk MessageSumKernel::operands_of(const Stage& stage, Chunk& chunk) const {
  const Index direction = o_.radial.columns() - 3;
  return {.feats = o_.feats,
          .vectors = o_.vectors,
          .tangents = o_.tangents(),
          .sources = stage.rows.reals(),
          .source_stride = o_.source_columns(),
          .filter = chunk.filter.data(),
          .filter_tangent = o_.tangents() ? chunk.filter_tangent.data() : nullptr,
          .direction = chunk.radial.data() + direction,
          .direction_tangent = o_.tangents() ? chunk.radial_tangent.data() + direction : nullptr,
          .direction_stride = o_.radial.columns(),
          .rows = chunk.groups.rows.data(),
          .groups = chunk.groups.begin.data(),
          .num_groups = chunk.groups.size()};
}

void MessageSumKernel::accumulate(const Stage& stage) {
  blocks_.by_destination(stage);
  blocks_.for_each_chunk(
      chunks_,
      [&](Chunk& chunk) {
        make_edge_rows(stage, chunk);
        VectorMessageChunk of = operands_of(stage, chunk);
        of.others = chunk.edges.src.data();
        add_vector_message_sums(of, o_.out.data());
      },
      [](const Chunk&) {});
}

void MessageSumKernel::backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) {
  const Index numbers = stage.size() * o_.source_columns();
  Array<real> unwanted(grad_src.defined() ? 0 : numbers, real{0});  // the kernel writes them in any case
  real* const to = grad_src.defined() ? grad_src.reals() : unwanted.data();
  if (grad_src.defined() && !accumulate)
    parallel_for(numbers, Index{1} << 16,
                 [&](Index begin, Index end) { std::fill(to + begin, to + end, real{0}); });
  blocks_.by_source(stage);
  blocks_.for_each_chunk(
      chunks_, [&](Chunk& chunk) { differentiate(stage, chunk, to); },
      [&](const Chunk& chunk) {
        if (!o_.grad_filter.defined()) return;
        const Index columns = o_.grad_filter.row_size();
        for (Index i = 0; i < chunk.grad_filter.num_rows(); ++i)
          for (Index j = 0; j < columns; ++j) o_.grad_filter.row(i)[j] += chunk.grad_filter.row(i)[j];
      });
}

void MessageSumKernel::differentiate(const Stage& stage, Chunk& chunk, real* grad_src) const {
  const Index n = chunk.edges.size(), columns = o_.radial.columns();
  const bool tangents = o_.tangents(), of_edges = o_.grad_edges.defined();
  make_edge_rows(stage, chunk);
  VectorMessageChunk of = operands_of(stage, chunk);
  of.others = chunk.edges.dst.data();
  Tensor grad_direction, grad_direction_tangent;
  if (of_edges) grad_direction = Tensor({n, 3});
  if (of_edges && tangents) grad_direction_tangent = Tensor({n, 3});
  vector_message_gradients(of, o_.grad_out.data(), grad_src, grad_direction.data(),
                           grad_direction_tangent.data());

  if (o_.grad_filter.defined()) {
    chunk.grad_filter = Tensor({o_.filter_size(), columns});  // the last 3 columns are not used
    matmul_tn(chunk.filter, chunk.radial, chunk.grad_filter);
    if (tangents) matmul_tn(chunk.filter_tangent, chunk.radial_tangent, chunk.grad_filter, true);
  }
  // The filters are their gradients now. With y = radial_rows(d), dy its tangent: y depends on d, dy on d and
  // on the tangent of d.
  Tensor of_d, of_tangent;
  if (of_edges) {
    const auto of_radial = [&](const Tensor& filter, const Tensor& direction) {
      Tensor result({n, columns});
      const Index size = o_.filter_size();
      weight_.multiply({filter.data(), n, size, size, 1}, {result.data(), columns});
      for (Index e = 0; e < n; ++e)
        std::copy_n(direction.data() + e * 3, 3, result.data() + (e + 1) * columns - 3);
      return result;
    };
    of_d = Tensor({n, 3});
    radial_rows_backward(o_.radial, chunk.d, of_radial(chunk.filter, grad_direction), of_d);
    if (tangents) {
      const Tensor of_radial_tangent = of_radial(chunk.filter_tangent, grad_direction_tangent);
      Tensor second({n, 3});
      radial_rows_tangent_backward(o_.radial, chunk.d, chunk.tangent, of_radial_tangent, second);
      for (Index i = 0; i < second.size(); ++i) of_d.data()[i] += second.data()[i];
      of_tangent = Tensor({n, 3});
      radial_rows_backward(o_.radial, chunk.d, of_radial_tangent, of_tangent);
    }
  }
  o_.positions().give(of_d, chunk.edges, chunk.groups, o_.grad_edges, grad_src);
  if (tangents)
    o_.position_tangents().give(of_tangent, chunk.edges, chunk.groups, o_.grad_tangents, grad_src);
}
}}  // namespace sar
