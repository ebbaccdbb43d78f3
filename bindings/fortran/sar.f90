! SPDX-License-Identifier: MIT

!> Training and prediction with graph neural networks under MPI, for Fortran 2008: the C interface sar.h as
!> derived types.
!>
!>     type(sar_comm)      :: comm
!>     type(sar_graph)     :: graph
!>     type(sar_model)     :: model
!>     type(sar_optimizer) :: optimizer
!>     call comm%create(MPI_COMM_WORLD)                        ! of the module mpi_f08: MPI_COMM_WORLD%MPI_VAL
!>     call graph%from_global(comm, node_ids, edge_src, edge_dst)
!>     call model%create(comm, '{"sar_model": 1, "type": "sage", ...}', seed=1)
!>     call optimizer%create(model, '{"optimizer": "adam", "lr": 0.01}')
!>     call model%train_step(optimizer, graph, state, next, loss)
!>
!> The types and their procedures are generated from sar.h, which says what they take and do; docs/fortran.md
!> lists them with these texts. By hand are conversions between C and Fortran.
!>
!> Arrays of nodes are (field, node), arrays of edges (field, edge): the library's own order in memory. A
!> contiguous array of the library's precision (sar_real_kind()) is used as it lies; a section that is not
!> contiguous is copied by the compiler; an array of the other precision is converted with one pass. With
!> rows_first=.true. all arrays of a call are (node, field) and (edge, field), which are converted, too. All
!> arrays of a call have the same kind, real32 or real64, and so have all lists of ids, int32 or int64.
!>
!> Errors: every procedure ends with the optional arguments stat and errmsg. stat becomes 0 (sar_ok) or one of
!> sar_error_...; errmsg becomes the text of an error, and is as it was where there is none. Without stat an
!> error is written to the standard error unit and ends the program by `error stop`. After an error, a function
!> returns -1, 0.0 or ''.
!>
!> "Collective": all ranks of the communicator call the procedure, in the same order. An error of one rank is
!> then the same status on all ranks. A procedure that creates an object first frees what the object held
!> before. No object is freed by itself: call free, before MPI_Finalize. A copy of an object is another name of
!> the same one.
!>
!> Numbers of nodes, parameters and classes count from 1; in texts of errors they count from 0.
!>
!> Room bindings/fortran: The module for Fortran over sar.h.
module sar
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, int64, real32, real64
  implicit none
  private

  public :: sar_real_kind

  include 'sar_interface.inc'

  interface
    pure integer(c_size_t) function c_strlen(text) bind(C, name="strlen")
      import
      type(c_ptr), value, intent(in) :: text
    end function
  end interface

