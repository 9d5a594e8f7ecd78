/** Which faults there are, and a schedule of them that a seed decides. */
@NullMarked
package dev.millrace.chaos.fault;

import org.jspecify.annotations.NullMarked;
