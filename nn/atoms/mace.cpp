// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/autograd/row_sums.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/kernels/edge_batch.hpp>
#include <sar/nn/atoms/mace.hpp>
#include <sar/nn/atoms/message_sums.hpp>
#include <sar/nn/atoms/symmetric_contraction.hpp>
#include <sar/nn/atoms/tensor_product.hpp>
#include <sar/nn/atoms/tensor_product_sums.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/modules/row_distance.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Numbers of the message rows of a chunk.
constexpr Index chunk_numbers = 1 << 19;

const MACEOptions& checked(const MACEOptions& o) {
  require<InputError>(o.num_species > 0 && o.feats > 0 && o.layers > 0 && o.functions.num_basis > 0 &&
                          o.radial_feats > 0 && o.radial_layers > 0 && o.readout_feats > 0 && o.committee > 0,
                      "MACE of ", o.num_species, " species with ", o.layers, " layers of ", o.feats,
                      " channels, ", o.functions.num_basis, " radial functions, ", o.radial_layers,
                      " hidden layers of ", o.radial_feats, ", a readout of ", o.readout_feats, " and ",
                      o.committee, " heads, expected 1 or more of each");
  require<InputError>(0 <= o.hidden_l && o.hidden_l <= o.functions.max_l && o.functions.max_l <= 3,
                      "MACE with degrees up to ", o.functions.max_l, " of messages and up to ", o.hidden_l,
                      " between layers, expected 0 to 3, the second not above the first");
  require<InputError>(1 <= o.correlation && o.correlation <= 3, "MACE with the correlation ", o.correlation,
                      ", expected 1, 2 or 3");
  require<InputError>(o.functions.cutoff > 0 && std::isfinite(o.functions.cutoff) && o.functions.power > 0,
                      "MACE with the cutoff ", o.functions.cutoff, " and the power ", o.functions.power,
                      ", expected positive numbers");
  require<InputError>(o.neighbors > 0 && std::isfinite(o.neighbors), "MACE with ", o.neighbors,
                      " neighbors, expected a positive number");
  const bool with_radii = o.functions.transform != DistanceTransform::none;
  require<InputError>(!with_radii || std::ssize(o.radii) == o.num_species, "MACE of ", o.num_species,
                      " species with a distance transform and ", o.radii.size(), " radii, expected one each");
  require<InputError>(o.energy_scales.empty() || std::ssize(o.energy_scales) == o.num_species, "MACE of ",
                      o.num_species, " species with ", o.energy_scales.size(),
                      " energy_scales, expected one each");
  return o;
}

Index degree_size(std::size_t l) {
  return 2 * static_cast<Index>(l) + 1;
}

}  // namespace

DegreeLinear::DegreeLinear(const std::vector<Index>& widths, Index out, Generator& gen) : widths_(widths) {
  for (std::size_t l = 0; l < widths.size(); ++l)
    register_module(std::to_string(l), maps_.emplace_back(widths[l], out, gen, /*bias=*/false));
}

Variable DegreeLinear::operator()(const Variable& x) const {
  const Index n = x.num_rows();
  std::vector<Variable> parts;
  Index begin = 0;
  for (std::size_t l = 0; l < widths_.size(); ++l) {
    const Index size = degree_size(l), end = begin + size * widths_[l];
    const Variable mapped = maps_[l](reshape(slice_columns(x, begin, end), {n * size, widths_[l]}));
    parts.push_back(reshape(mapped, {n, size * mapped.shape()[1]}));
    begin = end;
  }
  return concat_columns(parts);
}

namespace {

std::vector<Index> equal_widths(int max_l, Index feats) {
  return std::vector<Index>(static_cast<std::size_t>(max_l + 1), feats);
}

std::vector<Index> path_widths(const TensorProduct& product, Index feats) {
  std::vector<Index> widths = product.paths_to;
  for (Index& each : widths) each *= feats;
  return widths;
}

}  // namespace

