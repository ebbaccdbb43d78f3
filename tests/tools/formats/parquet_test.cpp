// SPDX-License-Identifier: MIT
#include "source_file.hpp"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <doctest/doctest.h>
#include <parquet/arrow/writer.h>
#include <formats/packed/parquet_table.hpp>
#include <formats/text.hpp>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::formats;
using namespace sar::test;

namespace {

template <class Builder, class Values>
std::shared_ptr<arrow::Array> column(Builder&& builder, const Values& values) {
  for (const auto& value : values) REQUIRE(builder.Append(value).ok());
  return *builder.Finish();
}
std::shared_ptr<arrow::Array> integers(const std::vector<std::int64_t>& values) {
  return column(arrow::Int64Builder(), values);
}
std::shared_ptr<arrow::Array> texts(const std::vector<std::string>& values) {
  return column(arrow::StringBuilder(), values);
}
/// Rows of `length` numbers.
std::shared_ptr<arrow::Array> lists(const std::vector<std::vector<float>>& rows) {
  const auto values = std::make_shared<arrow::FloatBuilder>();
  arrow::ListBuilder builder(arrow::default_memory_pool(), values);
  for (const auto& row : rows) {
    REQUIRE(builder.Append().ok());
    REQUIRE(values->AppendValues(row).ok());
  }
  return *builder.Finish();
}

using Columns = std::vector<std::pair<std::string, std::shared_ptr<arrow::Array>>>;

void write_parquet(const Communicator& comm, const std::string& path, const Columns& columns,
                   std::int64_t rows_of_group) {
  if (comm.rank() == 0) {
    std::vector<std::shared_ptr<arrow::Field>> fields;
    std::vector<std::shared_ptr<arrow::Array>> arrays;
    for (const auto& [name, array] : columns) {
      fields.push_back(arrow::field(name, array->type()));
      arrays.push_back(array);
    }
    const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
    const auto file = arrow::io::FileOutputStream::Open(path);
    REQUIRE(file.ok());
    REQUIRE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), *file, rows_of_group).ok());
    REQUIRE((*file)->Close().ok());
  }
  comm.barrier();
}

WholeSource read(const Communicator& comm, const std::string& path, const SourceOptions& options = {}) {
  const auto source = open_source(comm, path, options);
  return gather_source(*source);
}
std::string error_of(const Communicator& comm, const std::string& path, const SourceOptions& options = {}) {
  return thrown_by_all<InputError>(comm, [&] { static_cast<void>(open_source(comm, path, options)); });
}

constexpr std::int64_t edges = 1000, nodes = 100;
Columns edge_columns(std::int64_t begin = 0, std::int64_t end = edges) {
  std::vector<std::int64_t> src, dst;
  std::vector<double> weight;
  for (std::int64_t e = begin; e < end; ++e) {
    src.push_back(e * 7 % nodes);
    dst.push_back(e * e % nodes);
    weight.push_back(0.1 * static_cast<double>(e));
  }
  return {{"from", integers(src)}, {"to", integers(dst)}, {"weight", column(arrow::DoubleBuilder(), weight)}};
}
std::string edge_text() {
  std::string text = "from,to,weight\n";
  for (std::int64_t e = 0; e < edges; ++e)
    text += concat(e * 7 % nodes, ",", e * e % nodes, ",", exact_text(0.1 * static_cast<double>(e)), "\n");
  return text;
}

}  // namespace

TEST_CASE("edges of one file and of a directory are those of the same text") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const WholeSource expected = SourceFile(comm, "edges.csv", edge_text()).read();
  write_parquet(comm, directory.path() + "/edges.parquet", edge_columns(), 130);
  if (comm.rank() == 0) std::filesystem::create_directory(directory.path() + "/parts");
  write_parquet(comm, directory.path() + "/parts/part-0.parquet", edge_columns(0, 400), 400);
  write_parquet(comm, directory.path() + "/parts/part-1.parquet", edge_columns(400, 400), 10);
  write_parquet(comm, directory.path() + "/parts/part-2.parquet", edge_columns(400), 97);
  for (const char* path : {"/edges.parquet", "/parts"})
    for (const Index block_bytes : {Index{300}, Index{1} << 22}) {
      CAPTURE(path);
      CAPTURE(block_bytes);
      const WholeSource found = read(comm, directory.path() + path, blocks_of(block_bytes));
      CHECK(found == expected);
    }
}

