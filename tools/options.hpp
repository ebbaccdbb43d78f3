// SPDX-License-Identifier: MIT

/// Options that several programs share, and the layout of their help texts.
#pragma once

#include "formats/source_options.hpp"

#include <sar/graph/data/dataset_options.hpp>
#include <sar/graph/data/generators.hpp>
#include <sar/graph/partition/partition.hpp>

#include <sar/core/error.hpp>
#include <sar/core/text.hpp>

#include <CLI/CLI.hpp>

#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar::tools {

/// Puts all options added afterwards into this group of the help text.
void begin_group(CLI::App& app, const std::string& name);

/// Names the options that --help shows; --help-all shows all options.
void set_common_options(CLI::App& app, std::vector<std::string> names);

/// Adds --help, --help-all and --version, after all other options.
void add_help_options(CLI::App& app);

/// Returns a message about the arguments that no option has read, in their order, with the nearest option of
/// each that looks like a misspelt one. At least one remains.
std::string unknown_arguments(const CLI::App& app);

/// The values of an option, with their names on the command line.
template <class T>
using Choices = std::vector<std::pair<std::string, T>>;

/// Returns names as the choices of an option.
Choices<std::string> named(const std::vector<std::string>& names);

/// Returns values with the names that to_string() has for them.
template <class T>
Choices<T> named(std::initializer_list<T> values) {
  Choices<T> choices;
  for (const T value : values) choices.emplace_back(to_string(value), value);
  return choices;
}

/// Returns the name of a value, empty if it has none.
template <class T>
std::string name_in(const Choices<T>& choices, const T& value) {
  for (const auto& [name, choice] : choices)
    if (choice == value) return name;
  return "";
}

/// Whether a word of the command line is the name of a choice. Names may be written with `-` for `_`, and the
/// other way round: one-shot, one_shot.
bool is_name(const std::string& given, const std::string& name);

/// Throws CLI::ValidationError: "--heads: '8,x', expected whole numbers".
[[noreturn]] void refuse_value(const std::string& option, const std::string& text,
                               const std::string& expected);

/// Adds an option whose value is one of the names (is_name); the help text lists them.
template <class T>
CLI::Option* add_choice(CLI::App& app, const std::string& option, T& value, const Choices<T>& choices,
                        const std::string& help) {
  const std::string names = joined(choices, &std::pair<std::string, T>::first);
  const auto read = [&value, option, choices, names](const std::string& given) {
    for (const auto& [name, choice] : choices)
      if (is_name(given, name)) {
        value = choice;
        return;
      }
    refuse_value(option, given, "one of " + names);
  };
  return app.add_option_function<std::string>(option, read, help + ": " + names)
      ->type_name("NAME")
      ->default_str(name_in(choices, value));
}

/// Adds an option that takes pairs such as NAME=VALUE; `form` is shown in the help text.
CLI::Option* add_pairs(CLI::App& app, const std::string& option, std::map<std::string, std::string>& pairs,
                       const std::string& form, const std::string& help);

/// Returns the parts of a text between separators; without one, the text.
std::vector<std::string> split_text(const std::string& text, char separator);
/// Returns the texts before and after the first of these characters; without one, the text and "".
std::pair<std::string, std::string> split_at(const std::string& text, char sign);

/// Checks that an option is a number from `least` to `most`. For Option::transform: the text becomes a form
/// that every version of CLI11 reads.
template <class T>
CLI::Validator number_from(T least, T most = std::numeric_limits<T>::max()) {
  constexpr bool whole = std::is_integral_v<T>;
  const auto check = [=](std::string& text) -> std::string {
    const std::optional<T> number = to_signed_number<T>(text);
    if (number && *number >= least && *number <= most) {
      if (whole) text = concat(*number);
      return "";
    }
    return concat("'", text, "', expected a ", whole ? "whole number" : "number", " from ", least, " to ",
                  most);
  };
  return {check, ""};
}

/// Adds an option that is a number from `least` to `most`.
template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& option, T& value, const std::string& help,
                        std::type_identity_t<T> least = 0,
                        std::type_identity_t<T> most = std::numeric_limits<T>::max()) {
  return app.add_option(option, value, help)
      ->transform(number_from(least, most))
      ->type_name(std::is_integral_v<T> ? "N" : "X")
      ->capture_default_str();
}

/// Adds an option that names a file or directory; `form` stands for it in the help text: "FILE".
CLI::Option* add_path(CLI::App& app, const std::string& option, std::string& path, const std::string& form,
                      const std::string& help);

/// Adds an option that is a list of files, also given several times, of which none is empty.
CLI::Option* add_paths(CLI::App& app, const std::string& option, std::vector<std::string>& paths,
                       const std::string& form, const std::string& help);

/// All methods of partitioning.
const Choices<PartitionMethod>& partition_methods();

/// Adds the sizes of a generated graph, and returns these options; `prefix` goes before each help text.
std::vector<CLI::Option*> add_sbm_options(CLI::App& app, SbmOptions& sbm, const std::string& prefix = "");

/// Returns the words of a command line in which an optional value is joined to its option:
/// --add-self-loops=remaining. CLI11 would take any word behind the option for its value.
std::vector<std::string> joined_words(int argc, const char* const* argv);

/// Adds the changes of the edges while a graph is read: --add-reverse-edges, --add-self-loops,
/// --drop-duplicates. Returns these options.
std::vector<CLI::Option*> add_edge_options(CLI::App& app, DatasetOptions& o);

/// Adds --sparse-features.
CLI::Option* add_sparse_features_option(CLI::App& app, SparseFeatures& sparse);

/// Adds the options that describe what a graph file does not say itself, and returns them.
std::vector<CLI::Option*> add_source_options(CLI::App& app, formats::SourceOptions& o);

/// The number of the split that --split names; 0 where it is not given, or names a folder of an OGB dataset.
/// Throws CLI::ValidationError for other words if the data are no such dataset.
Index split_number(const std::string& path, const formats::SourceOptions& o);

/// Adds --threads.
CLI::Option* add_threads_option(CLI::App& app, int& threads);

}  // namespace sar::tools
