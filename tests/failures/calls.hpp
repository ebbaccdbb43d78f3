// SPDX-License-Identifier: MIT

/// The collective calls of the library, each ready to be made any number of times.
#pragma once

#include <sar/comm/communicator.hpp>

#include <functional>
#include <string>
#include <vector>

namespace sar::test {

/// One call that has been prepared.
struct Attempt {
  std::function<void()> call;
  std::function<std::vector<double>()> result;  ///< of a call that has succeeded, on this rank
  /// The right call on the same objects, after a failure. Its result is that of a first call.
  std::function<void()> again = {};
  /// State that a failure leaves as it was.
  std::function<std::vector<double>()> state = {};
};

struct Call {
  /// "graph/message/attention.hpp gat_attention": the header and what it declares; more after a comma.
  std::string name;
  /// Whether there is a call that this rank makes wrong: wrong operands, a callback that throws, a file that
  /// is not there.
  bool has_wrong = false;
  /// Collective. `wrong`: the call of this rank is wrong.
  std::function<Attempt(bool wrong)> prepare;
  /// It is wrong by being another one than that of rank 0, which therefore is always right.
  bool compares = false;
};

/// `directory`: of files that the calls read and write.
std::vector<Call> communication_calls(const Communicator& comm, const std::string& directory);
std::vector<Call> graph_calls(const Communicator& comm);
std::vector<Call> file_calls(const Communicator& comm, const std::string& directory);
std::vector<Call> layer_calls(const Communicator& comm, const std::string& directory);
std::vector<Call> training_calls(const Communicator& comm);

}  // namespace sar::test
