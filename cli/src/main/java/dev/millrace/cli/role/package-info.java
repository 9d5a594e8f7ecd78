/** {@code admit}, {@code generate}, {@code score}, {@code stream} and {@code learn}: one role each, on a cluster. */
@NullMarked
package dev.millrace.cli.role;

import org.jspecify.annotations.NullMarked;
