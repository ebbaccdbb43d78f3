// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/products/matmul.hpp>
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
  Tensor own_tangent, shifts_tangent;
  Index feats, edge_chunk;

  [[nodiscard]] TensorProductSumKernel::Operands operands() const {
    return {.call = call,
            .feats = feats,
            .edge_chunk = edge_chunk,
            .own_tangent = own_tangent,
            .shifts_tangent = shifts_tangent};
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
    const auto zeros_for = [](const Variable& x) {
      return x.defined() && x.requires_grad() ? Tensor::zeros(x.shape()) : Tensor();
    };
    for (const Variable& each : call.network) o.grad_network.push_back(zeros_for(each));
    o.grad_density = zeros_for(call.density);
    const Tensor of_edges = o.grad_edges, of_density = o.grad_density;
    const std::vector<Tensor> of_network = o.grad_network;
    TensorProductSumKernel kernel(std::move(o));
    driver.backward(sources.value(), sources.shape(), kernel, sources.gradient());
    for (std::size_t k = 0; k < of_network.size(); ++k)
      if (of_network[k].defined()) call.network[k].gradient()->add(of_network[k]);
    if (of_density.defined()) call.density.gradient()->add(of_density);
    if (of_edges.defined()) give_edge_gradients(*graph, of_edges, call.positions, call.shifts);
  }
};

}  // namespace

bool wants_edges(std::initializer_list<const Variable*> edges) {
  return std::ranges::any_of(edges, [](const Variable* each) {
    if (!each->defined()) return false;
    const Variable primal = each->primal(), tangent = each->tangent();
    return recording({&primal}) || (each->is_dual() && recording({&tangent}));
  });
}

Variable tensor_product_sums(const Graph& graph, const TensorProductSumOperands& o) {
  const Index feats = o.rows.shape().row_size() / o.product->rows1;
  const bool dual = any_dual({&o.rows, &o.positions, &o.shifts});
  return collective(
      graph.comm(),
      [&] {
        for (const Variable& each : o.network) refuse_tangents({&each}, "MACE");
        refuse_tangents({&o.density}, "MACE");
        require_exact_positions(graph, o.positions);
        require<InputError>(
            !dual || !wants_edges({&o.positions, &o.shifts}),
            "tensor_product_sums with tangents and gradients of positions or shifts, expected one of them");
        return OperationCall("MACE", graph, Tangents::known)
            .sources("rows", o.rows)
            .operand("positions", o.positions)
            .operand("shifts", o.shifts)
            .equal("number of channels", feats)
            .equal("number of paths", std::ssize(o.product->paths));
      },
      [&]() -> Variable {
        const auto tangent = [&](const Variable& x) { return dual ? tangent_or_zeros(x) : Variable(); };
        std::vector<Variable> parts{o.rows.primal()};
        if (dual) parts.push_back(tangent(o.rows));
        parts.push_back(o.positions.primal());
        if (dual) parts.push_back(tangent(o.positions));
        if (o.radii.defined()) parts.push_back(o.radii);
        TensorProductSumOperands primal = o;
        primal.positions = o.positions.primal();
        primal.shifts = o.shifts.primal();
        const ProductSum call{
            .graph = graph.shards(),
            .call = primal,
            .sources = concat_columns(parts),
            .own_tangent = dual ? tangent(o.positions).value() : Tensor(),
            .shifts_tangent = dual && o.shifts.defined() ? tangent(o.shifts).value() : Tensor(),
            .feats = feats,
            .edge_chunk = std::clamp<Index>(weight_numbers / (std::ssize(o.product->paths) * feats), 1,
                                            graph.options().edge_chunk)};
        bool recorded = recording({&call.sources, &primal.positions, &primal.shifts, &primal.density});
        for (const Variable& each : o.network) recorded = recorded || recording({&each});
        const Variable out = run_pass(graph, {"update_all", "update_all backward"}, recorded, call);
        if (!dual) return out;
        const Index width = out.shape().row_size() / 2;
        return make_dual(slice_columns(out, 0, width), slice_columns(out, width, 2 * width));
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
    for (Index k = 0; k < RadialTable::sections; ++k) o_.call.network.emplace_back(o_.call.table->last(k));
  }
  for (const Variable& each : o_.call.network) {
    const Tensor weight = each.value();
    forward_.emplace_back(product_method()).pack(view_of(weight).transposed());
    if (o_.grad_out.defined()) backward_.emplace_back(product_method()).pack(view_of(weight));
  }
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
      if (chunk.d_tangent.defined())
        std::copy_n(chunk.d_tangent.data() + 3 * e, 3, chunk.d_tangent.data() + 3 * kept);
      if (chunk.radii.defined()) chunk.radii.data()[kept] = chunk.radii.data()[e];
      ++kept;
    }
  }
  chunk.groups.begin[chunk.groups.size()] = static_cast<local_index>(kept);
  for (Array<local_index>* const of : {&chunk.edges.src, &chunk.edges.dst, &chunk.edges.edge})
    of->resize(kept);
  chunk.d = chunk.d.slice_rows(0, kept);
  if (chunk.d_tangent.defined()) chunk.d_tangent = chunk.d_tangent.slice_rows(0, kept);
  if (chunk.radii.defined()) chunk.radii = chunk.radii.slice_rows(0, kept);
  return kept;
}

