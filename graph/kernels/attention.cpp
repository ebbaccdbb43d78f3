#include <sar/graph/kernels/attention_common.hpp>

namespace sar {

std::unique_ptr<ShardKernel> make_attention(AttentionScore score, const AttentionOperands& operands) {
  switch (score) {
    case AttentionScore::additive:
      return attention::make_additive(operands);
    case AttentionScore::additive_v2:
      return attention::make_additive_v2(operands);
    case AttentionScore::dot:
      break;
  }
  return attention::make_dot(operands);
}

}  // namespace sar
