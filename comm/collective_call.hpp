// SPDX-License-Identifier: MIT

/// CollectiveCall: a collective operation and everything that must be the same on every rank.
///
///     const CallScope scope(comm, CollectiveCall("huber").equal("delta", delta));
///     comm.all_reduce(sums);            // also compares the operation and delta
///
/// While a CallScope lives, each synchronization point of its communicator compares the call; that costs no
/// message. Communicator::require_equal compares a call at a synchronization point of its own.
#pragma once

#include <sar/config.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace sar { inline namespace SAR_PRECISION {

/// The name of a call, or an argument of it, in a form that is sent without allocating memory. Long texts are
/// cut.
struct CallEntry {
  std::int64_t digest = 0;      ///< of the whole; 0: there is no entry
  bool is_call = false;         ///< `name` is that of a call
  std::array<char, 96> name{};  ///< of the call or the argument
  std::array<char, 160> value{};
};

class CollectiveCall {
 public:
  explicit CollectiveCall(const char* operation) noexcept;

  /// `what` as in "called with a different <what> on different ranks"; it must outlive the call. `name`
  /// returns the text of a number that has one, such as an enumerator's.
  template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T> CollectiveCall& equal(
      const char* what, T number, std::string (*name)(std::int64_t) = nullptr) {
    constexpr Kind kind = std::is_same_v<T, bool> ? Kind::choice
                          : std::is_unsigned_v<T> ? Kind::natural
                                                  : Kind::number;
    return add({.what = what, .kind = kind, .value = {static_cast<std::int64_t>(number)}, .name = name});
  }
  /// Compares the bits.
  CollectiveCall& equal(const char* what, double number);
  CollectiveCall& equal(const char* what, std::string_view text);
  CollectiveCall& equal(const char* what, const char* text) { return equal(what, std::string_view(text)); }
  /// Compares the number of dimensions and all extents but the first. An undefined shape equals only another
  /// undefined shape.
  CollectiveCall& equal(const char* what, const Shape& rows) { return add_shape("", what, rows); }
  /// Adds the shape of an operand's rows and whether its gradient is wanted: "shape of x", "wish for the
  /// gradient of x".
  CollectiveCall& operand(const char* name, const Shape& rows, bool wants_gradient);
  /// Adds a text with a name of two parts, "type of " and "x".
  CollectiveCall& property(const char* property_of, const char* name, std::string_view text);
  /// Adds the arguments that add_arguments(CollectiveCall&, options) adds, which is declared with the
  /// options.
  template <class Options>
  requires requires(CollectiveCall& call, const Options& options) { add_arguments(call, options); }
  CollectiveCall& equal(const Options& options) {
    add_arguments(*this, options);
    return *this;
  }

  [[nodiscard]] const char* operation() const noexcept { return operation_; }
  /// Returns one number for operation and arguments.
  [[nodiscard]] std::int64_t digest() const noexcept { return static_cast<std::int64_t>(digest_); }
  /// Returns the number of arguments, plus one for the operation.
  [[nodiscard]] std::size_t num_entries() const noexcept { return 1 + arguments_.size(); }
  [[nodiscard]] CallEntry entry(std::size_t i) const noexcept;

 private:
  enum class Kind { number, natural, choice, bits, shape, text };
  struct Argument {
    const char* before = "";  ///< what the name begins with
    const char* what = "";
    Kind kind = Kind::number;
    std::array<std::int64_t, 4> value{};
    std::string (*name)(std::int64_t) = nullptr;
    std::string text = {};
  };
  CollectiveCall& add(Argument argument);
  CollectiveCall& add_shape(const char* before, const char* what, const Shape& rows);
  [[nodiscard]] static std::uint64_t digest_of(const Argument& argument) noexcept;
  [[nodiscard]] static std::string text_of(const Argument& argument);

  const char* operation_;
  std::uint64_t digest_;
  PassVector<Argument> arguments_;
};

/// The calls that a rank is in, from the innermost.
struct CallChain {
  const CollectiveCall& call;
  const CallChain* outer;
};

}}  // namespace sar
