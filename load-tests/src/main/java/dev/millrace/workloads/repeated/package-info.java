/** A long run made of a short recorded one, for what has to bear runs of any length. */
@NullMarked
package dev.millrace.workloads.repeated;

import org.jspecify.annotations.NullMarked;
