// SPDX-License-Identifier: MIT

// One pass finds out what the labels may be (whole numbers, 0 and 1, one-hot rows), one converts them: O(n T)
// time, and memory for a copy of the column in double precision beside the labels.
#include <sar/core/error.hpp>
#include <sar/graph/data/label_columns.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr std::int64_t max_label = std::numeric_limits<std::int32_t>::max() - 1;

/// The field of the labels of this rank's nodes.
struct LabelField {
  DataArray column;
  std::span<const Index> ids;
  std::string place;
  std::string item;           ///< "node"
  Array<double> values = {};  ///< [n, T]; 64-bit integers are rounded

  [[nodiscard]] Index width() const { return column.row_size(); }
  [[nodiscard]] std::span<const double> row(Index i) const {
    return std::span<const double>(values).subspan(static_cast<std::size_t>(i * width()),
                                                   static_cast<std::size_t>(width()));
  }
};

bool is_missing(double value) {
  return std::isnan(value) || value == -1;
}
bool is_whole(double value) {
  return value == std::floor(value) && std::abs(value) <= static_cast<double>(max_label);
}

/// What the labels of this rank may be.
struct Possible {
  bool classes = true;  ///< whole numbers from -1
  bool whole = true;    ///< whole numbers of any size
  bool binary = true;   ///< 0, 1 or missing
  bool one_hot = true;  ///< labelled rows are one 1 and zeros
  bool one_or_none = true;  ///< the same, or zeros alone
};

Possible possible_types(const LabelField& field) {
  Possible is;
  for (Index i = 0; i < field.column.num_rows; ++i) {
    const std::span<const double> row = field.row(i);
    Index ones = 0, missing = 0;
    for (const double value : row) {
      is.classes = is.classes && (std::isnan(value) || (is_whole(value) && value >= -1));
      is.whole = is.whole && (std::isnan(value) || (std::isfinite(value) && value == std::floor(value)));
      is.binary = is.binary && (is_missing(value) || value == 0 || value == 1);
      ones += value == 1 ? 1 : 0;
      missing += is_missing(value) ? 1 : 0;
    }
    is.one_hot = is.one_hot && (missing == field.width() || (missing == 0 && ones == 1));
    is.one_or_none = is.one_or_none && (missing == field.width() || (missing == 0 && ones <= 1));
  }
  is.one_hot = is.one_hot && is.binary;
  is.one_or_none = is.one_or_none && is.binary;
  return is;
}

/// The type that the labels of all ranks tell. Collective.
LabelType detect_type(const Communicator& comm, const LabelField& field, Index num_nodes) {
  const Possible mine = possible_types(field);
  std::array<Index, 5> could_be{mine.classes ? 1 : 0, mine.binary ? 1 : 0, mine.one_hot ? 1 : 0,
                                mine.one_or_none ? 1 : 0, mine.whole ? 1 : 0};
  comm.all_reduce(std::span<Index>(could_be), ReduceOp::min);
  const bool floating = is_floating_point(field.column.type);
  if (field.width() == 1) {
    require<InputError>(
        !floating || could_be[0] == 1 || could_be[4] == 0, field.place,
        ": the labels are whole numbers, and not all from -1 to ", max_label,
        " as classes are, expected to be told that they are values (train: --loss mse or mae)");
    return floating && could_be[0] == 0 ? LabelType::values : LabelType::classes;
  }
  const std::string rows = concat(field.place, ": the labels are rows of ", field.width());
  if (could_be[2] == 1) return LabelType::classes;
  require<InputError>(
      could_be[3] == 0 || num_nodes == 0, rows,
      " numbers, each with one 1 or none and zeros, and may be one class or several labels a ", field.item,
      ", expected ", "to be told (train: --loss cross-entropy, or --loss bce)");
  if (could_be[1] == 1) return LabelType::binary;
  require<InputError>(floating, rows, " whole numbers, and not only 0 and 1, expected to be told ",
                      "what they are (train: --loss mse or mae for values)");
  return LabelType::values;
}

/// OGB and pandas turn integers with missing values into floating-point numbers, where NaN means no label.
Array<std::int64_t> single_classes(const LabelField& field) {
  const auto refuse = [&](Index i, const auto& value, const std::string& expected) {
    throw InputError(concat(field.place, ": the label of ", field.item, " ", field.ids[i], " is ", value,
                            ", expected ", expected));
  };
  Array<std::int64_t> labels;
  if (!is_floating_point(field.column.type)) {
    labels = field.column.to_integers(field.place, field.ids);
  } else {
    for (Index i = 0; i < field.column.num_rows; ++i) {
      const double value = field.values[i];
      if (!std::isnan(value) && !is_whole(value))
        refuse(i, value, concat("a whole number or NaN for an unlabelled ", field.item));
      labels.push_back(std::isnan(value) ? -1 : static_cast<std::int64_t>(value));
    }
  }
  for (Index i = 0; i < std::ssize(labels); ++i)
    if (labels[i] < -1 || labels[i] > max_label)
      refuse(i, labels[i], concat("a class from 0 to ", max_label, " or -1 for an unlabelled ", field.item));
  return labels;
}

