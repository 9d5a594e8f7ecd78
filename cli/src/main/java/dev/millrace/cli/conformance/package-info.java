/** {@code millrace conformance}: golden cases of the corrections, computed and compared, and other programs' engines, asked. */
@NullMarked
package dev.millrace.cli.conformance;

import org.jspecify.annotations.NullMarked;