MACELayer::MACELayer(const MACEOptions& o, int in_l, int out_l, bool residual, Generator& gen)
    : functions_(o.functions),
      feats_(o.feats),
      in_l_(in_l),
      out_l_(out_l),
      residual_(residual),
      density_(o.density),
      product_(std::make_shared<const TensorProduct>(in_l, o.functions.max_l, o.functions.max_l)),
      basis_(std::make_shared<const SymmetricBasis>(o.functions.max_l, out_l, o.correlation)),
      linear_up_(equal_widths(in_l, o.feats), o.feats, gen),
      linear_(path_widths(*product_, o.feats), o.feats, gen),
      product_linear_(equal_widths(out_l, o.feats), o.feats, gen) {
  register_module("linear_up", linear_up_);
  register_module("radial", radial_);
  for (int k = 0; k <= o.radial_layers; ++k)
    radial_.emplace_back(k == 0 ? functions_.num_basis : o.radial_feats,
                         k == o.radial_layers ? std::ssize(product_->paths) * feats_ : o.radial_feats, gen,
                         /*bias=*/false);
  if (density_) {
    density_net_ = std::make_unique<Linear>(functions_.num_basis, 1, gen, /*bias=*/false);
    register_module("density", *density_net_);
  }
  register_module("linear", linear_);
  const int skips = residual ? std::min(in_l, out_l) : o.functions.max_l;
  skip_weights_.resize(static_cast<std::size_t>(skips + 1));
  for (std::size_t l = 0; l < skip_weights_.size(); ++l)
    skip_.register_parameter(
        std::to_string(l), skip_weights_[l],
        init::linear_uniform({o.num_species, feats_, feats_}, feats_, gen.next_stream()));
  register_module("skip", skip_);
  register_parameter("contraction", contraction_,
                     init::uniform({o.num_species, basis_->paths, feats_}, 1, gen.next_stream()));
  register_module("product", product_linear_);
}

std::shared_ptr<const RadialTable> MACELayer::table(const std::vector<Variable>& network,
                                                    const Variable& of_density,
                                                    const std::vector<real>& sums_of_radii) const {
  constexpr std::size_t most_radii = 64;  // beyond, tables need too much memory
  const bool transforms = functions_.transform != DistanceTransform::none;
  const auto is_constant = [](const Variable& x) { return !x.defined() || !x.requires_grad(); };
  if (is_training() || sizeof(real) != sizeof(float) || !std::ranges::all_of(network, is_constant) ||
      !is_constant(of_density) ||
      (transforms && (sums_of_radii.empty() || sums_of_radii.size() > most_radii)))
    return nullptr;
  std::vector<Tensor> weights;
  for (const Variable& each : network) weights.push_back(each.value());
  const Tensor w = density_ ? of_density.value() : Tensor();
  if (density_) weights.push_back(w);
  std::vector<real> radii = sums_of_radii;
  if (std::ranges::equal(weights, weights_, [](const Tensor& x, const Tensor& y) {
        return std::ranges::equal(x.values(), y.values());
      })) {
    if (std::ranges::includes(table_->radii(), radii)) return table_;
    std::vector<real> both;
    std::ranges::set_union(table_->radii(), radii, std::back_inserter(both));
    if (both.size() <= most_radii) radii = std::move(both);
  }
  for (Tensor& each : weights) each = each.clone();
  const std::vector<Tensor> matrices(weights.begin(), weights.begin() + std::ssize(network));
  table_ = std::make_shared<const RadialTable>(functions_, matrices, w, std::move(radii));
  weights_ = std::move(weights);
  return table_;
}

Variable MACELayer::sums_of_messages(const Graph& graph, const Variable& rows, const Variable& positions,
                                     const Variable& shifts, const Variable& radii,
                                     const std::vector<real>& sums_of_radii) const {
  std::vector<Variable> network;
  for (std::size_t k = 0; k < radial_.size(); ++k) network.push_back(radial_[k].weight());
  const Variable of_density = density_ ? density_net_->weight() : Variable();
  const bool dual = any_dual({&rows, &positions, &shifts});
  if (!graph.options().reproducible && !(dual && wants_edges({&positions, &shifts})))
    return tensor_product_sums(graph, {.rows = rows,
                                       .positions = positions,
                                       .shifts = shifts,
                                       .radii = radii,
                                       .network = network,
                                       .density = of_density,
                                       .functions = functions_,
                                       .product = product_,
                                       .table = dual ? nullptr : table(network, of_density, sums_of_radii)});
  // A function of edges has exact sums, and all gradients of tangents.
  require_exact_positions(graph, positions);
  const Index width = product_->rows * feats_;
  Graph chunked = graph;
  GraphOptions options = graph.options();
  options.edge_chunk = std::clamp<Index>(chunk_numbers / width, 1, options.edge_chunk);
  chunked.set_options(options);
  const auto message = [=, functions = functions_, product = product_](const EdgeBatch& edges) {
    const Variable d = edge_vectors(edges.src(positions), edges.dst(positions),
                                    shifts.defined() ? edges.edata(shifts) : Variable());
    const Tensor sums = radii.defined() ? (edges.src(radii) + edges.dst(radii)).value() : Tensor();
    const Variable all = harmonic_rows(d, sums, functions);
    const Variable basis = slice_columns(all, 0, functions.num_basis);
    Variable weights = linear(basis, network[0]);
    for (std::size_t k = 1; k < network.size(); ++k) weights = linear(silu(std::move(weights)), network[k]);
    const Variable messages = tensor_product_rows(
        edges.src(rows), slice_columns(all, functions.num_basis, functions.columns()), weights, product);
    if (!of_density.defined()) return messages;
    const Variable root = linear(basis, of_density);
    return concat_columns({messages, tanh(root * root)});
  };
  return chunked.update_all(message, fn::sum);
}

