/** A load test's report as files: a page with curves that needs no network, pictures, tables. */
@NullMarked
package dev.millrace.workloads.page;

import org.jspecify.annotations.NullMarked;
