/** Which plug-ins a command works with, and what they and Millrace itself offer. */
@NullMarked
package dev.millrace.cli.plugin;

import org.jspecify.annotations.NullMarked;
