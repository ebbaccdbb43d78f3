// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/message/operation.hpp>
#include <sar/graph/topology/sharded_graph.hpp>
#include <sar/nn/atoms/message_sums.hpp>
#include <sar/nn/atoms/tensor_product_sums.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Numbers of the radial weights of a chunk, which stay in the second-level cache.
constexpr Index weight_numbers = 1 << 17;

/// One call, as its record keeps it.
struct ProductSum {
  std::shared_ptr<const ShardedGraph> graph;
  TensorProductSumOperands call;
  Variable sources;  // all source operands side by side
  Index feats, edge_chunk;

  [[nodiscard]] TensorProductSumKernel::Operands operands() const {
    return {.call = call, .feats = feats, .edge_chunk = edge_chunk};
  }
  [[nodiscard]] TypedRows forward(const Driver& driver) const {
    TensorProductSumKernel::Operands o = operands();
    const Tensor out({graph->topology->local.num_dst, o.width()});
    o.out = out;
    TensorProductSumKernel kernel(std::move(o));
    driver.forward(sources.value(), kernel);
    return out;
  }
  void backward(const Driver& driver, const Tensor& grad) const {
    TensorProductSumKernel::Operands o = operands();
    o.grad_out = grad;
    if (call.positions.requires_grad() || (call.shifts.defined() && call.shifts.requires_grad()))
      o.grad_edges = Tensor({graph->topology->num_edges(), 3});
    const Tensor of_edges = o.grad_edges;
    TensorProductSumKernel kernel(std::move(o));
    driver.backward(sources.value(), sources.shape(), kernel, sources.gradient());
    if (of_edges.defined()) give_edge_gradients(*graph, of_edges, call.positions, call.shifts);
  }
};

}  // namespace

Variable tensor_product_sums(const Graph& graph, const TensorProductSumOperands& o) {
  const Index feats = o.rows.shape().row_size() / o.product->rows1;
  return collective(
      graph.comm(),
      [&] {
        refuse_tangents({&o.rows, &o.positions, &o.shifts}, "MACE");
        return OperationCall("MACE", graph, Tangents::known)
            .sources("rows", o.rows)
            .operand("positions", o.positions)
            .operand("shifts", o.shifts)
            .equal("number of channels", feats)
            .equal("number of paths", std::ssize(o.product->paths));
      },
      [&]() -> Variable {
        std::vector<Variable> parts{o.rows, o.positions};
        if (o.radii.defined()) parts.push_back(o.radii);
        const ProductSum call{
            .graph = graph.shards(),
            .call = o,
            .sources = concat_columns(parts),
            .feats = feats,
            .edge_chunk = std::clamp<Index>(weight_numbers / (std::ssize(o.product->paths) * feats), 1,
                                            graph.options().edge_chunk)};
        const bool recorded = recording({&call.sources, &o.positions, &o.shifts});
        return run_pass(graph, {"update_all", "update_all backward"}, recorded, call);
      });
}

namespace {

real length_of(const real* d) {
  return std::sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
}

/// Calls visit(section, its first row, its rows) for the sections that have some.
template <class Chunk, class Visit>
void for_sections(const Chunk& chunk, const Visit& visit) {
  for (std::size_t k = 0; k + 1 < chunk.sections.size(); ++k)
    if (const Index size = chunk.sections[k + 1] - chunk.sections[k]; size > 0)
      visit(k, chunk.sections[k], size);
}

MatrixView view_of(const Tensor& x) {
  return {x.data(), x.num_rows(), x.row_size(), x.row_size(), 1};
}

}  // namespace

TensorProductSumKernel::TensorProductSumKernel(Operands operands)
    : o_(std::move(operands)),
      functions_(o_.call.functions),
      blocks_(o_.edge_chunk, EdgeBlocks::Rows::whole) {
  if (o_.call.table != nullptr) {
    functions_.num_basis = 0;
    o_.call.network.clear();
    for (Index k = 0; k < RadialTable::sections; ++k) o_.call.network.push_back(o_.call.table->last(k));
  }
  for (const Tensor& weight : o_.call.network) {
    forward_.emplace_back(product_method()).pack(view_of(weight).transposed());
    if (o_.grad_out.defined()) backward_.emplace_back(product_method()).pack(view_of(weight));
  }
}

