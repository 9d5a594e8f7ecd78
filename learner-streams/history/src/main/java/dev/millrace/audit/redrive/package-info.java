/**
 * The dead letters of a run: what was refused, why, and putting it back.
 *
 * <p>A letter is redriven once or not at all: the record on its source topic and the mark beside the letter (see
 * {@link dev.millrace.log.deadletter.RedriveMark}) are one transaction, under one transactional id for the run, and who
 * redrives reads every mark after having fenced whoever did so before.
 */
@NullMarked
package dev.millrace.audit.redrive;

import org.jspecify.annotations.NullMarked;