contains

  include 'sar_procedures.inc'

  !> Returns the kind that the library computes in, real32 or real64.
  function sar_real_kind() result(kind_of_real)
    integer :: kind_of_real
    kind_of_real = merge(real64, real32, sar_precision() == sar_float64)
  end function

  ! ---- Errors ----

  ! Gives status and text to the caller, or ends the program.
  subroutine tell(status, stat, errmsg)
    integer(c_int), intent(in) :: status
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    if (present(stat)) stat = status
    if (status == sar_ok) return
    if (present(errmsg)) errmsg = sar_last_error()
    if (present(stat)) return
    write (error_unit, '(2a)') 'sar: ', sar_last_error()
    flush (error_unit)
    error stop 1
  end subroutine

  ! Lets the call that gets two lists of different lengths fail on all ranks.
  subroutine require_length(name, length, first_name, expected)
    character(len=*), intent(in) :: name, first_name
    integer, intent(in) :: length, expected
    character(len=200) :: line
    integer(c_int) :: ignored
    if (length == expected) return
    write (line, '(2a, i0, a, i0, 2a)') name, ' has ', length, ' numbers, expected ', expected, ', as many as ', &
      first_name
    ignored = c_refuse_next(c_text(line))
  end subroutine

  ! The same for the shape of a matrix.
  subroutine require_shape(name, found, expected)
    character(len=*), intent(in) :: name
    integer, intent(in) :: found(2), expected(2)
    character(len=200) :: line
    integer(c_int) :: ignored
    if (all(found == expected)) return
    write (line, '(2a, 4(i0, a))') name, ' is (', found(1), ', ', found(2), '), expected (', expected(1), ', ', &
      expected(2), ')'
    ignored = c_refuse_next(c_text(line))
  end subroutine

  ! ---- Texts ----

  function text_of(pointer) result(text)
    type(c_ptr), intent(in) :: pointer
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    if (.not. c_associated(pointer)) then
      text = ''
      return
    end if
    call c_f_pointer(pointer, letters, [c_strlen(pointer)])
    allocate (character(len=size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function

  pure function c_text(text) result(terminated)
    character(len=*), intent(in) :: text
    character(kind=c_char, len=:), allocatable :: terminated
    terminated = trim(text)//c_null_char
  end function

  ! ---- What an optional argument is in C: not allocated where it is not there ----

  subroutine convert_text(text, letters)
    character(len=*), intent(in), optional :: text
    character(kind=c_char), allocatable, intent(out) :: letters(:)
    integer :: i
    if (.not. present(text)) return
    allocate (letters(len_trim(text) + 1))
    do i = 1, len_trim(text)
      letters(i) = text(i:i)
    end do
    letters(size(letters)) = c_null_char
  end subroutine

  subroutine convert_logical(values, bytes)
    logical, intent(in), optional :: values(:)
    integer(c_int8_t), allocatable, intent(out) :: bytes(:)
    if (.not. present(values)) return
    allocate (bytes(size(values)))
    bytes(:) = merge(1_c_int8_t, 0_c_int8_t, values)
  end subroutine

  subroutine convert_int32(values, longer)
    integer(int32), intent(in), optional :: values(:)
    integer(c_int64_t), allocatable, intent(out) :: longer(:)
    if (.not. present(values)) return
    allocate (longer(size(values)))
    longer(:) = values
  end subroutine

  ! ---- Arrays ----

  function array_real32(x, rows_first) result(array)
    real(real32), contiguous, target, intent(in) :: x(:, :)
    logical, intent(in), optional :: rows_first
    type(sar_array) :: array
    array = described(shape(x), sar_float32, rows_first)
    if (size(x, kind=c_int64_t) > 0) array%data = c_loc(x)
  end function

  function array_real64(x, rows_first) result(array)
    real(real64), contiguous, target, intent(in) :: x(:, :)
    logical, intent(in), optional :: rows_first
    type(sar_array) :: array
    array = described(shape(x), sar_float64, rows_first)
    if (size(x, kind=c_int64_t) > 0) array%data = c_loc(x)
  end function

  ! A number for each row.
  function column(values) result(array)
    real(real64), contiguous, target, intent(in) :: values(:)
    type(sar_array) :: array
    array = described([1, size(values)], sar_float64)
    if (size(values, kind=c_int64_t) > 0) array%data = c_loc(values)
  end function

  ! An array of this shape without data.
  function described(extents, precision, rows_first) result(array)
    integer, intent(in) :: extents(2), precision
    logical, intent(in), optional :: rows_first
    type(sar_array) :: array
    array = sar_array(c_null_ptr, precision, sar_node_field, extents(2), extents(1), 0)
    if (.not. present(rows_first)) return
    if (rows_first) array = sar_array(c_null_ptr, precision, sar_field_node, extents(1), extents(2), 0)
  end function

  ! ---- Addresses: null only where there is no argument, also if a list has no values ----

  function address_array(array) result(pointer)
    type(sar_array), target, intent(in), optional :: array
    type(c_ptr) :: pointer
    pointer = c_null_ptr
    if (present(array)) pointer = c_loc(array)
  end function

  function address_text(letters) result(pointer)
    character(kind=c_char), contiguous, target, intent(in), optional :: letters(:)
    type(c_ptr) :: pointer
    pointer = c_null_ptr
    if (present(letters)) pointer = c_loc(letters)
  end function

  function address_int8(values) result(pointer)
    integer(c_int8_t), contiguous, target, intent(in), optional :: values(:)
    type(c_ptr) :: pointer
    integer(c_int8_t), save, target :: empty = 0
    pointer = c_null_ptr
    if (.not. present(values)) return
    pointer = c_loc(empty)
    if (size(values, kind=c_int64_t) > 0) pointer = c_loc(values)
  end function

  function address_int64(values) result(pointer)
    integer(c_int64_t), contiguous, target, intent(in), optional :: values(:)
    type(c_ptr) :: pointer
    integer(c_int64_t), save, target :: empty = 0
    pointer = c_null_ptr
    if (.not. present(values)) return
    pointer = c_loc(empty)
    if (size(values, kind=c_int64_t) > 0) pointer = c_loc(values)
  end function

  function address_real64(values) result(pointer)
    real(c_double), contiguous, target, intent(in), optional :: values(:)
    type(c_ptr) :: pointer
    real(c_double), save, target :: empty = 0
    pointer = c_null_ptr
    if (.not. present(values)) return
    pointer = c_loc(empty)
    if (size(values, kind=c_int64_t) > 0) pointer = c_loc(values)
  end function

  function address_real64_matrix(values) result(pointer)
    real(c_double), contiguous, target, intent(in), optional :: values(:, :)
    type(c_ptr) :: pointer
    real(c_double), save, target :: empty = 0
    pointer = c_null_ptr
    if (.not. present(values)) return
    pointer = c_loc(empty)
    if (size(values, kind=c_int64_t) > 0) pointer = c_loc(values)
  end function
end module