/// Computes the rows of the edges of a chunk and its radial network.
void TensorProductSumKernel::make_edge_rows(const Stage& stage, Chunk& chunk) {
  const EdgeBlock& edges = chunk.edges;
  const Index at = o_.message_columns();
  Index n = edges.size();
  const bool with_radii = o_.call.radii.defined();
  const Index source_columns = o_.source_columns();
  const SourceVectors positions{at, source_columns}, tangents{at + 3, source_columns};
  chunk.d = positions.differences(stage, edges, o_.call.positions.value(),
                                  o_.call.shifts.defined() ? o_.call.shifts.value() : Tensor());
  if (o_.tangents()) chunk.d_tangent = tangents.differences(stage, edges, o_.own_tangent, o_.shifts_tangent);
  if (with_radii) {
    chunk.radii = Tensor({n, 1});
    const Tensor radii = o_.call.radii.value();
    for (Index e = 0; e < n; ++e)
      chunk.radii.data()[e] =
          stage.rows.reals()[(edges.src[e] + 1) * source_columns - 1] + radii.data()[edges.dst[e]];
  }
  n = drop_far_edges(chunk);
  if (n == 0) return;
  if (o_.tangents()) {
    const Variable rows =
        harmonic_rows(make_dual(Variable(chunk.d), Variable(chunk.d_tangent)), chunk.radii, functions_);
    chunk.rows = rows.primal().value();
    chunk.rows_tangent = rows.tangent().value();
  } else {
    chunk.rows = harmonic_row_values(chunk.d, chunk.radii, functions_);
  }
  if (o_.call.table != nullptr)
    make_table_rows(chunk);
  else
    make_network_rows(chunk);
}

