#include "failures/scene.hpp"

#include <sar/comm/broadcast_texts.hpp>
#include <sar/comm/distributed.hpp>
#include <sar/comm/trace.hpp>

namespace sar::test {
namespace {

template <class T>
std::vector<double> as_numbers(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<Call> communication_calls(const Communicator& comm, const std::string& directory) {
  std::vector<Call> calls;
  const auto own = static_cast<Index>(comm.rank());
  const auto ranks = static_cast<std::size_t>(comm.size());
  add_maker<Communicator>(
      calls, "comm/communicator.hpp Communicator, comm/communicator.hpp Communicator::world", false,
      [=](bool) { return [] { return Communicator::world(); }; },
      [](const Communicator& made) { return std::vector<double>{static_cast<double>(made.size())}; });
  add_maker<std::vector<Index>>(
      calls, "comm/communicator.hpp Communicator::all_gather", false,
      [=](bool) {
        const std::vector<Index> mine(static_cast<std::size_t>(own + 1), own);
        return [=] { return comm.all_gather(std::span<const Index>(mine)); };
      },
      as_numbers<Index>);
  add_maker<std::vector<Index>>(
      calls, "comm/communicator.hpp Communicator::all_gather", false,
      [=](bool) { return [=] { return comm.all_gather(own); }; }, as_numbers<Index>);
  add_maker<std::string>(
      calls, "comm/communicator.hpp Communicator::broadcast", false,
      [=](bool) {
        const std::string text(100, 'x');
        return [=] { return comm.broadcast(text, 0); };
      },
      [](const std::string& text) { return std::vector<double>{static_cast<double>(text.size())}; });
  add_maker<Communicator::Received<Index>>(
      calls, "comm/communicator.hpp Communicator::all_to_all_v", true,
      [=](bool wrong) {
        const std::vector<Index> values(ranks, own), counts(ranks + (wrong ? 1 : 0), 1);
        return [=] { return comm.all_to_all_v(std::span<const Index>(values), counts); };
      },
      [](const Communicator::Received<Index>& received) { return as_numbers(received.values); });
  add_maker<int>(
      calls,
      "comm/communicator.hpp Communicator::agree, comm/communicator.hpp Communicator::barrier, "
      "comm/communicator.hpp Communicator::all_reduce, comm/communicator.hpp Communicator::all_equal",
      true,
      [=](bool wrong) {
        return [=] {
          return comm.agree([&] {
            const std::vector<int> some(3, 1);
            comm.barrier();
            const std::string text = comm.broadcast(std::string(50, 'y'), 0);
            require<ShapeError>(!wrong, "a wrong number of characters");
            return comm.all_equal(4) ? comm.all_reduce(some[2]) : 0;
          });
        };
      },
      [](int sum) { return std::vector<double>{static_cast<double>(sum)}; });
  add_maker<int>(
      calls, "comm/environment.hpp default_num_threads", false,
      [=](bool) { return [=] { return default_num_threads(comm); }; },
      [](int threads) { return std::vector<double>{static_cast<double>(threads)}; });
  add_maker<std::vector<std::string>>(
      calls, "comm/broadcast_texts.hpp broadcast_texts", false,
      [=](bool) {
        auto texts = std::make_shared<std::vector<std::string>>(2, std::string(40, 'z'));
        return [=] { return broadcast_texts(comm, std::move(*texts)); };
      },
      [](const std::vector<std::string>& texts) {
        return std::vector<double>{static_cast<double>(texts.size())};
      });
  for (const bool gradients : {false, true})
    add_maker<double>(
        calls, gradients ? "comm/distributed.hpp gather_grads" : "comm/distributed.hpp sync_params",
        !gradients,
        [=](bool wrong) {
          auto tensors = std::make_shared<std::vector<Tensor>>();
          tensors->push_back(scene_values({3, 2}, own));
          tensors->push_back(scene_values({4 + (wrong ? 1 : 0)}, own));
          return [=] {
            if (gradients)
              gather_grads(comm, std::span<Tensor>(*tensors));
            else
              sync_params(comm, std::span<Tensor>(*tensors));
            return static_cast<double>(tensors->front().data()[1]);
          };
        },
        [](double value) { return std::vector<double>{value}; });
  calls[calls.size() - 2].compares = true;
  add_maker<bool>(
      calls, "comm/trace.hpp Trace, comm/trace.hpp Trace::write", false,
      [=](bool) {
        auto file = std::make_shared<std::string>(directory + "/trace");
        return [=] {
          Trace trace(comm, std::move(*file));
          trace.write();
          return true;
        };
      },
      [](bool) { return std::vector<double>{}; });
  return calls;
}

}  // namespace sar::test
