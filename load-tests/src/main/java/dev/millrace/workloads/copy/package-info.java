/** The baseline of every load test: the same bytes, moved by the stock client. */
@NullMarked
package dev.millrace.workloads.copy;

import org.jspecify.annotations.NullMarked;
