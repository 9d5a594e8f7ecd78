/** Takes plug-ins into the process. */
@NullMarked
package dev.millrace.runtime.plugin;

import org.jspecify.annotations.NullMarked;
