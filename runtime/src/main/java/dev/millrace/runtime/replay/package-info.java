/** What a recorded run's configuration says for those who replay it: its task, to evaluate policies in and to sample from. */
@NullMarked
package dev.millrace.runtime.replay;

import org.jspecify.annotations.NullMarked;
