// SPDX-License-Identifier: MIT
#include "fuzz.hpp"

#include <formats/atoms/extended_xyz.hpp>
#include <sar/comm/environment.hpp>

#include <cstdio>
#include <string>

using namespace sar;

/// The structures of a file, with the labels that their names choose and without labels. What has been read
/// is written without labels so that it is read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static int argc = 0;
  static char** argv = nullptr;
  static const Environment environment(argc, argv);
  static const Communicator comm = Communicator::self();
  const std::string path = fuzz::write_input(bytes, size), again = path + "_again";
  for (const char* key : {"", "none"}) {
    bool is_written = false, is_read = false;
    fuzz::run([&] {
      const formats::AtomLabelKeys keys{.energy = key, .forces = key, .stress = key};
      formats::AtomDataset data = formats::read_extended_xyz(comm, path, keys);
      for (const formats::AtomStructure& atoms : data.structures)
        if (std::ssize(atoms.positions) != 3 * atoms.num_atoms() ||
            (!atoms.forces.empty() && atoms.forces.size() != atoms.positions.size()))
          std::abort();
      data.has_energies = data.has_forces = data.has_stresses = false;
      formats::StructureWriter writer(comm, again);
      writer.write(data);
      writer.commit();
      is_written = true;
      is_read = formats::read_extended_xyz(comm, again, {}).count == data.count;
    });
    if (is_written && !is_read) std::abort();
  }
  std::remove(again.c_str());
  return 0;
}
