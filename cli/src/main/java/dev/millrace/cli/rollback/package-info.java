/** {@code millrace rollback} and {@code millrace repair}: commands that change what a run goes on from. */
@NullMarked
package dev.millrace.cli.rollback;

import org.jspecify.annotations.NullMarked;
