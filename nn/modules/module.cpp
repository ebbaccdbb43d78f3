// SPDX-License-Identifier: MIT
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/modules/module.hpp>

#include <algorithm>
#include <cmath>
#include <set>

namespace sar { inline namespace SAR_PRECISION {
namespace init {
namespace {

/// Returns a tensor of scale * draw(random, row, column).
template <class Draw>
Tensor drawn(const Shape& shape, double scale, const RandomKey& key, const Draw& draw) {
  Tensor result(shape);
  const Random random(key);
  const Index columns = shape.row_size();
  parallel_for_each(shape[0], 16, [&](Index i) {
    for (Index j = 0; j < columns; ++j)
      result.row(i)[j] = static_cast<real>(
          scale * draw(random, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(j)));
  });
  return result;
}

}  // namespace

Tensor uniform(const Shape& shape, double bound, const RandomKey& key) {
  return drawn(shape, bound, key, [](const Random& random, std::uint64_t i, std::uint64_t j) {
    return 2 * random.uniform(i, j) - 1;
  });
}

Tensor normal(const Shape& shape, double deviation, const RandomKey& key) {
  return drawn(shape, deviation, key,
               [](const Random& random, std::uint64_t i, std::uint64_t j) { return random.normal(i, j); });
}

Tensor xavier_uniform(const Shape& shape, double gain, const RandomKey& key) {
  require<ShapeError>(shape.dims() == 2, "xavier_uniform is for matrices, not for a parameter of shape ",
                      shape);
  return uniform(shape, gain * std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1])), key);
}

Tensor xavier_normal(const Shape& shape, double gain, const RandomKey& key) {
  require<ShapeError>(shape.dims() >= 2, "xavier_normal is for 2 dimensions and more, not for shape ", shape);
  Index field = 1;
  for (int d = 2; d < shape.dims(); ++d) field *= shape[d];
  const double deviation = gain * std::sqrt(2.0 / static_cast<double>((shape[0] + shape[1]) * field));
  return normal(shape, deviation, key);
}

Tensor linear_uniform(const Shape& shape, Index fan_in, const RandomKey& key) {
  return uniform(shape, fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0, key);
}

}  // namespace init

namespace {

/// Returns what two variables have in common that are one parameter; null: nothing, they have no elements.
const void* identity_of(const Variable& parameter) {
  if (parameter.requires_grad()) return parameter.gradient().get();
  return parameter.value().size() > 0 ? parameter.value().data() : nullptr;
}

/// Copies `value` to the entry `name` of `all`, in place. `kind` is the kind of the entries in messages.
template <class Named>
void set_entry(const std::vector<Named>& all, const char* kind, const std::string& name,
               const Tensor& value) {
  for (const auto& [entry, old] : all) {
    if (entry != name) continue;
    require<ShapeError>(old.shape() == value.shape(), "a value of shape ", value.shape(), " for the ", kind,
                        " '", name, "' of shape ", old.shape());
    Tensor values = Variable(old).value();
    values.save();
    return values.copy_from(value);
  }
  throw InputError(concat("the model has no ", kind, " '", name, "'"));
}

}  // namespace

std::vector<NamedParameter> without_repetitions(std::vector<NamedParameter> parameters) {
  std::set<const void*> seen;
  std::erase_if(parameters, [&](const NamedParameter& named) {
    const void* const identity = identity_of(named.parameter);
    return identity != nullptr && !seen.insert(identity).second;
  });
  return parameters;
}

template <class Named, class T>
std::vector<Named> Module::collect(Entries<T> Module::*entries) const {
  std::vector<Named> found;
  for (const auto& [name, entry] : this->*entries) {
    if constexpr (std::is_same_v<Named, NamedCounter>)
      found.push_back({name, entry});
    else
      found.push_back({name, *entry});
  }
  for (const auto& [name, module] : modules_)
    for (Named& entry : module->template collect<Named>(entries)) {
      entry.name = name + "." + entry.name;
      found.push_back(std::move(entry));
    }
  return found;
}

Module::Entries<Variable> Module::all_parameters() const {
  Entries<Variable> found = parameters_;
  for (const auto& [name, module] : modules_)
    for (const auto& [inner, parameter] : module->all_parameters())
      found.emplace_back(name + "." + inner, parameter);
  return found;
}

std::vector<NamedParameter> Module::named_parameters() const {
  return collect<NamedParameter>(&Module::parameters_);
}

std::vector<NamedBuffer> Module::named_buffers() const {
  return collect<NamedBuffer>(&Module::buffers_);
}

