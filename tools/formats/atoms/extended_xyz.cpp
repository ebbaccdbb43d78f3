// SPDX-License-Identifier: MIT
#include "extended_xyz.hpp"

#include "comment_keys.hpp"
#include "formats/first_lines.hpp"
#include "formats/node_keys.hpp"
#include "formats/packed/text_file.hpp"
#include "formats/text.hpp"
#include "raw_structures.hpp"

#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/core/text.hpp>
#include <sar/nn/atoms/zbl.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <utility>

namespace sar::formats {
namespace {

/// A file of structures, plain or packed by gzip: a text whose bytes have numbers.
struct StructureFile {
  std::string path;
  Index size;  ///< of the text

  [[nodiscard]] TextFile open() const { return TextFile(path, "a file of structures in extended XYZ"); }
  explicit StructureFile(std::string path_of_file)
      : path(std::move(path_of_file)), size(open().skip(std::numeric_limits<Index>::max())) {}
};

/// The lines of a file from a byte on.
class FileLines {
 public:
  FileLines(const StructureFile& file, Index begin) : file_(file.open()), offset_(begin), end_(begin) {
    file_.skip(begin);
  }

  /// Moves on to the next line; false at the end of the file.
  bool next() {
    offset_ = end_;
    constexpr Index block_bytes = Index{1} << 20;
    std::size_t length = text_.find('\n', used_);
    while (length == std::string::npos && !ended_) {
      text_.erase(0, std::exchange(used_, 0));
      const std::size_t before = text_.size();
      text_.resize(before + static_cast<std::size_t>(block_bytes));
      const Index bytes = file_.read(text_.data() + before, block_bytes);
      text_.resize(before + static_cast<std::size_t>(bytes));
      ended_ = bytes < block_bytes;
      length = text_.find('\n', before);
    }
    if (used_ == text_.size()) return false;
    const std::size_t end = length == std::string::npos ? text_.size() : length + 1;
    line_ = std::string_view(text_).substr(used_, end - used_);
    while (line_.ends_with('\n') || line_.ends_with('\r')) line_.remove_suffix(1);
    end_ = offset_ + static_cast<Index>(end - used_);
    used_ = end;
    return true;
  }
  [[nodiscard]] std::string_view line() const { return line_; }
  [[nodiscard]] Index offset() const { return offset_; }  ///< of the line
  [[nodiscard]] Index end() const { return end_; }        ///< behind the line

