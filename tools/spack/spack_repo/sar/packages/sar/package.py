# SPDX-License-Identifier: MIT

# The recipe by which Spack builds sar. `spack repo add CLONE/tools/spack/spack_repo/sar` makes it
# known; the sources are those of the clone that holds it.
import os

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Sar(CMakePackage):
    """Training of graph neural networks on graphs too large for one machine, by Sequential
    Aggregation and Rematerialization: a C++ library for programs that run under MPI, with
    interfaces for C and Fortran, and programs that train, partition and generate graphs."""

    homepage = "https://arxiv.org/abs/2111.06483"
    git = "file://" + os.path.realpath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 6))

    license("MIT")

    version("main", branch="main", preferred=True)  # what the clone has
    version("0.1.0", tag="v0.1.0")

    variant(
        "precision",
        default="single",
        values=("single", "double", "both"),
        multi=False,
        description="Scalar type of tensors; both builds each library twice",
    )
    variant("data", default=True, description="Build sar::data: datasets, files, partitioners")
    variant("models", default=True, description="Build sar::models and the interface for C")
    variant("metis", default=True, when="+data", description="Partition graphs by METIS")
    variant("scotch", default=True, when="+data", description="Partition graphs by PT-Scotch")
    variant("fortran", default=False, when="+models", description="Build the Fortran module")
    variant("shared", default=True, when="+models", description="Build a shared library for C")
    variant(
        "tools",
        default=True,
        when="+data+models",
        description="Build the programs train, partition and so on",
    )
    variant(
        "native",
        default=False,
        description="Compile for this processor; else kernels are chosen at run time",
    )
    variant("pic", default=True, description="Static libraries that shared ones may contain")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.22:", type=("build", "test"))
    depends_on("ninja", type="build")

    depends_on("mpi@3:")
    depends_on("tbb")
    depends_on("eigen@3.4:", type="build")
    depends_on("nlohmann-json@3.9:", type="build")
    depends_on("metis@5:", when="+metis")
    depends_on("scotch+mpi", when="+scotch")
    depends_on("cli11", type="build", when="+tools")
    depends_on("zlib-api", when="+tools")
    depends_on("doctest", type="test")

    conflicts("%gcc@:11", msg="sar is written in C++20: GCC 12 or later compiles it")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define_from_variant("SAR_PRECISION", "precision"),
            self.define_from_variant("SAR_BUILD_DATA", "data"),
            self.define_from_variant("SAR_BUILD_MODELS", "models"),
            self.define_from_variant("SAR_METIS", "metis"),
            self.define_from_variant("SAR_SCOTCH", "scotch"),
            self.define_from_variant("SAR_FORTRAN", "fortran"),
            self.define_from_variant("SAR_SHARED_C", "shared"),
            self.define_from_variant("SAR_BUILD_TOOLS", "tools"),
            self.define_from_variant("SAR_NATIVE", "native"),
            self.define_from_variant("CMAKE_POSITION_INDEPENDENT_CODE", "pic"),
            self.define("SAR_ARROW", False),
            self.define("SAR_SQLITE", False),
            self.define("SAR_LMDB", False),
            self.define("SAR_BUILD_TESTS", self.run_tests),
            self.define("SAR_BUILD_EXAMPLES", False),
            self.define("SAR_BUILD_BENCHMARKS", False),
        ]

    smoke_dir = join_path("tests", "package", "smoke")

    @run_after("install")
    def keep_smoke_test(self):
        """Keeps the sources of `spack test`, which runs when those of the build are gone."""
        solvers = [join_path("examples", name) for name in ("c_solver", "fortran_solver")]
        host = join_path("tests", "consumer", "host")
        cache_extra_test_sources(self, [self.smoke_dir, host] + solvers)

    def test_smoke(self):
        """programs in each language find the library, and train on two ranks"""
        languages = ["CXX"]
        if self.spec.satisfies("+models"):
            languages.append("C")
        if self.spec.satisfies("+fortran"):
            languages.append("Fortran")
        cmake = self.spec["cmake"].command
        ctest = which(self.spec["cmake"].prefix.bin.ctest)
        source = join_path(self.test_suite.current_test_cache_dir, self.smoke_dir)
        with working_dir("smoke", create=True):
            cmake(
                "-DCMAKE_PREFIX_PATH=" + str(self.prefix),
                "-DMPI_HOME=" + str(self.spec["mpi"].prefix),
                "-DSMOKE_LANGUAGES=" + ";".join(languages),
                source,
            )
            cmake("--build", ".")
            ctest("--output-on-failure")
