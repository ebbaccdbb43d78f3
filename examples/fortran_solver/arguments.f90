! SPDX-License-Identifier: MIT

!> What the programs are called with.
module arguments
  implicit none
  private
  public :: argument, number

contains

  !> The text at a position of the command line; the program ends where there is none.
  function argument(position) result(text)
    integer, intent(in) :: position
    character(len=:), allocatable :: text
    integer :: length
    call get_command_argument(position, length=length)
    if (length == 0) error stop 'expected the name of the model''s file'
    allocate (character(len=length) :: text)
    call get_command_argument(position, text)
  end function

  !> The number at a position of the command line, `usual` where there is none.
  integer function number(position, usual)
    integer, intent(in) :: position, usual
    character(len=:), allocatable :: text
    number = usual
    if (command_argument_count() < position) return
    text = argument(position)
    read (text, *) number
  end function
end module