 private:
  TextFile file_;
  bool ended_ = false;
  Index offset_, end_;
  std::string text_;      // the bytes that have been read last
  std::size_t used_ = 0;  // of text_, by lines so far
  std::string_view line_;
};

/// What is wrong with the line at a byte of the file.
struct BadLine {
  Index offset;
  std::string message;
};

[[noreturn]] void throw_bad_line(const StructureFile& file, const BadLine& bad) {
  Index number = 1;
  for (FileLines lines(file, 0); lines.next() && lines.offset() < bad.offset;) ++number;
  throw InputError(concat(file.path, ": line ", number, ": ", bad.message));
}

std::optional<Index> count_in(std::string_view line) {
  std::int64_t number = 0;
  return read_digits(trimmed(line), number) ? std::optional<Index>(number) : std::nullopt;
}

/// A column of the atoms' lines.
struct Property {
  std::string name;
  std::string type;  ///< S, R, I or L
  std::size_t first, columns;
};

/// The value of Properties: "species:S:1:pos:R:3".
std::vector<Property> properties_of(const std::string& value) {
  const auto parts = fields_of(value, ':');
  require<InputError>(!parts.empty() && parts.size() % 3 == 0, "Properties is ", in_quotes(value),
                      ", expected names with type and number of columns, such as species:S:1:pos:R:3");
  std::vector<Property> properties;
  std::size_t first = 0;
  for (std::size_t i = 0; i < parts.size(); i += 3) {
    const std::optional<Index> columns = count_in(parts[i + 2]);
    require<InputError>(columns && *columns > 0 && *columns <= 1000, "Properties has ",
                        in_quotes(parts[i + 2]), " columns of ", in_quotes(parts[i]),
                        ", expected a number from 1 to 1000");
    const std::string lower = lower_case(parts[i]);
    const std::string name(lower == "species" || lower == "pos" ? lower : parts[i]);
    require<InputError>(std::ranges::find(properties, name, &Property::name) == properties.end(),
                        "Properties is ", in_quotes(value), ", which names ", name,
                        " twice, expected it once");
    properties.push_back({name, std::string(parts[i + 1]), first, static_cast<std::size_t>(*columns)});
    first += properties.back().columns;
  }
  // atomic numbers alone, which ASE reads, too
  const auto numbers = std::ranges::find(properties, "Z", &Property::name);
  if (numbers != properties.end() &&
      std::ranges::find(properties, "species", &Property::name) == properties.end())
    numbers->name = "species";
  const auto require_column = [&](const char* name, std::size_t columns) {
    const auto found = std::ranges::find(properties, name, &Property::name);
    require<InputError>(found != properties.end() && found->columns == columns, "Properties is ",
                        in_quotes(value), ", expected ", columns, columns == 1 ? " column" : " columns",
                        " of ", name);
  };
  require_column("species", 1);
  require_column("pos", 3);
  return properties;
}

/// Reads structures that begin in a range of bytes.
class StructureReader {
 public:
  StructureReader(const StructureFile& file, const std::string& forces_key)
      : file_(file), forces_key_(forces_key) {}

  /// Returns where the first structure at or behind a byte seems to begin: a line with nothing but a number.
  [[nodiscard]] Index find_structure(Index begin) const {
    FileLines lines(file_, std::max<Index>(begin - 1, 0));
    if (begin > 0) (void)lines.next();  // the end of a line of the rank before, or its last character
    while (lines.next())
      if (count_in(lines.line())) return lines.offset();
    return file_.size;
  }

  void clear() {
    structures.clear();
    bad.reset();
  }
  /// Reads the structures that begin at `begin` and before `end`. Returns where the next one begins.
  Index read(Index begin, Index end) {
    clear();
    FileLines lines(file_, begin);
    at_ = begin;
    try {
      while (lines.next()) {
        at_ = lines.offset();
        if (trimmed(lines.line()).empty()) continue;
        if (at_ >= end) return at_;
        structures.push_back(structure(lines));
      }
    } catch (const InputError& error) {
      bad = BadLine{at_, error.what()};
    }
    return file_.size;
  }

  std::vector<RawStructure> structures;
  std::optional<BadLine> bad;  ///< of the last read()

 private:
  RawStructure structure(FileLines& lines) {
    RawStructure raw;
    const std::optional<Index> count = count_in(lines.line());
    require<InputError>(count && *count > 0, in_quotes(lines.line()),
                        ", expected the number of atoms of a structure");
    const auto next_line = [&](const char* expected) {
      at_ = lines.end();
      require<InputError>(lines.next(), "the file ends, expected ", expected, " of a structure of ", *count,
                          " atoms");
    };
    next_line("the comment");
    raw.place = at_;
    raw.keys = comment_keys(lines.line());
    raw.atoms.cell = cell_of(raw.keys);
    const auto given = raw.keys.find("Properties");
    const bool is_plain = given == raw.keys.end();
    const std::vector<Property> properties = properties_of(is_plain ? "species:S:1:pos:R:3" : given->second);
    for (const char* key : {"Properties", "Lattice", "pbc"}) raw.keys.erase(key);
    for (const Property& property : properties)
      if (property.name != "species" && property.name != "pos") raw.names.push_back(property.name);
    const std::size_t columns = properties.back().first + properties.back().columns;
    std::vector<std::string_view> fields;
    for (Index i = 0; i < *count; ++i) {
      next_line("the atoms");
      fields.clear();
      for (Fields each(lines.line(), blanks); each.next();) fields.push_back(each.field());
      require<InputError>(fields.size() == columns || (is_plain && fields.size() > columns), fields.size(),
                          " columns of atom ", i + 1, " of ", *count, ", expected ", columns);
      for (const Property& property : properties) take(raw, property, fields);
    }
    raw.atoms.elements.shrink_to_fit();
    raw.atoms.positions.shrink_to_fit();
    for (auto& [name, numbers] : raw.columns) numbers.shrink_to_fit();
    return raw;
  }

