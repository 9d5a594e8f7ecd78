/** {@code model} and {@code bench}. */
@NullMarked
package dev.millrace.cli.model;

import org.jspecify.annotations.NullMarked;
