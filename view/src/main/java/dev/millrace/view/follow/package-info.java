/** Opens a run for the page, live or from its broker files, and follows it while a client is connected. */
@NullMarked
package dev.millrace.view.follow;

import org.jspecify.annotations.NullMarked;
