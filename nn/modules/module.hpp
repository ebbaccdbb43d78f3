// SPDX-License-Identifier: MIT

/// Module: a layer or model with named parameters, equivalent to torch.nn.Module.
///
/// @code
/// struct Net : Module {
///   Linear hidden, out;
///   explicit Net(Generator& gen) : hidden(64, 16, gen), out(16, 4, gen) {
///     register_module("hidden", hidden);
///     register_module("out", out);
///   }
///   Variable operator()(const Variable& x) { return out(relu(hidden(x))); }
/// };
/// Net net(gen);
/// const Variable y = net(features);
/// @endcode
///
/// The forward pass of a module is an ordinary method of its class with any arguments. This base class only
/// manages the tree of names, which is that of torch's state_dict: the module's own entries first, then those
/// of its children, each in the order of registration, joined by dots ("convs.0.fc_self.weight").
///
/// Room nn/modules: Modules with named parameters that need no graph: linear layers, norms, dropout,
/// embeddings, MLP, LSTM.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/config.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/transaction.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// A learnable tensor and its name. The variable shares the module's storage.
struct NamedParameter {
  std::string name;
  Variable parameter;
};

/// Returns each parameter once, with its first name.
std::vector<NamedParameter> without_repetitions(std::vector<NamedParameter> parameters);

/// A tensor of a module's state that is not learned, such as running statistics.
struct NamedBuffer {
  std::string name;
  Tensor tensor;
};

/// An integer of a module's state, such as the number of calls of a dropout.
struct NamedCounter {
  std::string name;
  Recoverable<std::uint64_t>* value;
};

class Module : NonCopyable {
 public:
  virtual ~Module() = default;

  /// Returns every name of a parameter. One that is registered under several names occurs once for each, as
  /// in torch's state_dict.
  [[nodiscard]] std::vector<NamedParameter> named_parameters() const;
  /// Returns each parameter once, with its first name, as torch's named_parameters.
  [[nodiscard]] std::vector<NamedParameter> unique_parameters() const;
  [[nodiscard]] std::vector<NamedBuffer> named_buffers() const;
  [[nodiscard]] std::vector<NamedCounter> named_counters() const;
  /// Returns the named_counters() that torch's state_dict contains, too.
  [[nodiscard]] std::vector<NamedCounter> state_dict_counters() const;
  /// Returns each parameter once.
  [[nodiscard]] std::vector<Variable> parameters() const;

  /// Copies `value` into the parameter `name` or the buffer `name`, in place. Throws InputError if the name
  /// is unknown, ShapeError if the shapes differ.
  void set_parameter(const std::string& name, const Tensor& value);
  void set_buffer(const std::string& name, const Tensor& value);

  /// Makes the parameter `name` a constant, under each of its names: it gets no gradient, and optimizers
  /// leave it as it is. Call it before the parameter is used. Throws InputError if the name is unknown.
  void freeze(const std::string& name);
  /// Makes a constant parameter a leaf again, under each of its names. Make the optimizer that is to train it
  /// afterwards. Throws InputError if the name is unknown.
  void unfreeze(const std::string& name);

  /// Switches this module and all its descendants to training mode (the default) or evaluation mode.
  void train(bool training = true);
  void eval() { train(false); }
  [[nodiscard]] bool is_training() const noexcept { return training_; }

  /// Clears the gradients of all parameters.
  void zero_grad();

 protected:
  Module() = default;

  // Registered objects must be members of this object, or live as long. Throws InputError if the name is
  // empty, contains a dot or is in use, or if the part contains this module.
  void register_parameter(const std::string& name, Variable& parameter);
  /// Gives `parameter` its initial value, a leaf that requires a gradient, and registers it.
  void register_parameter(const std::string& name, Variable& parameter, Tensor initial);
  void register_buffer(const std::string& name, Tensor& buffer);
  void register_counter(const std::string& name, Recoverable<std::uint64_t>& counter,
                        bool in_state_dict = false);
  void register_module(const std::string& name, Module& module);
  /// Takes the part of this name, with everything below it, out of this module. Nothing if there is none.
  void unregister(const std::string& name) noexcept;
  /// Constructs a module in `module`, registers it and returns it.
  template <class M, class... Args>
  M& make_module(const std::string& name, std::optional<M>& module, Args&&... args) {
    module.emplace(std::forward<Args>(args)...);
    register_module(name, *module);
    return *module;
  }

 private:
  template <class T>
  using Entries = std::vector<std::pair<std::string, T*>>;

  /// Returns the entries of this module and then of all descendants.
  template <class Named, class T>
  std::vector<Named> collect(Entries<T> Module::*entries) const;
  [[nodiscard]] Entries<Variable> all_parameters() const;
  /// Replaces the parameter `name`, under each of its names, by replacement(parameter).
  template <class Replacement>
  void replace(const std::string& name, const Replacement& replacement);
  void check_name(const std::string& name) const;

  Entries<Variable> parameters_;
  Entries<Tensor> buffers_;
  Entries<Recoverable<std::uint64_t>> counters_;
  Entries<Recoverable<std::uint64_t>> state_dict_counters_;  // a subset of the counters
  Entries<Module> modules_;
  bool training_ = true;
};

/// Modules of one class named "0", "1", ..., equivalent to torch.nn.ModuleList.
///
///     ModuleList<SAGEConv> convs;
///     register_module("convs", convs);
///     convs.emplace_back(in_feats, hidden, gen);      // "convs.0.fc_self.weight", ...
template <class T>
class ModuleList : public Module {
 public:
  /// Constructs a T at the end and returns it. References to earlier modules stay valid.
  template <class... Args>
  T& emplace_back(Args&&... args) {
    modules_.push_back(std::make_unique<T>(std::forward<Args>(args)...));
    register_module(std::to_string(modules_.size() - 1), *modules_.back());
    return *modules_.back();
  }

  [[nodiscard]] std::size_t size() const noexcept { return modules_.size(); }
  [[nodiscard]] bool empty() const noexcept { return modules_.empty(); }
  /// Throws InputError if the index is out of range.
  [[nodiscard]] T& operator[](std::size_t i) {
    require<InputError>(i < modules_.size(), "module ", i, " of a list of ", modules_.size());
    return *modules_[i];
  }
  [[nodiscard]] const T& operator[](std::size_t i) const { return const_cast<ModuleList&>(*this)[i]; }
  /// Throws InputError if the list is empty.
  [[nodiscard]] T& back() { return (*this)[modules_.size() - 1]; }

 private:
  std::vector<std::unique_ptr<T>> modules_;
};
}}  // namespace sar
