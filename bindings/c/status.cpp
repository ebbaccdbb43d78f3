// SPDX-License-Identifier: MIT
#include <sar/bindings/c/status.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/json.hpp>
#include <sar/core/threads/mixed_precision.hpp>

#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {
namespace {

using Names = std::vector<std::string>;

void require_known_keys(const JsonValue& options, const Names& known) {
  for (const std::string& key : options.keys())
    if (std::ranges::find(known, key) == known.end())
      throw InputError(concat(options.place(), " has the key '", key, "', expected one of ", joined(known)));
}

/// Returns the value that belongs to the name in a list of names and values.
template <class Value>
Value named(const JsonValue& name, const std::vector<std::pair<std::string, Value>>& values) {
  Names expected;
  for (const auto& [text, value] : values) {
    if (text == name.text()) return value;
    expected.push_back(text);
  }
  throw InputError(concat(name.place(), " is '", name.text(), "', expected one of ", joined(expected)));
}

void read_field(const JsonValue& value, bool& field) {
  field = value.flag();
}
void read_field(const JsonValue& value, Index& field) {
  field = value.integer();
}
void read_field(const JsonValue& value, int& field) {
  const Index number = value.integer();
  require<InputError>(0 <= number && number <= std::numeric_limits<int>::max(), value.place(), " is ", number,
                      ", expected a number from 0 to ", std::numeric_limits<int>::max());
  field = static_cast<int>(number);
}
void read_field(const JsonValue& value, HaloMode& field) {
  field = named(value, named_values(halo_mode_names));
}
void read_field(const JsonValue& value, HaloFormat& field) {
  field = named(value, halo_formats());
}

/// A description of an optimizer: its keys are read one by one, and added to a call.
class OptimizerKeys {
 public:
  OptimizerKeys(const JsonValue& file, CollectiveCall& call) : file_(file), call_(call) {}

  /// Sets numbers that the description gives; others stay as they are.
  void read(const std::vector<std::pair<const char*, double*>>& numbers) {
    for (const auto& [key, number] : numbers) {
      known_.emplace_back(key);
      if (file_.has(key)) *number = file_.at(key).number();
      call_.equal(key, *number);
    }
  }
  /// Returns what a step does with gradients.
  GradientOptions gradient_options() {
    GradientOptions options;
    read({{"clip_grad_norm", &options.clip_grad_norm}, {"clip_grad_value", &options.clip_grad_value}});
    for (const char* key : {"clip_grad_norm", "clip_grad_value"})
      if (file_.has(key))
        require<InputError>(file_.at(key).number() >= 0, file_.at(key).place(), " is ",
                            file_.at(key).number(), ", expected a number from 0 on");
    known_.emplace_back("require_finite");
    if (file_.has("require_finite")) options.require_finite = file_.at("require_finite").flag();
    call_.equal("require_finite", options.require_finite);
    known_.emplace_back("precision");
    if (file_.has("precision")) {
      const std::string precision = file_.at("precision").text();
      require<InputError>(precision == "full" || precision == "mixed", file_.at("precision").place(), " is '",
                          precision, "', expected 'full' or 'mixed'");
      options.mixed_precision = precision == "mixed";
      const MixedPrecisionScope refused_in_double(options.mixed_precision);
    }
    call_.equal("precision", options.mixed_precision);
    return options;
  }
  void require_no_others() const { require_known_keys(file_, known_); }

 private:
  const JsonValue& file_;
  CollectiveCall& call_;
  Names known_{"optimizer"};
};

}  // namespace

HostGraphOptions graph_options(const std::string& text) {
  const std::string where = "the options of the graph";
  const JsonValue file = JsonValue::parse(text, where, "options of a graph", where);
  Names known{"add_reverse_edges"};
  HostGraphOptions options;
  if (file.has("add_reverse_edges")) options.add_reverse_edges = file.at("add_reverse_edges").flag();
  for_each_field(options.graph, [&](const char* key, auto& field) {
    known.emplace_back(key);
    if (file.has(key)) read_field(file.at(key), field);
  });
  require_known_keys(file, known);
  return options;
}

std::shared_ptr<OptimizerObject> make_optimizer(const std::string& text, std::shared_ptr<ModelObject> model,
                                                CollectiveCall& call) {
  const std::string where = "the description of the optimizer";
  const JsonValue file = JsonValue::parse(text, where, "the description of an optimizer", where);
  enum class Kind { sgd, adam, adamw };
  const auto kind =
      named<Kind>(file.at("optimizer"), {{"sgd", Kind::sgd}, {"adam", Kind::adam}, {"adamw", Kind::adamw}});
  call.equal("optimizer", file.at("optimizer").text());
  OptimizerKeys keys(file, call);
  SGDOptions sgd;
  AdamOptions adam;
  if (kind == Kind::sgd)
    keys.read({{"lr", &sgd.lr}, {"weight_decay", &sgd.weight_decay}, {"momentum", &sgd.momentum}});
  else
    keys.read({{"lr", &adam.lr},
               {"weight_decay", &adam.weight_decay},
               {"beta1", &adam.beta1},
               {"beta2", &adam.beta2},
               {"eps", &adam.eps}});
  const GradientOptions gradients = keys.gradient_options();
  keys.require_no_others();
  std::unique_ptr<Optimizer> made;
  const std::vector<NamedParameter> parameters = model->network.named_parameters();
  if (kind == Kind::sgd) made = std::make_unique<SGD>(parameters, sgd);
  if (kind == Kind::adam) made = std::make_unique<Adam>(parameters, adam);
  if (kind == Kind::adamw) made = std::make_unique<AdamW>(parameters, adam);
  return std::make_shared<OptimizerObject>(std::move(model), std::move(made), gradients);
}

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