void TensorProductSumKernel::make_network_rows(Chunk& chunk) const {
  const Index n = chunk.edges.size(), num_basis = functions_.num_basis;
  for (std::vector<Tensor>* const each :
       {&chunk.sums, &chunk.hidden, &chunk.sigmoids, &chunk.sums_tangent, &chunk.hidden_tangent})
    each->clear();
  const bool tangents = o_.tangents();
  MatrixView input_tangent{chunk.rows_tangent.data(), n, num_basis, chunk.rows.row_size(), 1};
  MatrixView input{chunk.rows.data(), n, num_basis, chunk.rows.row_size(), 1};
  for (std::size_t k = 0; k < forward_.size(); ++k) {
    const Index width = o_.call.network[k].num_rows();
    Tensor z({n, width}), z_tangent;
    forward_[k].multiply(input, {z.data(), width});
    chunk.sums.push_back(z);
    if (tangents) {
      z_tangent = Tensor({n, width});
      forward_[k].multiply(input_tangent, {z_tangent.data(), width});
      chunk.sums_tangent.push_back(z_tangent);
    }
    if (k + 1 == forward_.size()) break;
    const Tensor s = sigmoid(Variable(z)).value();
    Tensor a({n, width});
    real* const to = a.data();
    const real *const of_z = z.data(), *const of_s = s.data();
    const Index size = n * width;
    for (Index i = 0; i < size; ++i) to[i] = of_z[i] * of_s[i];
    chunk.sigmoids.push_back(s);
    chunk.hidden.push_back(a);
    input = {chunk.hidden.back().data(), n, width, width, 1};
    if (!tangents) continue;
    Tensor a_tangent({n, width});
    real* const to_tangent = a_tangent.data();
    const real* const of_tangent = z_tangent.data();
    for (Index i = 0; i < size; ++i) to_tangent[i] = (of_s[i] + to[i] * (1 - of_s[i])) * of_tangent[i];
    chunk.hidden_tangent.push_back(a_tangent);
    input_tangent = {a_tangent.data(), n, width, width, 1};
  }
  if (!o_.call.density.defined()) return;
  const Tensor w = o_.call.density.value();
  const auto times_w = [&](const Tensor& rows) {
    Tensor result = Tensor::zeros({n, 1});
    for (Index e = 0; e < n; ++e)
      for (Index k = 0; k < num_basis; ++k) result.data()[e] += w.data()[k] * rows.row(e)[k];
    return result;
  };
  chunk.root = times_w(chunk.rows);
  if (tangents) chunk.root_tangent = times_w(chunk.rows_tangent);
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
    const Index number = chunk.radii.defined() ? table.number_of(chunk.radii.data()[e]) : 0;
    table.write(length, number, chunk.phi.data() + place * columns, chunk.slopes.data() + place * columns);
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
          .harmonics_tangent = o_.tangents() ? chunk.rows_tangent.data() + functions_.num_basis : nullptr,
          .weights_tangent = o_.tangents() ? chunk.sums_tangent.back().data() : nullptr,
          .tangent = o_.sum_columns(),
          .rows = chunk.groups.rows.data(),
          .groups = chunk.groups.begin.data(),
          .num_groups = chunk.groups.size()};
}

namespace {

/// tanh(r^2) and its first and second derivative.
struct Density {
  explicit Density(real r) : value(std::tanh(r * r)) {
    const real rest = 1 - value * value;
    first = 2 * r * rest;
    second = rest * (2 - 8 * r * r * value);
  }
  real value, first, second;
};

}  // namespace

void TensorProductSumKernel::accumulate(const Stage& stage) {
  blocks_.by_destination(stage);
  blocks_.for_each_chunk(
      chunks_,
      [&](Chunk& chunk) {
        make_edge_rows(stage, chunk);
        if (chunk.edges.size() == 0) return;
        TensorProductChunk of = operands_of(stage, chunk);
        of.others = chunk.edges.src.data();
        add_tensor_product_sums(of, o_.out.data(), o_.width());
        for (Index e = 0; o_.call.density.defined() && e < chunk.edges.size(); ++e) {
          const Density density(chunk.root.data()[e]);
          real* const to = o_.out.row(chunk.edges.dst[e]) + o_.sum_columns() - 1;
          *to += density.value;
          if (o_.tangents()) to[o_.sum_columns()] += density.first * chunk.root_tangent.data()[e];
        }
      },
      [](const Chunk&) {});
}

