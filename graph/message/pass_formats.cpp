#include <sar/graph/message/pass_formats.hpp>

namespace sar { inline namespace SAR_PRECISION {

PassFormats::PassFormats(const GraphTopology& graph, const GraphOptions& options, const HaloDraws& draws,
                         Index row_size) {
  switch (options.halo_format) {
    case HaloFormat::exact:
      rows_ = &wire_format<real>();
      gradients_ = rows_;
      return;
    case HaloFormat::bf16:
      rows_ = &bfloat16_format();
      gradients_ = rows_;
      break;
    case HaloFormat::int8:
      int8_rows_ = make_int8_format(
          row_size,
          {.key = Random(draws.rows).key(), .owned_ids = {graph.src_ids().data(), graph.src_ids().size()}});
      int8_gradients_ =
          make_int8_format(row_size, {.key = Random(draws.gradients).key(),
                                      .owned_ids = {},
                                      .first_halo_id = static_cast<Index>(graph.comm.rank()) << 32});
      rows_ = int8_rows_.get();
      gradients_ = int8_gradients_.get();
      break;
  }
}

}}  // namespace sar
