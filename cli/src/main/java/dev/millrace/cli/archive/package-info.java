/** {@code millrace export} and {@code millrace import}: runs to files and back. */
@NullMarked
package dev.millrace.cli.archive;

import org.jspecify.annotations.NullMarked;
