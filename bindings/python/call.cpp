// SPDX-License-Identifier: MIT
#include <sar/bindings/python/call.hpp>
#include <sar/comm/reproducible_scope.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/mixed_precision.hpp>

#include <array>
#include <atomic>
#include <thread>

namespace sar { inline namespace SAR_PRECISION { namespace python {
namespace {

struct Recording {
  std::uint64_t id = 0;
  Tape tape = {};
};

struct ThreadState {
  std::unique_ptr<Recording> recording;
  std::weak_ptr<void> results;  // expired: no result of the recording exists
  std::shared_ptr<void> held;   // while a call runs
  int calls = 0, messages = 0;  // how deep
  bool grad_enabled = true;
  std::vector<std::unique_ptr<ReproducibleScope>> reproducible;  // the innermost last
  std::vector<std::unique_ptr<MixedPrecisionScope>> mixed;
};
thread_local ThreadState state;
std::atomic<std::uint64_t> last_id{0};

// Under the lock of the interpreter:
bool busy = false;
std::thread::id busy_thread;
/// What ends a program, raised in a function of the user in the call of busy_thread; owned.
PyObject* interrupt = nullptr;

/// Lets the recording end with its last result. Results that another thread drops last end it at the next
/// call, because a tape belongs to its thread.
void share_recording() {
  Recording& recording = *state.recording;
  recording.id = ++last_id;
  state.held = std::shared_ptr<void>(&recording, [id = recording.id](void*) {
    if (state.recording != nullptr && state.recording->id == id && state.calls == 0) end_recording();
  });
  state.results = state.held;
}

void record_results() {
  state.held = state.results.lock();
  if (state.recording != nullptr && state.held != nullptr) return;
  state.recording.reset();  // before the next one, because tapes nest
  state.recording = std::make_unique<Recording>();
  share_recording();
}

bool is_same(const std::shared_ptr<void>& a, const std::shared_ptr<void>& b) noexcept {
  return !a.owner_before(b) && !b.owner_before(a);
}

std::array<PyObject*, 5> exceptions{};

}  // namespace

Call::Call() {
  if (state.messages == 0 && state.calls == 0) {
    require(
        !busy || busy_thread == std::this_thread::get_id(),
        "a thread calls sar while a call of another thread has not returned, expected one thread at a time");
    busy = true;
    busy_thread = std::this_thread::get_id();
    Py_CLEAR(interrupt);
    outermost_ = true;
    if (state.grad_enabled) record_results();
    ++state.calls;
  }
  if (!state.grad_enabled) constants_.emplace();
}

Call::~Call() {
  constants_.reset();
  if (!outermost_) return;
  --state.calls;
  busy = false;
  state.held.reset();
}

PyTensor Call::result(Variable value) {
  const bool recorded = state.messages == 0 && state.grad_enabled && value.requires_grad();
  return {std::move(value), recorded ? state.held : nullptr};
}

MessageScope::MessageScope() {
  ++state.messages;
}
MessageScope::~MessageScope() {
  --state.messages;
}
bool MessageScope::is_active() noexcept {
  return state.messages > 0;
}

bool set_grad_enabled(bool enabled) {
  return std::exchange(state.grad_enabled, enabled);
}

bool grad_enabled() {
  return state.grad_enabled;
}

void enter_reproducible(const Communicator& comm) {
  state.reproducible.push_back(std::make_unique<ReproducibleScope>(comm));
}

void leave_reproducible() noexcept {
  if (!state.reproducible.empty()) state.reproducible.pop_back();
}

void enter_mixed_precision(bool mixed) {
  state.mixed.push_back(std::make_unique<MixedPrecisionScope>(mixed));
}

void leave_mixed_precision() noexcept {
  if (!state.mixed.empty()) state.mixed.pop_back();
}

void backward(const PyTensor& output, const Tensor& seed) {
  const Call call;
  require(state.messages == 0, "backward() in a function of edges");
  require(output.recording != nullptr || !output.value.requires_grad(),
          "backward() from a leaf, expected a result that was computed from it");
  require(output.value.requires_grad() && state.recording != nullptr,
          "backward() from a result of constants, or of a computation with gradients disabled");
  require(output.recording != nullptr && is_same(output.recording, state.held),
          "backward() from a result whose recording has ended: backward() was called before, or it was "
          "computed by "
          "another thread");
  const Shape& shape = output.value.shape();
  require<ShapeError>(seed.defined() || shape.size() == 1,
                      "backward() without a seed needs a scalar, not a tensor of shape ", shape);
  require<ShapeError>(!seed.defined() || seed.shape() == shape, "gradient of shape ", seed.shape(),
                      " for a variable of shape ", shape);
  const nb::gil_scoped_release released;
  struct End {  // what is recorded from now on does not end with the results of before
    ~End() { share_recording(); }
  } const end;
  if (seed.defined())
    state.recording->tape.backward(output.value, seed);
  else
    state.recording->tape.backward(output.value);
}

void end_recording() noexcept {
  state.recording.reset();
  state.results.reset();
}

void throw_as_error(const nb::python_error& error) {
  const nb::gil_scoped_acquire locked;
  if (!error.matches(PyExc_Exception)) Py_XSETREF(interrupt, error.value().inc_ref().ptr());
  const std::string name = nb::cast<std::string>(error.type().attr("__name__"));
  const std::string text = nb::cast<std::string>(nb::str(error.value()));
  for (std::size_t kind = exceptions.size(); kind-- > 0;)  // the base class is the first
    if (error.matches(exceptions[kind])) throw_error(static_cast<ErrorKind>(kind), text);
  throw Error(text.empty() ? name : concat(name, ": ", text));
}

void bind_errors(nb::module_& module) {
  const auto make = [&](ErrorKind kind, const char* name, const char* doc, nb::handle bases) {
    PyObject* const made = PyErr_NewExceptionWithDoc(concat("sar.", name).c_str(), doc, bases.ptr(), nullptr);
    if (made == nullptr) throw nb::python_error();
    exceptions[static_cast<std::size_t>(kind)] = made;
    module.attr(name) = nb::handle(made);
    return nb::handle(made);
  };
  const nb::handle base = make(ErrorKind::general, "Error", "The base class of all exceptions of sar.",
                               nb::handle(PyExc_RuntimeError));
  const nb::handle value = PyExc_ValueError;
  make(ErrorKind::shape, "ShapeError", "Shapes or lengths of operands do not match.",
       nb::make_tuple(base, value));
  make(ErrorKind::input, "InputError", "A file, dataset, graph or option is invalid.",
       nb::make_tuple(base, value));
  make(ErrorKind::communication, "CommunicationError",
       "MPI reported an error, or the ranks made different collective calls.", base);
  make(ErrorKind::memory, "OutOfMemoryError", "A block of memory could not be allocated.",
       nb::make_tuple(base, nb::handle(PyExc_MemoryError)));
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      if (interrupt != nullptr && busy_thread == std::this_thread::get_id()) {
        const nb::object raised = nb::steal(std::exchange(interrupt, nullptr));
        PyErr_SetObject(raised.type().ptr(), raised.ptr());
        return;
      }
      auto kind = static_cast<std::size_t>(error.kind());
      if (kind >= exceptions.size()) kind = 0;
      PyErr_SetString(exceptions[kind], error.what());
    } catch (const nb::cast_error&) {
      PyErr_SetString(PyExc_TypeError, wrong_value_text);
    }
  });
}

}}}  // namespace sar
