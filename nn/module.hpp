/// Module: a layer or model with named parameters, as torch.nn.Module.
///
///     struct Net : sar::Module {
///       sar::Linear hidden, out;
///       Net(Generator& gen) : hidden(8, 16, gen), out(16, 3, gen) {
///         register_module("hidden", hidden);
///         register_module("out", out);
///       }
///       Variable operator()(const Variable& x) { return out(relu(hidden(x))); }
///     };
///
/// A module computes in an ordinary method of its class, with the arguments that it needs. This class only
/// knows the tree of names, which is that of torch's state_dict: own entries first, then those of the
/// children, each in the order of registration, joined by dots ("convs.0.fc_self.weight").
///
/// Room nn: Layers, losses, optimizers and files of weights.
#pragma once

#include <sar/autograd/variable.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// A learnable tensor and its name. The variable is a handle: the module's own.
struct NamedParameter {
  std::string name;
  Variable parameter;
};

/// A tensor that belongs to a module's state but is not learned, such as running statistics.
struct NamedBuffer {
  std::string name;
  Tensor tensor;
};

/// An integer of a module's state, such as the number of calls of a dropout.
struct NamedCounter {
  std::string name;
  std::uint64_t* value;
};

class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  [[nodiscard]] std::vector<NamedParameter> named_parameters() const;
  [[nodiscard]] std::vector<NamedBuffer> named_buffers() const;
  [[nodiscard]] std::vector<NamedCounter> named_counters() const;
  /// Those of named_counters() that torch's state_dict has, too.
  [[nodiscard]] std::vector<NamedCounter> state_dict_counters() const;
  [[nodiscard]] std::vector<Variable> parameters() const;

  /// Copies `value` into the parameter `name` or the buffer `name`, whose memory stays where it is. Throws
  /// InputError when there is none of that name, ShapeError when the shapes differ.
  void set_parameter(const std::string& name, const Tensor& value);
  void set_buffer(const std::string& name, const Tensor& value);

  /// Training mode (the default) or evaluation mode, for this module and all below it.
  void train(bool training = true);
  void eval() { train(false); }
  [[nodiscard]] bool is_training() const noexcept { return training_; }

  /// Forgets the gradients of all parameters.
  void zero_grad();

 protected:
  Module() = default;

  // What is registered must be a member of the registering object (or live as long). Throws InputError for an
  // empty name, a name with a dot, or one that is taken.
  void register_parameter(const std::string& name, Variable& parameter);
  void register_buffer(const std::string& name, Tensor& buffer);
  void register_counter(const std::string& name, std::uint64_t& counter, bool in_state_dict = false);
  void register_module(const std::string& name, Module& module);

 private:
  template <class T>
  using Entries = std::vector<std::pair<std::string, T*>>;

  /// The entries of this module and then of all below it. A prefix is empty or ends with a dot.
  template <class Named, class T>
  void collect(Entries<T> Module::*entries, const std::string& prefix, std::vector<Named>& found) const;
  void check_name(const std::string& name) const;

  Entries<Variable> parameters_;
  Entries<Tensor> buffers_;
  Entries<std::uint64_t> counters_;
  Entries<std::uint64_t> state_dict_counters_;  // some of them
  Entries<Module> modules_;
  bool training_ = true;
};

}  // namespace sar
