#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""Usage: bindings/fortran/generate.py [--header FILE] [--to FOLDER]

Writes sar_interface.inc and sar_procedures.inc, which sar.f90 includes, and docs/fortran.md, from bindings/c/sar.h. With --to, all three
go to FOLDER. The test fortran_generated compares the files of the tree with a fresh run. What sar.h declares and no rule below
understands is refused, with its line.

What becomes of a function of sar.h:
- sar_X is a type of Fortran if it is a handle. A function belongs to the type of the handle that it creates, otherwise to that of its first
  handle; its name loses the prefixes sar_ and X_, for any handle X that it takes. Without handles it is a procedure of the module.
- A function with the suffix _f stands for the one without it. A function that creates a handle frees the one that the object had.
- Arguments in Fortran: inputs that must be given, outputs, other inputs, rows_first if there is an array [rows, fields], stat, errmsg. A
  function with one output, and otherwise only numbers and texts, is a function in Fortran.

What becomes of an argument:
- a length of a list            left out: the size of the list. Several lists of one length are compared
- const char*, const char**     character(len=*), allocatable character
- int32_t, int64_t, double      integer, integer (int64 as an output), real64; "from 0": from 1; "0 or 1": optional logical
- uint64_t, list of int64_t     int32 or int64, the same for all of a call; "from 0": integer, from 1
- list of uint8_t               logical
- sar_array [rows, fields]      (fields, rows), real32 or real64, the same for all of a call; [rows, 1]: real64 (rows)
- "may be NULL", "usually X"    optional. If every array may be null, the first output is not: its kind chooses the procedure
"""
import argparse
import itertools
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
C_ONLY = {"sar_array_float", "sar_array_double"}  # Fortran knows the shapes of its arrays
NUMBERS = {"int32_t": "integer(c_int32_t)", "int64_t": "integer(c_int64_t)", "uint64_t": "integer(c_int64_t)", "double": "real(c_double)"}
HEAD = ["! SPDX-License-" + "Identifier: MIT", "! bindings/fortran/generate.py writes this file from bindings/c/sar.h. Do not edit it."]


class Refused(Exception):
    pass


# ---- Reading sar.h ----

class Argument:
    """An argument of a function, and what its @param line says."""

    def __init__(self, declaration):
        parts = re.fullmatch(r"(const )?(\w+)\s*(\*{0,2})\s*(\w+)", declaration)
        if not parts:
            raise Refused(f"the argument '{declaration}' cannot be read")
        self.const, self.type, self.stars, self.name = bool(parts[1]), parts[2], len(parts[3]), parts[4]
        self.shape, self.text, self.usual, self.like = None, "", None, None
        self.nullable = self.from_zero = self.flag = self.freed = self.described = False
        self.length_of = []  # the lists that have this number of values
        self.is_output = self.stars > 0 and (not self.const or self.stars == 2)

    def describe(self, direction, text, functions):
        if self.described:
            raise Refused(f"'{self.name}' has two @param lines")
        if direction != ("out" if self.is_output else "in"):
            raise Refused(f"@param[{direction}] {self.name}: its type is that of an {'output' if self.is_output else 'input'}")
        self.described = True
        like = re.fullmatch(r"as in (\w+)\(\)", text)
        if like:
            found = [a for f in functions if f.name == like[1] for a in f.arguments if a.name == self.name]
            if not found:
                raise Refused(f"@param {self.name}: {like[1]}() has no such argument before this function")
            for fact in ("shape", "nullable", "from_zero", "flag", "usual", "freed"):
                setattr(self, fact, getattr(found[0], fact))
            self.like = like[1]
            return
        head, _, rest = text.partition(": ")
        facts = re.split(r", (?![^\[]*\])", head)
        understood = [self.take(fact) for fact in facts]
        if all(understood):
            self.text = rest
        elif any(understood) or re.search(r"NULL|null|\[|^from |^0 or", head):
            raise Refused(f"@param {self.name}: '{facts[understood.index(False)]}' is none of [shape], may be NULL, from 0, 0 or 1, usually X, "
                          "freed, as in sar_x()")
        else:
            self.text = text

    def take(self, fact):
        if re.fullmatch(r"\[[^\[\]]+\]", fact):
            self.shape = fact[1:-1].split(", ")
        elif fact in ("may be NULL", "may be NULL on all ranks"):
            self.nullable = True
        elif fact == "from 0":
            self.from_zero = True
        elif fact == "0 or 1":
            self.flag = True
        elif fact == "freed":
            self.freed = True
        elif re.fullmatch(r"usually \w+", fact):
            self.usual = fact.split()[1]
        else:
            return False
        return True

    def classify(self, function, handles):
        """Sets `kind`: the rule for the argument."""
        spoken = ("const " if self.const else "") + self.type + "*" * self.stars
        problem = f"there is no rule for the argument '{self.name}' of the type {spoken}"
        if self.type in handles and self.stars < 2:
            self.kind = "created" if self.stars else "handle"
        elif self.type == "char" and self.const and self.stars:
            self.kind = "text" if self.stars == 1 else "text output"
        elif self.type == "sar_array" and self.stars == 1:
            if not self.shape or len(self.shape) != 2:
                raise Refused(f"{problem}: say its shape, as in '@param[{'out' if self.is_output else 'in'}] {self.name}  [rows, fields]'")
            self.kind = "column" if self.shape[1] == "1" and not self.is_output and self.nullable else "array"
        elif self.stars == 1 and (self.const or self.shape):
            self.classify_list(function, problem)
        elif self.type in NUMBERS and self.stars == 1 and self.type != "uint64_t":
            self.kind = "output"
        elif self.type in NUMBERS and self.stars == 0:
            self.kind = "flag" if self.flag else "length" if self.length_of else "seed" if self.type == "uint64_t" else "number"
        else:
            raise Refused(problem)
        allowed = {"shape": ("[shape]", "list", "array", "column"), "from_zero": ("from 0", "list", "number", "output"),
                   "nullable": ("may be NULL", "text", "text output", "list", "array", "column", "output"),
                   "flag": ("0 or 1", "flag"), "usual": ("usually", "number"), "freed": ("freed", "handle")}
        for fact, (words, *kinds) in allowed.items():
            if getattr(self, fact) and self.kind not in kinds:
                raise Refused(f"@param {self.name}: '{words}' does not fit the type {spoken}")
        if self.from_zero and self.type == "double":
            raise Refused(f"@param {self.name}: 'from 0' does not fit the type {spoken}")

    def classify_list(self, function, problem):
        if not self.shape:
            raise Refused(f"{problem}: say its length, as in '@param[in] {self.name}  [num_{self.name}]'")
        if not all(n.isdigit() for n in self.shape):
            length = next((a for a in function.arguments if [a.name] == self.shape and a.type == "int64_t" and not a.stars), None)
            if not length:
                raise Refused(f"@param {self.name}: [{', '.join(self.shape)}] names no argument of the type int64_t")
            length.length_of.append(self)
        rules = {("int64_t", False): True, ("int32_t", False): self.from_zero and not self.nullable, ("uint8_t", False): self.nullable,
                 ("double", True): True, ("int64_t", True): not self.nullable}
        if not rules.get((self.type, self.is_output)) or (self.from_zero and (self.nullable or self.is_output)):
            raise Refused(problem)
        self.kind = "list"

    @property
    def optional(self):
        return bool(self.nullable or self.flag or self.usual)


class Function:
    def __init__(self, line, returns, name, arguments, comment):
        self.line, self.returns, self.name, self.comment = line, returns, name, comment
        self.arguments = [] if arguments == "void" else [Argument(" ".join(a.split())) for a in arguments.split(",")]

    def finish(self, handles, names):
        for argument in self.arguments:  # lists first: they say which numbers are lengths
            if argument.stars:
                argument.classify(self, handles)
        for argument in self.arguments:
            if not argument.stars:
                argument.classify(self, handles)
        if self.returns not in ("int", "const char*", "int32_t") or (self.returns != "int" and self.arguments):
            raise Refused(f"there is no rule for a function that returns {self.returns}")
        created = [a for a in self.arguments if a.kind == "created"]
        own = created or [a for a in self.arguments if a.kind == "handle"]
        self.self = own[0] if own else None
        self.type = own[0].type if own else None
        self.frees = self.name.endswith("_free") or any(a.freed for a in self.arguments)
        self.short = self.name[4:]
        if self.short.endswith("_f") and self.name[:-2] in names:
            self.short = self.short[:-2]
        self.method = self.short
        if self.type:
            for prefix in sorted({a.type[4:] + "_" for a in self.arguments if a.type in handles}):
                self.method = self.method.removeprefix(prefix)
        arrays = [a for a in self.arguments if a.kind == "array"]
        if arrays and all(a.optional for a in arrays):
            outputs = [a for a in arrays if a.is_output]
            if not outputs:
                raise Refused("all of its arrays may be null, so that no argument says their kind in Fortran")
            outputs[0].nullable = False

    def spoken(self):
        """The name in Fortran, as documents write it."""
        return f"{self.type[4:]}%{self.method}" if self.type else self.name

    def dummies(self):
        given = [a for a in self.arguments if a is not self.self and a.kind != "length"]
        inputs = [a for a in given if not a.is_output]
        outputs = [a for a in given if a.is_output]
        return ([a for a in inputs if not a.optional] + [a for a in outputs if not a.optional] + [a for a in outputs if a.optional] +
                [a for a in inputs if a.optional])

    def result(self):
        """The output that is the value of a function, if there is one."""
        outputs = [a for a in self.dummies() if a.is_output]
        if len(outputs) != 1 or outputs[0].kind not in ("output", "text output") or outputs[0].optional:
            return None
        return outputs[0] if all(a.kind in ("number", "text") for a in self.dummies() if not a.is_output) else None

    def kinds(self):
        """The kinds of integers and of reals that procedures are for; None: not generic in them."""
        seeds = any(a.kind == "seed" or (a.kind == "list" and a.type == "int64_t" and not a.from_zero and not a.optional and not a.is_output)
                    for a in self.arguments)
        arrays = any(a.kind == "array" for a in self.arguments)
        return itertools.product(("int64", "int32") if seeds else (None,), ("real64", "real32") if arrays else (None,))

    def procedure_names(self):
        return ["_".join(n for n in (self.short, *kinds) if n) for kinds in self.kinds()] if self.type else [self.name]


class Header:
    """What sar.h declares, in its order: constants, handles with comments, the fields of sar_array, functions."""

    def __init__(self, path):
        self.constants, self.handles, self.fields, self.functions = [], {}, [], []
        text = path.read_text()
        start = text.index('extern "C" {')
        start = text.index("#endif", start) + len("#endif")
        end = text.index("#ifdef __cplusplus", start)
        comment, group = "", []
        while start < end:
            line = text.count("\n", 0, start) + 1
            blanks = re.compile(r"\s*").match(text, start)
            if blanks.end() > start:
                if blanks[0].count("\n") > 1:
                    self.check_group(group, comment)
                    comment, group = "", []
                start = blanks.end()
                continue
            piece = re.compile(r"/\*(?P<comment>.*?)\*/|enum \{(?P<enum>.*?)\};|typedef struct \w+\* (?P<handle>\w+);|"
                               r"typedef struct sar_array \{(?P<fields>.*?)\} sar_array;|SAR_API (?P<function>.*?);", re.S).match(text, start)
            try:
                self.read(piece, line, comment, group)
            except Refused as problem:
                raise Refused(f"{path.name}:{line}: {problem}") from None
            if not piece:
                raise Refused(f"{path.name}:{line}: this cannot be read: {text[start:text.index(chr(10), start)]}")
            if piece["comment"] is not None:
                comment, group = "\n".join(re.sub(r"^ \* ?", "", row).rstrip() for row in piece["comment"].split("\n")).strip(), []
            start = piece.end()
        names = {f.name for f in self.functions}
        replaced = {n[:-2] for n in names if n.endswith("_f")}
        self.functions = [f for f in self.functions if f.name not in C_ONLY | replaced]
        self.replaced = replaced
        for function in self.functions:
            try:
                function.finish(self.handles, names)
            except Refused as problem:
                raise Refused(f"{path.name}:{function.line}: {function.name}: {problem}") from None

    def read(self, piece, line, comment, group):
        if not piece or piece["comment"] is not None:
            return
        if piece["enum"]:
            entries = re.findall(r"(\w+)\s*=\s*(\d+),?\s*(?:/\*\s*(.*?)\s*\*/)?", piece["enum"], re.S)
            if len(entries) != re.sub(r"/\*.*?\*/", "", piece["enum"], flags=re.S).count("="):
                raise Refused("an enumerator of this enum cannot be read, expected NAME = NUMBER")
            self.constants.append((comment, [(name, value, " ".join(text.split())) for name, value, text in entries]))
        elif piece["handle"]:
            if not comment:
                raise Refused(f"the handle {piece['handle']} has no comment")
            self.handles[piece["handle"]] = comment
        elif piece["fields"]:
            for declaration in re.sub(r"/\*.*?\*/", "", piece["fields"], flags=re.S).split(";")[:-1]:
                field = re.fullmatch(r"\s*(void\*|int32_t|int64_t) (\w+)(?:\[(\d+)\])?", declaration)
                if not field:
                    raise Refused(f"there is no rule for the field '{declaration.strip()}' of sar_array")
                self.fields.append(field.groups())
        elif piece["function"]:
            parts = re.fullmatch(r"((?:const )?\w+\*?) (\w+)\((.*)\)", piece["function"], re.S)
            if not parts:
                raise Refused(f"the function cannot be read: {' '.join(piece['function'].split())}")
            if parts[2] in C_ONLY:
                return
            try:
                function = Function(line, parts[1], parts[2], parts[3], comment)
                for direction, names, text in params(comment):
                    for argument in function.arguments:
                        if argument.name in names:
                            argument.describe(direction, text, self.functions)
            except Refused as problem:
                raise Refused(f"{parts[2]}: {problem}") from None
            self.functions.append(function)
            group.append(function)

    def check_group(self, group, comment):
        """Every @param line is of an argument of a function below it."""
        for _, names, _ in params(comment) if group else ():
            for name in names:
                if not any(a.name == name for f in group for a in f.arguments):
                    raise Refused(f"sar.h:{group[0].line}: {group[0].name}: @param {name}: there is no such argument")


def params(comment):
    """The @param lines of a comment: direction, names, text."""
    found = []
    for block in re.split(r"^(?=@param)", comment, flags=re.M)[1:]:
        parts = re.fullmatch(r"@param\[(in|out)\] (\w+(?:, \w+)*)  (\S.*)", block.strip(), re.S)
        if not parts:
            raise Refused(f"expected '@param[in] NAME, NAME  TEXT' with two blanks, found: {block.splitlines()[0]}")
        found.append((parts[1], parts[2].split(", "), " ".join(parts[3].split())))
    return found


# ---- Writing Fortran ----

def wrapped(line, width=116):
    """A statement, continued where it is long."""
    rows, indent = [], re.match(r" *", line)[0]
    while len(line) > width:
        cut = line.rfind(", ", len(indent) + 2, width - 1)
        rows.append(line[:cut + 1] + " &")
        line = indent + "  " + line[cut + 2:]
    return rows + [line]


def comment_lines(text, mark, indent=""):
    return textwrap.wrap(text, 112, initial_indent=f"{indent}{mark} ", subsequent_indent=f"{indent}{mark} ")


def summary(header, comment):
    """The first sentence of a comment, with "Collective." if it says so."""
    text = " ".join(re.split(r"\n\n|@param", comment)[0].split())
    first = re.split(r"(?<=\.)\s", text)[0]
    collective = " Collective." if re.search(r"\bCollective\.", comment) and "Collective." not in first else ""
    return in_fortran(header, first) + collective


def in_fortran(header, text):
    """Names and shapes of C as Fortran has them; lines of code in C are left out."""
    names = {f.name: f.spoken() for f in header.functions}
    names.update({n: names[n + "_f"] for n in header.replaced})
    text = re.sub(r"\b(sar_\w+)\(\)", lambda m: names.get(m[1], m[1]), text)
    text = re.sub(r"\n+(    .*;\n)+", "\n", text)
    text = re.sub(r"\[(\w[^\[\],]*), ([^\[\],]*)\]", r"(\2, \1)", text)
    text = re.sub(r"\b([a-z]\w*)\[(\w+)\]", r"\1(\2)", text)
    return re.sub(r"\bSAR_\w+", lambda m: m[0].lower(), text)


def interface_of(function):
    """The function of C, as Fortran declares it."""
    names = ", ".join(a.name for a in function.arguments)
    result = {"int": "integer(c_int)", "int32_t": "integer(c_int32_t)", "const char*": "type(c_ptr)"}[function.returns]
    rows = wrapped(f"    {result} function c_{function.name[4:]}({names}) bind(C, name=\"{function.name}\")")
    rows.append("      import")
    for a in function.arguments:
        number = NUMBERS.get(a.type)
        if a.kind in ("handle",) or (a.kind in ("text", "list", "array", "column") and a.nullable):
            declared = "type(c_ptr), value"
        elif a.kind in ("created", "text output"):
            declared = "type(c_ptr), intent(inout)"
        elif a.kind == "array":
            declared = "type(sar_array), intent(in)"
        elif a.kind == "output":
            declared = f"{number}, intent(inout)"
        elif a.kind in ("length", "number", "flag", "seed"):
            declared = f"{number}, value"
        elif a.kind == "text":
            declared = "character(kind=c_char), intent(in)"
        else:
            declared = f"{number}, intent({'inout' if a.is_output else 'in'})"
        rows.append(f"      {declared} :: {a.name}{'(*)' if a.kind in ('text', 'list') and not a.nullable else ''}")
    return rows + ["    end function"]


class Procedure:
    """A procedure of Fortran for one function and one kind of integers and of reals."""

    def __init__(self, function, integers, reals):
        self.function, self.integers, self.reals = function, integers, reals
        self.local, self.before, self.after, self.actual = [], [], [], {}
        self.declared = {}
        for argument in function.arguments:
            if argument is not function.self:
                getattr(self, "pass_" + argument.kind.replace(" ", "_"))(argument)

    def declare(self, a, type_, shape="", memory=""):
        """memory: what is said of an array that C reads or writes where it lies."""
        attributes = [type_] + [memory] * bool(memory) + [f"intent({'inout' if a.is_output else 'in'})"] + ["optional"] * a.optional
        self.declared[a.name] = f"{', '.join(attributes)} :: {a.name}{shape}"

    def pass_handle(self, a):
        self.declare(a, f"type({a.type})")
        self.actual[a.name] = f"{a.name}%handle"

    def pass_text(self, a):
        self.declare(a, "character(len=*)")
        if a.nullable:
            self.local.append(f"character(kind=c_char), allocatable, target :: c_{a.name}(:)")
            self.before.append(f"call convert_text({a.name}, c_{a.name})")
            self.actual[a.name] = f"address_text(c_{a.name})"
        else:
            self.actual[a.name] = f"c_text({a.name})"

    def pass_text_output(self, a):
        self.declare(a, "character(len=:), allocatable")
        self.output(a, "type(c_ptr)", "c_null_ptr", f"text_of(c_{a.name})")

    def pass_output(self, a):
        type_ = {"int32_t": "integer", "int64_t": "integer(int64)", "double": "real(real64)"}[a.type]
        self.declare(a, type_)
        value = f"c_{a.name}" + " + 1" * a.from_zero
        self.output(a, NUMBERS[a.type], "0", f"int({value})" if a.type == "int32_t" else value)

    def output(self, a, type_, start, value):
        self.local.append(f"{type_} :: c_{a.name}")
        self.before.append(f"c_{a.name} = {start}")
        self.actual[a.name] = f"c_{a.name}"
        self.after.append(f"if (status == sar_ok{f' .and. present({a.name})' * a.optional}) {a.name} = {value}")

    def pass_number(self, a):
        self.declare(a, "real(real64)" if a.type == "double" else "integer")
        if a.type == "double":
            self.actual[a.name] = a.name
            return
        kind = f"c_{a.type.removesuffix('_t')}_t"
        self.actual[a.name] = f"int({a.name}, {kind})" + " - 1" * a.from_zero
        if a.usual:
            self.local.append(f"{NUMBERS[a.type]} :: c_{a.name}")
            self.before += [f"c_{a.name} = {a.usual.lower()}", f"if (present({a.name})) c_{a.name} = int({a.name}, {kind})"]
            self.actual[a.name] = f"c_{a.name}"

    def pass_flag(self, a):
        self.declare(a, "logical")
        self.local.append(f"{NUMBERS[a.type]} :: c_{a.name}")
        self.before += [f"c_{a.name} = 0", f"if (present({a.name})) c_{a.name} = merge(1, 0, {a.name})"]
        self.actual[a.name] = f"c_{a.name}"

    def pass_seed(self, a):
        self.declare(a, f"integer({self.integers})")
        self.actual[a.name] = f"int({a.name}, c_int64_t)"

    def pass_length(self, a):
        given = [b for b in a.length_of if not b.nullable]
        if given:
            self.actual[a.name] = f"size({given[0].name}, kind=c_int64_t)"
        else:
            self.local.append(f"integer(c_int64_t) :: c_{a.name}")
            self.before += [f"c_{a.name} = 0", f"if (present({a.length_of[0].name})) c_{a.name} = size({a.length_of[0].name}, kind=c_int64_t)"]
            self.actual[a.name] = f"c_{a.name}"
        first = (given or a.length_of)[0]
        for b in a.length_of:
            if b is first:
                continue
            if not given:
                raise Refused(f"{self.function.name}: '{b.name}' and '{first.name}' have one length, and both may be null")
            self.before.append(f"if (present({b.name})) " * b.nullable +
                               f"call require_length('{b.name}', size({b.name}), '{first.name}', size({first.name}))")

    def pass_list(self, a):
        if a.type == "uint8_t":
            self.declare(a, "logical", "(:)")
            self.local.append(f"integer(c_int8_t), allocatable, target :: c_{a.name}(:)")
            self.before.append(f"call convert_logical({a.name}, c_{a.name})")
            self.actual[a.name] = f"address_int8(c_{a.name})"
        elif a.from_zero:
            self.declare(a, "integer", "(:)")
            self.actual[a.name] = f"int({a.name}, c_{a.type}) - 1"
        elif a.type == "double":
            rank = len(a.shape)
            self.declare(a, "real(real64)", "(:)" if rank == 1 else "(:, :)", "contiguous, target")
            self.actual[a.name] = (f"address_real64{'_matrix' * (rank == 2)}({a.name})" if a.nullable else a.name)
            if all(n.isdigit() for n in a.shape):
                self.before.append(f"if (present({a.name})) " * a.nullable +
                                   f"call require_shape('{a.name}', shape({a.name}), [{', '.join(reversed(a.shape))}])")
        elif a.is_output:
            self.declare(a, "integer(int64)", "(:)", "contiguous")
            self.actual[a.name] = a.name
        elif self.integers == "int32":
            self.declare(a, "integer(int32)", "(:)")
            self.actual[a.name] = f"int({a.name}, c_int64_t)"
            if a.nullable:
                self.local.append(f"integer(c_int64_t), allocatable, target :: c_{a.name}(:)")
                self.before.append(f"call convert_int32({a.name}, c_{a.name})")
                self.actual[a.name] = f"address_int64(c_{a.name})"
        else:
            self.declare(a, "integer(int64)", "(:)", "contiguous, target" if a.nullable else "contiguous")
            self.actual[a.name] = f"address_int64({a.name})" if a.nullable else a.name

    def pass_array(self, a):
        self.declare(a, f"real({self.reals})", "(:, :)", "contiguous, target")
        self.actual[a.name] = f"array_{self.reals}({a.name}, rows_first)"
        if a.nullable:
            self.local.append(f"type(sar_array), allocatable, target :: c_{a.name}")
            self.before.append(f"if (present({a.name})) c_{a.name} = array_{self.reals}({a.name}, rows_first)")
            self.actual[a.name] = f"address_array(c_{a.name})"

    def pass_column(self, a):
        self.declare(a, "real(real64)", "(:)", "contiguous, target")
        self.local.append(f"type(sar_array), allocatable, target :: c_{a.name}")
        self.before.append(f"if (present({a.name})) c_{a.name} = column({a.name})")
        self.actual[a.name] = f"address_array(c_{a.name})"

    def lines(self, name):
        f = self.function
        result = f.result()
        dummies = [a for a in f.dummies() if a is not result]
        names = ["self"] * bool(f.type) + [a.name for a in dummies] + ["rows_first"] * bool(self.reals)
        declared = [self.declared[a.name] for a in dummies] + ["logical, intent(in), optional :: rows_first"] * bool(self.reals)
        if f.type:
            intent = "inout" if f.self.kind == "created" or f.frees else "in"
            declared.insert(0, f"class({f.type}), intent({intent}) :: self")
        if f.returns != "int":
            type_, value = {"const char*": ("character(len=:), allocatable", f"text_of(c_{f.short}())"),
                            "int32_t": ("integer", f"int(c_{f.short}())")}[f.returns]
            return [f"  function {name}() result(value)", f"    {type_} :: value", f"    value = {value}", "  end function"]
        declared += ["integer, intent(out), optional :: stat", "character(len=*), intent(inout), optional :: errmsg"]
        head = f"{'function' if result else 'subroutine'} {name}({', '.join(names + ['stat', 'errmsg'])})"
        if result:
            head += f" result({result.name})"
            declared.append(self.declared[result.name].replace(", intent(inout)", ""))
        created, old = f.self is not None and f.self.kind == "created", f.frees
        actual = dict(self.actual)
        if f.type:
            actual[f.self.name] = "old" if old else "self%handle"
        call = f"c_{f.name[4:]}({', '.join(actual[a.name] for a in f.arguments)})"
        local = list(self.local) + ["type(c_ptr) :: old"] * old + ["integer :: ignored"] * created + ["integer(c_int) :: status"] * bool(self.after)
        body = ["old = self%handle", "self%handle = c_null_ptr"] * old
        body += ["if (c_associated(self%handle)) call self%free(ignored)"] * created
        if result:
            body.append(f"{result.name} = " + {"text output": "''", "output": "0" if result.type == "double" else "-1"}[result.kind])
        body += self.before
        if self.after:
            body += [f"status = {call}", *self.after, "call tell(status, stat, errmsg)"]
        else:
            body.append(f"call tell({call}, stat, errmsg)")
        rows = wrapped("  " + head) + [row for line in declared + local + body for row in wrapped("    " + line)]
        return rows + [f"  end {'function' if result else 'subroutine'}"]


def methods_of(header, handle):
    """The methods of a type: name -> procedures."""
    methods = {}
    for function in header.functions:
        if function.type == handle:
            methods.setdefault(function.method, []).extend(function.procedure_names())
            if function.frees:
                methods["free"] = function.procedure_names()
    if "free" not in methods:
        raise Refused(f"sar.h: no function frees a {handle}")
    return methods


def write_interface(header):
    public = list(header.handles) + [f.name for f in header.functions if not f.type]
    rows = HEAD + [""] + wrapped("  public :: " + ", ".join(public))
    for comment, entries in header.constants:
        rows += ["", *comment_lines(comment.split("\n\n")[0], "!>", "  ")]
        for name, value, text in entries:
            rows += [*comment_lines(text, "!>", "  "), f"  integer, parameter, public :: {name.lower()} = {value}"]
    for handle, comment in header.handles.items():
        methods = methods_of(header, handle)
        rows += ["", *comment_lines(comment, "!>", "  "), f"  type :: {handle}", "    private", "    type(c_ptr) :: handle = c_null_ptr", "  contains"]
        for name, procedures in methods.items():
            if len(procedures) > 1:
                rows += wrapped(f"    procedure, private :: {', '.join(procedures)}") + wrapped(f"    generic :: {name} => {', '.join(procedures)}")
            else:
                rows.append(f"    procedure :: {name} => {procedures[0]}")
        rows.append("  end type")
    rows += ["", "  type, bind(C) :: sar_array"]
    types = {"void*": "type(c_ptr)", "int32_t": "integer(c_int32_t)", "int64_t": "integer(c_int64_t)"}
    rows += [f"    {types[type_]} :: {name}" + f"({length}) = 0" * bool(length) for type_, name, length in header.fields] + ["  end type", "", "  interface"]
    for function in header.functions:
        rows += interface_of(function)
    return "\n".join(rows + ["  end interface"]) + "\n"


def write_procedures(header):
    rows = list(HEAD)
    for function in header.functions:
        for name, (integers, reals) in zip(function.procedure_names(), function.kinds()):
            rows += ["", *(comment_lines(summary(header, function.comment), "!>", "  ") if function.comment else [])]
            rows += Procedure(function, integers, reals).lines(name)
    return "\n".join(rows) + "\n"


# ---- Writing docs/fortran.md ----

PAGE = """# Procedures of the Fortran module

