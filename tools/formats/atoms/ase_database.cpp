// SPDX-License-Identifier: MIT
#include "ase_database.hpp"

#include "comment_keys.hpp"
#include "formats/text.hpp"

#include <sar/core/error.hpp>
#include <sar/core/text.hpp>
#include <sar/nn/atoms/zbl.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace sar::formats {
namespace {

using Json = nlohmann::json;

/// The words for numbers that are none, which Python writes.
constexpr std::string_view not_finite[] = {"NaN", "Infinity", "-Infinity"};

/// Appends the numbers of a list; false if there is anything else in it.
bool append_numbers(const Json& value, std::vector<double>& to, int depth = 0) {
  constexpr int most_nested = 8;
  if (value.is_number() || value.is_boolean()) {
    to.push_back(value.is_boolean() ? (value.get<bool>() ? 1 : 0) : value.get<double>());
    return true;
  }
  if (value.is_string() && std::ranges::count(not_finite, value.get_ref<const std::string&>()) > 0) {
    to.push_back(std::stod(value.get<std::string>()));
    return true;
  }
  return value.is_array() && depth < most_nested &&
         std::ranges::all_of(value, [&](const Json& each) { return append_numbers(each, to, depth + 1); });
}

/// The numbers of a list or an array; nothing: it is neither.
std::optional<std::vector<double>> numbers_in(const Json& value) {
  const Json* list = &value;
  if (value.is_object()) {
    const auto found = value.find("__ndarray__");
    if (found == value.end() || !found->is_array() || found->size() != 3) return std::nullopt;
    list = &(*found)[2];
  }
  std::vector<double> numbers;
  if (!list->is_array() || !append_numbers(*list, numbers)) return std::nullopt;
  return numbers;
}

const Json* value_of(const Json& row, const char* name) {
  const auto found = row.find(name);
  return found == row.end() || found->is_null() ? nullptr : &*found;
}

/// The numbers with this name, of which there must be `count`, or 0: any number.
std::vector<double> numbers_of_row(const Json& row, const char* name, std::size_t count) {
  const Json* const value = value_of(row, name);
  require<InputError>(value != nullptr, "the row has no ", name);
  std::optional<std::vector<double>> numbers = numbers_in(*value);
  require<InputError>(numbers.has_value(), name, " is no list of numbers");
  require<InputError>(count == 0 || numbers->size() == count, name, " has ", numbers->size(),
                      " numbers, expected ", count);
  for (const double x : *numbers)
    require<InputError>(std::isfinite(x), name, " has ", x, ", expected numbers");
  return *std::move(numbers);
}

std::string text_of_numbers(const std::vector<double>& numbers) {
  const auto text = [](double x) { return exact_text(x); };
  return joined(numbers, text, " ");
}

Cell cell_of_row(const Json& row) {
  Cell cell;
  if (value_of(row, "cell") != nullptr) {
    const std::vector<double> numbers = numbers_of_row(row, "cell", 9);
    for (std::size_t i = 0; i < 9; ++i) cell.vectors[i / 3][i % 3] = numbers[i];
  }
  const Json* const pbc = value_of(row, "pbc");
  if (pbc == nullptr) return cell;
  if (pbc->is_number_integer()) {
    const auto bits = pbc->get<std::int64_t>();
    require<InputError>(bits >= 0 && bits < 8, "pbc is ", bits, ", expected three bits");
    for (std::size_t k = 0; k < 3; ++k) cell.periodic[k] = (bits >> k & 1) != 0;
  } else {
    const std::vector<double> flags = numbers_of_row(row, "pbc", 3);
    for (std::size_t k = 0; k < 3; ++k) cell.periodic[k] = flags[k] != 0;
  }
  return cell;
}

/// Adds a key, or the name of a column, unless there is one with this name. Lists of few numbers are keys.
void add_value(RawStructure& raw, const std::string& name, const Json& value, const AtomLabelKeys& keys) {
  constexpr std::size_t most_numbers = 9;
  if (value.is_null() || raw.keys.contains(name) || std::ranges::count(raw.names, name) > 0) return;
  if (value.is_string() || value.is_boolean() || value.is_number()) {
    raw.keys[name] = value.is_string()         ? value.get<std::string>()
                     : value.is_boolean()      ? value.get<bool>() ? "T" : "F"
                     : value.is_number_float() ? exact_text(value.get<double>())
                                               : value.dump();
    return;
  }
  std::optional<std::vector<double>> numbers = numbers_in(value);
  const bool is_forces = is_forces_name(name) || name == keys.forces;
  const bool is_of_atoms = numbers && numbers->size() == raw.atoms.positions.size();
  const bool is_key = is_label_name(name) || name == keys.energy || name == keys.stress || !is_of_atoms;
  if (numbers && !is_forces && is_key && numbers->size() <= most_numbers) {
    raw.keys[name] = text_of_numbers(*numbers);
    return;
  }
  raw.names.push_back(name);
  if (is_forces && is_of_atoms) {
    for (const double x : *numbers)
      require<InputError>(std::isfinite(x), name, " has ", x, ", expected numbers");
    raw.columns[name] = *std::move(numbers);
  }
}

/// Puts quotes around these words where they are no texts.
std::string with_quotes(std::string_view text) {
  std::string quoted;
  bool in_text = false;
  while (!text.empty()) {
    const auto word = std::ranges::find_if(
        not_finite, [&](std::string_view each) { return !in_text && text.starts_with(each); });
    const bool is_word = word != std::end(not_finite);
    const std::size_t size = is_word ? word->size() : text.starts_with('\\') && text.size() > 1 ? 2 : 1;
    if (text.starts_with('"')) in_text = !in_text;
    if (is_word) quoted += '"';
    quoted += text.substr(0, size);
    if (is_word) quoted += '"';
    text.remove_prefix(size);
  }
  return quoted;
}

[[noreturn, maybe_unused]] void refuse_databases(const std::string& path, const char* which,
                                                 const char* library) {
  throw InputError(concat(path, ": databases of ASE ", which, "are read where sar was built with ", library,
                          ", and it was built without, expected extended XYZ; in Python: from ase.io import "
                          "read, write; write('structures.xyz', read('",
                          path, "', ':'))"));
}

}  // namespace

