// SPDX-License-Identifier: MIT
#include <sar/nn/atoms/message_sums.hpp>
#include <sar/nn/atoms/painn_conv.hpp>
#include <sar/nn/conv/aggregate.hpp>

#include <cmath>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the sum over the 3 components of x [n, 3, F]: [n, F].
Variable component_sum(Variable x) {
  return head_mean(std::move(x)) * real{3};
}

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
    return update(add_messages(graph, rows, positions, shifts));
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

}}  // namespace sar
