/** What must hold when the faults are over. */
@NullMarked
package dev.millrace.chaos.check;

import org.jspecify.annotations.NullMarked;
