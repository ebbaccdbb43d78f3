/// Options that several tools have.
#pragma once

#include "formats/source_options.hpp"

#include <sar/graph/data/generators.hpp>
#include <sar/graph/partition/partition.hpp>

#include <CLI/CLI.hpp>

#include <map>
#include <string>
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
  // the transformation that is added last comes first: the value is a name, then what the name stands for
  return app.add_option(option, value, help)
      ->transform(CLI::Transformer(choices).description(""))
      ->transform(CLI::IsMember(choices).description(""))
      ->type_name("NAME")
      ->default_str(initial);
}

/// Adds an option of any number of pairs such as NAME=VALUE; `form` is what they look like.
CLI::Option* add_pairs(CLI::App& app, const std::string& option, std::map<std::string, std::string>& pairs,
                       const std::string& form, const std::string& help);

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

void add_threads_option(CLI::App& app, int& threads);

}  // namespace sar::tools
