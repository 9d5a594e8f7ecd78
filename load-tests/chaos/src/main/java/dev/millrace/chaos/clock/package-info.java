/** A process' wall clock, set while it runs: nobody need be root for it, and no other process sees it. */
@NullMarked
package dev.millrace.chaos.clock;

import org.jspecify.annotations.NullMarked;
