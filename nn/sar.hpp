/// Everything a program needs: #include <sar/sar.hpp>.
#pragma once

#include <sar/autograd/tape.hpp>
#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/comm/environment.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/tensor.hpp>
