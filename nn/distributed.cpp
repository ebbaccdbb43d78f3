#include <sar/core/error.hpp>
#include <sar/nn/distributed.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sar {
namespace {

/// Names and shapes of everything that sync_params sends, a line each.
std::string description(const Module& module) {
  std::string text;
  for (const auto& [name, parameter] : module.named_parameters()) text += name + " " + parameter.shape().to_string() + "\n";
  for (const auto& [name, buffer] : module.named_buffers()) text += name + " " + buffer.shape().to_string() + "\n";
  for (const auto& [name, value] : module.named_counters()) text += name + "\n";
  return text;
}

}  // namespace

void gather_grads(const Communicator& comm, Module& module, bool average) {
  std::vector<Variable> parameters = module.parameters();
  std::erase_if(parameters, [](const Variable& parameter) { return !parameter.requires_grad(); });

  // All gradients one after the other, then one number per parameter: on how many ranks it got a gradient.
  index total = static_cast<index>(parameters.size());
  for (const Variable& parameter : parameters) total += parameter.value().size();
  Tensor packed = Tensor::zeros({total});
  real* at = packed.data();
  real* has_gradient = packed.data() + total - static_cast<index>(parameters.size());
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const Tensor gradient = parameters[k].grad();
    if (gradient.defined()) {
      std::copy(gradient.values().begin(), gradient.values().end(), at);
      has_gradient[k] = 1;
    }
    at += parameters[k].value().size();
  }
  comm.all_reduce(packed.values());

  const real factor = average ? static_cast<real>(1.0 / comm.size()) : 1;
  at = packed.data();
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const index size = parameters[k].value().size();
    if (has_gradient[k] > 0) {
      Tensor sum(parameters[k].shape());  // not the gradient's memory, which another parameter's gradient may share
      std::transform(at, at + size, sum.data(), [factor](real g) { return g * factor; });
      parameters[k].zero_grad();
      parameters[k].gradient()->add(std::move(sum));
    }
    at += size;
  }
}

void sync_params(const Communicator& comm, Module& module) {
  const std::string mine = description(module);
  const std::string expected = comm.broadcast(mine, 0);
  comm.agree([&] {
    require<InputError>(mine == expected, "the model of rank ", comm.rank(), " has the parameters\n", mine,
                        "but that of rank 0 has\n", expected);
  });
  for (NamedParameter& named : module.named_parameters()) comm.broadcast(named.parameter.value().values(), 0);
  for (NamedBuffer& named : module.named_buffers()) comm.broadcast(named.tensor.values(), 0);
  for (const NamedCounter& named : module.named_counters()) comm.broadcast(std::span<std::uint64_t>(named.value, 1), 0);
}

}  // namespace sar
