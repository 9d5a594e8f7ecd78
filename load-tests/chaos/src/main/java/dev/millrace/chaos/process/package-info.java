/** The run's roles as processes of their own, which can be killed, stopped, paused and started again. */
@NullMarked
package dev.millrace.chaos.process;

import org.jspecify.annotations.NullMarked;
