// SPDX-License-Identifier: MIT
#include "vtk.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <bit>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

namespace {

/// Encodes bytes as text, six bits per character.
std::string base64(std::span<const unsigned char> bytes) {
  constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned group = 0;
    for (std::size_t k = i; k < i + 3; ++k) group = group << 8 | (k < bytes.size() ? bytes[k] : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? letters[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

template <class T>
constexpr const char* vtk_type() {
  if constexpr (std::is_same_v<T, double>) return "Float64";
  if constexpr (std::is_same_v<T, std::int64_t>) return "Int64";
  if constexpr (std::is_same_v<T, std::int32_t>) return "Int32";
  if constexpr (std::is_same_v<T, std::uint8_t>) return "UInt8";
}

/// Writes an array in VTK's inline binary format: its length in bytes and its bytes, encoded together in
/// base64.
template <class T>
void write_array(std::ostream& out, const std::string& name, std::span<const T> values, int components = 1) {
  const std::uint64_t length = values.size_bytes();
  std::vector<unsigned char> bytes(sizeof length + length);
  std::memcpy(bytes.data(), &length, sizeof length);
  if (length > 0) std::memcpy(bytes.data() + sizeof length, values.data(), length);
  out << "<DataArray type=\"" << vtk_type<T>() << "\" Name=\"" << name << "\" NumberOfComponents=\""
      << components << "\" format=\"binary\">" << base64(bytes) << "</DataArray>\n";
}
template <class T>
void write_array(std::ostream& out, const std::string& name, const std::vector<T>& values,
                 int components = 1) {
  write_array(out, name, std::span<const T>(values), components);
}

void begin_file(std::ostream& out, const char* type) {
  out << "<?xml version=\"1.0\"?>\n<VTKFile type=\"" << type << "\" version=\"1.0\" byte_order=\""
      << (std::endian::native == std::endian::little ? "LittleEndian" : "BigEndian")
      << "\" header_type=\"UInt64\">\n";
}

/// Returns the triangles whose first corner this rank owns, so that every triangle is written once. Their
/// corners may be ghosts, which several ranks write.
std::string piece(const Mesh& mesh, int rank, std::span<const NodeField> fields) {
  std::vector<double> points;
  for (const Point p : mesh.position) points.insert(points.end(), {p.x, p.y, 0});
  std::vector<std::int32_t> owner(mesh.owner.begin(), mesh.owner.end()), corners;
  for (const auto& triangle : mesh.triangles)
    if (triangle[0] < mesh.num_owned) corners.insert(corners.end(), triangle.begin(), triangle.end());
  const std::size_t cells = corners.size() / 3;
  std::vector<std::int32_t> ends(cells);
  for (std::size_t c = 0; c < cells; ++c) ends[c] = static_cast<std::int32_t>(3 * c + 3);
  constexpr std::uint8_t triangle_type = 5;

  std::ostringstream out;
  begin_file(out, "UnstructuredGrid");
  out << "<UnstructuredGrid>\n<Piece NumberOfPoints=\"" << mesh.num_nodes() << "\" NumberOfCells=\"" << cells
      << "\">\n<Points>\n";
  write_array(out, "Points", points, 3);
  out << "</Points>\n<Cells>\n";
  write_array(out, "connectivity", corners);
  write_array(out, "offsets", ends);
  write_array(out, "types", std::vector<std::uint8_t>(cells, triangle_type));
  out << "</Cells>\n<PointData>\n";
  for (const NodeField& field : fields) write_array(out, field.name, field.values);
  write_array(out, "owner", owner);
  write_array(out, "global_id", mesh.global_id);
  out << "</PointData>\n<CellData>\n";
  write_array(out, "rank", std::vector<std::int32_t>(cells, rank));
  out << "</CellData>\n</Piece>\n</UnstructuredGrid>\n</VTKFile>\n";
  return out.str();
}

std::string list_of_pieces(std::span<const std::string> pieces, std::span<const NodeField> fields) {
  const auto array = [](const char* type, const std::string& name, int components = 1) {
    return sar::concat("<PDataArray type=\"", type, "\" Name=\"", name, "\" NumberOfComponents=\"",
                       components, "\"/>\n");
  };
  std::ostringstream out;
  begin_file(out, "PUnstructuredGrid");
  out << "<PUnstructuredGrid GhostLevel=\"0\">\n<PPoints>\n"
      << array("Float64", "Points", 3) << "</PPoints>\n<PPointData>\n";
  for (const NodeField& field : fields) out << array("Float64", field.name);
  out << array("Int32", "owner") << array("Int64", "global_id") << "</PPointData>\n<PCellData>\n"
      << array("Int32", "rank") << "</PCellData>\n";
  for (const std::string& file : pieces) out << "<Piece Source=\"" << file << "\"/>\n";
  out << "</PUnstructuredGrid>\n</VTKFile>\n";
  return out.str();
}

/// Returns "rollout_003.pvtu", or "rollout_003_1.vtu" for rank 1.
std::string file_name(const std::string& name, std::size_t step, const std::string& ending) {
  char number[24];
  std::snprintf(number, sizeof number, "_%03zu", step);
  return name + number + ending;
}

}  // namespace

VtkSeries::VtkSeries(const sar::Communicator& comm, const Mesh& mesh, std::string directory, std::string name)
    : comm_(comm), mesh_(mesh), directory_(std::move(directory)), name_(std::move(name)) {
  comm_.agree([&] {
    std::error_code error;
    std::filesystem::create_directories(directory_, error);
    sar::require<sar::InputError>(!error, directory_, ": cannot make the directory (", error.message(), ")");
    if (comm_.rank() == 0) sar::check_writable(path());
  });
}

void VtkSeries::write(double time, std::span<const NodeField> fields) {
  const std::size_t step = times_.size();
  times_.push_back(time);
  const auto piece_name = [&](int rank) { return file_name(name_, step, sar::concat("_", rank, ".vtu")); };
  comm_.agree([&] {
    sar::write_text(directory_ + "/" + piece_name(comm_.rank()), piece(mesh_, comm_.rank(), fields));
  });
  comm_.agree([&] {  // write lists after the files they name
    if (comm_.rank() != 0) return;
    std::vector<std::string> pieces;
    for (int rank = 0; rank < comm_.size(); ++rank) pieces.push_back(piece_name(rank));
    sar::write_text(directory_ + "/" + file_name(name_, step, ".pvtu"), list_of_pieces(pieces, fields));

    std::ostringstream out;
    begin_file(out, "Collection");
    out << "<Collection>\n";
    for (std::size_t t = 0; t < times_.size(); ++t)
      out << "<DataSet timestep=\"" << times_[t] << "\" part=\"0\" file=\"" << file_name(name_, t, ".pvtu")
          << "\"/>\n";
    out << "</Collection>\n</VTKFile>\n";
    sar::write_text(path(), out.str());
  });
}