`bindings/fortran/generate.py` writes this page from `bindings/c/sar.h`. [Programs in C and
Fortran](c_and_fortran.md) has examples.

All procedures end with the optional arguments `integer, intent(out) :: stat` and `character(len=*),
intent(inout) :: errmsg`. `KIND` is `real32` or `real64`, the same for all arrays of a call. Where `int64` is
written for ids and seeds that a program gives, default integers are taken, too: all of a call have one kind. All
objects have `free(stat, errmsg)`.

The texts are those of `sar.h`; handles are objects. Shapes are those of Fortran, and numbers of parameters, classes,
species and local nodes count from 1. With `rows_first=.true.` the arrays of a call are transposed.

## The library
"""


def said_of(header, a):
    """What the page says of an argument."""
    if a.like:
        return f"as in {in_fortran(header, a.like + '()')}"
    facts = []
    if a.shape:
        facts.append(f"({a.shape[0]})" if a.kind == "column" else f"({', '.join(reversed(a.shape))})")
    if a.from_zero:
        facts.append("from 1")
    if a.usual:
        facts.append(f"{a.usual.lower()} if it is left out")
    text = in_fortran(header, a.text)
    if a.nullable:
        text = re.sub(r"\bNULL\b", "left out", re.sub(r"(^|\. )NULL\b(, with length 0\b)?", r"\1Left out", text))
    if a.flag:
        text = re.sub(r"^1\b", ".true.", text)
    return ", ".join(facts) + ": " * bool(facts and text) + text


def show(header, functions):
    """Procedures with their comment, which they share, and their arguments, as Markdown."""
    text = in_fortran(header, re.split(r"^@param", functions[0].comment, flags=re.M)[0].strip())
    rows = ["```text"] + [f"! {row}".rstrip() for row in text.split("\n") if text]
    for function in functions:
        integers, reals = list(function.kinds())[0]
        declared = Procedure(function, integers, "KIND" if reals else None).declared
        result = function.result()
        dummies = [a for a in function.dummies() if a is not result]
        names = ", ".join([a.name for a in dummies] + ["rows_first"] * bool(reals))
        if function.returns != "int":
            rows.append(f"{'integer' if function.returns == 'int32_t' else 'character(len=:), allocatable'} = {function.spoken()}()")
        elif result:
            rows.append(f"{declared[result.name].split(', intent')[0]} = {function.spoken()}({names})" + "  ! from 1" * result.from_zero)
        else:
            rows += wrapped(f"call {function.spoken()}({names})", 106)
        alike = itertools.groupby(dummies, lambda a: (declared[a.name].split(" :: ")[0], said_of(header, a)))
        for (declaration, text), group in alike:
            names = ", ".join(declared[a.name].split(" :: ")[1] for a in group)
            rows.append(f"  {declaration.replace(', contiguous', '').replace(', target', '')} :: {names}")
            rows += textwrap.wrap(text, 106, initial_indent="      ! ", subsequent_indent="      ! ")
        rows += ["  logical, intent(in), optional :: rows_first"] * bool(reals)
    return "\n".join(rows + ["```", ""])


def shown(header, functions):
    """Functions that share a comment in sar.h stay together."""
    return [show(header, list(group)) for _, group in itertools.groupby(functions, lambda f: f.comment)]


def write_page(header):
    rows = [PAGE] + shown(header, [f for f in header.functions if not f.type])
    rows += ["```text", "! Returns the kind that the library computes in, real32 or real64.", "integer = sar_real_kind()", "```", ""]
    for handle, comment in header.handles.items():
        rows += [f"## `type({handle}) :: {handle[4:]}`", "", comment, ""]
        rows += shown(header, [f for f in header.functions if f.type == handle and not f.name.endswith("_free")])
    return "\n".join(rows).rstrip() + "\n"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--header", type=pathlib.Path, default=ROOT / "bindings/c/sar.h")
    options.add_argument("--to", type=pathlib.Path)
    options = options.parse_args()
    try:
        header = Header(options.header)
        files = {"bindings/fortran/sar_interface.inc": write_interface(header), "bindings/fortran/sar_procedures.inc": write_procedures(header),
                 "docs/fortran.md": write_page(header)}
    except Refused as problem:
        sys.exit(f"generate.py: {problem}")
    for name, text in files.items():
        (options.to / pathlib.Path(name).name if options.to else ROOT / name).write_text(text)


if __name__ == "__main__":
    main()
