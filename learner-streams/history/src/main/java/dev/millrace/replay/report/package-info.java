/** What a replay found, as reports: totals and figures of each step, of each variant that learnt again, of each gradient. */
@NullMarked
package dev.millrace.replay.report;

import org.jspecify.annotations.NullMarked;
