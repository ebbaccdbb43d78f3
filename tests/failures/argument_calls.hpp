// SPDX-License-Identifier: MIT

/// Calls of the collective functions with an argument that must be equal on all ranks.
#pragma once

#include "failures/scene.hpp"

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace sar::test {

struct ArgumentCall {
  std::string name;      ///< the header and what it declares, as in Call
  std::string argument;  ///< "called with a different <argument>", in the message
  /// Collective; `other`: with another value of the argument than otherwise.
  std::function<void(bool other)> call;
};

using ArgumentCalls = std::vector<ArgumentCall>;

/// An argument, and two values of it.
template <class T>
struct Values {
  const char* argument;
  T usual, other;
};

/// Adds a call for each argument: run(scene, values ...) with the usual value of all arguments but this one.
template <class... T>
void add(ArgumentCalls& calls, const Communicator& comm, const std::string& name,
         const std::type_identity_t<std::function<void(Scene&, const T&...)>>& run,
         const Values<T>&... values) {
  int number = 0;
  const auto add_one = [&](const char* argument) {
    calls.push_back({name, argument, [=, differing = number++](bool other) {
                       Scene scene(comm, {}, false);
                       int k = 0;
                       const auto pick = [&](const auto& each) {
                         return other && k++ == differing ? each.other : each.usual;
                       };
                       const std::tuple<T...> picked{pick(values)...};  // from the first to the last
                       std::apply([&](const T&... arguments) { run(scene, arguments...); }, picked);
                     }});
  };
  (add_one(values.argument), ...);
}

/// `directory`: of files that the calls write.
ArgumentCalls argument_calls(const Communicator& comm, const std::string& directory);
/// Those of graphs, and of samplers and data.
void add_graph_arguments(ArgumentCalls& calls, const Communicator& comm);
void add_data_arguments(ArgumentCalls& calls, const Communicator& comm, const std::string& directory);

/// Collective functions without an entry, and why. A name that ends with a slash stands for all functions of
/// a folder, one that ends with a blank for those of a header.
std::map<std::string, std::string> functions_without_arguments();

}  // namespace sar::test