std::vector<NamedCounter> Module::named_counters() const {
  return collect<NamedCounter>(&Module::counters_);
}

std::vector<NamedCounter> Module::state_dict_counters() const {
  return collect<NamedCounter>(&Module::state_dict_counters_);
}

std::vector<NamedParameter> Module::unique_parameters() const {
  return without_repetitions(named_parameters());
}

std::vector<Variable> Module::parameters() const {
  std::vector<Variable> found;
  for (NamedParameter& named : unique_parameters()) found.push_back(std::move(named.parameter));
  return found;
}

void Module::set_parameter(const std::string& name, const Tensor& value) {
  set_entry(named_parameters(), "parameter", name, value);
}

void Module::set_buffer(const std::string& name, const Tensor& value) {
  set_entry(named_buffers(), "buffer", name, value);
}

template <class Replacement>
void Module::replace(const std::string& name, const Replacement& replacement) {
  const Entries<Variable> all = all_parameters();
  const auto named = std::ranges::find(all, name, [](const auto& entry) { return entry.first; });
  require<InputError>(named != all.end(), "the model has no parameter '", name, "'");
  const void* const replaced = identity_of(*named->second);
  const Variable by = replacement(*named->second);
  for (const auto& [other, parameter] : all)
    if (parameter == named->second || (replaced != nullptr && identity_of(*parameter) == replaced))
      *parameter = by;
}

void Module::freeze(const std::string& name) {
  replace(name, [](const Variable& parameter) { return parameter.detach(); });
}

void Module::unfreeze(const std::string& name) {
  replace(name, [](const Variable& parameter) {
    return parameter.requires_grad() ? parameter : Variable(parameter.value(), true);
  });
}

void Module::for_each_module(FunctionRef<void(Module&)> visit) {
  visit(*this);
  for (const auto& [name, module] : modules_) module->for_each_module(visit);
}

void Module::train(bool training) {
  for_each_module([&](Module& module) { module.training_ = training; });
}

void Module::zero_grad() {
  for (Variable& parameter : parameters()) parameter.zero_grad();
}

void Module::check_name(const std::string& name) const {
  require<InputError>(!name.empty() && name.find('.') == std::string::npos, "'", name,
                      "' cannot name a part of a module: names are not empty and have no dot");
  const auto require_free = [&](const auto& entries) {
    for (const auto& entry : entries)
      require<InputError>(entry.first != name, "a module has two parts of the name '", name, "'");
  };
  require_free(parameters_);
  require_free(buffers_);
  require_free(counters_);
  require_free(modules_);
}

void Module::register_parameter(const std::string& name, Variable& parameter) {
  check_name(name);
  parameters_.emplace_back(name, &parameter);
}

void Module::register_parameter(const std::string& name, Variable& parameter, Tensor initial) {
  parameter = Variable(std::move(initial), true);
  register_parameter(name, parameter);
}

void Module::register_buffer(const std::string& name, Tensor& buffer) {
  check_name(name);
  buffers_.emplace_back(name, &buffer);
}

void Module::register_parameter_or_buffer(const std::string& name, Variable& values, bool learn) {
  learn ? register_parameter(name, values) : register_buffer(name, values.value());
}

void Module::register_counter(const std::string& name, Recoverable<std::uint64_t>& counter,
                              bool in_state_dict) {
  check_name(name);
  counters_.emplace_back(name, &counter);
  if (in_state_dict) state_dict_counters_.emplace_back(name, &counter);
}

void Module::register_module(const std::string& name, Module& module) {
  check_name(name);
  const auto contains_this = [this](const auto& again, const Module& part) -> bool {
    return &part == this ||
           std::ranges::any_of(part.modules_, [&](const auto& entry) { return again(again, *entry.second); });
  };
  require<InputError>(!contains_this(contains_this, module), "the part '", name,
                      "' of a module contains the module itself");
  modules_.emplace_back(name, &module);
}

void Module::unregister(const std::string& name) noexcept {
  const auto remove = [&](auto& entries) {
    std::erase_if(entries, [&](const auto& entry) { return entry.first == name; });
  };
  remove(parameters_);
  remove(buffers_);
  remove(counters_);
  remove(state_dict_counters_);
  remove(modules_);
}

void Module::reorder(const std::vector<std::string>& names) {
  const auto sort = [&](auto& entries) {
    std::ranges::stable_sort(entries, {}, [&](const auto& entry) {
      return std::ranges::find(names, entry.first) - names.begin();
    });
  };
  sort(parameters_);
  sort(buffers_);
  sort(modules_);
}
}}  // namespace sar
