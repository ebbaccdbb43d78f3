// SPDX-License-Identifier: MIT
#include "option_table.hpp"

#include <sar/core/error.hpp>

#include <algorithm>

namespace sar::tools {

OptionRow& OptionRow::for_models_with(const std::string& key, const ModelDescription& model) {
  return read_with("--model " + model_types_where([&](const ModelType& type) { return type.reads(key); }),
                   [key, &model] { return model_type(model.type).reads(key); });
}

std::string OptionRow::text() const {
  const std::string text = text_();
  return text.empty() ? "none" : text;
}

void OptionRow::set_default(TaskType task) const {
  if (is_given()) return;
  for (const auto& [of_task, set] : defaults_)
    if (of_task == task) set();
}

std::string OptionRow::why_unread(TaskType task) const {
  if (std::ranges::count(tasks_, task) == 0) {
    const bool is_for_most = tasks_.size() > 2 || task == TaskType::potential;
    return is_for_most ? "cannot be combined with --task " + name_of(task)
                       : "needs --task " + names_of(tasks_);
  }
  const auto broken = std::ranges::find_if(rules_, [](const Rule& rule) { return rule.is_broken(); });
  return broken == rules_.end() ? "" : broken->text;
}

OptionTable::OptionTable(CLI::App& app, TrainOptions& o) : app_(app), o_(o) {
  add_data_options(*this, o);
  add_model_options(*this, o);
  add_training_options(*this, o);
  add_sample_options(*this, o);
  add_link_options(*this, o);
  add_potential_options(*this, o);
  add_output_options(*this, o);
}

const OptionRow& OptionTable::at(const std::string& name) const {
  const auto found = std::ranges::find(rows_, name, &OptionRow::name);
  require(found != rows_.end(), "there is no option ", name);
  return *found;
}

OptionRow& OptionTable::at(const std::string& name) {
  return const_cast<OptionRow&>(std::as_const(*this).at(name));
}

void OptionTable::set_defaults() const {
  for (const OptionRow& row : rows_) row.set_default(o_.task.type);
}

void OptionTable::refuse_unread() const {
  for (const OptionRow& row : rows_)
    if (const std::string why = row.why_unread(o_.task.type); row.is_given() && !why.empty())
      throw CLI::ValidationError(concat(row.name(), ": ", why));
}

std::map<std::string, std::string> OptionTable::record() const {
  std::map<std::string, std::string> record;
  for (const OptionRow& row : rows_)
    if (row.is_recorded(o_.task.type)) record[row.name()] = row.text();
  return record;
}

std::vector<std::string> read_names(const std::string& option, const std::string& text,
                                    const std::string& expected) {
  std::vector<std::string> names = split_text(text, ',');
  if (std::ranges::count(names, "") > 0) refuse_value(option, text, expected);
  return names;
}

std::map<std::string, double> read_named_numbers(const std::string& option, const std::string& text,
                                                 const std::function<bool(double)>& valid,
                                                 const std::string& expected) {
  std::map<std::string, double> numbers;
  for (const std::string& part : read_names(option, text, expected)) {
    const std::size_t equals = std::min(part.rfind('='), part.size());
    const auto number = to_signed_number<double>(part.substr(std::min(equals + 1, part.size())));
    if (equals == 0 || !number || !valid(*number) || !numbers.emplace(part.substr(0, equals), *number).second)
      refuse_value(option, text, expected);
  }
  return numbers;
}

}  // namespace sar::tools
