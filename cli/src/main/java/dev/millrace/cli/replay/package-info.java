/** {@code millrace replay}: a recorded run decided again, by its own settings or by others. */
package dev.millrace.cli.replay;
