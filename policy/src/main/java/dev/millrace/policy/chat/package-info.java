/** Conversations as a checkpoint was taught to read them: its chat template, rendered within bounds, since it is a stranger's program. */
@NullMarked
package dev.millrace.policy.chat;

import org.jspecify.annotations.NullMarked;
