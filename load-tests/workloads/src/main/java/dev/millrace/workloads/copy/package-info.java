/** The baseline of every load test: the same bytes, moved by the stock client. */
package dev.millrace.workloads.copy;