Array<std::int64_t> one_hot_classes(const LabelField& field) {
  Array<std::int64_t> labels;
  for (Index i = 0; i < field.column.num_rows; ++i) {
    const std::span<const double> row = field.row(i);
    const auto ones = std::ranges::count(row, 1.0);
    const auto others = field.width() - ones - std::ranges::count(row, 0.0);
    const bool missing = std::ranges::all_of(row, is_missing) ||
                         std::ranges::all_of(row, [](double value) { return value == 0; });
    require<InputError>(missing || (ones == 1 && others == 0), field.place, ": a row has shape ",
                        shape_to_string(field.column.row_shape),
                        ", expected one number, or 1 for the class of the ", field.item,
                        " and 0 for all others; ", field.item, " ", field.ids[i], " has ", ones, " ones and ",
                        others, " other numbers");
    labels.push_back(missing ? -1 : std::ranges::find(row, 1.0) - row.begin());
  }
  return labels;
}

/// Refuses labels of -1 and one class, and binary labels of -1 and 1: -1 is no class. Collective.
void require_two_classes(const Communicator& comm, const LabelField& field, bool binary) {
  constexpr Index none = std::numeric_limits<Index>::max();
  std::array<Index, 3> least{none, none, none};  // 0 if -1 is there, least class, minus the largest class
  for (const double value : field.values) {
    if (value == -1) least[0] = 0;
    if (!(value >= 0)) continue;
    least[1] = std::min(least[1], static_cast<Index>(value));
    least[2] = std::min(least[2], -static_cast<Index>(value));
  }
  comm.all_reduce(std::span<Index>(least), ReduceOp::min);
  const bool is_one = least[0] == 0 && least[1] != none && least[1] == -least[2];
  require<InputError>(!is_one || (binary && least[1] == 0), field.place, ": the labels are -1 and ", least[1],
                      ", and -1 is no class, but says that a ", field.item, " has no label, expected ",
                      binary ? "0 and 1, or NaN for a missing label"
                             : "classes from 0, or to be told that there is one class (train: --loss "
                               "cross-entropy)");
}

void take_classes(const Communicator& comm, const LabelField& field, NodeData& data) {
  data.labels = field.width() == 1 ? single_classes(field) : one_hot_classes(field);
  Index classes = field.width() == 1 ? 0 : field.width();
  for (const std::int64_t label : data.labels) classes = std::max<Index>(classes, label + 1);
  data.num_classes = comm.all_reduce(classes, ReduceOp::max);
}

void take_targets(const LabelField& field, NodeData& data) {
  const bool binary = data.label_type == LabelType::binary;
  data.labels.assign(static_cast<std::size_t>(field.column.num_rows), -1);
  data.targets = Tensor({field.column.num_rows, field.width()});
  for (Index i = 0; i < field.column.num_rows; ++i)
    for (Index c = 0; c < field.width(); ++c) {
      const double value = field.row(i)[c];
      const bool missing = binary ? is_missing(value) : std::isnan(value);
      const real target = missing ? std::numeric_limits<real>::quiet_NaN() : static_cast<real>(value);
      if (!missing && !(binary ? value == 0 || value == 1 : std::isfinite(target)))
        throw InputError(concat(field.place, ": the label of ", field.item, " ", field.ids[i],
                                field.width() > 1 ? concat(", column ", c) : "", " is ", value,
                                binary ? ", expected 0 or 1, or NaN or -1 for a missing label"
                                       : ", expected a finite number, or NaN for a missing label"));
      data.targets.row(i)[c] = target;
      if (!missing) data.labels[i] = 0;
    }
}

}  // namespace

void take_labels(const Communicator& comm, DataArray column, const std::string& place, LabelType type,
                 NodeData& data) {
  LabelField field{std::move(column), data.original_ids, place, data.item};
  require<InputError>(field.width() > 0, place, ": a row has shape ", shape_to_string(field.column.row_shape),
                      ", expected at least one column");
  field.values.resize(static_cast<std::size_t>(field.column.num_rows * field.width()));
  convert_elements(field.column.type, field.column.bytes.data(), std::ssize(field.values),
                   field.values.data());
  data.label_type = type == LabelType::automatic ? detect_type(comm, field, data.book.num_nodes()) : type;
  const bool binary = data.label_type == LabelType::binary;
  if (data.label_type == LabelType::classes)
    take_classes(comm, field, data);
  else
    take_targets(field, data);
  if (binary || (data.label_type == LabelType::classes && type == LabelType::automatic && field.width() == 1))
    require_two_classes(comm, field, binary);
}

}}  // namespace sar
