/** Commands on a recorded run: {@code replay}, {@code export}, {@code import}. */
@NullMarked
package dev.millrace.cli.replay;

import org.jspecify.annotations.NullMarked;
