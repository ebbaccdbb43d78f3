/// How a function of sar.h returns what the library throws.
#pragma once

#include <sar/nn/c/handle_table.hpp>

#include <initializer_list>

namespace sar::inline SAR_PRECISION::c_interface {

/// The status of the exception being handled, whose text sar_last_error() is from here on.
int status_of_exception() noexcept;

/// What sar_last_error() returns.
const char* last_error_text() noexcept;

/// body() for a function that is not collective.
template <class Body>
int call(const Body& body) noexcept {
  try {
    body();
    return SAR_OK;
  } catch (...) {
    return status_of_exception();
  }
}

/// The communicator of the first of the handles that is live. Throws HandleError without any.
Communicator communicator_of(std::initializer_list<Given> handles);
/// Throws HandleError unless all handles are live, InputError unless they are of one communicator.
void require_one_communicator(std::initializer_list<Given> handles);

/// body(comm) for a collective function that takes these handles. What fails on a rank fails on all ranks.
template <class Body>
int collective_call(const char* name, std::initializer_list<Given> handles, const Body& body) noexcept {
  return call([&] {
    const Communicator comm = communicator_of(handles);
    comm.agree(
        [&] {
          require_one_communicator(handles);
          body(comm);
        },
        name);
  });
}

/// The same for a function that makes an object: `*out` becomes its handle, when all ranks have made theirs.
template <class Handle, class Make>
int make_object(const char* name, std::initializer_list<Given> handles, Handle* out,
                const Make& make) noexcept {
  std::shared_ptr<Object> made;
  const int status = collective_call(name, handles, [&](const Communicator& comm) {
    require<InputError>(out != nullptr, "the pointer for the new handle is null");
    made = make(comm);
  });
  if (status != SAR_OK) return status;
  return call([&] { *out = static_cast<Handle>(new_handle(std::move(made))); });
}

/// Frees the handle of a T.
template <class T>
int free_object(const void* handle, const char* argument) noexcept {
  return call([&] {
    const std::shared_ptr<T> found = object<T>(handle, argument);
    forget_handle(handle);
  });
}

/// Throws InputError for a pointer that is null.
void require_pointer(const void* pointer, const char* name);
/// A text that the caller gave. Throws InputError where it is null.
std::string text_of(const char* text, const char* name);

}  // namespace sar