void TensorProductSumKernel::backward(const Stage& stage, TypedNumbers grad_src, bool accumulate) {
  const Index numbers = stage.size() * o_.source_columns();
  Array<real> unwanted(grad_src.defined() ? 0 : numbers, real{0});  // the kernel writes them in any case
  real* const to = grad_src.defined() ? grad_src.reals() : unwanted.data();
  if (grad_src.defined() && !accumulate)
    parallel_for(numbers, Index{1} << 16,
                 [&](Index begin, Index end) { std::fill(to + begin, to + end, real{0}); });
  blocks_.by_source(stage);
  const auto add = [](const Tensor& from, Tensor of) {
    for (Index i = 0; of.defined() && from.defined() && i < of.size(); ++i) of.data()[i] += from.data()[i];
  };
  blocks_.for_each_chunk(
      chunks_, [&](Chunk& chunk) { differentiate(stage, chunk, to); },
      [&](const Chunk& chunk) {
        if (chunk.edges.size() == 0) return;
        for (std::size_t k = 0; k < chunk.grad_network.size(); ++k)
          add(chunk.grad_network[k], o_.grad_network[k]);
        add(chunk.grad_density, o_.grad_density);
      });
}

/// Writes the gradients of the network from those of its results and of their tangents. Returns those of the
/// radial functions, if the edges want them.
Tensor TensorProductSumKernel::differentiate_network(Chunk& chunk, Tensor of_sums, Tensor of_tangents) const {
  const Index n = chunk.edges.size(), num_basis = functions_.num_basis;
  const bool tangents = o_.tangents(), of_edges = o_.grad_edges.defined();
  const auto basis_of = [&](const Tensor& rows) {
    Tensor basis({n, num_basis});
    for (Index e = 0; e < n; ++e) std::copy_n(rows.row(e), num_basis, basis.row(e));
    return basis;
  };
  chunk.grad_network.assign(o_.grad_network.size(), {});
  for (std::size_t k = backward_.size(); k-- > 0;) {
    if (o_.grad_network[k].defined()) {
      Tensor& grad = chunk.grad_network[k] = Tensor(o_.grad_network[k].shape());
      matmul_tn(of_sums, k == 0 ? basis_of(chunk.rows) : chunk.hidden[k - 1], grad);
      if (tangents)
        matmul_tn(of_tangents, k == 0 ? basis_of(chunk.rows_tangent) : chunk.hidden_tangent[k - 1], grad,
                  true);
    }
    const bool goes_on =
        of_edges || std::any_of(o_.grad_network.begin(), o_.grad_network.begin() + static_cast<Index>(k),
                                [](const Tensor& each) { return each.defined(); });
    if (!goes_on) return {};
    const auto times_weight = [&](const Tensor& grad) {
      Tensor result({n, o_.call.network[k].shape()[1]});
      backward_[k].multiply(view_of(grad), {result.data(), result.row_size()});
      return result;
    };
    of_sums = times_weight(of_sums);
    if (k == 0) return of_sums;
    const Index size = of_sums.size();
    real* const to = of_sums.data();
    const real *const s = chunk.sigmoids[k - 1].data(), *const a = chunk.hidden[k - 1].data();
    if (!tangents) {
      for (Index i = 0; i < size; ++i) to[i] *= s[i] + a[i] * (1 - s[i]);
      continue;
    }
    of_tangents = times_weight(of_tangents);
    real* const to_tangent = of_tangents.data();
    const real *const z = chunk.sums[k - 1].data(), *const z_tangent = chunk.sums_tangent[k - 1].data();
    for (Index i = 0; i < size; ++i) {
      const real first = s[i] + a[i] * (1 - s[i]), second = s[i] * (1 - s[i]) * (2 + z[i] * (1 - 2 * s[i]));
      to[i] = to[i] * first + to_tangent[i] * second * z_tangent[i];
      to_tangent[i] *= first;
    }
  }
  return of_sums;
}

/// Returns the gradients of the functions phi of a table.
Tensor TensorProductSumKernel::differentiate_table(const Chunk& chunk, const Tensor& of_sums) const {
  const Index columns = o_.call.table->columns(), width = of_sums.row_size();
  Tensor result = Tensor::zeros({chunk.edges.size(), columns});
  for_sections(chunk, [&](std::size_t k, Index begin, Index size) {
    backward_[k].multiply({of_sums.data() + begin * width, size, width, width, 1},
                          {result.data() + begin * columns, columns});
  });
  return result;
}

