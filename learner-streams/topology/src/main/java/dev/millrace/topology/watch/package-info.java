/**
 * Nothing waits without a limit, and no limit passes without a word: what stages wait for, and alarms about waits that make
 * no progress. What is waited for is the tasks' own to say, when it is too long is decided here.
 */
@NullMarked
package dev.millrace.topology.watch;

import org.jspecify.annotations.NullMarked;
