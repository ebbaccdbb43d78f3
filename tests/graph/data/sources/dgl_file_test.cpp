// SPDX-License-Identifier: MIT

/// Files that DGL wrote: their contents, and damaged copies of them.
#include "support/damage.hpp"

#include <sar/graph/data/dgl_file.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

namespace fs = std::filesystem;

const std::string own = std::string(SAR_TEST_DATA) + "/dgl/";

}  // namespace

TEST_CASE("tensors and graphs keep names, types and shapes") {
  const DataColumns tensors = read_dgl_tensors(own + "heterogeneous/part0/node_feat.dgl");
  CHECK(tensors.size() == 5);
  CHECK(tensors.at("paper/features").row_shape == std::vector<Index>{3});
  CHECK(tensors.at("paper/features").type == NpyType::float32);
  CHECK(tensors.at("paper/train_mask").type == NpyType::boolean);
  CHECK(tensors.at("author/orig_check").num_rows == 0);
  const DglGraph graph = read_dgl_graph(own + "heterogeneous/part1/graph.dgl");
  REQUIRE(graph.node_types.size() == 1);
  REQUIRE(graph.edge_types.size() == 1);
  CHECK(graph.node_types[0].name == "_N");
  CHECK(graph.edge_types[0].name == "_E");
  CHECK(graph.edge_types[0].data.at("inner_edge").type == NpyType::int8);
  CHECK(graph.edge_types[0].src.size() == graph.edge_types[0].dst.size());
}

TEST_CASE("graphs that DGL 2.1.0 wrote in each combination of formats are the same graph") {
  const DglGraph expected = read_dgl_graph(own + "formats/part0/graph.coo.dgl");
  const DglGraph::EdgeType& edges = expected.edge_types.at(0);
  REQUIRE(edges.src.size() == 18);
  for (const std::string formats : {"csr", "csc", "coo_csr", "coo_csc", "csr_csc", "coo_csr_csc"}) {
    CAPTURE(formats);
    const DglGraph graph = read_dgl_graph(own + "formats/part0/graph." + formats + ".dgl");
    REQUIRE(graph.edge_types.size() == 1);
    CHECK(graph.node_types.at(0).num_nodes == expected.node_types[0].num_nodes);
    CHECK(graph.edge_types[0].src == edges.src);
    CHECK(graph.edge_types[0].dst == edges.dst);
    CHECK(graph.edge_types[0].data.at("_ID").bytes == edges.data.at("_ID").bytes);
  }
}

TEST_CASE("formats that do not exist, and formats that disagree") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/graph.dgl";
  const auto message = [&](const std::string& source, auto change) {
    write_bytes(path, read_bytes(own + source));
    change();
    const std::string text = thrown<InputError>([&] { read_dgl_graph(path); });
    return text.substr(std::min(text.size(), path.size() + 2));
  };
  const std::string relation = "\x27\xa1\xb4\xf6\xf0\x60\x2e\xdd";
  const auto set_format = [&](std::uint64_t format) {
    patch(path, read_bytes(path).find(relation) + relation.size(), format);
  };
  const std::string all = "formats/part0/graph.coo_csr_csc.dgl";
  CHECK(message(all, [&] { set_format(std::uint64_t{1} << 32); }) ==
        "the edges of a type are in the formats 0, expected a sum of 1 (COO), 2 (CSR) and 4 (CSC)");
  CHECK(message(all, [&] { set_format(std::uint64_t{1} << 32 | 8); }) ==
        "the edges of a type are in the formats 8, expected a sum of 1 (COO), 2 (CSR) and 4 (CSC)");
  CHECK(message(all, [&] { set_format(4); }) ==
        "the edges of a type are in format 4, expected 1 (COO), 2 (CSR) or 3 (CSC)");
  CHECK(message(all,
                [&] {  // the second source of the COO; the first array is the meta graph's
                  const std::string bytes = read_bytes(path), array = "\x3f\xa1\xb4\x96\xf0\x40\x5e\xdd";
                  std::size_t at = bytes.find("\x27\xf1\xdf\x05\xd3\xff\x61\xdd");
                  REQUIRE(at != std::string::npos);
                  at = bytes.find(array, at) + 48 + 8;
                  patch(path, at, bytes[at] == 0 ? std::int64_t{1} : std::int64_t{0});
                })
            .find("are others in CSR than in the format before it, expected the same") != std::string::npos);
}

TEST_CASE("files cut anywhere are refused, and no changed byte is a crash") {
  mistreat(own + "heterogeneous/part0/node_feat.dgl",
           [](const std::string& path) { read_dgl_tensors(path); });
  mistreat(own + "heterogeneous/part0/graph.dgl", [](const std::string& path) { read_dgl_graph(path); });
  mistreat(own + "old/part1/graph.dgl", [](const std::string& path) { read_dgl_graph(path); });
  mistreat(own + "homogeneous/part0/graph.dgl", [](const std::string& path) { read_dgl_graph(path); });
  mistreat(own + "formats/part0/graph.coo_csr_csc.dgl",
           [](const std::string& path) { read_dgl_graph(path); });
}

