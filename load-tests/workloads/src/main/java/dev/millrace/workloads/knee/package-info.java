/** Where a system stops following its load. Pure. */
package dev.millrace.workloads.knee;