Json parsed_json(const char* name, std::string_view text) {
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) value = Json::parse(with_quotes(text), nullptr, /*allow_exceptions=*/false);
  require<InputError>(!value.is_discarded(), name, " is no JSON");
  return value;
}

RawStructure structure_of_row(const Json& row, const AtomLabelKeys& keys) {
  require<InputError>(row.is_object(), "the row is no object of JSON");
  RawStructure raw;
  AtomStructure& atoms = raw.atoms;
  for (const double z : numbers_of_row(row, "numbers", 0)) {
    const std::string symbol =
        z > 0 && z < 256 && z == std::floor(z) ? chemical_symbol(static_cast<Index>(z)) : "";
    require<InputError>(!symbol.empty(), "numbers has ", z, ", expected atomic numbers");
    atoms.elements.push_back(static_cast<std::uint8_t>(z));
  }
  require<InputError>(!atoms.elements.empty(), "the row has no atoms, expected one at least");
  atoms.positions = numbers_of_row(row, "positions", 3 * atoms.elements.size());
  atoms.cell = cell_of_row(row);
  for (const char* name : {"energy", "free_energy"}) {
    const Json* const value = value_of(row, name);
    require<InputError>(value == nullptr || value->is_number(), name, " is no number");
    if (value != nullptr) raw.keys[name] = exact_text(value->get<double>());
  }
  if (value_of(row, "forces") != nullptr) {
    raw.columns["forces"] = numbers_of_row(row, "forces", atoms.positions.size());
    raw.names.emplace_back("forces");
  }
  if (const Json* const stress = value_of(row, "stress")) {
    const auto numbers = numbers_in(*stress);
    const std::size_t count = numbers && numbers->size() == 9 ? 9 : 6;  // a matrix, or in Voigt's order
    raw.keys["stress"] = text_of_numbers(numbers_of_row(row, "stress", count));
  }
  for (const char* object : {"key_value_pairs", "data"}) {
    const Json* const values = value_of(row, object);
    require<InputError>(values == nullptr || values->is_object(), object, " is no object of JSON");
    if (values == nullptr) continue;
    for (const auto& [name, value] : values->items()) add_value(raw, name, value, keys);
  }
  return raw;
}

#if !SAR_HAVE_SQLITE
std::unique_ptr<AseDatabase> open_ase_sqlite(const std::string& path) {
  refuse_databases(path, "", "SQLite 3");
}
#endif
#if !SAR_HAVE_LMDB
std::unique_ptr<AseDatabase> open_ase_lmdb(const std::string& path) {
  refuse_databases(path, "in LMDB ", "LMDB");
}
#endif

}  // namespace sar::formats
