/// The command line's side of formats::SourceOptions.
#pragma once

#include "formats/source_options.hpp"

#include <CLI/CLI.hpp>

#include <map>
#include <string>
#include <vector>

namespace sar::examples {

/// Adds the options that say what a file does not say itself, and returns them. They are read into `o`.
inline std::vector<CLI::Option*> add_source_options(CLI::App& app, formats::SourceOptions& o) {
  const auto read_node_data = [&o](const std::vector<std::string>& pairs) {
    for (const std::string& pair : pairs) {
      const std::size_t sign = pair.find('=');
      if (sign == std::string::npos || sign == 0 || sign + 1 == pair.size())
        throw CLI::ValidationError("--node-data", "'" + pair + "', expected NAME=FILE.npy");
      if (!o.node_data.emplace(pair.substr(0, sign), pair.substr(sign + 1)).second)
        throw CLI::ValidationError("--node-data", pair.substr(0, sign) + " is given twice");
    }
  };
  const auto read_separator = [&o](const std::string& word) {
    const std::map<std::string, char> words{
        {"tab", '\t'}, {"comma", ','}, {"semicolon", ';'}, {"blank", ' '}};
    const auto found = words.find(word);
    if (found == words.end() && word.size() != 1 && word != "auto")
      throw CLI::ValidationError("--separator", "'" + word + "', expected a word of --help or one sign");
    if (word != "auto") o.separator = found == words.end() ? word[0] : found->second;
  };
  const std::map<std::string, formats::NodeIds> node_ids{{"auto", formats::NodeIds::automatic},
                                                         {"dense", formats::NodeIds::dense},
                                                         {"names", formats::NodeIds::names}};
  return {
      app.add_option_function<std::vector<std::string>>(
             "--node-data", read_node_data,
             "edge list, Matrix Market: features, labels, train_mask, ..., one row for each node")
          ->option_text("NAME=FILE.npy ..."),
      app.add_option("--node-ids", o.node_ids,
                     "edge list: auto, dense (numbers of nodes) or names (any words)")
          ->transform(CLI::CheckedTransformer(node_ids).description(""))
          ->default_str("auto"),
      app.add_option_function<std::string>("--separator", read_separator,
                                           "edge list: auto, tab, comma, semicolon, blank or one sign")
          ->default_str("auto"),
      app.add_flag("--ignore-columns", o.ignore_data, "edge list: read the two nodes of a line only"),
      app.add_option("--split", o.split, "OGB folder: which one in split/; empty: the only one"),
  };
}

}  // namespace sar::examples
