#include <sar/nn/atoms/painn_conv.hpp>
#include <sar/nn/conv/aggregate.hpp>
#include <sar/nn/modules/row_distance.hpp>

#include <cmath>
#include <numbers>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The geometry of n edges, as messages read it.
struct Geometry {
  Variable direction;  ///< [n, 3, 1]
  Variable basis;      ///< [n, num_basis]
  Variable cutoff;     ///< [n, 1]
};

/// Returns k pi / c for k = 1 .. num_basis: [1, num_basis].
Tensor frequencies(Index num_basis, double cutoff) {
  Tensor values({1, num_basis});
  for (Index k = 0; k < num_basis; ++k)
    values.data()[k] = static_cast<real>(static_cast<double>(k + 1) * std::numbers::pi / cutoff);
  return values;
}

/// Returns 1 where f is true of the value, and 0 elsewhere.
template <class F>
Tensor mask(const Tensor& x, const F& f) {
  Tensor result(x.shape());
  for (Index i = 0; i < x.size(); ++i) result.data()[i] = f(x.data()[i]) ? 1 : 0;
  return result;
}

/// Returns the geometry of edges from their vectors x_u + t_uv - x_v: [n, 3].
Geometry geometry(const Variable& vector, const Tensor& frequency, double cutoff) {
  const Index n = vector.num_rows(), num_basis = frequency.size();
  const Variable length = row_distance(vector, Tensor::zeros(vector.shape()), RowComparison::l2);
  const Tensor apart = mask(length.value(), [](real r) { return r > 0; });
  const Tensor inside = mask(length.value(), [&](real r) { return static_cast<double>(r) < cutoff; });
  const Variable divisor = where(apart, length, Tensor::full({1}, 1));
  const Variable waves = unit_complex(matmul(length, frequency));  // cosines, then sines
  const Variable cosine = slice_columns(waves, 0, 1), sines = slice_columns(waves, num_basis, 2 * num_basis);
  return {.direction = reshape(vector / divisor, {n, 3, 1}),
          .basis = where(apart, sines / divisor, frequency),
          .cutoff = where(inside, scale_shift(cosine, real{0.5}, real{0.5}), Tensor::zeros({1}))};
}

/// Returns the sum over the 3 components of x [n, 3, F]: [n, F].
Variable component_sum(Variable x) {
  return head_mean(std::move(x)) * real{3};
}

MLPOptions context_options() {
  return {.hidden_layers = 1, .activation = silu};
}

}  // namespace

PaiNNConv::PaiNNConv(Index feats, double cutoff, Generator& gen, Index num_basis, double norm_epsilon)
    : feats_(feats),
      cutoff_(cutoff),
      norm_epsilon_(static_cast<real>(norm_epsilon)),
      interatomic_context_net_(feats, feats, 3 * feats, gen, context_options()),
      filter_net_(num_basis, 3 * feats, gen),
      mu_channel_mix_(feats, 2 * feats, gen, /*bias=*/false),
      intraatomic_context_net_(2 * feats, feats, 3 * feats, gen, context_options()) {
  require<InputError>(cutoff > 0 && std::isfinite(cutoff), "PaiNNConv with the cutoff ", cutoff,
                      ", expected a positive number");
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
  const Index feats = feats_, num_dst = graph.num_dst_nodes();
  const Variable sums = graph.update_all(  // [local destinations, 4 F]: scalars, then the 3 components
      [=, phi = interatomic_context_net_(rows.scalars), vectors = rows.vectors,
       own = first_rows(positions, num_dst), weight = filter_net_.weight(), bias = filter_net_.bias(),
       cutoff = cutoff_,
       frequency = frequencies(filter_net_.weight().shape()[1], cutoff_)](const EdgeBatch& edges) {
        const Index n = edges.num_edges();
        const Geometry g = geometry(edge_vectors(edges.src(positions), edges.dst(own),
                                                 shifts.defined() ? edges.edata(shifts) : Variable()),
                                    frequency, cutoff);
        const Variable channels = edges.src(phi) * (linear(g.basis, weight, bias) * g.cutoff);
        const auto part = [&](Index k) { return slice_columns(channels, k * feats, (k + 1) * feats); };
        Variable turned = g.direction * reshape(part(1), {n, 1, feats});
        if (vectors.defined())
          turned = std::exchange(turned, {}) + edges.src(vectors) * reshape(part(2), {n, 1, feats});
        return concat_columns({part(0), reshape(std::move(turned), {n, 3 * feats})});
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
