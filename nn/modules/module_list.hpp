// SPDX-License-Identifier: MIT

/// ModuleList: modules of one class named "0", "1", ..., equivalent to torch.nn.ModuleList.
#pragma once

#include <sar/core/error.hpp>
#include <sar/nn/modules/module.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

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
