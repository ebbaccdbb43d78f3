// SPDX-License-Identifier: MIT

/// The JSON options of sar.h, and exceptions of the library as its return values.
#pragma once

#include <sar/bindings/c/handle_table.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/construct/host_graph.hpp>

#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>

// Parses the JSON options of sar.h.

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {

/// Returns the options of sar_graph_from_global(). Throws InputError for text that is not JSON, an unknown
/// key and a value of the wrong type; the graph itself checks ranges.
HostGraphOptions graph_options(const std::string& text);

/// Returns the object of sar_optimizer_create(). Throws InputError as graph_options() does, as the
/// optimizers, and for limits of clipping that are negative. Adds kind and numbers to `call`.
std::shared_ptr<OptimizerObject> make_optimizer(const std::string& text, std::shared_ptr<ModelObject> model,
                                                CollectiveCall& call);

/// Returns the status of the current exception and makes its text the result of sar_last_error().
int status_of_exception() noexcept;

/// While it lives, the text of sar_refuse_next() is that of the running call; then it is forgotten.
class Refusal {
 public:
  Refusal() = default;
  ~Refusal();
  Refusal(const Refusal&) = delete;
  Refusal& operator=(const Refusal&) = delete;

  /// Throws ShapeError with the text, if there is one.
  void check() const;
};

/// Calls body() for a function that is not collective.
template <class Body>
int call(const Body& body) noexcept {
  const QuietArithmetic quiet;
  try {
    body();
    return SAR_OK;
  } catch (...) {
    return status_of_exception();
  }
}

/// Throws InputError if the pointer is null.
void require_pointer(const void* pointer, const char* name);
/// Returns a string argument. Throws InputError if it is null.
std::string text_of(const char* text, const char* name);

/// Writes value() to `*out`, whose name is `name` in messages, for a function that is not collective.
template <class T, class Value>
int give(T* out, const char* name, const Value& value) noexcept {
  return call([&] {
    require_pointer(out, name);
    *out = static_cast<T>(value());
  });
}

/// Returns the communicator of the first valid handle; without one, that of all objects of the process.
/// Throws HandleError if no handle is valid and the objects belong to several communicators, or there are
/// none.
Communicator communicator_of(std::initializer_list<Given> handles);
/// Throws HandleError unless all handles are valid, InputError unless they belong to one communicator.
void require_one_communicator(std::initializer_list<Given> handles);

/// Calls body(comm, call), or body(comm) if it compares no arguments.
template <class Body>
decltype(auto) call_body(const Body& body, const Communicator& comm, CollectiveCall& call) {
  if constexpr (std::is_invocable_v<const Body&, const Communicator&>)
    return body(comm);
  else
    return body(comm, call);
}

/// Calls body(comm, call) or body(comm) for a collective function with these handles. If one rank fails, all
/// ranks fail. The body adds to `call`, before it communicates, what must be equal on all ranks. All
/// synchronization points compare it, at the latest that at the end.
template <class Body>
int collective_call(const char* name, std::initializer_list<Given> handles, const Body& body) noexcept {
  return call([&] {
    const Refusal refusal;
    const Communicator comm = communicator_of(handles);
    CallScope compared(comm, CollectiveCall(name));
    comm.agree(
        [&] {
          refusal.check();
          require_one_communicator(handles);
          call_body(body, comm, compared.call());
        },
        name);
  });
}

/// The same for a function that creates an object: sets `*out` to its handle after all ranks have created
/// theirs.
template <class Handle, class Make>
int make_object(const char* name, std::initializer_list<Given> handles, Handle* out,
                const Make& make) noexcept {
  void* handle = nullptr;
  const int status = collective_call(name, handles, [&](const Communicator& comm, CollectiveCall& call) {
    require<InputError>(out != nullptr, "the pointer for the new handle is null");
    handle = new_handle(call_body(make, comm, call));
  });
  if (status == SAR_OK) *out = static_cast<Handle>(handle);
  if (status != SAR_OK && handle != nullptr) forget_handle(handle);
  return status;
}

/// The same for an object of a communicator and a file: make(comm, path).
template <class Handle, class Make>
int make_from_path(const char* name, sar_comm comm, const char* path, Handle* out,
                   const Make& make) noexcept {
  return make_object(name, {{comm, "comm"}}, out, [&](const Communicator& c, CollectiveCall& call) {
    object<CommObject>(comm, "comm");
    const std::string given = text_of(path, "path");
    call.equal("path", given);
    return make(c, given);
  });
}

/// Frees a handle of a T.
template <class T>
int free_object(const void* handle, const char* argument) noexcept {
  return call([&] {
    const std::shared_ptr<T> found = object<T>(handle, argument);
    forget_handle(handle);
  });
}
}}}  // namespace sar
