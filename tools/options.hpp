/// Options that several tools have.
#pragma once

#include "formats/source_options.hpp"

#include <sar/graph/data/generators.hpp>
#include <sar/graph/partition/partition.hpp>

#include <sar/core/error.hpp>

#include <CLI/CLI.hpp>

#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar::tools {

/// The values that an option can have, and their names on the command line.
template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

/// Adds an option whose value is one of the names.
template <class T>
CLI::Option* add_choice(CLI::App& app, const std::string& option, T& value, const Choices<T>& choices,
                        const std::string& help) {
  std::string initial;
  for (const auto& [name, choice] : choices)
    if (choice == value) initial = name;
  const auto read = [&value, option, choices](const std::string& given) {
    std::string names;
    for (const auto& [name, choice] : choices) {
      if (name == given) {
        value = choice;
        return;
      }
      names += (names.empty() ? "" : ", ") + name;
    }
    throw CLI::ValidationError(option, "'" + given + "', expected one of " + names);
  };
  return app.add_option_function<std::string>(option, read, help)->type_name("NAME")->default_str(initial);
}

/// Adds an option of any number of pairs such as NAME=VALUE; `form` is what they look like.
CLI::Option* add_pairs(CLI::App& app, const std::string& option, std::map<std::string, std::string>& pairs,
                       const std::string& form, const std::string& help);

/// The number that a text is: decimal, without anything behind it; nothing for other texts and for numbers
/// that T cannot hold.
template <class T>
std::optional<T> to_number(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// A check of an option: a number from `least` to `most`. For Option::transform, which leaves the number in a
/// form that every version of the library for options reads alike.
template <class T>
CLI::Validator number_from(T least, T most = std::numeric_limits<T>::max()) {
  constexpr bool whole = std::is_integral_v<T>;
  const bool bounded = most < std::numeric_limits<T>::max();
  const auto check = [=](std::string& text) -> std::string {
    const std::optional<T> number = to_number<T>(text);
    if (number && *number >= least && *number <= most) {
      if (whole) text = concat(*number);
      return "";
    }
    return concat("'", text, "', expected a ", whole ? "whole number" : "number", " from ", least, " to ",
                  most);
  };
  return {check, bounded ? concat(least, "..", most) : concat(">=", least)};
}

/// A check of an option that names a file or directory.
CLI::Validator not_empty();

/// All methods of partitioning.
const Choices<PartitionMethod>& partition_methods();

/// The sizes of a generated graph; `prefix` goes before each help text.
void add_sbm_options(CLI::App& app, SbmOptions& sbm, const std::string& prefix = "");

/// What happens to the edges of a graph when it is read. Of: DatasetOptions, PartitionGraphOptions.
template <class Options>
void add_edge_options(CLI::App& app, Options& o) {
  app.add_flag("--add-reverse-edges", o.add_reverse_edges, "every edge in both directions");
  app.add_flag("--add-self-loops", o.add_self_loops, "an edge from every node to itself");
  app.add_flag("--drop-duplicates", o.drop_duplicates, "parallel edges count once");
}

/// Adds the options for what a graph file does not say itself, and returns them.
std::vector<CLI::Option*> add_source_options(CLI::App& app, formats::SourceOptions& o);

/// "--seed".
void add_seed_option(CLI::App& app, std::uint64_t& seed, const std::string& help);

/// "--layers".
CLI::Option* add_layers_option(CLI::App& app, int& layers, const std::string& help);

void add_threads_option(CLI::App& app, int& threads);

}  // namespace sar::tools
