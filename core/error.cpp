#include <sar/core/error.hpp>

namespace sar::inline SAR_PRECISION {

void throw_error(ErrorKind kind, const std::string& message) {
  switch (kind) {
    case ErrorKind::shape:
      throw ShapeError(message);
    case ErrorKind::input:
      throw InputError(message);
    case ErrorKind::communication:
      throw CommunicationError(message);
    case ErrorKind::memory:
      throw MemoryError(message);
    case ErrorKind::general:
      break;
  }
  throw Error(message);
}

}  // namespace sar
