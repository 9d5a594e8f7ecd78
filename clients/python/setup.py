"""What pyproject.toml cannot say: the compiled reader of records, which nothing needs where it cannot be built."""

from setuptools import Extension, setup

setup(ext_modules=[Extension("millrace_rl._records", ["millrace_rl/_records.c"], extra_compile_args=["-O2"], optional=True)])
