// SPDX-License-Identifier: MIT

/* A program of another MPI than the library's, without sar.h: it declares functions as other languages do. The first
 * call refuses, before anything of the other MPI is used. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int sar_init(void);
int sar_comm_world(void** comm);
const char* sar_last_error(void);

/* SAR_ERROR_COMMUNICATION and a text that names both. */
static int is_refused(int status) {
  const char* text = sar_last_error();
  const int both = strstr(text, "MPICH") != NULL && strstr(text, "Open MPI") != NULL;
  if (status == 3 && both && strstr(text, "sar was built with") == text) return 1;
  fprintf(stderr, "FAILED: the status is %d, the text '%s'\n", status, text);
  return 0;
}

int main(int argc, char** argv) {
  void* comm = NULL;
  int refused;
  MPI_Init(&argc, &argv);
  refused = is_refused(sar_init()) && is_refused(sar_comm_world(&comm)) && comm == NULL;
  if (refused) puts(sar_last_error());
  MPI_Finalize();
  return refused ? 0 : 1;
}
