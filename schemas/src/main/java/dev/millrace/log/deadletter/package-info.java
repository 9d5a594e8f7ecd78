/** Dead letters, their redrive, and the quarantine of generators. */
@NullMarked
package dev.millrace.log.deadletter;

import org.jspecify.annotations.NullMarked;
