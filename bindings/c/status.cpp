// SPDX-License-Identifier: MIT
#include <sar/bindings/c/status.hpp>

#include <cstring>
#include <exception>
#include <new>

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {
namespace {

/// A text of a fixed length, so that out-of-memory errors have one, too.
struct FixedText {
  char text[4096];
  void set(const char* other) noexcept { std::strncpy(text, other, sizeof text - 1); }
};
thread_local FixedText last_error{};
thread_local FixedText refusal{};  // of the next collective call

int failed(int status, const char* text) noexcept {
  last_error.set(text);
  return status;
}

/// By ErrorKind, with handle_kind as the last.
constexpr int statuses[] = {SAR_ERROR_INTERNAL,      SAR_ERROR_SHAPE,  SAR_ERROR_INPUT,
                            SAR_ERROR_COMMUNICATION, SAR_ERROR_MEMORY, SAR_ERROR_HANDLE};
static_assert(static_cast<int>(handle_kind) + 1 == std::size(statuses));
static_assert(static_cast<int>(ErrorKind::memory) + 1 == static_cast<int>(handle_kind));

}  // namespace

Refusal::~Refusal() {
  refusal.set("");
}

void Refusal::check() const {
  require<ShapeError>(refusal.text[0] == 0, refusal.text);
}

int status_of_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return failed(statuses[static_cast<int>(error.kind())], error.what());
  } catch (const std::bad_alloc&) {
    return failed(SAR_ERROR_MEMORY, "memory could not be had");
  } catch (const std::exception& error) {
    return failed(SAR_ERROR_INTERNAL, error.what());
  } catch (...) {
    return failed(SAR_ERROR_INTERNAL, "an exception that has no text");
  }
}

Communicator communicator_of(std::initializer_list<Given> handles) {
  for (const Given& given : handles)
    if (const std::shared_ptr<Object> found = find_object(given.handle)) return found->comm;
  if (const std::shared_ptr<Object> any = object_of_only_communicator()) return any->comm;
  return live_object(*handles.begin())->comm;  // throws
}

void require_one_communicator(std::initializer_list<Given> handles) {
  const Given& first = *handles.begin();
  const std::shared_ptr<Object> object = live_object(first);
  for (const Given& given : handles)
    require<InputError>(live_object(given)->comm.handle() == object->comm.handle(), "'", given.argument,
                        "' belongs to another sar_comm than '", first.argument, "', expected the same one");
}

void require_pointer(const void* pointer, const char* name) {
  require<InputError>(pointer != nullptr, "the pointer '", name, "' is null");
}

std::string text_of(const char* text, const char* name) {
  require<InputError>(text != nullptr, "the text '", name, "' is null");
  return text;
}

}}}  // namespace sar

const char* sar_last_error(void) {
  return sar::c_interface::last_error.text;
}

int sar_refuse_next(const char* text) {
  return sar::c_interface::call([&] {
    sar::c_interface::require_pointer(text, "text");
    sar::c_interface::refusal.set(*text == 0 ? "refused" : text);
  });
}
