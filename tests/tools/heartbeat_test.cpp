// SPDX-License-Identifier: MIT
#include <heartbeat.hpp>

#include <doctest/doctest.h>

#include <sstream>

using sar::tools::Heartbeat;
using namespace std::chrono_literals;

namespace {

/// What is printed goes to a string that can be read while the thread writes.
class SharedText : public std::stringbuf {
 public:
  std::string text() {
    const std::scoped_lock lock(mutex_);
    return str();
  }

 protected:
  std::streamsize xsputn(const char* from, std::streamsize count) override {
    const std::scoped_lock lock(mutex_);
    return std::stringbuf::xsputn(from, count);
  }

 private:
  std::mutex mutex_;
};

}  // namespace

TEST_CASE("what takes long is told again and again, what does not is not") {
  SharedText text;
  std::ostream out(&text);
  {
    Heartbeat heartbeat(&out, 20ms);
    heartbeat.phase("reading");
    while (text.text().find("reading", text.text().find("reading") + 1) == std::string::npos)
      std::this_thread::sleep_for(1ms);
    heartbeat.phase("thinking");
    while (text.text().find("thinking") == std::string::npos) std::this_thread::sleep_for(1ms);
  }
  CHECK(text.text().starts_with("  reading, 0 s so far\n  reading, 0 s so far\n"));
  CHECK(text.text().find("  thinking, 0 s so far\n") != std::string::npos);
  SharedText silence;
  std::ostream unused(&silence);
  {
    Heartbeat heartbeat(&unused, 1h);
    heartbeat.phase("reading");
    Heartbeat nothing(nullptr, 1ms);
    nothing.phase("reading");
  }
  CHECK(silence.text().empty());
}