  /// The atomic number of a species, which is a chemical symbol or an atomic number.
  std::uint8_t element_of(std::string_view field) {
    const std::string text(field);
    if (const auto known = elements_.find(text); known != elements_.end()) return known->second;
    const std::optional<Index> number = count_in(field);
    const int element = atomic_number(number ? chemical_symbol(*number) : text);
    require<InputError>(element > 0, "species has ", in_quotes(field),
                        ", expected a chemical symbol, such as Si, or an atomic number");
    return elements_.emplace(text, static_cast<std::uint8_t>(element)).first->second;
  }

  void take(RawStructure& raw, const Property& property, const std::vector<std::string_view>& fields) {
    if (property.name == "species") raw.atoms.elements.push_back(element_of(fields[property.first]));
    const bool is_position = property.name == "pos";
    const bool is_forces =
        property.columns == 3 && (is_forces_name(property.name) || property.name == forces_key_);
    if (!is_position && !is_forces) return;
    std::vector<double>& to = is_position ? raw.atoms.positions : raw.columns[property.name];
    for (std::size_t k = 0; k < 3; ++k) {
      const std::string_view field = fields[property.first + k];
      const auto number = to_number(field);
      require<InputError>(number && std::isfinite(*number), property.name, " has ", in_quotes(field),
                          ", expected a number");
      to.push_back(*number);
    }
  }

