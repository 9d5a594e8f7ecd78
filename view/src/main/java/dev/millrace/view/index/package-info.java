/** SQLite index of a run's records: positions and the numbers that the page queries. Filled on use, rebuilt if missing. */
@NullMarked
package dev.millrace.view.index;

import org.jspecify.annotations.NullMarked;
