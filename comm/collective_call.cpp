// SPDX-License-Identifier: MIT

// The digest is a chain of hashes (core/random.hpp), extended with each argument: O(length of its
// texts) time. Texts for messages are written only after the digests of the ranks have differed.
#include <sar/comm/collective_call.hpp>
#include <sar/core/random.hpp>

#include <bit>
#include <charconv>
#include <exception>
#include <span>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

std::uint64_t with_text(std::uint64_t hash, std::string_view text) noexcept {
  for (const char c : text) hash = with_word(hash, static_cast<unsigned char>(c));
  return with_word(hash, text.size());
}

void copy_text(std::string_view text, std::span<char> to) noexcept {
  to[text.copy(to.data(), to.size() - 1)] = 0;
}

}  // namespace

CollectiveCall::CollectiveCall(const char* operation) noexcept
    : operation_(operation), digest_(with_text(hash_start, operation)) {}

CollectiveCall& CollectiveCall::add(Argument argument) {
  arguments_.push_back(std::move(argument));
  digest_ = with_word(digest_, digest_of(arguments_.back()));
  return *this;
}

CollectiveCall& CollectiveCall::equal(const char* what, double number) {
  return add({.what = what, .kind = Kind::bits, .value = {std::bit_cast<std::int64_t>(number)}});
}

CollectiveCall& CollectiveCall::equal(const char* what, std::string_view text) {
  return add({.what = what, .kind = Kind::text, .text = std::string(text)});
}

CollectiveCall& CollectiveCall::operand(const char* name, const Shape& rows, bool wants_gradient) {
  add_shape("shape of ", name, rows);
  return add({.before = "wish for the gradient of ",
              .what = name,
              .kind = Kind::choice,
              .value = {static_cast<std::int64_t>(wants_gradient)}});
}

CollectiveCall& CollectiveCall::property(const char* property_of, const char* name, std::string_view text) {
  return add({.before = property_of, .what = name, .kind = Kind::text, .text = std::string(text)});
}

CollectiveCall& CollectiveCall::add_shape(const char* before, const char* what, const Shape& rows) {
  Argument argument{.before = before, .what = what, .kind = Kind::shape, .value = {rows.dims()}};
  for (int d = 1; d < rows.dims(); ++d) argument.value[static_cast<std::size_t>(d)] = rows[d];
  return add(std::move(argument));
}

std::uint64_t CollectiveCall::digest_of(const Argument& argument) noexcept {
  std::uint64_t hash =
      with_text(with_text(with_text(hash_start, argument.before), argument.what), argument.text);
  for (const std::int64_t value : argument.value) hash = with_word(hash, static_cast<std::uint64_t>(value));
  return hash;
}

std::string CollectiveCall::text_of(const Argument& argument) {
  const auto& value = argument.value;
  if (argument.name != nullptr) return argument.name(value[0]);
  switch (argument.kind) {
    case Kind::number:
      return std::to_string(value[0]);
    case Kind::natural:
      return std::to_string(static_cast<std::uint64_t>(value[0]));
    case Kind::choice:
      return value[0] != 0 ? "true" : "false";
    case Kind::bits: {
      std::array<char, 32> digits{};
      const auto end = std::to_chars(digits.begin(), digits.end(), std::bit_cast<double>(value[0])).ptr;
      return {digits.data(), end};
    }
    case Kind::text:
      return argument.text.empty() ? "none" : argument.text;
    case Kind::shape:
      break;
  }
  if (value[0] == 0) return "none";
  std::string text = "[*";
  for (std::int64_t d = 1; d < value[0]; ++d)
    text += ", " + std::to_string(value[static_cast<std::size_t>(d)]);
  return text + "]";
}

CallEntry CollectiveCall::entry(std::size_t i) const noexcept {
  CallEntry entry;
  if (i == 0) {
    entry.is_call = true;
    entry.digest = static_cast<std::int64_t>(with_text(hash_start, operation_) | 1);
    copy_text(operation_, entry.name);
    return entry;
  }
  const Argument& argument = arguments_[i - 1];
  entry.digest = static_cast<std::int64_t>(digest_of(argument) | 1);
  copy_text(argument.before, entry.name);
  const std::size_t begin = std::string_view(entry.name.data()).size();
  copy_text(argument.what, std::span(entry.name).subspan(begin));
  try {
    copy_text(text_of(argument), entry.value);
  } catch (const std::exception&) {  // no memory for the text
    copy_text("another value", entry.value);
  }
  return entry;
}

}}  // namespace sar
