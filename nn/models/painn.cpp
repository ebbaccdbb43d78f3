#include <sar/autograd/tape.hpp>
#include <sar/nn/models/painn.hpp>
#include <sar/nn/modules/reductions.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

const PaiNNOptions& checked(const PaiNNOptions& options) {
  require<InputError>(options.num_species > 0 && options.convs > 0, "PaiNN of ", options.num_species,
                      " species with ", options.convs, " convolutions, expected 1 or more of both");
  return options;
}

/// Saves the gradients of parameters and restores them in its destructor.
class KeptGradients : NonCopyable {
 public:
  explicit KeptGradients(std::vector<Variable> parameters) : parameters_(std::move(parameters)) {
    gradients_.reserve(parameters_.size());
    for (Variable& parameter : parameters_) {
      gradients_.push_back(parameter.grad());
      parameter.zero_grad();
    }
  }
  ~KeptGradients() {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].zero_grad();
      if (gradients_[i].defined()) parameters_[i].gradient()->add(std::move(gradients_[i]));
    }
  }

 private:
  std::vector<Variable> parameters_;
  std::vector<Tensor> gradients_;
};

}  // namespace

PaiNN::PaiNN(const PaiNNOptions& options, Generator& gen)
    : options_(checked(options)),
      embedding_(init::uniform({options.num_species, options.feats}, std::sqrt(3.0), gen.next_stream()),
                 true),
      outnet_(options.feats, std::max<Index>(options.feats / 2, 1), 1, gen, {.activation = silu}) {
  register_parameter("embedding", embedding_);
  register_module("convs", convs_);
  for (int i = 0; i < options.convs; ++i)
    convs_.emplace_back(options.feats, options.cutoff, gen, options.num_basis);
  register_module("outnet", outnet_);
}

Variable PaiNN::atomic_energies(const GraphShardManager& graph, const RowIds& species,
                                const Variable& positions, const Variable& shifts) const {
  return graph.comm().agree([&] {
    const Index n = graph.num_src_nodes();
    require<InputError>(graph.is_block() && n == graph.num_dst_nodes(),
                        "PaiNN on a graph whose sources are not its destinations");
    require<ShapeError>(species.size() == n, "PaiNN got ", species.size(), " species for ", n, " atoms");
    for (const Index kind : species.span())
      require<InputError>(kind >= 0 && kind < options_.num_species, "PaiNN of ", options_.num_species,
                          " species got species ", kind);
    PaiNNRows rows{.scalars = gather_rows(embedding_, species), .vectors = {}};
    for (std::size_t i = 0; i < convs_.size(); ++i)
      rows = convs_[i](graph, std::exchange(rows, {}), positions, shifts);
    return outnet_(rows.scalars);
  });
}

Variable PaiNN::energy(const GraphShardManager& graph, const RowIds& species, const Variable& positions,
                       const Variable& shifts) const {
  return graph.comm().agree(
      [&] { return sum(atomic_energies(graph, species, positions, shifts), graph.comm()); });
}

EnergyAndForces PaiNN::energy_and_forces(const GraphShardManager& graph, const RowIds& species,
                                         const Tensor& positions, const Tensor& shifts) const {
  return graph.comm().agree([&] {
    const KeptGradients kept(parameters());
    const Variable x(positions, true);
    Tape tape;
    const Variable e = energy(graph, species, x, shifts.defined() ? Variable(shifts) : Variable());
    const auto value = static_cast<double>(e.value().item());
    tape.backward(e);
    const Tensor slope = x.grad();  // undefined if no energy depends on a position
    return EnergyAndForces{.energy = value,
                           .forces = slope.defined() ? (-Variable(slope)).value() : Tensor::zeros(x.shape())};
  });
}

}}  // namespace sar
