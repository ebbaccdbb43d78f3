// SPDX-License-Identifier: MIT
#include "failures/scene.hpp"

namespace sar::test {

void add_operation(std::vector<Call>& calls, const Communicator& comm, const std::string& name,
                   const MakeOperation& make, const GraphOptions& options) {
  calls.push_back(
      {name, true, [=](bool wrong) -> Attempt {
         auto s = std::make_shared<Scene>(comm, options, wrong);
         const Operation operation = make(*s);
         s->tape = std::make_unique<Tape>();
         const auto run = [s, operation] {
           const MixedPrecisionScope precision(s->mixed);
           s->out = operation();
         };
         Attempt attempt{run, [s] { return numbers(s->out.value()); }};
         if (!wrong) attempt.again = attempt.call;
         return attempt;
       }});
  calls.push_back({"backward of " + name, false, [=](bool) -> Attempt {
                     auto s = std::make_shared<Scene>(comm, options, false);
                     const Operation operation = make(*s);
                     s->tape = std::make_unique<Tape>();
                     {
                       const MixedPrecisionScope precision(s->mixed);
                       s->out = operation();
                     }
                     const auto backward = [s] {
                       const MixedPrecisionScope precision(s->mixed);
                       s->comm.agree([&] { s->tape->backward(s->out, scene_values(s->out.shape(), 3)); });
                     };
                     const auto gradient = [s] { return numbers(s->x.grad()); };
                     return {.call = backward, .result = gradient, .state = gradient};
                   }});
}

}  // namespace sar::test
