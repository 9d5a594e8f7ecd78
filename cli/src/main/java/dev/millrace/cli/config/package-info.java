/** {@code config} and {@code plugins}, and the options by which every command takes its configuration. */
@NullMarked
package dev.millrace.cli.config;

import org.jspecify.annotations.NullMarked;
