/** Ends a process at a named point of its protocols: a send, a commit, a manifest, a load. */
@NullMarked
package dev.millrace.chaos.halt;

import org.jspecify.annotations.NullMarked;
