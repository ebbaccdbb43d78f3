/// Eigen's arrays and special functions for a region of core/isa_begin.hpp: compiled for its instruction set,
/// in a namespace of its own. For implementation files, before their region.
#pragma once

// what Eigen includes, so that it stays for any processor
#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <climits>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iosfwd>
#include <limits>
#include <new>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <sar/core/isa_dispatch.hpp>

#if SAR_ISA_LEVEL >= 3
#undef Eigen
#define Eigen sar::eigen::SAR_ISA
#endif
#include <sar/core/isa_push.hpp>

#include <Eigen/Core>
#include <unsupported/Eigen/SpecialFunctions>

#include <sar/core/isa_pop.hpp>
