/** Reports of a replay: totals, and figures per step, per relearned variant and per gradient. */
@NullMarked
package dev.millrace.replay.report;

import org.jspecify.annotations.NullMarked;
