// SPDX-License-Identifier: MIT
#include "ase_database.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/text.hpp>

#include <lmdb.h>
#include <zlib.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>

namespace sar::formats {
namespace {

using Json = nlohmann::json;

/// Unpacks what Python's zlib.compress() has packed.
std::string inflated(std::string_view packed) {
  z_stream stream{};
  require<InputError>(inflateInit(&stream) == Z_OK, "out of memory");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  int code = Z_OK;
  while (code == Z_OK) {
    std::array<char, 1 << 14> block;
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = block.size();
    code = inflate(&stream, Z_NO_FLUSH);
    text.append(block.data(), block.size() - stream.avail_out);
    if (stream.avail_in == 0 && stream.avail_out > 0) break;
  }
  inflateEnd(&stream);
  require<InputError>(code == Z_STREAM_END, "it is not packed by zlib, or cut");
  return text;
}

class LmdbDatabase final : public AseDatabase {
 public:
  explicit LmdbDatabase(const std::string& path) : path_(path) {
    const auto file_bytes = static_cast<std::size_t>(InputFile(path, "a database of ASE").size());
    MDB_env* opened = nullptr;
    check(mdb_env_create(&opened));
    environment_.reset(opened);
    // not the terabytes of address space that a writer asks for
    check(mdb_env_set_mapsize(opened, file_bytes));
    check(mdb_env_open(opened, path.c_str(), MDB_RDONLY | MDB_NOSUBDIR | MDB_NOLOCK, 0));
    MDB_envinfo info{};
    MDB_stat stat{};
    check(mdb_env_info(opened, &info));
    check(mdb_env_stat(opened, &stat));
    require<InputError>((info.me_last_pgno + 1) * stat.ms_psize <= file_bytes, path, ": the file has ",
                        file_bytes, " bytes, expected ", (info.me_last_pgno + 1) * stat.ms_psize,
                        ": it is cut");
    MDB_txn* begun = nullptr;
    check(mdb_txn_begin(opened, nullptr, MDB_RDONLY, &begun));
    transaction_.reset(begun);
    check(mdb_dbi_open(begun, nullptr, 0, &table_));
  }

  // Keys are ids in decimal digits, in the order of texts, and a few words.
  [[nodiscard]] Array<Index> ids() override {
    MDB_cursor* cursor = nullptr;
    check(mdb_cursor_open(transaction_.get(), table_, &cursor));
    Array<Index> ids;
    MDB_val key{}, value{};
    int code = 0;
    while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
      const std::string_view text(static_cast<const char*>(key.mv_data), key.mv_size);
      if (const auto id = sar::to_number<Index>(text)) ids.push_back(*id);
    }
    mdb_cursor_close(cursor);
    if (code != MDB_NOTFOUND) check(code);
    std::ranges::sort(ids);
    return ids;
  }

  [[nodiscard]] Json row(Index id) override {
    std::string text = concat(id);
    MDB_val key{.mv_size = text.size(), .mv_data = text.data()}, value{};
    const int code = mdb_get(transaction_.get(), table_, &key, &value);
    require<InputError>(code == 0, mdb_strerror(code));
    return parsed_json("it", inflated({static_cast<const char*>(value.mv_data), value.mv_size}));
  }

 private:
  struct Close {
    void operator()(MDB_env* environment) const { mdb_env_close(environment); }
    void operator()(MDB_txn* transaction) const { mdb_txn_abort(transaction); }
  };

  void check(int code) const {
    require<InputError>(code == 0, path_, ": ", mdb_strerror(code), ", expected a database of ASE in LMDB");
  }

  std::string path_;
  std::unique_ptr<MDB_env, Close> environment_;
  std::unique_ptr<MDB_txn, Close> transaction_;
  MDB_dbi table_ = 0;
};

}  // namespace

std::unique_ptr<AseDatabase> open_ase_lmdb(const std::string& path) {
  return std::make_unique<LmdbDatabase>(path);
}

}  // namespace sar::formats
