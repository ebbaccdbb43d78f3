// SPDX-License-Identifier: MIT

// gather_grads() copies all gradients into one tensor, behind them one number per parameter that counts
// the ranks with a gradient, and makes one all_reduce of it; before, a synchronization point compares a
// hash of the shapes, and a number says whether any rank has a new gradient. Each parameter then gets a
// copy of its part, added to what it has of earlier calls. Memory: up to three times the gradients, because
// the transaction keeps the old ones until the end.
#include <sar/core/error.hpp>
#include <sar/core/random.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/nn/train/distributed.hpp>

#include <algorithm>
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

/// Throws ShapeError if the ranks' parameters have different shapes. Called inside agree(). Collective.
void require_equal_shapes(const Communicator& comm, const std::vector<Variable>& parameters) {
  std::uint64_t digest = hash_start;
  for (const Variable& parameter : parameters) {
    digest = with_word(digest, static_cast<std::uint64_t>(parameter.shape().dims()));
    for (int d = 0; d < parameter.shape().dims(); ++d)
      digest = with_word(digest, static_cast<std::uint64_t>(parameter.shape()[d]));
  }
  if (comm.all_equal(static_cast<std::int64_t>(digest), "gather_grads")) return;
  const std::string mine = joined(parameters, &Variable::shape), root = comm.broadcast(mine, 0);
  require<ShapeError>(mine == root, "gather_grads got parameters of shapes ", mine, ", expected ", root,
                      " as on rank 0");
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
                            std::setprecision(std::numeric_limits<real>::max_digits10), mine[i], " on rank ",
                            comm.rank(), ", ", root.values()[i], " on rank 0");
    }
  });
}

void gather_grads(const Communicator& comm, Module& module, bool average) {
  if (comm.debug()) compare_params(comm, module);
  const TraceScope scope("gather_grads", TraceKind::communication);
  comm.agree([&] {
    std::vector<Variable> parameters = module.parameters();
    std::erase_if(parameters, [](const Variable& parameter) { return !parameter.requires_grad(); });
    if (comm.size() == 1)
      for (const Variable& parameter : parameters)
        if (Tensor gradient = parameter.gradient()->take_own(); gradient.defined())
          parameter.gradient()->add_shared(std::move(gradient));
    if (parameters.empty() || comm.size() == 1) return;
    const CallScope compared(comm, CollectiveCall("gather_grads").equal("average", average));
    require_equal_shapes(comm, parameters);
    const bool has_new = std::ranges::any_of(
        parameters, [](const Variable& parameter) { return parameter.gradient()->has_own(); });
    if (comm.all_reduce(has_new ? 1 : 0, ReduceOp::max) == 0) return;

    // All gradients, followed by one value per parameter that counts the ranks with a gradient.
    Index values = 0;
    for (const Variable& parameter : parameters) values += parameter.value().size();
    Tensor sums = Tensor::zeros({values + std::ssize(parameters)});
    real* const has_gradient = sums.data() + values;
    Index begin = 0;
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const Index end = begin + parameters[k].value().size();
      if (const Tensor gradient = parameters[k].gradient()->take_own(); gradient.defined()) {
        sums.slice_rows(begin, end).copy_from(gradient.reshape({gradient.size()}));
        has_gradient[k] = 1;
      }
      begin = end;
    }
    comm.all_reduce(sums.values());
    if (average) binary(BinaryOp::div, sums, Tensor::full({1}, static_cast<real>(comm.size())), sums);
    begin = 0;
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const Index end = begin + parameters[k].value().size();
      if (has_gradient[k] > 0)
        parameters[k].gradient()->add_shared(
            sums.slice_rows(begin, end).reshape(parameters[k].shape()).clone());
      begin = end;
    }
  });
}

void sync_params(const Communicator& comm, Module& module) {
  const TraceScope scope("sync_params", TraceKind::communication);
  comm.agree([&] {
    require_equal_models(comm, module);
    std::vector<Tensor> tensors;
    for (const NamedParameter& named : module.named_parameters()) tensors.push_back(named.parameter.value());
    for (const NamedBuffer& named : module.named_buffers()) tensors.push_back(named.tensor);
    for (const Tensor& tensor : tensors) tensor.save();
    for (Tensor& tensor : tensors) comm.broadcast(tensor.values(), 0);
    for (const NamedCounter& named : module.named_counters()) {
      std::uint64_t value = *named.value;
      comm.broadcast(std::span(&value, 1), 0);
      *named.value = value;
    }
  });
}

}}  // namespace sar
