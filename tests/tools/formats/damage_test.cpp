// SPDX-License-Identifier: MIT

/// Every reader, with every kind of damage: one sentence that names the file, and nothing of what a library
/// says to programmers.
#include "support/damage.hpp"

#include <formats/open_source.hpp>
#include <formats/packed/npz.hpp>
#include <formats/packed/text_file.hpp>
#include <sar/core/files/npy.hpp>
#include <sar/core/files/safetensors.hpp>
#include <sar/graph/data/dgl_file.hpp>
#include <sar/graph/data/dgl_partition.hpp>
#include <sar/graph/data/partition_description.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

namespace fs = std::filesystem;

/// A file that a reader needs, and the reader.
struct Reader {
  std::string file;                           // below an empty directory
  std::string bytes;                          // of a good one
  std::map<std::string, std::string> others;  // files beside it, and their bytes
  std::function<void(const std::string& directory, const std::string& file)> read;
  bool may_be_short = false;  // half of a good file is a good file
  bool is_dataset = false;    // a directory may be one, too
};

std::string seed(const std::string& path) {
  return read_bytes(std::string(SAR_TEST_DATA) + "/../fuzz/corpus/" + path);
}

std::string published(const std::string& file) {
  return read_bytes(std::string(SAR_TEST_DATA) + "/formats/published/" + file);
}

void read_source(const std::string& path) {
  const auto source = formats::open_source(Communicator::self(), path);
  static_cast<void>(source->read_edges(0));
  const std::vector<Index> first{0};
  for (const DataField& field : source->types().node_types[0].unread)
    static_cast<void>(source->read_node_data(0, field.name, first));
}

void read_npz(const std::string& path) {
  const formats::NpzFile archive(path);
  REQUIRE(!archive.members().empty());
  for (const formats::NpzMember& member : archive.members()) {
    if (!member.packed) {
      NpyFile(path, NpySection{member.name, member.begin, member.bytes});
      continue;
    }
    formats::PackedArray array(member);
    std::vector<std::byte> bytes(static_cast<std::size_t>(member.bytes));
    const NpyHeader& header = array.header();
    array.read(bytes.data(),
               checked_num_elements(header.shape, header.type, path) * element_bytes(header.type));
  }
}

std::vector<Reader> readers() {
  const auto file = [](auto read) {
    return [read](const std::string&, const std::string& path) { static_cast<void>(read(path)); };
  };
  const auto directory = [](auto read) {
    return [read](const std::string& path, const std::string&) { static_cast<void>(read(path)); };
  };
  std::vector<Reader> all{
      {"x.npy", seed("npy/float32.npy"), {}, file([](const std::string& path) {
         return NpyFile(path).size();
       })},
      {"x.safetensors",
       read_bytes(std::string(SAR_TEST_DATA) + "/golden/norm.safetensors"),
       {},
       file([](const std::string& path) { return SafetensorsFile(path).entries().size(); })},
      {"graph.dgl", seed("dgl_graph/csr.dgl"), {}, file(read_dgl_graph)},
      {"feat.dgl", seed("dgl_tensors/features.dgl"), {}, file(read_dgl_tensors)},
      {"graph.json", seed("dgl_json/homogeneous.json"), {}, file(read_dgl_partition)},
      {"partition.json",
       seed("partition_description/homogeneous.json"),
       {},
       directory(read_partition_description)},
      {"edges.txt", "0 1\n1 2\n2 3\n3 0\n", {}, file(read_source), true, true},
      {"edges.txt.gz", seed("gzip/one"), {}, file([](const std::string& path) {
         return formats::read_beginning(path, 1000);
       })},
      {"m.mtx",
       "%%MatrixMarket matrix coordinate real general\n3 3 3\n1 2 0.5\n2 3 1\n3 1 2\n",
       {},
       file(read_source),
       false,
       true},
      {"platonov.npz", published("platonov.npz"), {}, file(read_source), false, true},
      {"shchur.npz", published("shchur.npz"), {}, file(read_source), false, true},
      {"ogb.zip", published("ogb.zip"), {}, file(read_source), false, true},
      {"stored.npz", seed("npz/stored.npz"), {}, file(read_npz)},
      {"deflated.npz", seed("npz/deflated.npz"), {}, file(read_npz)}};
  // each file of two directories in turn
  const std::map<std::string, std::string> ogb{
      {"raw/num-node-list.csv", "4\n"},    {"raw/num-edge-list.csv", "3\n"},
      {"raw/edge.csv", "0,1\n1,2\n2,3\n"}, {"raw/node-feat.csv", "1,2\n1,2\n1,2\n1,2\n"},
      {"split/time/train.csv", "0\n1\n"},  {"split/time/valid.csv", "2\n"},
      {"split/time/test.csv", "3\n"}};
  const TemporaryDirectory scratch(Communicator::self());
  write_dataset(scratch.path(), small_graph(true), true);
  std::map<std::string, std::string> dataset;
  for (const char* name :
       {"edge_index.npy", "features.npy", "labels.npy", "train_mask.npy", "edge_weight.npy"})
    dataset[name] = read_bytes(scratch.path() + "/" + name);
  for (const auto& files : {ogb, dataset})
    for (const auto& [name, bytes] : files)
      all.push_back({name, bytes, files, directory(read_source),
                     name.starts_with("split") || name.find("list") != name.npos});
  return all;
}

