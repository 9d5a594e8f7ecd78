/** Where a system stops following its load. Pure. */
@NullMarked
package dev.millrace.workloads.knee;

import org.jspecify.annotations.NullMarked;
