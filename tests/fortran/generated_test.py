# SPDX-License-Identifier: MIT

"""generated_test.py SOURCE_DIR: the Fortran interface and its page are what bindings/fortran/generate.py makes of sar.h now; a function that
is added to sar.h changes them; declarations without a rule are refused, with their place and their cause."""
import difflib
import pathlib
import subprocess
import sys
import tempfile

root = pathlib.Path(sys.argv[1])
files = ["bindings/fortran/sar_interface.inc", "bindings/fortran/sar_procedures.inc", "docs/fortran.md"]
header = (root / "bindings/c/sar.h").read_text()
last = "#ifdef __cplusplus\n} /* extern"
failures = []


def generate(text, folder):
    (folder / "sar.h").write_text(text)
    return subprocess.run([sys.executable, root / "bindings/fortran/generate.py", "--header", folder / "sar.h", "--to", folder], text=True,
                          capture_output=True)


def differing_files(folder):
    return [name for name in files if (folder / pathlib.Path(name).name).read_text() != (root / name).read_text()]


def refuses(added, *words):
    """sar.h with these lines at its end is refused, with these words and the line of the declaration."""
    with tempfile.TemporaryDirectory() as folder:
        ran = generate(header.replace(last, added + "\n\n" + last), pathlib.Path(folder))
        if ran.returncode == 0:
            failures.append(f"this is not refused: {added}")
        elif not all(word in ran.stderr for word in ("generate.py: sar.h:", *words)) or "Traceback" in ran.stderr:
            failures.append(f"expected {words} for {added}\nfound: {ran.stderr}")


assert header.count(last) == 1
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    ran = generate(header, folder)
    if ran.returncode:
        sys.exit(f"FAILED: {ran.stderr}")
    for name in differing_files(folder):
        old, new = (root / name).read_text().splitlines(), (folder / pathlib.Path(name).name).read_text().splitlines()
        print("\n".join(list(difflib.unified_diff(old, new, name, "generated", lineterm="", n=1))[:40]))
        failures.append(f"{name} is not what sar.h says now: run bindings/fortran/generate.py and commit what it writes")

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    ran = generate(header.replace(last, "/* Adds two lists.\n *\n * @param[in] values  [count]\n * @param[out] sum  from 0 */\n"
                                  "SAR_API int sar_model_total(sar_model model, int64_t count, const int64_t* values, int64_t* sum);\n\n" + last), folder)
    if ran.returncode or differing_files(folder) != files:
        failures.append(f"a new function of sar.h does not change all of {files}: {ran.stderr}")
    elif "subroutine model_total_int64(self, values, sum, stat, errmsg)" not in (folder / "sar_procedures.inc").read_text():
        failures.append("the new function has other arguments than expected")

line = header[:header.index(last)].count("\n") + 1
refuses("SAR_API int sar_wrong(long count);", f"sar.h:{line}: sar_wrong: ", "there is no rule for the argument 'count' of the type long")
refuses("SAR_API int sar_wrong(sar_edge edge);", "there is no rule for the argument 'edge' of the type sar_edge")
refuses("SAR_API int sar_wrong(int (*callback)(int));", "sar_wrong", "cannot be read")
refuses("SAR_API double sar_wrong(void);", "there is no rule for a function that returns double")
refuses("int sar_wrong(void);", "this cannot be read: int sar_wrong(void);")
refuses("SAR_API int sar_wrong(const int64_t* values);", "'values' of the type const int64_t*", "say its length")
refuses("SAR_API int sar_wrong(const sar_array* x);", "'x' of the type const sar_array*", "say its shape")
refuses("SAR_API int sar_wrong(sar_array* x);", "@param[out] x  [rows, fields]")


def refuses_lines(lines, arguments, *words):
    refuses("/* Wrong.\n *\n" + "\n".join(f" * {row}" for row in lines) + f" */\nSAR_API int sar_wrong({arguments});", "sar_wrong", *words)


two = "int64_t num_ids, const int64_t* ids"
refuses_lines(["@param[in] ids  [number]"], two, "[number] names no argument of the type int64_t")
refuses_lines(["@param[in] idss  [num_ids]"], two, "@param idss: there is no such argument")
refuses_lines(["@param[out] ids  [num_ids]"], two, "@param[out] ids: its type is that of an input")
refuses_lines(["@param[in] ids [num_ids]"], two, "with two blanks")
refuses_lines(["@param[in] ids  [num_ids], maybe NULL: ids"], two, "'maybe NULL' is none of [shape], may be NULL")
refuses_lines(["@param[in] ids  [num_ids]", "@param[in] ids  [num_ids]"], two, "'ids' has two @param lines")
refuses_lines(["@param[in] ids  as in sar_train_step()"], two, "sar_train_step() has no such argument")
refuses_lines(["@param[in] count  may be NULL"], "int64_t count", "'may be NULL' does not fit the type int64_t")
refuses_lines(["@param[in] x  [rows, fields], may be NULL"], "const sar_array* x", "no argument says their kind")
refuses("/* A handle. */\ntypedef struct sar_lost_s* sar_lost;\n\n/* Makes one. */\nSAR_API int sar_lost_create(sar_comm comm, sar_lost* lost);",
        "no function frees a sar_lost")

for failure in failures:
    print(f"FAILED: {failure}")
sys.exit(1 if failures else 0)
