"""Builds the optional compiled record reader, which pyproject.toml cannot declare."""

from setuptools import Extension, setup

setup(ext_modules=[Extension("millrace_rl._records", ["millrace_rl/_records.c"], extra_compile_args=["-O2"], optional=True)])