/// Writes the gradient of w. Returns those of w . b without tangents, or an undefined tensor if there is no
/// density.
Tensor TensorProductSumKernel::differentiate_density(Chunk& chunk) const {
  if (!o_.call.density.defined()) return {};
  const Index n = chunk.edges.size();
  Tensor of_roots({n, 1});
  if (o_.grad_density.defined()) chunk.grad_density = Tensor::zeros(o_.grad_density.shape());
  for (Index e = 0; e < n; ++e) {
    const Density density(chunk.root.data()[e]);
    const real* const grad = o_.grad_out.row(chunk.edges.dst[e]) + o_.sum_columns() - 1;
    real of_root = *grad * density.first, of_tangent = 0;
    if (o_.tangents()) {
      of_root += grad[o_.sum_columns()] * density.second * chunk.root_tangent.data()[e];
      of_tangent = grad[o_.sum_columns()] * density.first;
    }
    of_roots.data()[e] = of_root;
    for (Index k = 0; o_.grad_density.defined() && k < functions_.num_basis; ++k)
      chunk.grad_density.data()[k] +=
          of_root * chunk.rows.row(e)[k] + (o_.tangents() ? of_tangent * chunk.rows_tangent.row(e)[k] : 0);
  }
  return of_roots;
}

void TensorProductSumKernel::differentiate(const Stage& stage, Chunk& chunk, real* grad_src) {
  make_edge_rows(stage, chunk);
  const Index n = chunk.edges.size(), num_basis = functions_.num_basis;
  if (n == 0) return;
  TensorProductChunk of = operands_of(stage, chunk);
  of.others = chunk.edges.dst.data();
  Tensor of_rows = Tensor::zeros(chunk.rows.shape()), of_sums(chunk.sums.back().shape()), of_tangents;
  if (o_.tangents()) of_tangents = Tensor(of_sums.shape());
  add_tensor_product_gradients(of, o_.grad_out.data(), o_.width(),
                               {.sources = grad_src,
                                .harmonics = of_rows.data() + num_basis,
                                .weights = of_sums.data(),
                                .weights_tangent = of_tangents.data()});
  const RadialTable* const table = o_.call.table.get();
  const Tensor of_roots = differentiate_density(chunk);                     // of w . b
  Tensor of_basis = table != nullptr ? differentiate_table(chunk, of_sums)  // of phi, with a table
                                     : differentiate_network(chunk, of_sums, of_tangents);
  if (!o_.grad_edges.defined()) return;
  for (Index e = 0; e < n; ++e)
    for (Index k = 0; k < num_basis; ++k)
      of_rows.row(e)[k] =
          of_basis.row(e)[k] +
          (of_roots.defined() ? of_roots.data()[e] * o_.call.density.value().data()[k] : real{0});
  Tensor of_d = harmonic_row_gradients(chunk.d, chunk.radii, of_rows, functions_);
  const Index inputs = of_basis.row_size();
  for (Index e = 0; table != nullptr && e < n; ++e) {  // along the edge
    const real *const d = chunk.d.data() + 3 * e, length = length_of(d);
    real* const of_phi = of_basis.data() + chunk.places[e] * inputs;
    const real* const slopes = chunk.slopes.data() + chunk.places[e] * inputs;
    if (of_roots.defined()) of_phi[inputs - 1] = of_roots.data()[e];
    real of_length = 0;
    for (Index j = 0; j < inputs; ++j) of_length += of_phi[j] * slopes[j];
    for (Index k = 0; length > 0 && k < 3; ++k) of_d.data()[3 * e + k] += of_length * d[k] / length;
  }
  const SourceVectors positions{o_.message_columns(), o_.source_columns()};
  positions.give(of_d, chunk.edges, chunk.groups, o_.grad_edges, grad_src);
}
}}  // namespace sar
