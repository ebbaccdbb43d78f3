// SPDX-License-Identifier: MIT

// A row group is decoded as a whole when its first rows are read: the bytes of its columns, and of a list
// column 8 for each number. Writing a number and reading it again costs about as much as reading a text.

#include "parquet_table.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <arrow/api.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

namespace sar::formats {
namespace {

void check(const arrow::Status& status, const std::string& path) {
  require<InputError>(status.ok(), path, ": ", status.message(), ", expected a Parquet file");
}

/// Arrow returns the table since version 24, and wrote it to an argument before.
std::shared_ptr<arrow::Table> read_group(parquet::arrow::FileReader& reader, int group,
                                         const std::string& path) {
#if ARROW_VERSION_MAJOR >= 24
  const auto table = reader.ReadRowGroup(group);
  check(table.status(), path);
  return *table;
#else
  std::shared_ptr<arrow::Table> table;
  check(reader.ReadRowGroup(group, &table), path);
  return table;
#endif
}

std::vector<std::string> files_of(const std::string& path) {
  std::error_code unreachable;
  if (!std::filesystem::is_directory(path, unreachable)) return {path};
  std::vector<std::string> files;
  for (const std::string& name : names_in(path, unreachable))
    if (name.ends_with(".parquet")) files.push_back(path + "/" + name);
  std::ranges::sort(files);
  return files;
}

void append_text(std::string& line, std::string_view text) {
  const auto is_around = [](char c) { return c == ' ' || c == '\t' || c == '"' || c == '#' || c == '%'; };
  const bool quotes = text.empty() || is_around(text.front()) || is_around(text.back()) ||
                      text.find(',') != std::string_view::npos;
  if (quotes) line += '"';
  for (const char c : text) {
    if (c == '"' && quotes) line += '"';  // two quotes are one in the text
    line += c == '\n' || c == '\r' ? ' ' : c;
  }
  if (quotes) line += '"';
}

template <class T>
void append_number(std::string& line, T number) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  line.append(digits.data(), end);
}

template <class ArrayType>
auto value_in(const arrow::Array& array, int64_t i) {
  return static_cast<const ArrayType&>(array).Value(i);
}

/// The field of a value; nothing where it is missing.
void append_value(std::string& line, const arrow::Array& array, int64_t i) {
  if (array.IsNull(i)) return;
  switch (static_cast<int>(array.type_id())) {
    case arrow::Type::INT8:
      return append_number(line, static_cast<int>(value_in<arrow::Int8Array>(array, i)));
    case arrow::Type::UINT8:
      return append_number(line, static_cast<int>(value_in<arrow::UInt8Array>(array, i)));
    case arrow::Type::INT16:
      return append_number(line, value_in<arrow::Int16Array>(array, i));
    case arrow::Type::UINT16:
      return append_number(line, value_in<arrow::UInt16Array>(array, i));
    case arrow::Type::INT32:
      return append_number(line, value_in<arrow::Int32Array>(array, i));
    case arrow::Type::UINT32:
      return append_number(line, value_in<arrow::UInt32Array>(array, i));
    case arrow::Type::INT64:
      return append_number(line, value_in<arrow::Int64Array>(array, i));
    case arrow::Type::UINT64:
      return append_number(line, value_in<arrow::UInt64Array>(array, i));
    case arrow::Type::FLOAT:
      return append_number(line, static_cast<double>(value_in<arrow::FloatArray>(array, i)));
    case arrow::Type::DOUBLE:
      return append_number(line, value_in<arrow::DoubleArray>(array, i));
    case arrow::Type::BOOL:
      line += value_in<arrow::BooleanArray>(array, i) ? "true" : "false";
      return;
    case arrow::Type::STRING:
      return append_text(line, static_cast<const arrow::StringArray&>(array).GetView(i));
    case arrow::Type::LARGE_STRING:
      return append_text(line, static_cast<const arrow::LargeStringArray&>(array).GetView(i));
    case arrow::Type::DICTIONARY: {
      const auto& of = static_cast<const arrow::DictionaryArray&>(array);
      return append_value(line, *of.dictionary(), of.GetValueIndex(i));
    }
    default: {  // times, decimal numbers, ...
      const auto value = array.GetScalar(i);
      return append_text(line, value.ok() ? (*value)->ToString() : "");
    }
  }
}

bool is_list(const arrow::DataType& type) {
  return type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST ||
         type.id() == arrow::Type::FIXED_SIZE_LIST;
}

/// The values of a list and their range.
struct ListOfRow {
  const arrow::Array* values = nullptr;
  int64_t begin = 0, length = 0;
};
ListOfRow list_in(const arrow::Array& array, int64_t i) {
  const auto list = [i](const auto& of) {
    return ListOfRow{of.values().get(), of.value_offset(i), of.value_length(i)};
  };
  if (array.type_id() == arrow::Type::LIST) return list(static_cast<const arrow::ListArray&>(array));
  if (array.type_id() == arrow::Type::LARGE_LIST)
    return list(static_cast<const arrow::LargeListArray&>(array));
  return list(static_cast<const arrow::FixedSizeListArray&>(array));
}

class ArrowTable final : public ParquetTable {
 public:
  explicit ArrowTable(const std::string& path) {
    for (const std::string& file : files_of(path)) add(file);
    find_lengths();
    for (std::size_t c = 0; c < lengths_.size(); ++c) {
      const std::string& name = schema_->field(static_cast<int>(c))->name();
      for (Index i = 0; i < std::abs(lengths_[c]); ++i) {
        if (num_columns_++ > 0) header_ += ',';
        append_text(header_, lengths_[c] >= 0 ? concat(name, "[", i, "]") : name);
      }
    }
    header_ += '\n';
  }