  const StructureFile& file_;
  std::string forces_key_;
  std::map<std::string, std::uint8_t> elements_;  // of the species so far
  Index at_ = 0;                                  // the line that is read
};

/// Reads the structures that begin in this rank's range of bytes. A rank guesses where its first structure
/// begins; where the structures of the rank before end somewhere else, it reads again from there. Collective.
void read_range(const Communicator& comm, const StructureFile& file, StructureReader& reader) {
  const PartitionBook ranges = PartitionBook::even(file.size, comm.size());
  const Index range_end = ranges.end(comm.rank());
  Index begin = comm.rank() == 0 ? 0 : reader.find_structure(ranges.begin(comm.rank()));
  Index end = begin < range_end ? reader.read(begin, range_end) : begin;
  for (int corrected = 0; corrected < comm.size(); ++corrected) {
    const auto all = comm.all_gather(std::array<Index, 2>{begin, end});
    Index expected = 0;  // where the structures of rank p begin
    int wrong = 0;
    for (; wrong < comm.size(); ++wrong) {
      const auto& [first, behind] = all[wrong];
      if (expected >= ranges.end(wrong) ? first < ranges.end(wrong) : first != expected) break;
      if (expected < ranges.end(wrong)) expected = behind;
    }
    if (wrong == comm.size()) break;
    if (wrong != comm.rank()) continue;
    reader.clear();
    begin = expected;
    end = begin < range_end ? reader.read(begin, range_end) : begin;
  }
  if (reader.bad) throw_bad_line(file, *reader.bad);
}

void add_number(std::string& text, double number) {
  text += ' ';
  text += exact_text(number);
}

std::string text_of(const AtomStructure& atoms, const AtomStructure* label) {
  std::string text = concat(atoms.num_atoms(), "\n");
  const auto add_matrix = [&](const char* key, const Matrix3& matrix) {
    std::string numbers;
    for (const Vector3& row : matrix)
      for (const double x : row) add_number(numbers, x);
    text += concat(key, "=\"", numbers.substr(1), "\" ");
  };
  const Cell& cell = atoms.cell;
  if (cell.volume() > 0 || cell.periodic != std::array{false, false, false})
    add_matrix("Lattice", cell.vectors);
  const bool has_forces = !atoms.forces.empty(), has_labels = label != nullptr && !label->forces.empty();
  const bool has_deviations = !atoms.force_deviations.empty();
  text += concat("Properties=species:S:1:pos:R:3", has_forces ? ":forces:R:3" : "",
                 has_labels ? ":label_forces:R:3" : "", has_deviations ? ":forces_deviation:R:1" : "");
  if (atoms.has_energy()) text += concat(" energy=", exact_text(atoms.energy));
  if (!std::isnan(atoms.energy_deviation))
    text += concat(" energy_deviation=", exact_text(atoms.energy_deviation));
  text += " ";
  if (atoms.has_stress()) add_matrix("stress", atoms.stress);
  if (label != nullptr && label->has_energy())
    text += concat("label_energy=", exact_text(label->energy), " ");
  if (label != nullptr && label->has_stress()) add_matrix("label_stress", label->stress);
  const std::string computed = text;
  for (const auto& [key, value] : atoms.keys)  // may have the names of what is computed, from an earlier run
    if (computed.find(" " + key + "=") == std::string::npos) text += key_text(key, value) + " ";
  text += "pbc=\"";
  for (std::size_t k = 0; k < 3; ++k) text += concat(k == 0 ? "" : " ", cell.periodic[k] ? "T" : "F");
  text += "\"\n";
  for (const std::size_t i : file_order(atoms)) {
    text += chemical_symbol(atoms.elements[i]);
    for (std::size_t k = 0; k < 3; ++k) add_number(text, atoms.positions[3 * i + k]);
    for (std::size_t k = 0; has_forces && k < 3; ++k) add_number(text, atoms.forces[3 * i + k]);
    for (std::size_t k = 0; has_labels && k < 3; ++k) add_number(text, label->forces[3 * i + k]);
    if (has_deviations) add_number(text, atoms.force_deviations[i]);
    text += '\n';
  }
  return text;
}

}  // namespace

AtomDataset read_extended_xyz(const Communicator& comm, const std::string& path, const AtomLabelKeys& keys) {
  return comm.agree([&] {
    const StructureFile file(path);
    StructureReader reader(file, keys.forces);
    read_range(comm, file, reader);
    return labelled_structures(comm, path, std::move(reader.structures), keys,
                               [&](const RawStructure& of, const std::string& message) {
                                 throw_bad_line(file, {of.place, message});
                               });
  });
}

StructureWriter::StructureWriter(const Communicator& comm, const std::string& path) : comm_(comm) {
  comm.agree([&] {
    if (comm.rank() == 0) file_.emplace(path);
  });
}

// A block of the structures of one rank at a time goes to the rank that writes.
void StructureWriter::write(const AtomDataset& data, const AtomDataset* labels) {
  comm_.agree([&] {
    constexpr Index block = 256;
    const std::vector<Index> counts = comm_.all_gather(std::ssize(data.structures));
    for (int from = 0; from < comm_.size(); ++from)
      for (Index begin = 0; begin < counts[from]; begin += block) {
        std::string mine;
        const Index end = std::min(begin + block, counts[from]);
        for (Index s = begin; comm_.rank() == from && s < end; ++s) {
          const auto at = static_cast<std::size_t>(s);
          mine += text_of(data.structures[at], labels == nullptr ? nullptr : &labels->structures[at]);
        }
        std::vector<Index> sent(static_cast<std::size_t>(comm_.size()), 0);
        sent[0] = std::ssize(mine);
        const std::vector<char> text = comm_.all_to_all_v(std::span<const char>(mine), sent).values;
        if (file_) file_->write(text.data(), text.size());
      }
  });
}

void StructureWriter::commit() {
  comm_.agree([&] {
    if (file_) file_->commit();
  });
}

}  // namespace sar::formats
