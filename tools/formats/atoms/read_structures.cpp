// SPDX-License-Identifier: MIT
#include "atom_dataset.hpp"

#include "ase_database.hpp"
#include "extended_xyz.hpp"
#include "raw_structures.hpp"

#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace sar::formats {
namespace {

/// The library that reads a database of ASE; none: the file is no database.
enum class Library { none, sqlite, lmdb };

Library library_of(const std::string& path) {
  constexpr std::string_view sqlite_begins = "SQLite format 3";
  constexpr std::string_view lmdb_magic = "\xDE\xC0\xEF\xBE";
  constexpr std::size_t lmdb_place = 16;
  std::array<char, 20> begin{};
  const InputFile file(path, "a file of structures in extended XYZ or a database of ASE");
  file.read(0, begin.data(), std::min(file.size(), std::ssize(begin)));
  const std::string_view bytes(begin.data(), begin.size());
  if (bytes.starts_with(sqlite_begins) || path.ends_with(".db")) return Library::sqlite;
  if (bytes.substr(lmdb_place) == lmdb_magic || path.ends_with(".aselmdb")) return Library::lmdb;
  return Library::none;
}

/// Reads the rows of a database in the order of their ids; each rank reads a part. Collective.
AtomDataset read_ase_database(const Communicator& comm, const std::string& path, Library library,
                              const AtomLabelKeys& keys) {
  return comm.agree([&] {
    const std::unique_ptr<AseDatabase> database =
        library == Library::lmdb ? open_ase_lmdb(path) : open_ase_sqlite(path);
    const Array<Index> ids = database->ids();
    comm.require_equal(CollectiveCall("read_ase_database").equal("number of rows", std::ssize(ids)));
    const PartitionBook parts = PartitionBook::even(std::ssize(ids), comm.size());
    const auto place = [&](Index id) { return concat(path, ": the row with id ", id, ": "); };
    std::vector<RawStructure> structures;
    for (Index k = parts.begin(comm.rank()); k < parts.end(comm.rank()); ++k) {
      try {
        structures.push_back(structure_of_row(database->row(ids[k]), keys));
      } catch (const InputError& error) {
        throw InputError(place(ids[k]) + error.what());
      }
      structures.back().place = ids[k];
    }
    return labelled_structures(comm, path, std::move(structures), keys,
                               [&](const RawStructure& of, const std::string& message) {
                                 throw InputError(place(of.place) + message);
                               });
  });
}

}  // namespace

AtomDataset read_structures(const Communicator& comm, const std::string& path, const AtomLabelKeys& keys) {
  const Library library = comm.agree([&] { return library_of(path); });
  const bool is_database = library != Library::none;
  AtomDataset data =
      is_database ? read_ase_database(comm, path, library, keys) : read_extended_xyz(comm, path, keys);
  data.format = is_database ? "ASE database" : "extended XYZ";
  return data;
}

}  // namespace sar::formats
