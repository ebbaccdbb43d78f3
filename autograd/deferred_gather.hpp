/// Rows of a table by their numbers, without a copy of them.
#pragma once

#include <sar/autograd/row_ids.hpp>
#include <sar/autograd/variable.hpp>

namespace sar::inline SAR_PRECISION {

/// y[i] = x[ids[i]], read in x where y is needed: a product gathers the rows that it multiplies next, in the
/// cache; on one rank, sums and means of copy_u and of u times a number of the edge read them in x. Any other
/// operation makes the copy that gather_rows makes, once. So are the features of a mini-batch read. x and the
/// ids must stay as they are until the backward pass is over. Throws ShapeError naming a row number out of
/// range. Local.
Variable deferred_gather_rows(Tensor x, RowIds ids);

}  // namespace sar
