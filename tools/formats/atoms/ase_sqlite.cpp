// SPDX-License-Identifier: MIT
#include "ase_database.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <sqlite3.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string_view>

namespace sar::formats {
namespace {

using Json = nlohmann::json;
using Bytes = std::span<const unsigned char>;

template <class T>
T number_at(const unsigned char* bytes) {
  T number;
  std::memcpy(&number, bytes, sizeof(T));
  return number;
}

template <class T>
Json list_of(Bytes bytes) {
  Json list = Json::array();
  for (std::size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T))
    list.push_back(number_at<T>(&bytes[i]));
  return list;
}

/// The arrays of a blob that ASE writes: [shape, type, first byte] stands for one in its JSON. null: another
/// type.
Json array_in(Bytes blob, const Json& place) {
  struct Type {
    std::size_t bytes;
    Json (*list)(Bytes);
  };
  static const std::map<std::string_view, Type> types{{"float64", {8, list_of<double>}},
                                                      {"float32", {4, list_of<float>}},
                                                      {"int64", {8, list_of<std::int64_t>}},
                                                      {"int32", {4, list_of<std::int32_t>}},
                                                      {"bool", {1, list_of<std::uint8_t>}}};
  require<InputError>(place.is_array() && place.size() == 3 && place[0].is_array() && place[1].is_string() &&
                          place[2].is_number_unsigned(),
                      "data has an array ", place.dump(-1, ' ', false, Json::error_handler_t::replace),
                      ", expected shape, type and place");
  const auto type = types.find(place[1].get_ref<const std::string&>());
  if (type == types.end()) return nullptr;
  const auto first = place[2].get<std::size_t>();
  std::size_t bytes = type->second.bytes;
  for (const Json& length : place[0]) {
    require<InputError>(length.is_number_unsigned() && length.get<std::size_t>() <= blob.size(),
                        "data has an array that is larger than the data");
    bytes *= length.get<std::size_t>();
    require<InputError>(bytes <= blob.size(), "data has an array that is larger than the data");
  }
  require<InputError>(first <= blob.size() - bytes, "data has an array that is larger than the data");
  return type->second.list(blob.subspan(first, bytes));
}

/// The object of a blob: the place of its JSON in 8 bytes, arrays, JSON.
Json object_in(Bytes blob) {
  constexpr std::size_t head = 8;
  require<InputError>(blob.size() >= head, "data has ", blob.size(), " bytes, expected 8 at least");
  const auto begin = number_at<std::uint64_t>(blob.data());
  require<InputError>(begin >= head && begin <= blob.size(), "data begins at its byte ", begin,
                      ", expected 8 to ", blob.size());
  const Bytes text = blob.subspan(begin);
  Json object = parsed_json("data", {reinterpret_cast<const char*>(text.data()), text.size()});
  for (auto& value : object)
    if (value.is_object() && value.contains("__ndarray__")) value = array_in(blob, value["__ndarray__"]);
  return object;
}

class SqliteDatabase final : public AseDatabase {
 public:
  explicit SqliteDatabase(const std::string& path) : path_(path) {
    // without locks, which parallel file systems may refuse, and which all ranks would take for each row; a
    // database in WAL mode cannot be opened so
    for (const char* const vfs : {"unix-none", static_cast<const char*>(nullptr)}) {
      sqlite3* opened = nullptr;
      const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, vfs);
      database_.reset(opened);
      require<InputError>(opened != nullptr, path, ": out of memory");
      check(code, SQLITE_OK);
      if (sqlite3_exec(opened, "PRAGMA schema_version", nullptr, nullptr, nullptr) != SQLITE_CANTOPEN) break;
    }
    const Index bytes = integer("PRAGMA page_count") * integer("PRAGMA page_size");
    const InputFile file(path, "a database of ASE");
    require<InputError>(file.size() >= bytes, path, ": the file has ", file.size(), " bytes, expected ",
                        bytes, ": it is cut");
    row_ = prepared(
        "SELECT numbers, positions, cell, pbc, energy, free_energy, forces, stress, key_value_pairs, data "
        "FROM systems WHERE id = ?");
  }

  [[nodiscard]] Array<Index> ids() override {
    const Statement select = prepared("SELECT id FROM systems ORDER BY id");
    Array<Index> ids;
    int code = 0;
    while ((code = sqlite3_step(select.get())) == SQLITE_ROW)
      ids.push_back(sqlite3_column_int64(select.get(), 0));
    check(code, SQLITE_DONE);
    return ids;
  }

  [[nodiscard]] Json row(Index id) override {
    sqlite3_reset(row_.get());
    check(sqlite3_bind_int64(row_.get(), 1, id), SQLITE_OK);
    const int code = sqlite3_step(row_.get());
    require<InputError>(code == SQLITE_ROW,
                        code == SQLITE_DONE ? "it is gone" : sqlite3_errmsg(database_.get()));
    Json row = Json::object();
    const auto is_null = [&](int column) { return sqlite3_column_type(row_.get(), column) == SQLITE_NULL; };
    const auto bytes = [&](int column) {
      const void* const blob = sqlite3_column_blob(row_.get(), column);
      return Bytes(static_cast<const unsigned char*>(blob),
                   static_cast<std::size_t>(sqlite3_column_bytes(row_.get(), column)));
    };
    const auto text = [&](int column) {
      const Bytes of = bytes(column);
      return std::string_view(reinterpret_cast<const char*>(of.data()), of.size());
    };
    const auto list = [&](const char* name, int column, std::size_t size, Json (*of)(Bytes)) {
      if (is_null(column)) return;
      require<InputError>(bytes(column).size() % size == 0, name, " has ", bytes(column).size(),
                          " bytes, expected a multiple of ", size);
      row[name] = of(bytes(column));
    };
    list("numbers", 0, 4, list_of<std::int32_t>);
    list("positions", 1, 8, list_of<double>);
    list("cell", 2, 8, list_of<double>);
    if (!is_null(3)) row["pbc"] = sqlite3_column_int64(row_.get(), 3);
    if (!is_null(4)) row["energy"] = sqlite3_column_double(row_.get(), 4);
    if (!is_null(5)) row["free_energy"] = sqlite3_column_double(row_.get(), 5);
    list("forces", 6, 8, list_of<double>);
    list("stress", 7, 8, list_of<double>);
    if (!is_null(8)) row["key_value_pairs"] = parsed_json("key_value_pairs", text(8));
    if (!is_null(9))  // of an older ASE, it is a text
      row["data"] = sqlite3_column_type(row_.get(), 9) == SQLITE_BLOB ? object_in(bytes(9))
                                                                      : parsed_json("data", text(9));
    return row;
  }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  void check(int code, int expected) const {
    require<InputError>(code == expected, path_, ": ", sqlite3_errmsg(database_.get()),
                        ", expected a database of ASE");
  }
  Statement prepared(const char* query) const {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v2(database_.get(), query, -1, &statement, nullptr);
    Statement owned(statement);
    check(code, SQLITE_OK);
    return owned;
  }

  Index integer(const char* query) const {
    const Statement select = prepared(query);
    check(sqlite3_step(select.get()), SQLITE_ROW);
    return sqlite3_column_int64(select.get(), 0);
  }

  std::string path_;
  std::unique_ptr<sqlite3, Close> database_;
  Statement row_;
};

}  // namespace

std::unique_ptr<AseDatabase> open_ase_sqlite(const std::string& path) {
  return std::make_unique<SqliteDatabase>(path);
}

}  // namespace sar::formats