Variable MACELayer::skip(const Variable& rows, const RowIds& species, int in_l, int out_l) const {
  const Index n = rows.num_rows();
  std::vector<Variable> parts;
  for (std::size_t l = 0; l < static_cast<std::size_t>(std::min(in_l, out_l) + 1); ++l) {
    const Index size = degree_size(l), begin = static_cast<Index>(l * l) * feats_;
    std::vector<Index> kinds;
    for (const Index kind : species.span()) kinds.insert(kinds.end(), static_cast<std::size_t>(size), kind);
    const Variable x = reshape(slice_columns(rows, begin, begin + size * feats_), {n * size, feats_});
    parts.push_back(reshape(gather_mm(x, skip_weights_[l], kinds), {n, size * feats_}));
  }
  const Index rest = components(out_l) - components(std::min(in_l, out_l));
  if (rest > 0) parts.emplace_back(Tensor::zeros({n, rest * feats_}));
  return concat_columns(parts);
}

Variable MACELayer::operator()(const Graph& graph, const Variable& rows, const RowIds& species,
                               const Variable& positions, const Variable& shifts, const Variable& radii,
                               const std::vector<real>& sums_of_radii) const {
  return graph.comm().agree([&] {
    const Index width = product_->rows * feats_;
    Variable sums = sums_of_messages(graph, linear_up_(rows), positions, shifts, radii, sums_of_radii);
    Variable density;
    if (density_) {
      density = scale_shift(slice_columns(sums, width, width + 1), 1, 1);
      sums = slice_columns(std::exchange(sums, {}), 0, width);
    }
    Variable a = linear_(std::exchange(sums, {}));
    if (density_) a = std::exchange(a, {}) / density;
    if (!residual_) a = skip(std::exchange(a, {}), species, functions_.max_l, functions_.max_l);
    const Variable out =
        product_linear_(symmetric_contraction(std::exchange(a, {}), contraction_, species, basis_));
    return residual_ ? out + skip(rows, species, in_l_, out_l_) : out;
  });
}

MACE::MACE(const MACEOptions& options, Generator& gen)
    : options_(checked(options)),
      embedding_(init::uniform({options.num_species, options.feats}, std::sqrt(3.0), gen.next_stream()),
                 true) {
  register_parameter("embedding", embedding_);
  register_module("layers", layers_);
  register_module("readouts", readouts_);
  register_module("readout", readout_);
  for (int i = 0; i < options.layers; ++i) {
    const bool last = i + 1 == options.layers;
    layers_.emplace_back(options, i == 0 ? 0 : options.hidden_l, last ? 0 : options.hidden_l,
                         i > 0 || options.residual_first, gen);
    if (!last) readouts_.emplace_back(options.feats, options.committee, gen, /*bias=*/false);
  }
  readout_.emplace_back(options.feats, options.readout_feats, gen, /*bias=*/false);
  readout_.emplace_back(options.readout_feats, options.committee, gen, /*bias=*/false);
  const auto column = [&](const std::vector<double>& values) {
    return Tensor::from({options.num_species, 1}, std::span<const double>(values));
  };
  if (options.functions.transform != DistanceTransform::none) radii_ = column(options.radii);
  if (!options.energy_scales.empty()) energy_scales_ = column(options.energy_scales);
  draw_weights(gen);
}