template <class Compute>
void TensorProductSumKernel::for_chunks(const Compute& compute) {
  blocks_.for_each(
      chunks_, num_threads() == 1 ? 1 : 2 * num_threads(),
      [&](Chunk& chunk, Index b) {
        blocks_.write(b, chunk.edges, chunk.groups);
        compute(chunk);
      },
      [](std::span<const Chunk>) { return true; });
}

/// Takes the edges from the cutoff on, whose messages are 0, out of a chunk. Returns how many are left.
Index TensorProductSumKernel::drop_far_edges(Chunk& chunk) {
  const double cutoff = functions_.cutoff;
  real* const d = chunk.d.data();
  Index kept = 0, e = 0;
  for (Index i = 0; i < chunk.groups.size(); ++i) {
    const Index end = chunk.groups.begin[i + 1];
    chunk.groups.begin[i] = static_cast<local_index>(kept);
    for (; e < end; ++e) {
      const auto x = static_cast<double>(d[3 * e]), y = static_cast<double>(d[3 * e + 1]),
                 z = static_cast<double>(d[3 * e + 2]);
      if (x * x + y * y + z * z >= cutoff * cutoff) {
        if (o_.grad_edges.defined()) std::fill_n(o_.grad_edges.row(chunk.edges.edge[e]), 3, real{0});
        continue;
      }
      for (Array<local_index>* const of : {&chunk.edges.src, &chunk.edges.dst, &chunk.edges.edge})
        (*of)[kept] = (*of)[e];
      std::copy_n(d + 3 * e, 3, d + 3 * kept);
      if (chunk.radii.defined()) chunk.radii.data()[kept] = chunk.radii.data()[e];
      ++kept;
    }
  }
  chunk.groups.begin[chunk.groups.size()] = static_cast<local_index>(kept);
  for (Array<local_index>* const of : {&chunk.edges.src, &chunk.edges.dst, &chunk.edges.edge})
    of->resize(kept);
  chunk.d = chunk.d.slice_rows(0, kept);
  if (chunk.radii.defined()) chunk.radii = chunk.radii.slice_rows(0, kept);
  return kept;
}

/// Computes the rows of the edges of a chunk and its radial network.
void TensorProductSumKernel::make_edge_rows(const Stage& stage, Chunk& chunk) {
  const EdgeBlock& edges = chunk.edges;
  const Index at = o_.message_columns();
  Index n = edges.size();
  const bool with_radii = o_.call.radii.defined();
  const Tensor own = o_.call.positions.value(),
               shifts = o_.call.shifts.defined() ? o_.call.shifts.value() : Tensor(),
               radii = with_radii ? o_.call.radii.value() : Tensor();
  chunk.d = Tensor({n, 3});
  if (with_radii) chunk.radii = Tensor({n, 1});
  real* const d = chunk.d.data();
  const Index source_columns = o_.source_columns();
  for (Index e = 0; e < n; ++e) {
    const real* const from = stage.rows.reals() + edges.src[e] * source_columns + at;
    const real *const to = own.data() + 3 * edges.dst[e], *const t = shifts.defined()
                                                                         ? shifts.data() + 3 * edges.edge[e]
                                                                         : nullptr;
    for (Index k = 0; k < 3; ++k)
      d[3 * e + k] =
          static_cast<real>(static_cast<double>(from[k]) + (t != nullptr ? static_cast<double>(t[k]) : 0) -
                            static_cast<double>(to[k]));
    if (with_radii) chunk.radii.data()[e] = from[3] + radii.data()[edges.dst[e]];
  }
  n = drop_far_edges(chunk);
  if (n == 0) return;
  chunk.rows = harmonic_row_values(chunk.d, chunk.radii, functions_);
  if (o_.call.table != nullptr)
    make_table_rows(chunk);
  else
    make_network_rows(chunk);
}

