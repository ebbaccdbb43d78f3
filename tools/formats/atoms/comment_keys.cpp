// SPDX-License-Identifier: MIT
#include "comment_keys.hpp"

#include "formats/text.hpp"

#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>

namespace sar::formats {
namespace {

constexpr std::string_view white = " \t";
constexpr std::string_view json = "_JSON ";  // ASE writes it before values in JSON

/// A value without ASE's mark.
std::string_view without_mark(std::string_view value) {
  return value.starts_with(json) ? value.substr(json.size()) : value;
}

/// The spelling of a key that this reader knows.
std::string spelled(std::string key) {
  const std::string lower = lower_case(key);
  for (const char* known : {"Lattice", "Properties", "pbc"})
    if (lower == lower_case(known)) return known;
  return key;
}

/// Reads keys and values from the front of a comment.
class CommentReader {
 public:
  explicit CommentReader(std::string_view text) : rest_(text) { skip_blanks(); }

  [[nodiscard]] bool done() const { return rest_.empty(); }
  std::string key() {
    std::string name = starts_quoted() ? quoted_text() : take(rest_.find_first_of("= \t"));
    require<InputError>(!name.empty(), "a value without a key in the comment, at ", in_quotes(rest_));
    skip_blanks();
    return name;
  }
  std::string value() {
    if (!rest_.starts_with('=')) return "T";
    rest_.remove_prefix(1);
    skip_blanks();
    std::string text = starts_quoted()                                    ? quoted_text()
                       : rest_.starts_with('{') || rest_.starts_with('[') ? bracketed_text()
                                                                          : take(rest_.find_first_of(white));
    skip_blanks();
    return text;
  }

 private:
  [[nodiscard]] bool starts_quoted() const { return rest_.starts_with('"') || rest_.starts_with('\''); }
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(white), rest_.size())); }
  std::string take(std::size_t length) {
    std::string text(rest_.substr(0, length));
    rest_.remove_prefix(text.size());
    return text;
  }
  std::string quoted_text() {
    std::string text;
    const char quote = rest_.front();
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == quote) {
        rest_.remove_prefix(i + 1);
        return text;
      }
      const bool escapes =
          rest_[i] == '\\' && i + 1 < rest_.size() && (rest_[i + 1] == quote || rest_[i + 1] == '\\');
      text += rest_[escapes ? ++i : i];
    }
    throw InputError(concat("a ", quote, " without its end in the comment, at ", in_quotes(rest_)));
  }
  std::string bracketed_text() {
    Index depth = 0;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      depth += rest_[i] == '{' || rest_[i] == '[' ? 1 : rest_[i] == '}' || rest_[i] == ']' ? -1 : 0;
      if (depth == 0) return take(i + 1);
    }
    throw InputError(concat("a bracket without its end in the comment, at ", in_quotes(rest_)));
  }

  std::string_view rest_;
};

std::string value_of(const std::map<std::string, std::string>& keys, const char* key) {
  const auto found = keys.find(key);
  return found == keys.end() ? "" : found->second;
}

bool is_periodic(const std::string& word) {
  if (word == "T" || word == "True" || word == "true" || word == "1") return true;
  require<InputError>(word == "F" || word == "False" || word == "false" || word == "0", "pbc has ",
                      in_quotes(word), ", expected three of T and F");
  return false;
}

}  // namespace

std::map<std::string, std::string> comment_keys(std::string_view comment) {
  std::map<std::string, std::string> keys;
  if (comment.find('=') == std::string_view::npos) return keys;
  for (CommentReader reader(comment); !reader.done();) {
    const std::string key = spelled(reader.key());
    require<InputError>(keys.emplace(key, reader.value()).second, "the comment has the key ", in_quotes(key),
                        " twice");
  }
  return keys;
}

std::string key_text(const std::string& key, const std::string& value) {
  const auto word = [](const std::string& text) {
    if (!text.empty() && text.find_first_of(" \t=\"'{}[]\\,") == std::string::npos) return text;
    std::string in_quotes = "\"";
    for (const char c : text) in_quotes += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
    return in_quotes + "\"";
  };
  return word(key) + "=" + word(value);
}

std::vector<double> numbers_of(std::string_view value) {
  value = without_mark(value);
  std::vector<double> numbers;
  for_each_word(value, " \t,[]{}", [&](std::string_view word) {
    const auto number = to_number(word);
    require<InputError>(number && std::isfinite(*number), in_quotes(value), ", expected numbers");
    numbers.push_back(*number);
  });
  return numbers;
}

Cell cell_of(const std::map<std::string, std::string>& keys) {
  Cell cell;
  const std::string lattice = value_of(keys, "Lattice"), pbc = value_of(keys, "pbc");
  if (!lattice.empty()) {
    const std::vector<double> numbers = numbers_of(lattice);
    require<InputError>(numbers.size() == 9 || numbers.size() == 3, "Lattice has ", numbers.size(),
                        " numbers, expected 9");
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (numbers.size() == 9)
        cell.vectors[i / 3][i % 3] = numbers[i];
      else
        cell.vectors[i][i] = numbers[i];
    cell.periodic = {true, true, true};
  }
  if (!pbc.empty()) {
    std::vector<std::string> words(1);
    for (const char c : without_mark(pbc))
      if (std::isalnum(static_cast<unsigned char>(c)) != 0)
        words.back() += c;
      else if (!words.back().empty())
        words.emplace_back();
    if (words.back().empty()) words.pop_back();
    require<InputError>(words.size() == 3, "pbc is ", in_quotes(pbc), ", expected three of T and F");
    for (std::size_t k = 0; k < 3; ++k) cell.periodic[k] = is_periodic(words[k]);
  }
  return cell;
}

