#include <sar/nn/atoms/edge_rows.hpp>
#include <sar/nn/atoms/painn_conv.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/modules/row_distance.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The graph with chunks of edges whose rows of about 11 F numbers stay in the second-level cache.
GraphShardManager in_small_chunks(GraphShardManager graph, Index feats) {
  GraphOptions options = graph.options();
  options.edge_block = std::clamp<Index>((1 << 15) / feats, 1, options.edge_block);
  graph.set_options(options);
  return graph;
}

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

PaiNNRows PaiNNConv::operator()(const GraphShardManager& graph, const PaiNNRows& rows,
                                const Variable& positions, const Variable& shifts) const {
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

PaiNNRows PaiNNConv::add_messages(const GraphShardManager& graph, const PaiNNRows& rows,
                                  const Variable& positions, const Variable& shifts) const {
  const Index feats = feats_, num_dst = graph.num_dst_nodes(), num_basis = radial_.num_basis;
  // Applied to radial_rows(): the weights, the bias (times the cutoff function) and 0 for the direction.
  const Variable filter = concat_columns({filter_net_.weight(), reshape(filter_net_.bias(), {3 * feats, 1}),
                                          Variable(Tensor::zeros({3 * feats, 3}))});
  const Variable sums =
      in_small_chunks(graph, feats)
          .update_all(  // [local destinations, 4 F]: scalars, then the 3 components
              [=, phi = interatomic_context_net_(rows.scalars), vectors = rows.vectors,
               own = first_rows(positions, num_dst), functions = radial_](const EdgeBatch& edges) {
                const Variable radial =
                    radial_rows(edge_vectors(edges.src(positions), edges.dst(own),
                                             shifts.defined() ? edges.edata(shifts) : Variable()),
                                functions);
                return vector_messages(edges.src(phi), linear(radial, filter),
                                       slice_columns(radial, num_basis + 1, num_basis + 4),
                                       vectors.defined() ? edges.src(vectors) : Variable());
              },
              fn::sum);
  const Variable vector_sums = reshape(slice_columns(sums, feats, 4 * feats), {num_dst, 3, feats});
  return {.scalars = first_rows(rows.scalars, num_dst) + slice_columns(sums, 0, feats),
          .vectors = rows.vectors.defined() ? first_rows(rows.vectors, num_dst) + vector_sums : vector_sums};
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
