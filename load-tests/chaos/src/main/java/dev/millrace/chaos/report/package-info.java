/** What runs under faults showed, as tables. */
@NullMarked
package dev.millrace.chaos.report;

import org.jspecify.annotations.NullMarked;