void TensorProductSumKernel::make_network_rows(Chunk& chunk) const {
  const Index n = chunk.edges.size(), num_basis = functions_.num_basis;
  chunk.sums.clear();
  chunk.hidden.clear();
  chunk.sigmoids.clear();
  MatrixView input{chunk.rows.data(), n, num_basis, chunk.rows.row_size(), 1};
  for (std::size_t k = 0; k < forward_.size(); ++k) {
    const Index width = o_.call.network[k].num_rows();
    Tensor z({n, width});
    forward_[k].multiply(input, {z.data(), width});
    chunk.sums.push_back(z);
    if (k + 1 == forward_.size()) break;
    const Tensor s = sigmoid(Variable(z)).value();
    Tensor a({n, width});
    real* const to = a.data();
    const real *const of_z = z.data(), *const of_s = s.data();
    for (Index i = 0; i < a.size(); ++i) to[i] = of_z[i] * of_s[i];
    chunk.sigmoids.push_back(s);
    chunk.hidden.push_back(a);
    input = {chunk.hidden.back().data(), n, width, width, 1};
  }
  if (!o_.call.density.defined()) return;
  chunk.root = Tensor::zeros({n, 1});
  for (Index e = 0; e < n; ++e)
    for (Index k = 0; k < num_basis; ++k)
      chunk.root.data()[e] += o_.call.density.data()[k] * chunk.rows.row(e)[k];
}

void TensorProductSumKernel::make_table_rows(Chunk& chunk) const {
  const RadialTable& table = *o_.call.table;
  const Index n = chunk.edges.size(), columns = table.columns(), width = o_.call.network[0].num_rows();
  const real* const d = chunk.d.data();
  chunk.sections.assign(RadialTable::sections + 1, 0);
  for (Index e = 0; e < n; ++e)
    ++chunk.sections[static_cast<std::size_t>(table.section_of(length_of(d + 3 * e)) + 1)];
  for (std::size_t k = 1; k < chunk.sections.size(); ++k) chunk.sections[k] += chunk.sections[k - 1];
  std::vector<Index> next = chunk.sections;
  chunk.places.resize(n);
  chunk.phi = Tensor({n, columns});
  chunk.slopes = Tensor({n, columns});
  for (Index e = 0; e < n; ++e) {
    const real length = length_of(d + 3 * e);
    const Index place = next[static_cast<std::size_t>(table.section_of(length))]++;
    chunk.places[e] = static_cast<std::int32_t>(place);
    table.write(length, chunk.phi.data() + place * columns, chunk.slopes.data() + place * columns);
  }
  Tensor z({n, width});
  for_sections(chunk, [&](std::size_t k, Index begin, Index size) {
    forward_[k].multiply(
        {chunk.phi.data() + begin * columns, size, table.last(static_cast<Index>(k)).row_size(), columns, 1},
        {z.data() + begin * width, width});
  });
  chunk.sums = {z};
  if (!o_.call.density.defined()) return;
  chunk.root = Tensor({n, 1});
  for (Index e = 0; e < n; ++e)
    chunk.root.data()[e] = chunk.phi.data()[chunk.places[e] * columns + columns - 1];
}

TensorProductChunk TensorProductSumKernel::operands_of(const Stage& stage, const Chunk& chunk) const {
  return {.product = o_.call.product.get(),
          .feats = o_.feats,
          .sources = stage.rows.reals(),
          .source_stride = o_.source_columns(),
          .harmonics = chunk.rows.data() + functions_.num_basis,
          .harmonic_stride = chunk.rows.row_size(),
          .weights = chunk.sums.back().data(),
          .weight_rows = o_.call.table != nullptr ? chunk.places.data() : nullptr,
          .rows = chunk.groups.rows.data(),
          .groups = chunk.groups.begin.data(),
          .num_groups = chunk.groups.size()};
}

void TensorProductSumKernel::accumulate(const Stage& stage) {
  blocks_.by_destination(stage);
  for_chunks([&](Chunk& chunk) {
    make_edge_rows(stage, chunk);
    if (chunk.edges.size() == 0) return;
    TensorProductChunk of = operands_of(stage, chunk);
    of.others = chunk.edges.src.data();
    add_tensor_product_sums(of, o_.out.data(), o_.width());
    for (Index e = 0; o_.call.density.defined() && e < chunk.edges.size(); ++e) {
      const real root = chunk.root.row(e)[0];
      o_.out.row(chunk.edges.dst[e])[o_.width() - 1] += std::tanh(root * root);
    }
  });
}

void TensorProductSumKernel::backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) {
  const Index numbers = stage.size() * o_.source_columns();
  Array<real> unwanted(grad_src.defined() ? 0 : numbers, real{0});  // the kernel writes them in any case
  real* const to = grad_src.defined() ? grad_src.reals() : unwanted.data();
  if (grad_src.defined() && !accumulate)
    parallel_for(numbers, Index{1} << 16,
                 [&](Index begin, Index end) { std::fill(to + begin, to + end, real{0}); });
  blocks_.by_source(stage);
  for_chunks([&](Chunk& chunk) { differentiate(stage, chunk, to); });
}

