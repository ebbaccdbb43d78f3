// SPDX-License-Identifier: MIT
#include "whole_source.hpp"

#include "support/thrown.hpp"

#include <formats/open_source.hpp>
#include <formats/packed/npz.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/graph/data/load_dataset.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::formats;
using sar::test::TemporaryDirectory;
using sar::test::thrown;
using sar::test::thrown_by_all;
using sar::test::WholeSource;

namespace {

constexpr Index nodes = 23, edges = 90;
const std::string data = SAR_TEST_DATA "/formats/";

/// A folder in the binary form, with the given bytes as data.npz.
class Folder {
 public:
  Folder(const Communicator& comm, const std::string& bytes) : comm_(comm), directory_(comm) {
    namespace fs = std::filesystem;
    if (comm.rank() == 0) {
      fs::create_directories(directory_.path() + "/raw");
      fs::create_directories(directory_.path() + "/split/time");
      test::write_file(directory_.path() + "/raw/data.npz", bytes);
      fs::copy_file(data + "label.npz", directory_.path() + "/raw/node-label.npz");
      for (const char* part : {"train", "valid", "test"})
        test::write_file(concat(directory_.path(), "/split/time/", part, ".csv.gz"), test::gzip("1\n4\n"));
    }
    comm.barrier();
  }
  [[nodiscard]] const std::string& path() const { return directory_.path(); }
  [[nodiscard]] std::string error() const {
    std::string text =
        thrown_by_all<InputError>(comm_, [&] { static_cast<void>(open_source(comm_, path())); });
    if (text.starts_with(path())) text.erase(0, path().size());
    return text;
  }

 private:
  Communicator comm_;
  TemporaryDirectory directory_;
};

void replace(std::string& bytes, const std::string& from, const std::string& to, bool last = false) {
  const std::size_t at = last ? bytes.rfind(from) : bytes.find(from);
  REQUIRE(at != std::string::npos);
  bytes.replace(at, to.size(), to);
}

}  // namespace

TEST_CASE("NumPy's archives, stored and deflated, in both orders and byte orders, are the same graph") {
  const Communicator comm = Communicator::world();
  for (const char* archive : {"stored.npz", "deflated.npz", "stored_fortran.npz", "deflated_fortran.npz"}) {
    CAPTURE(archive);
    const Folder folder(comm, sar::read_text(data + archive, "an archive"));
    const auto source = open_source(comm, folder.path());
    const WholeSource whole = test::gather_source(*source);
    REQUIRE(whole.num_nodes == nodes);
    REQUIRE(static_cast<Index>(whole.edges.size()) == edges);
    for (Index e = 0; e < edges; ++e) {
      const auto i = static_cast<std::size_t>(e);
      CHECK(whole.edges[i] == std::pair<Index, Index>{e * 7 % nodes, (e * e + 5) % nodes});
      CHECK(whole.edge_data.at("features")[2 * i] == static_cast<double>(e) + 0.5);
      CHECK(whole.edge_data.at("features")[2 * i + 1] == static_cast<double>(e) + 0.25);
    }
    for (Index v = 0; v < nodes; ++v) {
      const auto i = static_cast<std::size_t>(v);
      for (std::size_t j = 0; j < 4; ++j)
        CHECK(whole.node_data.at("features")[4 * i + j] == static_cast<double>(4 * i + j) / 8);
      CHECK(whole.node_data.at("node_year")[i] == static_cast<double>(2000 + v));
      const double label = whole.node_data.at("labels")[i];
      CHECK((v % 3 == 0 ? std::isnan(label) : label == static_cast<double>(v % 5)));
      CHECK(whole.node_data.at("train_mask")[i] == (v == 1 || v == 4 ? 1 : 0));
    }
    const NodeData loaded = load_dataset(*open_source(comm, folder.path()));
    CHECK(loaded.num_classes == 5);
  }
}

TEST_CASE("damaged archives are refused on all ranks") {
  const Communicator comm = Communicator::world();
  const std::string stored = sar::read_text(data + "stored.npz", "an archive");
  const std::string deflated = sar::read_text(data + "deflated.npz", "an archive");
  const auto error = [&](const std::string& bytes) { return Folder(comm, bytes).error(); };
  const std::string ends = "/raw/data.npz: the file does not end as a zip archive does, expected a .npz file";
  CHECK(error("") == ends);
  CHECK(error(stored.substr(0, stored.size() / 2)) == ends);
  CHECK(error(stored.substr(20)).find("/raw/data.npz: member 0 of the archive is not in its list") == 0);

  std::string bad = deflated;  // a bit in the middle of the features
  const std::size_t features = bad.find("node_feat.npy") + 60;
  bad[features] = static_cast<char>(bad[features] ^ 0x55);
  CHECK(error(bad).find("/raw/data.npz: node_feat: ") == 0);

  bad = stored;  // num_nodes_list = 24
  replace(bad, std::string("\x17\0\0\0\0\0\0\0", 8), std::string("\x18", 1), true);
  CHECK(error(bad).find("expected 24 rows, one for each node") != std::string::npos);

  bad = stored;  // a size larger than the file, in the directory
  const std::size_t entry = bad.rfind("PK\1\2");
  bad[entry + 23] = '\x7f';
  CHECK(error(bad).find("expected them inside the file of") != std::string::npos);

  bad = stored;  // an edge to a node that does not exist
  const std::size_t first_edge = bad.find('\n', bad.find("edge_index.npy")) + 1;
  bad[first_edge] = '\x17';
  CHECK(error(bad) ==
        "/raw/data.npz: edge_index: edge 0 is (23, 5), but there is no node 23, expected 0 to 22");

  bad = stored;  // the same ends as float64: 2^62 + ..., NaN
  replace(bad, "'descr': '<i8', 'fortran_order': False, 'shape': (2, 90)",
          "'descr': '<f8', 'fortran_order': False, 'shape': (2, 90)");
  CHECK(error(bad).find("/raw/data.npz: edge_index: element (0, 1) is ") == 0);

  bad = stored;
  const std::size_t name = bad.rfind("edge_index.npy");
  bad[name] = 'E';
  CHECK(error(bad) == "/raw/data.npz: there is no array edge_index, expected an OGB dataset");
}

TEST_CASE("the sum of a deflated array is checked") {
  const Communicator comm = Communicator::self();
  const TemporaryDirectory directory(comm);
  std::string bytes = sar::read_text(data + "label.npz", "an archive");
  const std::size_t entry = bytes.rfind("PK\1\2");
  bytes[entry + 16] = static_cast<char>(bytes[entry + 16] ^ 1);
  const std::string path = directory.path() + "/label.npz";
  test::write_file(path, bytes);
  const NpzFile archive(path);
  REQUIRE(archive.members().size() == 1);
  PackedArray array(archive.members()[0]);
  std::vector<std::byte> values(23 * 4);
  CHECK(thrown<InputError>([&] { array.read(values.data(), 92); }).find("the sum of the bytes is") !=
        std::string::npos);
}
