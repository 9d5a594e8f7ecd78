/** {@code millrace quarantine}. */
@NullMarked
package dev.millrace.cli.quarantine;

import org.jspecify.annotations.NullMarked;