TEST_CASE("a table of nodes: types, missing values, texts with commas and lists") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string edge_path = directory.path() + "/edges.parquet",
                    path = directory.path() + "/nodes.parquet";
  write_parquet(comm, edge_path, {{"src", integers({0, 1, 2})}, {"dst", integers({1, 2, 0})}}, 2);
  arrow::BooleanBuilder flags;
  REQUIRE(flags.AppendValues(std::vector<bool>{true, false, true}).ok());
  arrow::StringBuilder kinds;
  REQUIRE((kinds.Append("a, \"b\"").ok() && kinds.AppendNull().ok() && kinds.Append("#c").ok()));
  write_parquet(comm, path,
                {{"id", integers({2, 0, 1})},
                 {"label", *kinds.Finish()},
                 {"x", lists({{1, 2.5F}, {-3, 0.1F}, {5, 6e20F}})},
                 {"flag", *flags.Finish()}},
                2);
  SourceOptions options;
  options.node_table = path;
  options.node_columns = {{"features", "x"}, {"features", "flag"}};
  const WholeSource found = read(comm, edge_path, options);
  CHECK(found.node_data.at("features") ==
        std::vector<double>{-3, static_cast<double>(0.1F), 0, 5, static_cast<double>(6e20F), 1, 1, 2.5, 1});
  const std::vector<double> labels = found.node_data.at("labels");
  CHECK(std::isnan(labels[0]));
  CHECK(labels[1] == 0);  // '#c' stands before 'a, "b"'
  CHECK(labels[2] == 1);
}

TEST_CASE("flags of edges are 1 and 0") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/edges.parquet";
  arrow::BooleanBuilder flags;
  REQUIRE(flags.AppendValues(std::vector<bool>{true, false, true}).ok());
  write_parquet(comm, path,
                {{"src", integers({0, 1, 2})}, {"dst", integers({1, 2, 0})}, {"is_train", *flags.Finish()}},
                2);
  SourceOptions options;
  options.fields = {{"edge_train_mask", "is_train"}};
  CHECK(read(comm, path, options).edge_data.at("is_train") == std::vector<double>{1, 0, 1});
}

TEST_CASE("names of nodes, and what is wrong is one sentence") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/g.parquet";
  write_parquet(comm, path, {{"src", texts({"b", "a", "c"})}, {"dst", texts({"a", "c", "b"})}}, 1);
  CHECK(read(comm, path).edges == std::vector<std::pair<Index, Index>>{{0, 1}, {1, 2}, {2, 0}});
  SourceOptions header;
  header.header = false;
  CHECK(error_of(comm, path, header).find(": columns of Parquet have names") != std::string::npos);

  write_parquet(comm, path, {{"src", integers({0, 1})}, {"dst", integers({1, -4})}}, 1);
  CHECK(error_of(comm, path).find("line 3: a node is '-4'") != std::string::npos);
  write_parquet(comm, path, {{"id", integers({0, 1})}, {"x", lists({{1, 2}, {3}})}}, 2);
  SourceOptions table;
  table.node_table = path;
  table.node_columns = {{"features", "x"}};
  const std::string edge_path = directory.path() + "/edges.parquet";
  write_parquet(comm, edge_path, {{"src", integers({0, 1})}, {"dst", integers({1, 0})}}, 2);
  CHECK(error_of(comm, edge_path, table) ==
        path + ": column 'x' of row 1 has 1 values, expected 2 as in the first row");

  if (comm.rank() == 0) write_file(path, "PAR1 and no more PAR1");
  comm.barrier();
  CHECK(error_of(comm, path).find(", expected a Parquet file") != std::string::npos);
  if (comm.rank() == 0) std::filesystem::create_directory(directory.path() + "/two");
  comm.barrier();
  write_parquet(comm, directory.path() + "/two/0.parquet", {{"src", integers({0})}, {"dst", integers({1})}},
                2);
  write_parquet(comm, directory.path() + "/two/1.parquet", {{"src", integers({0})}, {"to", integers({1})}},
                2);
  CHECK(error_of(comm, directory.path() + "/two").find("as in the first file of the directory") !=
        std::string::npos);
}