Matrix3 symmetric_matrix(std::string_view value) {
  const std::vector<double> x = numbers_of(value);
  require<InputError>(x.size() == 9 || x.size() == 6, x.size(),
                      " numbers, expected 9 of a matrix, or 6: xx, yy, zz, yz, xz, xy");
  if (x.size() == 6) return {{{x[0], x[5], x[4]}, {x[5], x[1], x[3]}, {x[4], x[3], x[2]}}};
  double largest = 0;
  for (const double each : x) largest = std::max(largest, std::abs(each));
  Matrix3 matrix;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      require<InputError>(std::abs(x[3 * i + j] - x[3 * j + i]) <= 1e-3 * largest, in_quotes(value),
                          ", expected a symmetric matrix");
      matrix[i][j] = (x[3 * i + j] + x[3 * j + i]) / 2;
    }
  return matrix;
}

namespace {

constexpr std::string_view energies = "energy free_energy total_energy potential_energy toten";
constexpr std::string_view forces = "forces force", stresses = "stress", virials = "virial virials";

/// Whether a key is one of these names, perhaps behind "ref_" or "dft_".
bool is_called(std::string_view names, const std::string& key) {
  const std::string word = lower_case(key);
  const bool has_prefix = word.starts_with("ref_") || word.starts_with("dft_");
  return is_one_of(names, std::string_view(word).substr(has_prefix ? 4 : 0));
}

bool is_virial_name(const std::string& key) {
  return is_called(virials, key);
}

using IsName = FunctionRef<bool(const std::string&)>;

/// Chooses the key of one label. `is_lesser`: names that count only where no other name is found.
std::string choose(const std::string& path, const std::map<std::string, Index>& keys,
                   const std::string& given, const std::string& option, IsName is_name, IsName is_lesser) {
  if (given == "none") return "";
  std::vector<std::string> candidates, names;
  for (const auto& [key, count] : keys) {
    names.push_back(key);
    if (given.empty() ? is_name(key) : key == given) candidates.push_back(key);
  }
  require<InputError>(given.empty() || !candidates.empty(), path, ": no structure has ", given,
                      ", expected for ", option, " one of ", names.empty() ? "none" : joined(names));
  if (!std::ranges::all_of(candidates, is_lesser)) std::erase_if(candidates, is_lesser);
  require<InputError>(candidates.size() < 2, path, ": there are ", joined(candidates), ", expected ", option,
                      " with one of them, or none");
  return candidates.empty() ? "" : candidates[0];
}

}  // namespace

bool is_forces_name(const std::string& column) {
  return is_called(forces, column);
}

bool is_label_name(const std::string& key) {
  return is_called(energies, key) || is_called(stresses, key) || is_virial_name(key);
}

ChosenKeys choose_keys(const std::string& path, const KeyCounts& found, const AtomLabelKeys& given) {
  ChosenKeys chosen;
  const auto free_energy = [](const std::string& key) { return lower_case(key).ends_with("free_energy"); };
  const auto never = [](const std::string&) { return false; };
  const auto is_energy = [](const std::string& key) { return is_called(energies, key); };
  const auto is_stress = [](const std::string& key) {
    return is_called(stresses, key) || is_virial_name(key);
  };
  chosen.energy = choose(path, found.keys, given.energy, "--energy-key", is_energy, free_energy);
  chosen.forces = choose(path, found.columns, given.forces, "--forces-key", is_forces_name, never);
  chosen.stress = choose(path, found.keys, given.stress, "--stress-key", is_stress, is_virial_name);
  const std::string stress = lower_case(chosen.stress);
  chosen.is_virial = stress.find("virial") != stress.npos;
  require<InputError>(stress.empty() || chosen.is_virial != (stress.find("stress") != stress.npos), path,
                      ": --stress-key: ", in_quotes(chosen.stress),
                      " does not say whether it is a stress or a virial, expected a name with one of these "
                      "words");
  const auto note = [&](const std::string& label, const std::string& key,
                        const std::map<std::string, Index>& counts, const std::string& meaning) {
    if (key.empty()) {
      chosen.notes.push_back(label + ": none");
      return;
    }
    const Index count = counts.at(key);
    chosen.notes.push_back(concat(label, ": ", key, ", ", meaning));
    if (count < found.structures)
      chosen.notes.back() += concat("; ", count, " of ", found.structures, " structures have them");
  };
  note("energies", chosen.energy, found.keys, "in eV");
  note("forces", chosen.forces, found.columns, "-dE/dx in eV/A");
  note("stresses", chosen.stress, found.keys,
       chosen.is_virial ? "-dE/d strain in eV, divided by -volume" : "dE/d strain / volume in eV/A^3");
  std::vector<std::string> unused;
  for (const auto& [key, count] : found.keys)
    if (key != chosen.energy && key != chosen.stress &&
        std::ranges::find(given.others, key) == given.others.end())
      unused.push_back(key);
  for (const auto& [key, count] : found.columns)
    if (key != chosen.forces) unused.push_back(key);
  std::ranges::sort(unused);
  unused.erase(std::ranges::unique(unused).begin(), unused.end());
  chosen.notes.push_back("not used: " + (unused.empty() ? "none" : joined(unused)));
  return chosen;
}

}  // namespace sar::formats