void TensorProductSumKernel::differentiate(const Stage& stage, Chunk& chunk, real* grad_src) {
  make_edge_rows(stage, chunk);
  const Index n = chunk.edges.size(), num_basis = functions_.num_basis;
  if (n == 0) return;
  TensorProductChunk of = operands_of(stage, chunk);
  of.others = chunk.edges.dst.data();
  Tensor of_rows = Tensor::zeros(chunk.rows.shape()), of_sums(chunk.sums.back().shape());
  add_tensor_product_gradients(
      of, o_.grad_out.data(), o_.width(),
      {.sources = grad_src, .harmonics = of_rows.data() + num_basis, .weights = of_sums.data()});
  if (!o_.grad_edges.defined()) return;
  const RadialTable* const table = o_.call.table.get();
  for (std::size_t k = backward_.size(); table == nullptr && k-- > 1;) {
    const Tensor& z = chunk.sums[k - 1];
    Tensor of_hidden(z.shape());
    backward_[k].multiply(view_of(of_sums), {of_hidden.data(), z.row_size()});
    real* const to = of_hidden.data();
    const real *const of_s = chunk.sigmoids[k - 1].data(), *const a = chunk.hidden[k - 1].data();
    for (Index i = 0; i < z.size(); ++i) to[i] *= of_s[i] + a[i] * (1 - of_s[i]);
    of_sums = of_hidden;
  }
  const Index inputs = table != nullptr ? table->columns() : num_basis;
  Tensor of_basis = Tensor::zeros({n, inputs});  // of phi, with a table
  if (table == nullptr)
    backward_[0].multiply(view_of(of_sums), {of_basis.data(), inputs});
  else
    for_sections(chunk, [&](std::size_t k, Index begin, Index size) {
      const Index width = of_sums.row_size();
      backward_[k].multiply({of_sums.data() + begin * width, size, width, width, 1},
                            {of_basis.data() + begin * inputs, inputs});
    });
  Tensor of_roots;  // of w . b
  if (o_.call.density.defined()) {
    of_roots = Tensor({n, 1});
    for (Index e = 0; e < n; ++e) {
      const real root = chunk.root.data()[e], t = std::tanh(root * root);
      of_roots.data()[e] = o_.grad_out.row(chunk.edges.dst[e])[o_.width() - 1] * (1 - t * t) * 2 * root;
    }
  }
  for (Index e = 0; e < n; ++e)
    for (Index k = 0; k < num_basis; ++k)
      of_rows.row(e)[k] = of_basis.row(e)[k] +
                          (of_roots.defined() ? of_roots.data()[e] * o_.call.density.data()[k] : real{0});
  Tensor of_d = harmonic_row_gradients(chunk.d, chunk.radii, of_rows, functions_);
  for (Index e = 0; table != nullptr && e < n; ++e) {  // along the edge
    const real *const d = chunk.d.data() + 3 * e, length = length_of(d);
    real* const of_phi = of_basis.data() + chunk.places[e] * inputs;
    const real* const slopes = chunk.slopes.data() + chunk.places[e] * inputs;
    if (of_roots.defined()) of_phi[inputs - 1] = of_roots.data()[e];
    real of_length = 0;
    for (Index j = 0; j < inputs; ++j) of_length += of_phi[j] * slopes[j];
    for (Index k = 0; length > 0 && k < 3; ++k) of_d.data()[3 * e + k] += of_length * d[k] / length;
  }
  Tensor edges = o_.grad_edges;
  for (Index i = 0; i < of.num_groups; ++i) {
    double sum[3] = {};
    for (Index e = of.groups[i]; e < of.groups[i + 1]; ++e)
      for (Index k = 0; k < 3; ++k) {
        edges.data()[3 * chunk.edges.edge[e] + k] = of_d.data()[3 * e + k];
        sum[k] += static_cast<double>(of_d.data()[3 * e + k]);
      }
    real* const x = grad_src + of.rows[i] * o_.source_columns() + o_.message_columns();
    for (Index k = 0; k < 3; ++k) x[k] += static_cast<real>(sum[k]);
  }
}
}}  // namespace sar
