#include <sar/comm/distributed.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/train/distributed.hpp>

#include <cstring>
#include <iomanip>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns names and shapes of everything that sync_params sends, one line each.
std::string description(const Module& module) {
  std::string text;
  for (const auto& [name, parameter] : module.named_parameters())
    text += name + " " + parameter.shape().to_string() + "\n";
  for (const auto& [name, buffer] : module.named_buffers())
    text += name + " " + buffer.shape().to_string() + "\n";
  for (const auto& [name, value] : module.named_counters()) text += name + "\n";
  return text;
}

/// Throws InputError if the ranks' models differ. Called inside agree(). Collective.
void require_equal_models(const Communicator& comm, const Module& module) {
  const std::string mine = description(module);
  const std::string root = comm.broadcast(mine, 0);
  require<InputError>(mine == root, "the model of rank ", comm.rank(), " consists of\n", mine,
                      "but that of rank 0 of\n", root);
}

}  // namespace

void compare_params(const Communicator& comm, const Module& module) {
  comm.agree([&] {
    require_equal_models(comm, module);
    for (const auto& [name, parameter] : module.named_parameters()) {
      const std::span<const real> mine = parameter.value().values();
      Tensor root = parameter.value().clone();
      comm.broadcast(root.values(), 0);
      for (std::size_t i = 0; i < mine.size(); ++i)
        require<InputError>(std::memcmp(&mine[i], &root.values()[i], sizeof(real)) == 0, "parameter ", name,
                            ": element ", i, " is ",
                            std::setprecision(std::numeric_limits<real>::max_digits10), mine[i],
                            " on rank ", comm.rank(), ", ", root.values()[i], " on rank 0");
    }
  });
}

void gather_grads(const Communicator& comm, Module& module, bool average) {
  if (comm.debug()) compare_params(comm, module);
  comm.agree([&] {
    std::vector<Variable> parameters = module.parameters();
    std::erase_if(parameters, [](const Variable& parameter) { return !parameter.requires_grad(); });

    // Pack all gradients, followed by one value per parameter that counts the ranks with a gradient.
    std::vector<Tensor> sums;
    std::vector<real> has_gradient;
    for (const Variable& parameter : parameters) {
      Tensor gradient = parameter.gradient()->take();
      has_gradient.push_back(gradient.defined() ? 1 : 0);
      if (!gradient.defined()) {
        gradient = Tensor::zeros(parameter.shape());
      } else if (!gradient.unique()) {
        gradient = gradient.clone();  // two parameters may share the memory of their gradient
      }
      sums.push_back(std::move(gradient));
    }
    if (parameters.empty()) return;
    sums.push_back(Tensor::from({static_cast<Index>(parameters.size())}, has_gradient));
    gather_grads(comm, std::span<Tensor>(sums), average);

    const Tensor on_some_rank = std::move(sums.back());
    for (std::size_t k = 0; k < parameters.size(); ++k)
      if (on_some_rank.data()[k] > 0) parameters[k].gradient()->add(std::move(sums[k]));
  });
}

void sync_params(const Communicator& comm, Module& module) {
  comm.agree([&] {
    require_equal_models(comm, module);
    std::vector<Tensor> tensors;
    for (const NamedParameter& named : module.named_parameters()) tensors.push_back(named.parameter.value());
    for (const NamedBuffer& named : module.named_buffers()) tensors.push_back(named.tensor);
    for (const Tensor& tensor : tensors) tensor.save();
    sync_params(comm, std::span<Tensor>(tensors));
    for (const NamedCounter& named : module.named_counters()) {
      std::uint64_t value = *named.value;
      comm.broadcast(std::span(&value, 1), 0);
      *named.value = value;
    }
  });
}

}}  // namespace sar
