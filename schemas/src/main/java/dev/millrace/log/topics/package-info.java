/**
 * Topics with the settings that a run relies on: created where they are missing, checked where they are there.
 *
 * <p>{@link dev.millrace.log.topics.TopicAdministration} ends only when every partition has a leader that
 * answers: a record that is produced earlier may be lost without an error (KAFKA-15591).
 */
@NullMarked
package dev.millrace.log.topics;

import org.jspecify.annotations.NullMarked;
