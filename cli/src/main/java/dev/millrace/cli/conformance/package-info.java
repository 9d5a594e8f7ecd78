/** {@code millrace conformance}: golden cases of the corrections, computed and compared. */
@NullMarked
package dev.millrace.cli.conformance;

import org.jspecify.annotations.NullMarked;