namespace {

/// The weights [species, paths, F] of products as mace-torch draws them: a number of each coupling and
/// channel with the deviation 1 / couplings.
Tensor drawn_contraction(const SymmetricBasis& basis, const Shape& shape, const RandomKey& key) {
  Tensor result = Tensor::zeros(shape);
  const Random random(key);
  const Index feats = shape[2];
  for (Index s = 0; s < shape[0]; ++s) {
    Index path = 0;
    std::uint64_t drawn = 0;
    for (const SymmetricBasis::Block& block : basis.blocks) {
      for (Index c = 0; c < block.couplings; ++c)
        for (Index j = 0; j < feats; ++j) {
          const double weight = random.normal(static_cast<std::uint64_t>(s), drawn++) /
                                static_cast<double>(block.all_couplings);
          for (Index p = 0; p < block.paths; ++p)
            result.row(s)[(path + p) * feats + j] +=
                static_cast<real>(block.mixing[static_cast<std::size_t>(p * block.couplings + c)] * weight);
        }
      path += block.paths;
    }
  }
  return result;
}

/// The layer of "layers.1.linear.0.weight", and "linear.0.weight".
std::pair<std::size_t, std::string> layer_and_name(const std::string& parameter) {
  const std::size_t begin = std::string("layers.").size(), dot = parameter.find('.', begin);
  return {static_cast<std::size_t>(std::stoul(parameter.substr(begin, dot - begin))),
          parameter.substr(dot + 1)};
}

}  // namespace

void MACE::draw_weights(Generator& gen) {
  for (const NamedParameter& each : named_parameters()) {
    const Shape shape = each.parameter.shape();
    const RandomKey key = gen.next_stream();
    set_parameter(each.name,
                  each.name.ends_with(".contraction")
                      ? drawn_contraction(layers_[layer_and_name(each.name).first].basis(), shape, key)
                      : init::normal(shape, lr_factor(each.name), key));
  }
}

double MACE::lr_factor(const std::string& parameter) const {
  constexpr double silu = 1.6791768;  // of e3nn: one over the root of the mean square of silu(x), x normal
  const auto per_root = [](Index count) { return 1 / std::sqrt(static_cast<double>(count)); };
  const Index feats = options_.feats, species = options_.num_species;
  if (parameter == "embedding") return per_root(species);
  if (parameter == "readout.1.weight") return silu * per_root(options_.readout_feats);
  if (parameter.starts_with("readout")) return per_root(feats);
  const auto& [layer, name] = layer_and_name(parameter);
  if (name == "contraction") return 1;
  if (name == "radial.0.weight" || name == "density.weight") return per_root(options_.functions.num_basis);
  if (name.starts_with("radial.")) return silu * per_root(options_.radial_feats);
  if (name.starts_with("skip.")) return per_root(feats * species);
  if (!name.starts_with("linear.")) return per_root(feats);
  const auto l = static_cast<std::size_t>(std::stoul(name.substr(std::string("linear.").size())));
  return per_root(layers_[layer].product().paths_to[l] * feats) / options_.neighbors;
}

std::vector<real> MACE::sums_of_present_radii(const Communicator& comm, const RowIds& species) const {
  std::vector<double> counts(static_cast<std::size_t>(options_.num_species), 0);
  for (const Index kind : species.span()) counts[static_cast<std::size_t>(kind)] = 1;
  comm.all_reduce(std::span<double>(counts));
  std::set<real> sums;
  for (std::size_t i = 0; i < counts.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j)
      if (counts[i] > 0 && counts[j] > 0)
        sums.insert(radii_.data()[static_cast<Index>(i)] + radii_.data()[static_cast<Index>(j)]);
  return {sums.begin(), sums.end()};
}

Variable MACE::head_energies(const Graph& graph, const RowIds& species, const Variable& positions,
                             const Variable& shifts) const {
  return graph.comm().agree([&] {
    require_atoms("MACE", graph, species, options_.num_species);
    const Variable radii = radii_.defined() ? gather_rows(Variable(radii_), species) : Variable();
    const std::vector<real> sums_of_radii =
        radii_.defined() ? sums_of_present_radii(graph.comm(), species) : std::vector<real>();
    Variable rows = gather_shared_rows(embedding_, species), energies;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      rows = layers_[i](graph, std::exchange(rows, {}), species, positions, shifts, radii, sums_of_radii);
      const Variable scalars = slice_columns(rows, 0, options_.feats);
      const Variable found =
          i < readouts_.size() ? readouts_[i](scalars) : readout_[1](silu(readout_[0](scalars)));
      energies = i == 0 ? found : std::exchange(energies, {}) + found;
    }
    if (!energy_scales_.defined()) return energies;
    return std::exchange(energies, {}) * gather_shared_rows(energy_scales_, species);
  });
}

bool MACE::is_by_species(const std::string& parameter) const {
  return parameter == "embedding" || parameter.ends_with(".contraction") ||
         parameter.find(".skip.") != std::string::npos;
}

bool MACE::is_of_last_layer(const std::string& parameter) const {
  return parameter.starts_with("readouts.") || parameter == "readout.1.weight";
}
}}  // namespace sar
