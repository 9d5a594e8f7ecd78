/** A load test's report as files: a page with curves that needs no network, pictures, tables. */
package dev.millrace.workloads.page;