/// The text with its first number replaced by one that nothing can hold.
std::string with_large_number(std::string bytes) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto begin = std::find_if(bytes.begin(), bytes.end(), is_digit);
  const auto end = std::find_if_not(begin, bytes.end(), is_digit);
  bytes.replace(begin, end, "99999999999999999999999");
  return bytes;
}

std::string with_wrong_key(std::string bytes) {
  for (const std::string key : {"descr", "dtype", "part_graph", "node_types", "MatrixMarket"})
    if (const auto at = bytes.find(key); at != std::string::npos) bytes.replace(at, key.size(), "\x1b[2Jkey");
  return bytes;
}

struct Damage {
  const char* name;
  bool must_fail;
  std::function<void(const std::string& path, const std::string& bytes)> apply;  // where there is no file yet
};

std::vector<Damage> damages() {
  const auto with = [](auto change) {
    return [change](const std::string& path, const std::string& bytes) { write_bytes(path, change(bytes)); };
  };
  std::string garbage;
  for (unsigned i = 0; i < 5000; ++i) garbage += static_cast<char>((i * 2654435761U) >> 13);
  return {
      {"missing", true, [](const std::string&, const std::string&) {}},
      {"a directory", true, [](const std::string& path, const std::string&) { fs::create_directory(path); }},
      {"a FIFO", true,
       [](const std::string& path, const std::string&) { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); }},
      {"a link to itself", true,
       [](const std::string& path, const std::string&) { fs::create_symlink(path, path); }},
      {"empty", true, with([](const std::string&) { return std::string(); })},
      {"truncated", false, with([](const std::string& bytes) { return bytes.substr(0, bytes.size() / 2); })},
      {"garbage", true, with([=](const std::string&) { return garbage; })},
      {"another format", true, with([](const std::string&) { return std::string("{\"a\": [1, 2]}"); })},
      {"a wrong key", false, with(with_wrong_key)},
      {"a number too large", false, with(with_large_number)},
      {"no permission", ::geteuid() != 0, [](const std::string& path, const std::string& bytes) {
         write_bytes(path, bytes);
         fs::permissions(path, fs::perms::none);
       }}};
}

}  // namespace

TEST_CASE("every reader says in one sentence what is wrong with every damaged file") {
  for (const Reader& reader : readers()) {
    CAPTURE(reader.file);
    const auto message = [&](const Damage& damage) {
      const TemporaryDirectory directory(Communicator::self());
      const std::string path = directory.path() + "/" + reader.file;
      for (const auto& [name, bytes] : reader.others) {
        fs::create_directories(fs::path(directory.path() + "/" + name).parent_path());
        if (name != reader.file) write_bytes(directory.path() + "/" + name, bytes);
      }
      damage.apply(path, reader.bytes);
      const std::string text = thrown<InputError>([&] { reader.read(directory.path(), path); });
      CHECK(text.starts_with(text == "nothing" ? "nothing" : directory.path()));
      return text;
    };
    CHECK(message({"none", false, [](const std::string& path, const std::string& bytes) {
                     write_bytes(path, bytes);
                   }}) == "nothing");
    for (const Damage& damage : damages()) {
      const std::string kind = damage.name;
      CAPTURE(kind);
      // files that a dataset need not have, splits of no nodes, and numbers whose first digits are a number,
      // too
      const bool optional = !reader.others.empty() &&
                            (kind == "missing" || (kind == "empty" && reader.file.starts_with("split")));
      const std::string text = message(damage);
      CAPTURE(text);
      if (damage.must_fail && !optional) CHECK(text != "nothing");
      if (kind == "truncated" && !reader.may_be_short) CHECK(text != "nothing");
      if (kind == "a FIFO" || (kind == "a directory" && !reader.is_dataset))
        CHECK(text.find("is " + kind) != std::string::npos);
      for (const char* word : {"exception", "map::at", "vector::", "std::", "basic_string", "\x1b"})
        CHECK(text.find(word) == std::string::npos);
      CHECK(text.size() < 600);
    }
  }
}
