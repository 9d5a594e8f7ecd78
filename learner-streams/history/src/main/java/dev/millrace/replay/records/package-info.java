/** Records that another system dumped, as an archive. */
@NullMarked
package dev.millrace.replay.records;

import org.jspecify.annotations.NullMarked;
