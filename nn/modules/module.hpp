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
#include <sar/core/random.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// Initial values of parameters, and the random streams of modules.

/// A source of random streams for the parameters and dropouts of a model, in the order of their construction:
///
/// @code
/// Generator gen(/*seed=*/1);
/// const Linear first(64, 16, gen), second(16, 4, gen);
/// @endcode
///
/// A stream is a key (RandomKey). A draw depends only on the key and on the position in the parameter, or the
/// node's id. Models that are constructed in the same order from the same seed therefore have the same
/// parameters on every rank, for any number of ranks and threads, without a broadcast.
class Generator {
 public:
  /// `first_stream`: the number of streams that are skipped, for the parts of a model that are made again.
  explicit Generator(std::uint64_t seed, std::uint64_t first_stream = 0)
      : seed_(seed), count_(first_stream) {}
  /// Returns a stream that no other module has, at step 0.
  RandomKey next_stream() { return {seed_, RandomStream::modules + count_.change()++, 0}; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  /// Returns the number of streams that were given so far, and skipped.
  [[nodiscard]] std::uint64_t num_streams() const noexcept { return count_.get(); }

 private:
  std::uint64_t seed_;
  Recoverable<std::uint64_t> count_;
};

namespace init {

/// Returns independent uniform values in [-bound, bound).
Tensor uniform(const Shape& shape, double bound, const RandomKey& key);

/// Returns independent normal values with mean 0 and this standard deviation.
Tensor normal(const Shape& shape, double deviation, const RandomKey& key);

/// Returns Xavier-uniform values (Glorot & Bengio 2010) for a matrix [fan_in, fan_out] or its transpose,
/// uniform with
///
///     bound = gain * sqrt(6 / (fan_in + fan_out))
///
/// Throws ShapeError for other shapes.
Tensor xavier_uniform(const Shape& shape, double gain, const RandomKey& key);

/// Returns Xavier-normal values (torch's xavier_normal_) for a shape [a, b, ...] with fan_in = b * (...) and
/// fan_out = a * (...), normal with
///
///     deviation = gain * sqrt(2 / (fan_in + fan_out))
///
/// Throws ShapeError for less than 2 dimensions.
Tensor xavier_normal(const Shape& shape, double gain, const RandomKey& key);

/// Returns the initial values of weight and bias of torch.nn.Linear (kaiming_uniform with a = sqrt(5)):
/// uniform with bound 1 / sqrt(fan_in).
Tensor linear_uniform(const Shape& shape, Index fan_in, const RandomKey& key);

/// sqrt(2): preserves the variance of activations through ReLU (He et al. 2015).
inline constexpr double relu_gain = 1.4142135623730951;

}  // namespace init

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
  /// Calls visit(module) for this module and then for all its descendants.
  void for_each_module(FunctionRef<void(Module&)> visit);

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
  /// Registers a parameter if `learn`, otherwise a buffer.
  void register_parameter_or_buffer(const std::string& name, Variable& values, bool learn);
  void register_counter(const std::string& name, Recoverable<std::uint64_t>& counter,
                        bool in_state_dict = false);
  void register_module(const std::string& name, Module& module);
  /// Takes the part of this name, with everything below it, out of this module. Nothing if there is none.
  void unregister(const std::string& name) noexcept;
  /// Puts the parts of each kind in the order of these names, those of other names behind them.
  void reorder(const std::vector<std::string>& names);
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
  Recoverable<bool> training_ = true;
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
