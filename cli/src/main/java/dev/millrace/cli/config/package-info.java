/** {@code config} and {@code plugins}, and the configuration options of every command. */
@NullMarked
package dev.millrace.cli.config;

import org.jspecify.annotations.NullMarked;
