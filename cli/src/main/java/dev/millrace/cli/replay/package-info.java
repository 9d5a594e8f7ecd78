/** {@code millrace replay}: a recorded run decided again, by its own settings or by others. */
@NullMarked
package dev.millrace.cli.replay;

import org.jspecify.annotations.NullMarked;