TEST_CASE("tensors that lie about themselves") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/node_feat.dgl",
                    source = own + "homogeneous/part0/node_feat.dgl";
  // magic 0, number 8, number 16, name 24, then '_N/features' [6, 3] float32: magic 43, reserved 51, device
  // 59, dimensions 67, type 71, shape 75, bytes 91
  const auto message = [&](std::size_t offset, auto value) {
    write_bytes(path, read_bytes(source));
    patch(path, offset, value);
    const std::string text = thrown<InputError>([&] { read_dgl_tensors(path); });
    CHECK(text.starts_with(path + ": "));
    return text.substr(std::min(text.size(), path.size() + 2));
  };
  const auto size = std::to_string(fs::file_size(source) - 24);
  const std::string who = "tensor '_N/features' at byte 43 ";
  CHECK(message(0, std::int64_t{7}) ==
        "DGL's file of tensors expected at byte 0 begins with 0x7, expected 0xdd5a9fbe3fa2443f");
  CHECK(message(8, std::int64_t{9}) == "9 tensors are announced and 4 found, expected as many");
  CHECK(message(16, std::int64_t{1} << 60) == "1152921504606846976 tensors are announced at byte 16 and " +
                                                  size + " bytes are left, expected at least 48 for each");
  CHECK(message(16, std::int64_t{-1}).starts_with("18446744073709551615 tensors are announced"));
  CHECK(message(24, std::int64_t{1} << 40)
            .starts_with("1099511627776 characters of a tensor's name are announced"));
  CHECK(
      message(43, std::int64_t{1}).starts_with("tensor '_N/features' expected at byte 43 begins with 0x1,"));
  CHECK(message(59, 2) == who + "is on device 2, expected 1 (main memory)");
  CHECK(message(67, 0).starts_with(who + "has 0 dimensions, expected 1 to 64"));
  CHECK(message(67, -1).starts_with(who + "has -1 dimensions"));
  CHECK(message(67, 1 << 30).starts_with(who + "has 1073741824 dimensions"));
  CHECK(message(71, std::uint8_t{4}).starts_with(who + "has elements of bfloat32, expected float16"));
  CHECK(message(71, std::uint8_t{5}).starts_with(who + "has elements of complex32, expected float16"));
  CHECK(message(73, std::uint16_t{4}).starts_with(who + "has elements of float32x4, expected float16"));
  CHECK(message(75, std::int64_t{-6}) == who + "has shape (-6, 3), expected no negative extent");
  CHECK(message(75, std::int64_t{7}) == who + "of float32 and shape (7, 3) has 72 bytes, expected 84");
  CHECK(message(83, std::numeric_limits<std::int64_t>::max())
            .starts_with("tensor '_N/features' at byte 43: shape (6, 9223372036854775807) of float32 has "
                         "more bytes than"));
  CHECK(message(91, std::int64_t{-1}) == who + "of float32 and shape (6, 3) has -1 bytes, expected 72");
  // a shape and a size that agree, and a file that is too small for them
  write_bytes(path, read_bytes(source));
  patch(path, 75, std::int64_t{1} << 40);
  patch(path, 91, std::int64_t{12} << 40);
  CHECK(thrown<InputError>([&] {
          read_dgl_tensors(path);
        }).starts_with(path + ": " + who + "has 13194139533312 bytes, and the file ends after "));
  // an extent of 0 does not hide a product that overflows
  write_bytes(path, read_bytes(source));
  patch(path, 75, std::int64_t{0});
  patch(path, 83, std::numeric_limits<std::int64_t>::max());
  patch(path, 91, std::int64_t{0});
  CHECK(thrown<InputError>([&] { read_dgl_tensors(path); }).find("has more bytes than") != std::string::npos);
}

TEST_CASE("graphs of another version or number") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/graph.dgl";
  const auto message = [&](std::size_t offset, std::int64_t value) {
    write_bytes(path, read_bytes(own + "homogeneous/part0/graph.dgl"));
    patch(path, offset, value);
    return thrown<InputError>([&] { read_dgl_graph(path); });
  };
  CHECK(message(0, 0).starts_with(path + ": DGL's file of graphs expected at byte 0 begins with 0x0,"));
  CHECK(message(8, 1) == path +
                             ": graphs of kind 2 in version 1 of the format, expected kind 2 in version 2 "
                             "(DGL 0.5 and later)");
  CHECK(message(24, 2) == path + ": the file holds 2 graphs, expected one");
  CHECK(message(4096, std::int64_t{1} << 50)
            .starts_with(path + ": the graph begins at byte 1125899906842624,"));
  CHECK(message(4096, 0).starts_with(path + ": the graph begins at byte 0,"));
}
