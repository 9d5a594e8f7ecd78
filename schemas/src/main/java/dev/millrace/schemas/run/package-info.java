/** The identity of a run, the names of its topics, and which record is on which of them. */
@NullMarked
package dev.millrace.schemas.run;

import org.jspecify.annotations.NullMarked;
