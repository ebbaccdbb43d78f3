// SPDX-License-Identifier: MIT

// Every call by which comm/ or PT-Scotch makes or frees a handle; tests/consumer/symbols_test.sh fails when
// it learns another.
#include "support/mpi_handles.hpp"

#include <mpi.h>

#include <algorithm>

namespace {

sar::test::MpiHandles now_open;
int synchronizations = 0;

int count(const MPI_Comm& comm) {
  return comm == MPI_COMM_NULL ? 0 : 1;
}
int count(const MPI_Request* requests, int n) {
  return static_cast<int>(
      std::count_if(requests, requests + n, [](MPI_Request r) { return r != MPI_REQUEST_NULL; }));
}

/// A call that frees the handles which it sets to MPI_REQUEST_NULL.
template <class F>
int completing(MPI_Request* requests, int n, const F& call) {
  const int before = count(requests, n);
  const int code = call();
  now_open.requests += count(requests, n) - before;
  return code;
}

/// A call that makes a request or a communicator.
int started(int code) {
  if (code == MPI_SUCCESS) ++now_open.requests;
  return code;
}
int made(int code, const MPI_Comm* comm) {
  if (code == MPI_SUCCESS) now_open.communicators += count(*comm);
  return code;
}

}  // namespace

namespace sar::test {

MpiHandles open_mpi_handles() noexcept {
  return now_open;
}

int num_synchronizations() noexcept {
  return synchronizations;
}

std::string describe(const MpiHandles& handles) {
  return std::to_string(handles.communicators) + " communicators, " + std::to_string(handles.requests) +
         " requests, " + std::to_string(handles.windows) + " windows, " + std::to_string(handles.types) +
         " types, " + std::to_string(handles.error_handlers) + " error handlers";
}

}  // namespace sar::test

extern "C" {

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
  return made(PMPI_Comm_dup(comm, copy), copy);
}
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* part) {
  return made(PMPI_Comm_split(comm, color, key, part), part);
}
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* part) {
  return made(PMPI_Comm_split_type(comm, type, key, info, part), part);
}
int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* part) {
  return made(PMPI_Comm_create(comm, group, part), part);
}
int MPI_Comm_free(MPI_Comm* comm) {
  now_open.communicators -= count(*comm);
  return PMPI_Comm_free(comm);
}

int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* handler) {
  const int code = PMPI_Comm_get_errhandler(comm, handler);
  if (code == MPI_SUCCESS) ++now_open.error_handlers;
  return code;
}
int MPI_Errhandler_free(MPI_Errhandler* handler) {
  --now_open.error_handlers;
  return PMPI_Errhandler_free(handler);
}

int MPI_Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* window) {
  const int code = PMPI_Win_create(base, size, unit, info, comm, window);
  if (code == MPI_SUCCESS) ++now_open.windows;
  return code;
}
int MPI_Win_free(MPI_Win* window) {
  --now_open.windows;
  return PMPI_Win_free(window);
}
int MPI_Type_create_hindexed(int n, const int* lengths, const MPI_Aint* begins, MPI_Datatype old,
                             MPI_Datatype* type) {
  const int code = PMPI_Type_create_hindexed(n, lengths, begins, old, type);
  if (code == MPI_SUCCESS) ++now_open.types;
  return code;
}
int MPI_Type_contiguous(int n, MPI_Datatype old, MPI_Datatype* type) {
  const int code = PMPI_Type_contiguous(n, old, type);
  if (code == MPI_SUCCESS) ++now_open.types;
  return code;
}
int MPI_Type_create_struct(int n, const int* lengths, const MPI_Aint* begins, const MPI_Datatype* old,
                           MPI_Datatype* type) {
  const int code = PMPI_Type_create_struct(n, lengths, begins, old, type);
  if (code == MPI_SUCCESS) ++now_open.types;
  return code;
}
int MPI_Type_free(MPI_Datatype* type) {
  --now_open.types;
  return PMPI_Type_free(type);
}

int MPI_Isend(const void* data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return started(PMPI_Isend(data, n, type, to, tag, comm, request));
}
int MPI_Issend(const void* data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  return started(PMPI_Issend(data, n, type, to, tag, comm, request));
}
int MPI_Imrecv(void* data, int n, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {
  return started(PMPI_Imrecv(data, n, type, message, request));
}
int MPI_Irecv(void* data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  return started(PMPI_Irecv(data, n, type, from, tag, comm, request));
}
int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return started(PMPI_Ibarrier(comm, request));
}
int MPI_Iallreduce(const void* in, void* out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  ++synchronizations;
  return started(PMPI_Iallreduce(in, out, n, type, op, comm, request));
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  return completing(request, 1, [&] { return PMPI_Wait(request, status); });
}
int MPI_Waitany(int n, MPI_Request* requests, int* index, MPI_Status* status) {
  return completing(requests, n, [&] { return PMPI_Waitany(n, requests, index, status); });
}
int MPI_Waitsome(int n, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  return completing(requests, n, [&] { return PMPI_Waitsome(n, requests, completed, indices, statuses); });
}
int MPI_Waitall(int n, MPI_Request* requests, MPI_Status* statuses) {
  return completing(requests, n, [&] { return PMPI_Waitall(n, requests, statuses); });
}
int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return completing(request, 1, [&] { return PMPI_Test(request, flag, status); });
}
int MPI_Testany(int n, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  return completing(requests, n, [&] { return PMPI_Testany(n, requests, index, flag, status); });
}
int MPI_Testsome(int n, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  return completing(requests, n, [&] { return PMPI_Testsome(n, requests, completed, indices, statuses); });
}
int MPI_Testall(int n, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  return completing(requests, n, [&] { return PMPI_Testall(n, requests, flag, statuses); });
}
int MPI_Request_free(MPI_Request* request) {
  return completing(request, 1, [&] { return PMPI_Request_free(request); });
}

}  // extern "C"