  std::string_view read(Index group, Index begin, Index end) override {
    load(group);
    text_.clear();
    const std::string& path = place_.at(static_cast<std::size_t>(group)).path;
    const auto rows = held_->Slice(begin, end - begin)->CombineChunks();
    check(rows.status(), path);
    std::vector<std::shared_ptr<arrow::Array>> columns;
    for (const auto& column : (*rows)->columns()) {
      require<InputError>(column->num_chunks() == 1 || begin == end, path,
                          ": the texts of a column have more than 2^31 bytes in ", end - begin, " rows");
      if (begin < end) columns.push_back(column->chunk(0));
    }
    for (Index row = 0; row < end - begin; ++row) append_row(group, columns, row, begin + row);
    return text_;
  }

 private:
  struct Place {
    std::string path;
    std::size_t file;
    int group;
  };

  void add(const std::string& path) {
    parquet::arrow::FileReaderBuilder builder;
    check(builder.OpenFile(path), path);
    std::unique_ptr<parquet::arrow::FileReader> reader;
    check(builder.Build(&reader), path);
    std::shared_ptr<arrow::Schema> schema;
    check(reader->GetSchema(&schema), path);
    if (schema_ == nullptr) schema_ = schema;
    require<InputError>(schema_->Equals(*schema, false), path, ": the columns are ", schema->ToString(),
                        ", expected ", schema_->ToString(), " as in the first file of the directory");
    const auto metadata = reader->parquet_reader()->metadata();
    for (int g = 0; g < metadata->num_row_groups(); ++g) {
      const Index rows = metadata->RowGroup(g)->num_rows();
      groups_.push_back({num_rows(), rows});
      place_.push_back({path, readers_.size(), g});
    }
    readers_.push_back(std::move(reader));
  }

  /// The numbers in each row of a list column, by its first row; -1: the column has no lists.
  void find_lengths() {
    for (const auto& field : schema_->fields()) lengths_.push_back(is_list(*field->type()) ? 0 : -1);
    const auto first = std::ranges::find_if(groups_, [](const Group& group) { return group.num_rows > 0; });
    if (std::ranges::count(lengths_, 0) == 0 || first == groups_.end()) return;
    load(first - groups_.begin());
    for (std::size_t c = 0; c < lengths_.size(); ++c) {
      if (lengths_[c] < 0) continue;
      for (const auto& chunk : held_->column(static_cast<int>(c))->chunks())
        if (chunk->length() > 0) {
          lengths_[c] = list_in(*chunk, 0).length;
          break;
        }
    }
  }

  void load(Index group) {
    if (group == held_group_) return;
    held_group_ = -1;
    const Place& place = place_.at(static_cast<std::size_t>(group));
    held_ = read_group(*readers_[place.file], place.group, place.path);
    held_group_ = group;
  }

  void append_row(Index group, const std::vector<std::shared_ptr<arrow::Array>>& columns, Index i,
                  Index row) {
    const std::size_t line = text_.size();
    Index fields = 0;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (lengths_[c] != 0 && fields++ > 0) text_ += ',';
      if (lengths_[c] < 0)
        append_value(text_, *columns[c], i);
      else
        append_list(group, c, *columns[c], i, groups_[group].first_row + row);
    }
    if (text_.size() == line) text_ += "\"\"";  // an empty line would be none
    text_ += '\n';
  }

  void append_list(Index group, std::size_t column, const arrow::Array& array, Index i, Index row) {
    const ListOfRow list = array.IsNull(i) ? ListOfRow{} : list_in(array, i);
    const std::string& path = place_[group].path;
    require<InputError>(list.length == lengths_[column], path, ": column '",
                        schema_->field(static_cast<int>(column))->name(), "' of row ", row, " has ",
                        list.length, " values, expected ", lengths_[column], " as in the first row");
    for (int64_t k = 0; k < list.length; ++k) {
      if (k > 0) text_ += ',';
      append_value(text_, *list.values, list.begin + k);
    }
  }

  std::vector<std::unique_ptr<parquet::arrow::FileReader>> readers_;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<Place> place_;    // of each group
  std::vector<Index> lengths_;  // of each column
  std::shared_ptr<arrow::Table> held_;
  Index held_group_ = -1;
  std::string text_;
};

}  // namespace

std::unique_ptr<ParquetTable> ParquetTable::open(const std::string& path) {
  return std::make_unique<ArrowTable>(path);
}

}  // namespace sar::formats
