// SPDX-License-Identifier: MIT
#include <sar/autograd/tape.hpp>
#include <sar/nn/atoms/message_sums.hpp>
#include <sar/nn/atoms/painn_conv.hpp>
#include <sar/nn/conv/aggregate.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the sum over the 3 components of x [n, 3, F]: [n, F].
Variable component_sum(Variable x) {
  return head_mean(std::move(x)) * real{3};
}

/// Rows of a block of update_in_blocks(): enough for all threads, while rows of 64 numbers stay in a cache.
constexpr Index block_rows = 1024;

MLPOptions context_options() {
  return {.hidden_layers = 1, .activation = silu};
}

}  // namespace

PaiNNConv::PaiNNConv(Index feats, const RadialFunctions& radial, Generator& gen, double norm_epsilon)
    : feats_(feats),
      radial_(radial),
      norm_epsilon_(static_cast<real>(norm_epsilon)),
      interatomic_context_net_(feats, feats, 3 * feats, gen, context_options()),
      filter_net_(radial.num_basis, 3 * feats, gen),
      mu_channel_mix_(feats, 2 * feats, gen, /*bias=*/false),
      intraatomic_context_net_(2 * feats, feats, 3 * feats, gen, context_options()) {
  require<InputError>(radial.cutoff > 0 && std::isfinite(radial.cutoff), "PaiNNConv with the cutoff ",
                      radial.cutoff, ", expected a positive number");
  require<InputError>(norm_epsilon > 0 && std::isfinite(norm_epsilon), "PaiNNConv with the norm_epsilon ",
                      norm_epsilon, ", expected a positive number");
  register_module("interatomic_context_net", interatomic_context_net_);
  register_module("filter_net", filter_net_);
  register_module("mu_channel_mix", mu_channel_mix_);
  register_module("intraatomic_context_net", intraatomic_context_net_);
}

PaiNNRows PaiNNConv::operator()(const Graph& graph, const PaiNNRows& rows, const Variable& positions,
                                const Variable& shifts) const {
  return graph.comm().agree([&] {
    require_block(graph, "PaiNNConv");
    const Index n = graph.num_src_nodes();
    require_rows(rows.scalars, n, feats_, "PaiNNConv, scalars");
    require<ShapeError>(!rows.vectors.defined() || rows.vectors.shape() == Shape{n, 3, feats_},
                        "PaiNNConv, vectors have shape ", rows.vectors.shape(), ", expected [", n, ", 3, ",
                        feats_, "]");
    require_rows(positions, n, 3, "PaiNNConv, positions");
    if (shifts.defined()) require_rows(shifts, graph.num_edges(), 3, "PaiNNConv, shifts");
    const PaiNNRows sums = add_messages(graph, rows, positions, shifts);
    return has_blocks(sums) ? update_in_blocks(sums) : update(sums);
  });
}

PaiNNRows PaiNNConv::add_messages(const Graph& graph, const PaiNNRows& rows, const Variable& positions,
                                  const Variable& shifts) const {
  const Index feats = feats_, num_dst = graph.num_dst_nodes();
  // Applied to the radial functions and the cutoff function.
  const Variable filter = concat_columns({filter_net_.weight(), reshape(filter_net_.bias(), {3 * feats, 1})});
  const Variable sums = message_sums(  // [local destinations, 4 F]: scalars, then the 3 components
      graph, {.phi = interatomic_context_net_(rows.scalars),
              .vectors = rows.vectors,
              .positions = positions,
              .shifts = shifts,
              .filter = filter,
              .functions = radial_});
  const Variable vector_sums = reshape(slice_columns(sums, feats, 4 * feats), {num_dst, 3, feats});
  return {.scalars = dst_rows(graph, rows.scalars) + slice_columns(sums, 0, feats),
          .vectors = rows.vectors.defined() ? dst_rows(graph, rows.vectors) + vector_sums : vector_sums};
}

PaiNNRows PaiNNConv::update(const PaiNNRows& rows) const {
  const Index n = rows.scalars.num_rows();
  const Variable mixed = mu_channel_mix_(rows.vectors);
  const Variable v = slice_columns(mixed, 0, feats_), w = slice_columns(mixed, feats_, 2 * feats_);
  const Variable length = sqrt(component_sum(v * v) + norm_epsilon_);
  const Variable channels = intraatomic_context_net_(concat_columns({rows.scalars, length}));
  const auto part = [&](Index k) { return slice_columns(channels, k * feats_, (k + 1) * feats_); };
  return {.scalars = rows.scalars + part(0) + part(2) * component_sum(v * w),
          .vectors = rows.vectors + reshape(part(1), {n, 1, feats_}) * w};
}

bool PaiNNConv::has_blocks(const PaiNNRows& rows) const {
  if (rows.scalars.num_rows() <= block_rows || rows.scalars.is_dual() || rows.vectors.is_dual()) return false;
  return recording({&rows.scalars, &rows.vectors}) &&
         std::ranges::none_of(parameters(), [](const Variable& each) { return each.requires_grad(); });
}

PaiNNRows PaiNNConv::update_in_blocks(const PaiNNRows& rows) const {
  const Index n = rows.scalars.num_rows(), feats = feats_;
  // calls f(inputs of a block, its first and its last row)
  const auto each_block = [n](const PaiNNRows& all, const auto& f) {
    for (Index begin = 0; begin < n; begin += block_rows) {
      const Index end = std::min(begin + block_rows, n);
      f(PaiNNRows{.scalars = Variable(all.scalars.value().slice_rows(begin, end), true),
                  .vectors = Variable(all.vectors.value().slice_rows(begin, end), true)},
        begin, end);
    }
  };
  const auto side_by_side = [feats](const PaiNNRows& x) {
    return concat_columns({x.scalars, reshape(x.vectors, {x.vectors.num_rows(), 3 * feats})});
  };
  Tensor out({n, 4 * feats});
  {
    const NoTape no_tape;
    each_block(rows, [&](const PaiNNRows& block, Index begin, Index) {
      const Tensor values = side_by_side(update(block)).value();
      std::copy_n(values.data(), values.size(), out.row(begin));
    });
  }
  const Variable both = record(Variable(out), [this, rows, each_block, side_by_side, n,
                                               feats](const Tensor& of_out) {
    Tensor of_scalars({n, feats}), of_vectors({n, 3, feats});
    each_block(rows, [&](const PaiNNRows& block, Index begin, Index end) {
      Tape tape;
      tape.backward(side_by_side(update(block)), of_out.slice_rows(begin, end));
      const Tensor scalars = block.scalars.grad(), vectors = block.vectors.grad();
      std::copy_n(scalars.data(), scalars.size(), of_scalars.row(begin));
      std::copy_n(vectors.data(), vectors.size(), of_vectors.row(begin));
    });
    if (rows.scalars.requires_grad()) rows.scalars.gradient()->add(std::move(of_scalars));
    if (rows.vectors.requires_grad()) rows.vectors.gradient()->add(std::move(of_vectors));
  });
  return {.scalars = slice_columns(both, 0, feats),
          .vectors = reshape(slice_columns(both, feats, 4 * feats), {n, 3, feats})};
}

}}  // namespace sar
