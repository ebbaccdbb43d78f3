#include <sar/core/error.hpp>
#include <sar/nn/modules/module.hpp>

namespace sar { inline namespace SAR_PRECISION {

template <class Named, class T>
void Module::collect(Entries<T> Module::*entries, const std::string& prefix,
                     std::vector<Named>& found) const {
  for (const auto& [name, entry] : this->*entries) {
    if constexpr (std::is_same_v<Named, NamedCounter>)
      found.push_back({prefix + name, entry});
    else
      found.push_back({prefix + name, *entry});
  }
  for (const auto& [name, module] : modules_) module->collect(entries, prefix + name + ".", found);
}

std::vector<NamedParameter> Module::named_parameters() const {
  std::vector<NamedParameter> found;
  collect(&Module::parameters_, "", found);
  return found;
}
std::vector<NamedBuffer> Module::named_buffers() const {
  std::vector<NamedBuffer> found;
  collect(&Module::buffers_, "", found);
  return found;
}
std::vector<NamedCounter> Module::named_counters() const {
  std::vector<NamedCounter> found;
  collect(&Module::counters_, "", found);
  return found;
}
std::vector<NamedCounter> Module::state_dict_counters() const {
  std::vector<NamedCounter> found;
  collect(&Module::state_dict_counters_, "", found);
  return found;
}

std::vector<Variable> Module::parameters() const {
  std::vector<Variable> found;
  for (NamedParameter& named : named_parameters()) found.push_back(std::move(named.parameter));
  return found;
}

void Module::set_parameter(const std::string& name, const Tensor& value) {
  for (NamedParameter& named : named_parameters()) {
    if (named.name != name) continue;
    require<ShapeError>(named.parameter.shape() == value.shape(), "a value of shape ", value.shape(),
                        " for the parameter '", name, "' of shape ", named.parameter.shape());
    named.parameter.value().copy_from(value);
    return;
  }
  throw InputError("the model has no parameter '" + name + "'");
}

void Module::set_buffer(const std::string& name, const Tensor& value) {
  for (NamedBuffer& named : named_buffers()) {
    if (named.name != name) continue;
    require<ShapeError>(named.tensor.shape() == value.shape(), "a value of shape ", value.shape(),
                        " for the buffer '", name, "' of shape ", named.tensor.shape());
    named.tensor.copy_from(value);
    return;
  }
  throw InputError("the model has no buffer '" + name + "'");
}

void Module::train(bool training) {
  training_ = training;
  for (const auto& [name, module] : modules_) module->train(training);
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

void Module::register_buffer(const std::string& name, Tensor& buffer) {
  check_name(name);
  buffers_.emplace_back(name, &buffer);
}

void Module::register_counter(const std::string& name, std::uint64_t& counter, bool in_state_dict) {
  check_name(name);
  counters_.emplace_back(name, &counter);
  if (in_state_dict) state_dict_counters_.emplace_back(name, &counter);
}

void Module::register_module(const std::string& name, Module& module) {
  check_name(name);
  modules_.emplace_back(name, &module);
}

}}  // namespace sar
