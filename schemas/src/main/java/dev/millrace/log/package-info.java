/** Connection of a role to the log of its run, with alarms, retries, secrets, evaluations and tokenizer files. */
@NullMarked
package dev.millrace.log;

import org.jspecify.annotations.NullMarked;
