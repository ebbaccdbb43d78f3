#include "source_notes.hpp"

#include <sar/core/error.hpp>

#include <iostream>

namespace sar::tools {

void print_notes(const GraphSource& source, const std::string& found) {
  std::cout << printable(found) << '\n';
  for (const std::string& note : source.notes()) std::cout << printable(note) << '\n';
  std::cout << std::flush;
}

}  // namespace sar::tools
