// SPDX-License-Identifier: MIT

/// The table of the options of `train`: a row has all that the program knows of an option. Loops over the
/// rows add the options to the command line, refuse those that the training does not read, and make the
/// record of a checkpoint, which --resume compares.
#pragma once

#include "options.hpp"
#include "train_options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sar::tools {

template <class T>
std::string item_text(const T& item) {
  return concat(item);
}
template <class Name, class Value>
std::string item_text(const std::pair<Name, Value>& item) {
  return concat(item.first, "=", item.second);
}
/// Returns a list as read_numbers() and read_named_numbers() below read it, or with other separators.
template <class List>
std::string list_text(const List& list, const char* separator = ",") {
  const auto text = [](const auto& item) { return item_text(item); };
  return joined(list, text, separator);
}

/// A row: an option, where it is read, and what a checkpoint records. Its functions return the row.
class OptionRow {
 public:
  using Text = std::function<std::string()>;
  using Condition = std::function<bool()>;

  /// `text` returns the value of the option, as in records.
  OptionRow(CLI::Option* option, std::vector<TaskType> tasks, std::vector<TaskType> recorded, Text text)
      : option_(option), tasks_(std::move(tasks)), recorded_(std::move(recorded)), text_(std::move(text)) {}

  // On the command line:

  /// --help shows the option, not only --help-all.
  OptionRow& common() {
    is_common_ = true;
    return *this;
  }
  /// "LIST": stands for the value in the help text.
  OptionRow& form(const std::string& text) {
    option_->option_text(text);
    return *this;
  }
  /// The default value that the help text shows.
  OptionRow& default_text(const std::string& text) {
    option_->default_str(text);
    return *this;
  }
  /// The option is refused without `other`, which has a row above.
  OptionRow& needs(const std::string& other) {
    option_->needs(other);
    return *this;
  }
  /// The option is refused beside each of the others, which have rows above.
  OptionRow& excludes(const std::vector<std::string>& others) {
    for (const std::string& other : others) option_->excludes(other);
    return *this;
  }
  /// Calls `set` if the option is not given and this is the task.
  OptionRow& default_for(TaskType task, const std::function<void()>& set) {
    defaults_.emplace_back(task, set);
    return *this;
  }

  // Where it is read:

  /// Only these tasks read the option. Without it, the tasks of the row's group do.
  OptionRow& for_tasks(const std::vector<TaskType>& tasks) {
    tasks_ = tasks;
    return *this;
  }
  /// Refuses the option unless the condition holds: "--patience: needs --schedule plateau".
  OptionRow& read_with(const std::string& what, const Condition& holds) {
    rules_.push_back({[holds] { return !holds(); }, "needs " + what});
    return *this;
  }
  /// Refuses the option if the condition holds: "--halo-cache-bytes: cannot be combined with --pre-linear".
  OptionRow& not_with(const std::string& what, const Condition& holds) {
    rules_.push_back({holds, "cannot be combined with " + what});
    return *this;
  }
  /// Refuses the option unless the model reads this key of a ModelDescription.
  OptionRow& for_models_with(const std::string& key, const ModelDescription& model);
  /// The option describes files in formats of other libraries.
  OptionRow& for_graph_files() {
    is_for_graph_files_ = true;
    return *this;
  }

  // What a checkpoint records:

  /// Sets how the value is written, where a row does not know it.
  OptionRow& as_text(Text text) {
    text_ = std::move(text);
    return *this;
  }
  /// In a group whose options are not recorded: results of these tasks depend on this one.
  OptionRow& recorded(const std::vector<TaskType>& tasks = all_tasks) {
    recorded_ = tasks;
    return *this;
  }
  /// In a group whose options are recorded: no result depends on this one, or only by other options.
  OptionRow& unrecorded() { return recorded({}); }

  // For the loops:

  [[nodiscard]] std::string name() const { return option_->get_name(); }
  [[nodiscard]] bool is_given() const { return option_->count() > 0; }
  [[nodiscard]] bool is_common() const { return is_common_; }
  /// Whether the training reads the option, and a checkpoint records it.
  [[nodiscard]] bool is_recorded(TaskType task) const {
    return std::ranges::count(recorded_, task) > 0 && why_unread(task).empty();
  }
  [[nodiscard]] bool is_for_graph_files() const { return is_for_graph_files_; }
  /// The value; "none" in place of an empty one.
  [[nodiscard]] std::string text() const;
  void set_default(TaskType task) const;
  /// Returns why a training does not read the option, "needs --task link"; empty: it does.
  [[nodiscard]] std::string why_unread(TaskType task) const;

 private:
  /// What is wrong if the condition holds.
  struct Rule {
    Condition is_broken;
    std::string text;
  };

  CLI::Option* option_;
  std::vector<TaskType> tasks_, recorded_;
  Text text_;
  std::vector<Rule> rules_;
  std::vector<std::pair<TaskType, std::function<void()>>> defaults_;
  bool is_common_ = false, is_for_graph_files_ = false;
};

/// All rows, of the options of one TrainOptions.
class OptionTable {
 public:
  /// Adds all options to the command line. `app` and `o` must outlive this.
  OptionTable(CLI::App& app, TrainOptions& o);
  OptionTable(const OptionTable&) = delete;
  OptionTable& operator=(const OptionTable&) = delete;

  // To write rows:

