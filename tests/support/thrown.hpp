// SPDX-License-Identifier: MIT

/// What an action throws, on one rank and on all of them.
#pragma once

#include <sar/comm/communicator.hpp>

#include <doctest/doctest.h>

#include <exception>
#include <functional>
#include <regex>
#include <string>

namespace sar::test {

/// The text of the E that `action` throws; something else when it throws nothing or another exception.
template <class E>
std::string thrown(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another exception: ") + error.what();
  }
  return "nothing";
}

/// The same, and checks that it is the same on all ranks. "rank 2: ", with which it begins unless all ranks
/// failed alike, is left out.
template <class E>
std::string thrown_by_all(const Communicator& comm, const std::function<void()>& action) {
  const std::string text = thrown<E>(action);
  const bool equal = comm.broadcast(text, 0) == text;
  CHECK(comm.all_reduce(equal ? 1 : 0, ReduceOp::min) == 1);
  return std::regex_replace(text, std::regex("^rank [0-9]+: "), "");
}

}  // namespace sar::test
