! SPDX-License-Identifier: MIT

! A program of another MPI than the library in Fortran, which has initialized its MPI before the first call of the
! library. That call refuses, and the program goes on.
program other_mpi_test
  use, intrinsic :: iso_c_binding, only: c_int, c_ptr, c_null_ptr, c_associated
  implicit none
  include 'mpif.h'
  interface
    function sar_init() bind(C, name="sar_init") result(status)
      import :: c_int
      integer(c_int) :: status
    end function
    function sar_comm_world(comm) bind(C, name="sar_comm_world") result(status)
      import :: c_int, c_ptr
      type(c_ptr), intent(out) :: comm
      integer(c_int) :: status
    end function
  end interface
  integer, parameter :: error_communication = 3
  type(c_ptr) :: comm
  integer :: ierror, level, sum
  integer(c_int) :: of_init, of_world
  comm = c_null_ptr
  call mpi_init_thread(MPI_THREAD_FUNNELED, level, ierror)
  of_init = sar_init()
  of_world = sar_comm_world(comm)
  call mpi_allreduce(1, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call mpi_finalize(ierror)
  if (of_init /= error_communication .or. of_world /= error_communication .or. sum /= 1) then
    print *, "FAILED: the statuses are ", of_init, of_world
    error stop 1
  end if
end program
