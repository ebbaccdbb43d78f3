#include <sar/graph/message/pass_formats.hpp>

namespace sar { inline namespace SAR_PRECISION {

PassFormats::PassFormats(const GraphTopology& graph, const GraphOptions& options, const HaloDraws& draws,
                         Index row_size) {
  if (options.halo_format != HaloFormat::int8) {
    rows_ = options.halo_format == HaloFormat::exact ? &wire_format<real>() : &bfloat16_format();
    gradients_ = rows_;
    return;
  }
  int8_rows_ = make_int8_format(row_size, {.key = Random(draws.rows).key(), .owned_ids = graph.src_ids()});
  int8_gradients_ =
      make_int8_format(row_size, {.key = Random(draws.gradients).key(),
                                  .owned_ids = {},
                                  .first_halo_id = static_cast<Index>(graph.comm.rank()) << 32});
  rows_ = int8_rows_.get();
  gradients_ = int8_gradients_.get();
}

}}  // namespace sar