  [[nodiscard]] CLI::App& app() { return app_; }
  /// Puts the rows below into this group of the help text. These tasks read them. `recorded`: results depend
  /// on them, and a checkpoint records each under its name.
  void group(const std::string& name, const std::vector<TaskType>& tasks, bool recorded) {
    begin_group(app_, name);
    tasks_ = tasks;
    recorded_ = recorded ? all_tasks : std::vector<TaskType>();
  }
  /// Adds a row of an option that has been added to the command line.
  OptionRow& row(CLI::Option* option, OptionRow::Text text = {}) {
    return rows_.emplace_back(option, tasks_, recorded_, std::move(text));
  }
  template <class T>
  OptionRow& number(const std::string& name, T& value, const std::string& help,
                    std::type_identity_t<T> least = 0,
                    std::type_identity_t<T> most = std::numeric_limits<T>::max()) {
    return row(add_number(app_, name, value, help, least, most), [&value] { return concat(value); });
  }
  template <class T>
  OptionRow& choice(const std::string& name, T& value, const Choices<T>& choices, const std::string& help) {
    return row(add_choice(app_, name, value, choices, help),
               [&value, choices] { return name_in(choices, value); });
  }
  OptionRow& flag(const std::string& name, bool& value, const std::string& help) {
    return row(app_.add_flag(name, value, help), [&value] { return concat(value); });
  }
  OptionRow& flag(const std::string& name, const std::function<void()>& set, const std::string& help) {
    return row(app_.add_flag_callback(name, set, help));
  }
  OptionRow& path(const std::string& name, std::string& value, const std::string& form,
                  const std::string& help) {
    return row(add_path(app_, name, value, form, help), [&value] { return value; });
  }
  OptionRow& paths(const std::string& name, std::vector<std::string>& values, const std::string& form,
                   const std::string& help) {
    return row(add_paths(app_, name, values, form, help), [&values] { return joined(values); });
  }
  OptionRow& text(const std::string& name, std::string& value, const std::string& form,
                  const std::string& help) {
    return row(app_.add_option(name, value, help)->option_text(form), [&value] { return value; });
  }
  OptionRow& texts(const std::string& name, std::vector<std::string>& values, const std::string& form,
                   const std::string& help) {
    return row(app_.add_option(name, values, help)->option_text(form), [&values] { return joined(values); });
  }
  OptionRow& pairs(const std::string& name, std::map<std::string, std::string>& values,
                   const std::string& form, const std::string& help) {
    return row(add_pairs(app_, name, values, form, help), [&values] { return list_text(values, " "); });
  }
  /// Adds an option whose value `read` parses.
  OptionRow& parsed(const std::string& name, const std::function<void(const std::string&)>& read,
                    const std::string& form, const std::string& help) {
    return row(app_.add_option_function<std::string>(name, read, help)->option_text(form));
  }
  /// The same for a function that gets the text and where its value goes.
  template <class T>
  OptionRow& parsed(const std::string& name, void (*read)(const std::string&, T&), T& value,
                    const std::string& form, const std::string& help) {
    return parsed(
        name, [read, &value](const std::string& text) { read(text, value); }, form, help);
  }

  // To read them:

  [[nodiscard]] const std::deque<OptionRow>& rows() const { return rows_; }
  [[nodiscard]] OptionRow& at(const std::string& name);
  [[nodiscard]] const OptionRow& at(const std::string& name) const;
  /// Sets the options that are not given and that have another default with this task.
  void set_defaults() const;
  /// Throws CLI::ValidationError for an option that is given and that the training does not read.
  void refuse_unread() const;
  /// Returns the names and values of the options that a checkpoint records.
  [[nodiscard]] std::map<std::string, std::string> record() const;

 private:
  CLI::App& app_;
  TrainOptions& o_;
  std::vector<TaskType> tasks_, recorded_;  // of the rows to come
  std::deque<OptionRow> rows_;  // rows keep their addresses
};

/// Returns the numbers of a list such as 8,8,1. Throws CLI::ValidationError, which names the option and what
/// was `expected`, for other words and for a number that is not `valid`.
template <class T>
std::vector<T> read_numbers(const std::string& option, const std::string& text,
                            const std::function<bool(T)>& valid, const std::string& expected) {
  std::vector<T> numbers;
  for (const std::string& part : split_text(text, ',')) {
    const std::optional<T> number = to_signed_number<T>(part);
    if (!number || !valid(*number)) refuse_value(option, text, expected);
    numbers.push_back(*number);
  }
  return numbers;
}
/// Returns the names of a list such as embedding,convs.0. Throws CLI::ValidationError for an empty name.
std::vector<std::string> read_names(const std::string& option, const std::string& text,
                                    const std::string& expected);
/// Returns the numbers of a list such as Cu=-3.5,O=1. Throws CLI::ValidationError, which names the option and
/// what was `expected`, for other words, a name that is given twice and a number that is not `valid`.
std::map<std::string, double> read_named_numbers(const std::string& option, const std::string& text,
                                                 const std::function<bool(double)>& valid,
                                                 const std::string& expected);
/// Returns the fan-outs "15,10,5". Throws CLI::ValidationError, which names the option.
std::vector<Index> read_fan_outs(const std::string& option, const std::string& text);

// The rows, group by group: Data; Model; Training; Sampling; Links; Potentials of atoms; Parallel and Output.
// A row is below the rows that it names.
void add_data_options(OptionTable& t, TrainOptions& o);
void add_model_options(OptionTable& t, TrainOptions& o);
void add_training_options(OptionTable& t, TrainOptions& o);
void add_sample_options(OptionTable& t, TrainOptions& o);
void add_link_options(OptionTable& t, TrainOptions& options);
void add_potential_options(OptionTable& t, TrainOptions& options);
void add_output_options(OptionTable& t, TrainOptions& o);

/// Checks what a row of the table does not say. Throws CLI::ValidationError.
void check_options(const CLI::App& app, const TrainOptions& o, const OptionTable& table);

}  // namespace sar::tools
