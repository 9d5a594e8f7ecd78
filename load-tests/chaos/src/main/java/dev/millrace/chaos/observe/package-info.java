/** What is seen of a run from outside while faults are done to it. */
@NullMarked
package dev.millrace.chaos.observe;

import org.jspecify.annotations.NullMarked;
